"""Metrics of a ranking for each question, in per cent.

`turn_r10`, `turn_r20`: the share of a question's evidence turns among the first 10 and 20 turns. `session_any5`,
`session_all5`: 100 if at least one, or all, of its evidence sessions are among the first 5. `session_r10`: the share of
its evidence sessions among the first 10. A question without evidence turns has no turn figures (NaN), one without
evidence sessions no session figures: means exclude them instead of counting zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from bench.sets import Question
from bench.stats import Floats
from mcp_memory.cli.evaluation.report import mean_interval

METRICS = ("turn_r10", "turn_r20", "session_any5", "session_all5", "session_r10")


def figures(question: Question, turns: Sequence[str], sessions: Sequence[str]) -> tuple[float, ...]:
    """Return the figures of one ranking of ids, best first, in the order of METRICS."""
    first5 = _share(question.evidence_sessions, sessions, 5)
    return (
        _share(question.evidence_turns, turns, 10),
        _share(question.evidence_turns, turns, 20),
        first5 if math.isnan(first5) else 100.0 * (first5 > 0),
        first5 if math.isnan(first5) else 100.0 * (first5 == 100),
        _share(question.evidence_sessions, sessions, 10),
    )


def means(scores: Floats) -> dict[str, float | None]:
    """Return each metric's mean over the rows (questions) that have it; None if there are none."""
    return {metric: _rounded(float(known.mean())) if known.size else None for metric, known in _columns(scores)}


def intervals(scores: Floats) -> dict[str, list[float] | None]:
    """Return the 95 % bootstrap interval of each mean; None if there is no mean."""
    return {
        metric: [_rounded(end) for end in mean_interval(known)] if known.size else None
        for metric, known in _columns(scores)
    }


def difference(ours: Floats, theirs: Floats) -> dict[str, dict[str, float | list[float] | None]]:
    """Return our lead, paired by question: the mean and its interval for each metric."""
    ahead = ours - theirs
    mean, ci95 = means(ahead), intervals(ahead)
    return {metric: {"mean": mean[metric], "ci95": ci95[metric]} for metric in METRICS}


def _share(evidence: frozenset[str], ranked: Sequence[str], first: int) -> float:
    return 100.0 * len(evidence.intersection(ranked[:first])) / len(evidence) if evidence else math.nan


def _columns(scores: Floats) -> list[tuple[str, Floats]]:
    return [(metric, column[~np.isnan(column)]) for metric, column in zip(METRICS, scores.T, strict=True)]


def _rounded(value: float) -> float:
    return round(value, 2)
