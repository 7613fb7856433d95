"""The figures of retrieval, on rankings small enough to work out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bench.metrics import METRICS, difference, figures, intervals, means
from bench.sets import Question
from bench.stats import timings_ms
from mcp_memory.cli.evaluation.report import mean_interval


def question(*, turns: set[str], sessions: set[str]) -> Question:
    return Question(
        id="q",
        type="fact",
        question="where?",
        haystack=(),
        evidence_turns=frozenset(turns),
        evidence_sessions=frozenset(sessions),
    )


def test_the_share_of_evidence_counts_only_down_to_the_cut() -> None:
    ranking = [f"t{place}" for place in range(1, 31)]
    asked = question(turns={"t1", "t10", "t11", "t21"}, sessions={"s1", "s6"})
    found = figures(asked, ranking, [f"s{place}" for place in range(1, 12)])
    assert dict(zip(METRICS, found, strict=True)) == {
        "turn_r10": 50.0,
        "turn_r20": 75.0,
        "session_any5": 100.0,
        "session_all5": 0.0,
        "session_r10": 100.0,
    }


def test_an_empty_ranking_finds_nothing() -> None:
    assert figures(question(turns={"t1"}, sessions={"s1"}), [], []) == (0.0, 0.0, 0.0, 0.0, 0.0)


def test_all_evidence_sessions_among_the_first_five_is_a_hundred() -> None:
    found = figures(question(turns={"t1"}, sessions={"s2", "s5"}), ["t1"], ["s1", "s2", "s3", "s4", "s5"])
    assert found == (100.0, 100.0, 100.0, 100.0, 100.0)


def test_a_question_without_evidence_has_no_figures() -> None:
    assert all(math.isnan(figure) for figure in figures(question(turns=set(), sessions=set()), ["t1"], ["s1"]))


def test_a_question_without_figures_counts_in_no_mean() -> None:
    nan = math.nan
    scores = np.array([[100.0, 100.0, 100.0, 0.0, nan], [nan, nan, 0.0, 0.0, nan], [50.0, 0.0, 0.0, 0.0, nan]])
    assert means(scores) == {
        "turn_r10": 75.0,
        "turn_r20": 50.0,
        "session_any5": 33.33,
        "session_all5": 0.0,
        "session_r10": None,
    }
    assert intervals(scores)["session_r10"] is None


def test_the_interval_of_equal_values_is_that_value() -> None:
    assert mean_interval(np.full(9, 80.0)) == (80.0, 80.0)


def test_an_interval_narrows_with_more_questions() -> None:
    few, many = np.array([0.0, 100.0] * 10), np.array([0.0, 100.0] * 200)
    widths = [high - low for low, high in (mean_interval(few), mean_interval(many))]
    assert widths[1] < widths[0] / 3


def test_a_difference_is_taken_question_by_question() -> None:
    theirs = np.random.default_rng(3).uniform(0, 90, (30, len(METRICS)))
    ahead = {"mean": 10.0, "ci95": [10.0, 10.0]}
    assert difference(theirs + 10, theirs) == dict.fromkeys(METRICS, ahead)


def test_timings_are_told_in_milliseconds() -> None:
    assert timings_ms([0.001, 0.002, 0.003]) == {"p50": 2.0, "p95": pytest.approx(2.9)}
