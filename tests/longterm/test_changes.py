"""Whether a newer text changes what an older one says.

`changes_pairs.jsonl` holds 120 invented pairs in ten languages, written before the code they measure: 40 changes in few
shared words, 40 pairs beside each other (one topic, two slots), 20 repetitions and 20 unrelated pairs. `cosine` is that
of the bundled model.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.longterm.change_values import Phrases, any_of, differ, phrases_by_name, values_in
from mcp_memory.longterm.changes import CONTRADICTS, replaces, same_slot, slot_score
from mcp_memory.longterm.value_clauses import value_clauses

PAIRS: list[dict[str, Any]] = [
    json.loads(line) for line in Path(__file__).with_name("changes_pairs.jsonl").read_text("utf-8").splitlines()
]


def readings(text: str) -> list[tuple[str, Any, str]]:
    return [(value.kind, value.reading, value.unit) for value in values_in(text)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("due 27 November", [("date", (11, 27), "")]),
        ("November 27th, 2026", [("date", (11, 27), "")]),
        ("el 4 de junio", [("date", (6, 4), "")]),
        ("Termin 03.06. um 14 Uhr", [("date", (6, 3), ""), ("clock", 840.0, "")]),
        ("6月10日 周三下午三点", [("date", (6, 10), ""), ("weekday", 2.0, ""), ("clock", 900.0, "")]),
        ("5월 8일", [("date", (5, 8), "")]),
        ("15 марта", [("date", (3, 15), "")]),
        ("2026-03-05", [("date", (3, 5), "")]),
        ("the 27th", [("date", (None, 27), "")]),
        ("at 2 pm or 14:00", [("clock", 840.0, ""), ("clock", 840.0, "")]),
        ("à 7h20", [("clock", 440.0, "")]),
        ("rent is 1,340", [("amount", 1340.0, "")]),
        ("Miete 1.340,50 €", [("amount", 1340.5, "eur")]),
        ("100k, cap 1.5 million", [("amount", 100_000.0, ""), ("amount", 1_500_000.0, "")]),
        ("8万5000円", [("amount", 85_000.0, "jpy")]),
        ("we use MySQL 8", [("version", "8", "mysql")]),
        ("Tests run on Python 3.11.", [("version", "3.11", "python")]),
        ("three beds, 45 cm high", [("amount", 45.0, "cm")]),
        ("In 2003 we may march", []),
    ],
)
def test_values_are_read_as_people_write_them(text: str, found: list[tuple[str, Any, str]]) -> None:
    assert readings(text) == found


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [
        ("27 November", "the 27th", False),
        ("27 November", "the 28th", True),
        ("at 3 o'clock", "15:00", False),
        ("at 4 o'clock", "15:00", True),
        ("€2,500", "2500 euros", False),
        ("MySQL 8", "PostgreSQL 8", True),
    ],
)
def test_what_may_be_the_same_value_does_not_differ(one: str, other: str, apart: bool) -> None:
    assert differ(values_in(one)[0], values_in(other)[0]) is apart


def test_a_value_that_no_longer_holds_is_no_value_of_a_statement() -> None:
    (told,) = value_clauses("the file has to be there by 12, not 14")
    assert ([value.reading for value in told.values], [value.reading for value in told.former]) == ([12.0], [14.0])


def test_prices_of_several_things_are_several_statements() -> None:
    told = value_clauses("Prices: cup 24 €, bowl 32 €, plate 45 €")
    assert [(one.values[0].reading, set(one.words)) for one in told if one.values] == [
        (24.0, {"cup"}),
        (32.0, {"bowl"}),
        (45.0, {"plate"}),
    ]


@pytest.mark.parametrize(
    ("older", "newer", "cosine"),
    [
        ("the pilot is due 27 November", "pilot starts on 4 December", 0.61),
        ("we use MySQL 8", "production runs on PostgreSQL 17", 0.54),
        ("rent is 1,340", "Miete jetzt 1.400", 0.49),
        ("lives in Porto", "moved to Leeds", 0.42),
    ],
)
def test_another_value_of_the_same_contradicts_in_whatever_words(older: str, newer: str, cosine: float) -> None:
    assert slot_score(newer, older, cosine=cosine) >= CONTRADICTS
    assert slot_score(newer, older) >= CONTRADICTS


@pytest.mark.parametrize(
    ("older", "newer", "cosine"),
    [
        ("Vivimos en Valencia.", "Meine Schwester ist nach Bremen gezogen.", 0.26),
        ("Das Abo kostet 9,99 € im Monat.", "We betalen nu 1.225 euro huur.", 0.47),
        ("We use Figma for design.", "Gehostet wird jetzt bei OVH.", 0.15),
        ("Ana lives in Porto.", "Ben moved to Leeds.", 0.27),
        ("The demo is on 9 May.", "Le démontage a lieu le 30 octobre.", 0.32),
        ("Flour costs 1.20 a kilo.", "Butter now costs 2.60.", 0.55),
    ],
)
def test_one_relation_of_two_things_is_no_contradiction(older: str, newer: str, cosine: float) -> None:
    assert slot_score(newer, older, cosine=cosine) < CONTRADICTS
    assert not replaces(newer, older, cosine=cosine)


def test_a_newer_date_replaces_the_older_one() -> None:
    assert replaces("opening is now 15 September, also a Tuesday", "opening is on 1 September, a Tuesday")


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("We pay 900 rent a month.", "The rent is 940 now."),  # neither "rent" nor "now" is counted
        ("The rent is 940.", "From June the rent goes up to 980."),
        ("La cantine coûte 4,20 euros.", "La cantine est passée à 4,60 euros."),
    ],
)
def test_a_newer_price_replaces_the_older_one(older: str, newer: str) -> None:
    assert replaces(newer, older, cosine=0.6)


def test_an_answer_is_about_what_was_asked() -> None:
    older, newer = "1. September, ein Dienstag.", "Eröffnung ist jetzt am 15. September"
    assert replaces(newer, older, asked="Klingt gut. Wann willst du öffnen?")
    assert not replaces(newer, older, asked="Wann hat deine Oma Geburtstag?")
    assert not replaces(newer, older)


def test_a_value_that_is_revoked_replaces_the_turn_that_has_it() -> None:
    older = "Every Friday by 14:00 he must have the departures of next week"
    assert replaces("on Friday he needs it by 12, not 14", older, cosine=0.5)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("The concert is on 5 May.", "The dress rehearsal is now on 4 May."),
        ("Coffee is 3.20.", "Tea is now 2.80."),
        ("Opening is on 1 September.", "Is the opening now on 15 September?"),
        ("Is the opening on Tuesday?", "The opening is now on Friday."),
        (
            "Opening is on 1 September.",
            "Opening stays on 1 September. The party for the opening is now on 15 September.",
        ),
        ("The bakery opens at 6:30.", "We open at 9:00 now."),
        ("The launch is on 1 October.", "The launch is now fixed: 1 October."),
        ("Now write 300 words on SDG 7.", "Now write 300 words on SDG 12."),
        ("Room 4 seats 12 people.", "Room 7 seats 20 people."),
        ("The shelf is 80 cm wide.", "We now have another shelf, 120 cm wide."),
        ("My bus leaves at 7:12.", "The last bus now leaves at 23:40."),
        ("Mein Zahnarzttermin ist am 4. Mai.", "Der Termin beim Augenarzt wurde auf den 11. Mai verschoben."),
        ("The pool costs 5 euros.", "The car park of the pool now costs 2 euros."),
        ("The pool's car park costs 2 euros.", "The pool now costs 6 euros."),
        ("The seminar is on 3 May.", "The briefing for the seminar is now on 26 April."),
        ("L'assurance auto coûte 41 euros.", "L'assurance habitation coûte maintenant 18 euros."),
        ("Le toit coûtera 9 000 euros.", "L'artisan a dit : « votre toit, ce sera 11 000 maintenant »."),
        ("There are 3 pizzas in the freezer.", "Not 3 but 4 guests come on Saturday."),
    ],
)
def test_nothing_is_replaced_by_what_is_of_something_else_or_asked_or_the_same(older: str, newer: str) -> None:
    assert not replaces(newer, older)


def precision_and_recall(judged: list[bool]) -> tuple[float, float]:
    right = sum(one for one, pair in zip(judged, PAIRS, strict=True) if pair["kind"] == "changed")
    return right / sum(judged), right / sum(pair["kind"] == "changed" for pair in PAIRS)


def test_changes_of_pairs_that_nobody_tuned_on_are_found() -> None:
    found = [same_slot(pair["newer"], pair["older"], cosine=pair["cosine"]) for pair in PAIRS]
    precision, recall = precision_and_recall(found)
    assert (precision >= 0.87, recall >= 0.8) == (True, True)
    without = [same_slot(pair["newer"], pair["older"]) for pair in PAIRS]
    precision, recall = precision_and_recall(without)
    assert (precision >= 0.85, recall >= 0.75) == (True, True)


def test_no_pair_is_marked_as_replaced_wrongly() -> None:
    marked = [replaces(pair["newer"], pair["older"], cosine=pair["cosine"]) for pair in PAIRS]
    precision, recall = precision_and_recall(marked)
    assert (precision, recall >= 0.5) == (1.0, True)


@given(st.text(max_size=200), st.text(max_size=200), st.sampled_from([None, -1.0, 0.5, 1.0]))
def test_any_two_texts_can_be_judged(newer: str, older: str, cosine: float | None) -> None:
    assert 0.0 <= slot_score(newer, older, cosine=cosine) <= 1.0
    assert replaces(newer, older, cosine=cosine, asked=older) in (True, False)


def test_only_the_start_of_a_long_text_is_read() -> None:
    older, newer = "The opening is on 1 September.", "The opening is now on 15 September."
    assert replaces(newer + " Then came a story." * 500, older)
    assert not replaces("Then came a story. " * 500 + newer, older)


@given(st.sampled_from([pair["newer"] for pair in PAIRS]))
def test_a_text_never_changes_itself(text: str) -> None:
    assert not same_slot(text, text)
    assert not replaces(text, text)


TABLES = {kind: list(phrases_by_name(kind).values()) for kind in ("changed", "former", "further", "month", "relation")}


@given(st.sampled_from(sorted(TABLES)), st.data())
def test_the_fast_check_of_phrases_rejects_no_text_that_has_one(kind: str, data: st.DataObject) -> None:
    phrase = data.draw(st.sampled_from([phrase for table in TABLES[kind] for phrase in table.split("|")]))
    text = data.draw(st.from_regex(re.compile(any_of([phrase]), re.IGNORECASE)).map(lambda text: text[:300]))
    assert Phrases(TABLES[kind]).are_in(text) == bool(re.search(any_of(TABLES[kind]), text, re.IGNORECASE))
