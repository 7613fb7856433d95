"""Which sentence of the user a newer one ends: only one about the same thing, and only if it says so for sure."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.marks import read
from mcp_memory.longterm.contradiction import Embedded, replaced_by
from mcp_memory.models.embed.bundled import BundledEmbedder
from tests.longterm.by_hand import statement

FIXTURES = Path(__file__).parents[2] / "fixtures/changes"


def closes(newer: str, older: str) -> bool:
    vectors = BundledEmbedder().embed([newer, older])
    new, old = (statement(text, kind="episodic", label="plan") for text in (newer, older))
    return replaced_by(Embedded(new, vectors[0]), [Embedded(old, vectors[1])])


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("The operation on my left eye is on 19 May.", "The operation on my left eye is moved to 9 June."),
        ("The dentist appointment for Anna is on 12 May.", "The dentist appointment for Anna is now on 14 May."),
        ("The meeting is at 9.", "The meeting is not at 9 but at 10 now."),
        ("I weigh 80 kg.", "I now weigh 78 kg."),
        ("I live in Oslo.", "I live in Bergen now."),
        ("Ich wohne in Kassel.", "Ich bin nach Ulm gezogen."),
        ("Der Zahnarzttermin ist am 12. Mai.", "Der Zahnarzttermin ist jetzt am 14. Mai."),
    ],
)
def test_another_value_of_the_same_thing_ends_the_older_sentence(older: str, newer: str) -> None:
    assert closes(newer, older)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("The operation on my left eye is on 19 May.", "The operation on my right eye is moved to 9 June."),
        ("The dentist appointment for Anna is on 12 May.", "The dentist appointment for Ben is now on 14 May."),
        ("I take 5 mg of ramipril every morning.", "I now take 10 mg of bisoprolol every evening."),
        ("I run 10 km on Mondays.", "I now run 15 km on Thursdays."),
        ("Der Zahnarzttermin ist am 12. Mai.", "Der Augenarzttermin ist jetzt am 14. Mai."),
        ("L'assurance auto coûte 41 euros.", "L'assurance habitation coûte maintenant 18 euros."),
        ("El equipo de ventas tiene 8 personas.", "El equipo de soporte tiene ahora 11 personas."),
        ("母の薬は朝1錠です。", "父の薬は今は朝2錠です。"),
    ],
)
def test_a_value_of_another_thing_or_person_ends_nothing(older: str, newer: str) -> None:
    assert not closes(newer, older)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("The exam is on 12 June.", "Maybe the exam is moved to 19 June instead."),
        ("The exam is on 12 June.", "The exam is not moved to 19 June after all, it stays on 12 June."),
        ("The exam is on 12 June.", "Is the exam now on 19 June?"),
        ("The exam is on 12 June.", "If Tom cannot come, the exam is moved to 19 June instead."),
        ("Das Treffen ist am 9. Juni.", "Das Treffen ist jetzt wahrscheinlich am 16. Juni."),
        ("Das Treffen ist am 9. Juni.", "Das Treffen wird nicht auf den 16. Juni verschoben."),
        ("Das Treffen ist am 9. Juni.", "Wenn Tom nicht kann, ist das Treffen jetzt am 16. Juni."),
        ("La réunion est le 9 juin.", "Si Tom ne vient pas, la réunion est maintenant le 16 juin."),
        ("La reunión es el 9 de junio.", "La reunión no se ha movido al 16 de junio."),
        ("会议是6月9日。", "会议没有改到6月16日。"),
    ],
)
def test_a_denied_unsure_or_conditional_change_ends_nothing(older: str, newer: str) -> None:
    assert not closes(newer, older)


@pytest.mark.parametrize("name", ["third", "seventh", "eighth"])
def test_closings_are_right_and_most_changes_are_closed(name: str) -> None:
    pairs = read(FIXTURES / f"{name}.jsonl")
    closed = [pair for pair in pairs if closes(pair.newer, pair.older)]
    right = sum(pair.is_change for pair in closed)
    assert len(closed) - right <= 1
    assert right >= 0.6 * sum(pair.is_change for pair in pairs)
