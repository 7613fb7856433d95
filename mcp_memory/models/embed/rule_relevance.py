"""Judges which standing rules govern a prompt, and whether a later message ends a rule: small models on the encoder.

A rule governs a prompt in two ways, each judged by a logistic regression:

    general   the rule is about every answer ("answer in German"); feature: the encoder's vector of the rule
    scoped    prompt and rule are about the same kind of work; features: the cosine of their vectors after a projection
              to 30 dimensions, and how much the prompt reads like a task rather than a question about the past

Plain cosines compare what two texts say; an order of chairs and a limit on spending say different things. The
projection (linear discriminant analysis) keeps the differences between 32 kinds of work and drops all others.

`ending_probabilities` uses a regression on the cosine of two messages and whether the later message has words of change
or withdrawal, which the caller finds.

`scripts/fit_rule_relevance.py` fits these models to `fixtures/rules/relevance` and writes `rule_relevance.safetensors`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from mcp_memory.models.embed.bundled import (
    MODEL,
    STATIC_DIMENSIONS,
    encoder_vector,
    reading,
)
from mcp_memory.models.embed.classifiers import probability
from mcp_memory.models.embed.mapped_files import mapped_tensors
from mcp_memory.models.embed.protocol import unit_rows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]


RELEVANCE_FILE = "rule_relevance.safetensors"


@dataclass(frozen=True, slots=True)
class Governing:
    """Probabilities from 0 to 1 that a rule holds for every answer, and that it is about the work of a prompt."""

    general: float
    scoped: float


def governing(prompt: str, rules: Floats) -> list[Governing]:
    """Return for each rule how likely it governs the prompt.

    `rules` are vectors by the encoder, shape (rules, encoder dimensions). Raises EmbeddingFailed if the files of the
    package cannot be read.
    """
    return _model().governing(encoder_vector(prompt), rules) if len(rules) else []


def ending_probabilities(rules: Floats, messages: Floats) -> Floats:
    """Return the probabilities, 0 to 1, that later messages replace or withdraw rules: shape (rules, messages).

    Both are given by their vectors by the encoder, shape (texts, encoder dimensions). All messages have words of
    change. Raises EmbeddingFailed if the files of the package cannot be read.
    """
    return _model().endings(rules @ messages.T)


def general_query() -> Floats:
    """Return a query, shape (1, dimensions), that finds rules about every answer by the bundled model's vectors.

    It needs no prompt: its cosine with a message separates such rules from other messages.
    """
    return _query(_model().general_query)


def scoped_query(prompt: str) -> Floats:
    """Return a query, shape (1, dimensions), that finds rules about a prompt's work by the bundled model's vectors.

    Its cosine with a rule's vector grows with the product of the projections of prompt and rule, so it also finds rules
    that share no word with the prompt and are not near to it.
    """
    model = _model()
    asked: Floats = encoder_vector(prompt) @ model.projection - model.prompt_mean
    return _query(model.projection @ asked)


def _query(direction: Floats) -> Floats:
    """Return a query of stored vectors by a direction of the encoder's half."""
    import numpy as np

    return unit_rows(np.concatenate([np.zeros(STATIC_DIMENSIONS, np.float32), direction])[None, :])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RelevanceModel:
    """The parameters of all regressions. The last number of `task`, `general`, `scoped` and `ends` is the constant."""

    projection: Floats
    """Shape (encoder dimensions, 30)."""
    prompt_mean: Floats
    """Mean projection of prompts; `rule_mean` is that of rules."""
    rule_mean: Floats
    task: Floats
    """Weights that tell tasks from questions about the past."""
    general: Floats
    general_query: Floats
    """Weights that tell rules about every answer from all other sentences; without a constant."""
    scoped: Floats
    """Weights of the projected cosine and of `task`."""
    ends: Floats
    """Weights of the cosine and of words of change."""

    def governing(self, prompt: Floats, rules: Floats) -> list[Governing]:
        """Judge rules by their vectors, shape (rules, encoder dimensions)."""
        general = rules @ self.general[:-1] + self.general[-1]
        scoped = self.features(prompt, rules) @ self.scoped[:-1] + self.scoped[-1]
        return [
            Governing(probability(general_odds), probability(scoped_odds))
            for general_odds, scoped_odds in zip(general.tolist(), scoped.tolist(), strict=True)
        ]

    def features(self, prompt: Floats, rules: Floats) -> Floats:
        """Return the two features of `scoped`, shape (rules, 2)."""
        import numpy as np

        asked = unit_rows((prompt @ self.projection - self.prompt_mean)[None, :])[0]
        projected = unit_rows(rules @ self.projection - self.rule_mean)
        task = prompt @ self.task[:-1] + self.task[-1]
        return np.column_stack([projected @ asked, np.full(len(rules), task)]).astype(np.float32)

    def endings(self, cosines: Floats) -> Floats:
        """Judge pairs whose later message has words of change, by their cosines."""
        import numpy as np

        return 1 / (1 + np.exp(-(self.ends[0] * cosines + self.ends[1] + self.ends[2])))


@cache
def _model() -> RelevanceModel:
    with reading("The model of the relevance of rules"):
        tensors = mapped_tensors(MODEL / RELEVANCE_FILE)
        names = ("prompt_mean", "rule_mean", "task", "general", "general_query", "scoped", "ends")
        parts = {name: tensors[name] for name in names}
        return RelevanceModel(projection=tensors["projection"] * tensors["projection_scale"], **parts)
