"""The two logistic regressions of `answerability`, whose features and weights it describes. No numpy: a hook that
answers without the daemon uses the first one too.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

MODEL_FILE = Path(__file__).with_name("answerability.json")
_SMALLEST, _LARGEST = 80, 700  # rows of the smallest and largest memory that the model was fitted to


class QuestionFeatures(NamedTuple):
    prompt: float
    named: float
    share: float
    unknown: float
    sense: float
    size: float


class RowFeatures(NamedTuple):
    """The features of a row for a question.

    `question` is the log-odds of the question. `own` is like `share`, but without words of the turns around the row.
    """

    question: float
    own: float
    share: float
    sense: float
    score: float
    behind: float
    """How much lower `score` is than that of the first row."""


def question_size(turns: int) -> float:
    """Return the feature `size` of a memory with this number of turns."""
    return math.log1p(min(max(turns, _SMALLEST), _LARGEST))


@dataclass(frozen=True, slots=True, kw_only=True)
class Regression:
    """A logistic regression on named features; a feature that is NaN counts as the mean."""

    means: Sequence[float]
    weights: Sequence[float]
    constant: float

    def log_odds(self, features: Sequence[float]) -> float:
        parts = zip(features, self.means, self.weights, strict=True)
        return self.constant + math.fsum(
            (value - mean) * weight for value, mean, weight in parts if not math.isnan(value)
        )

    def probability(self, features: Sequence[float]) -> float:
        return 1 / (1 + math.exp(-self.log_odds(features)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Answerability:
    """The regressions and their thresholds."""

    question: Regression
    row: Regression
    likely: float
    """The probability from which a question is likely known."""
    unlikely: float
    """The probability below which a question is unlikely known."""
    close: float
    """The probability from which a row is surely about the question."""


@cache
def answerability() -> Answerability:
    """Read the regressions from `answerability.json`."""
    stored = json.loads(MODEL_FILE.read_text(encoding="utf-8"))
    return Answerability(
        question=regression(stored["question"], QuestionFeatures),
        row=regression(stored["row"], RowFeatures),
        **{name: stored[name] for name in ("likely", "unlikely", "close")},
    )


def regression(stored: Mapping[str, Any], features: type[QuestionFeatures] | type[RowFeatures]) -> Regression:
    """Return a regression from its form in the file: the means and weights of the features, and a constant."""
    means, weights = ([float(stored[part][name]) for name in features._fields] for part in ("means", "weights"))
    return Regression(means=means, weights=weights, constant=stored["constant"])
