"""Words of many languages are found again, in the real store and against all other languages in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.languages import TOP, Language, fts5, languages, ours, share, table

FIXTURES = languages()
FIRST = 80  # per cent of a language's questions whose turn comes first


@pytest.mark.slow
async def test_a_question_in_any_language_finds_its_turn(home: Path) -> None:
    found = await ours(FIXTURES, home)
    assert {code: share(ranks, TOP) for code, ranks in found.items()} == dict.fromkeys(found, 100.0)
    assert {code for code, ranks in found.items() if share(ranks, 1) < FIRST} == set()


@pytest.mark.parametrize("language", FIXTURES, ids=lambda language: language.code)
def test_each_question_asks_for_a_turn_that_is_there(language: Language) -> None:
    assert len(set(language.turns)) == len(language.turns)
    assert all(0 <= question.turn < len(language.turns) for question in language.questions)


def test_the_table_has_a_line_for_each_language_and_one_for_all() -> None:
    floor = fts5(FIXTURES, "unicode61")
    lines = table(FIXTURES, {"unicode61": floor})
    assert len(lines) == len(FIXTURES) + 2
    assert lines[-1].startswith("all")
