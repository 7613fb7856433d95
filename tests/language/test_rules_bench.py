"""`python -m bench.rules` reports precision and recall of standing rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.rules import Sentence, by_cue_words, by_grammar, figures, read, table

LABELLED = sorted((Path(__file__).parents[2] / "fixtures/rules").glob("*.jsonl"))


def sentence(text: str, *, is_rule: bool) -> Sentence:
    return Sentence(text, "en", "", is_rule)


def test_precision_is_of_what_was_found_and_recall_of_what_is_a_rule() -> None:
    rows = [sentence("a", is_rule=True), sentence("b", is_rule=True), sentence("ab", is_rule=False)]
    assert figures(rows, lambda text: "a" in text) == (0.5, 0.5)


def test_an_order_for_good_is_found_by_the_grammar_and_by_cue_words_and_an_errand_by_neither() -> None:
    assert by_grammar("Never push straight to main.")
    assert by_cue_words("Never push straight to main.")
    assert not by_grammar("The kettle leaks.")
    assert not by_cue_words("The kettle leaks.")


def test_the_report_has_a_line_for_all_for_each_language_and_for_each_kind() -> None:
    rows = [Sentence("Never push.", "en", "plain", True), Sentence("Der Kessel leckt.", "de", "fact", False)]
    lines = list(table(rows))
    assert [line.split()[0] for line in lines[1:4]] == ["all", "de", "en"]
    assert [line.split()[-2] for line in lines[-2:]] == ["100.0%", "100.0%"]


@pytest.mark.parametrize("path", LABELLED, ids=lambda path: path.stem)
def test_the_labelled_sentences_are_each_once_with_rules_and_others(path: Path) -> None:
    rows = list(read(path))
    assert len({row.text for row in rows}) == len(rows)
    assert 0.3 < sum(row.is_rule for row in rows) / len(rows) < 0.6
