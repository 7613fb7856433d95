"""`python -m bench.rules` reports precision and recall of standing rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.rules import Sentence, figures, has_cue_word, probability_of, read, states, table

RULES = Path(__file__).parents[2] / "fixtures/rules"
LABELLED = sorted(RULES.glob("[al][ua]*.jsonl"))
"""Files by authors who did not know the code."""


def sentence(text: str, *, is_rule: bool, probability: float = 0.0) -> Sentence:
    return Sentence(text, "en", "", is_rule, probability)


def test_precision_is_of_what_was_found_and_recall_of_what_is_a_rule() -> None:
    rows = [sentence("a", is_rule=True), sentence("b", is_rule=True), sentence("ab", is_rule=False)]
    assert figures(rows, lambda one: "a" in one.text) == (0.5, 0.5)


def test_a_rule_is_probable_and_has_a_cue_word_and_an_errand_is_and_has_neither() -> None:
    assert probability_of("Never push straight to main.") > 0.8
    assert probability_of("The kettle leaks.") < 0.2
    assert has_cue_word(sentence("Never push straight to main.", is_rule=True))
    assert not has_cue_word(sentence("The kettle leaks.", is_rule=False))


def test_the_report_has_a_line_for_all_for_each_language_and_for_each_kind() -> None:
    rows = [Sentence("Never push.", "en", "plain", True, 0.9), Sentence("Der Kessel leckt.", "de", "fact", False, 0.1)]
    lines = list(table(rows))
    assert [line.split()[0] for line in lines[1:4]] == ["all", "de", "en"]
    assert [line.split()[-2] for line in lines[-2:]] == ["100.0%", "100.0%"]


def test_sentences_that_the_models_were_fitted_on_are_measured_by_models_that_were_not_or_not_at_all() -> None:
    assert list(read(RULES / "pairs.jsonl")) == []
    rows = list(read(RULES / "author_a.jsonl"))
    assert 0 < sum(states(row) is not row.is_rule for row in rows) < len(rows) / 4


@pytest.mark.parametrize("path", LABELLED, ids=lambda path: path.stem)
def test_the_labelled_sentences_are_each_once_with_rules_and_others(path: Path) -> None:
    rows = list(read(path))
    assert len({row.text for row in rows}) == len(rows)
    assert 0.3 < sum(row.is_rule for row in rows) / len(rows) < 0.6
