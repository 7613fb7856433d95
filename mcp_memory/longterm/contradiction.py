"""How likely a newer statement contradicts or updates an older one.

A logistic regression over features of the pair. It is fitted to pairs in English, German and Chinese
(`scripts/fit_contradiction.py`, `fixtures/hints`) and measured on other languages (`python -m bench.hints`). Two limits
follow from the fit: from `sure` on, `remember` offers to replace the older statement; from `unsure` on, it asks. It
knows no facts about the world: that a vegetarian eats no sausages has to follow from the vectors.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mcp_memory.language.sentences import is_negative
from mcp_memory.language.words import fold, index_terms
from mcp_memory.longterm.changes import CONTRADICTS, Comparison, announces_change, slot_score, statements
from mcp_memory.models.embed.bundled import STATIC_DIMENSIONS, shared_encoder
from mcp_memory.models.embed.classifiers import probability
from mcp_memory.models.embed.protocol import unit_rows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


MODEL_FILE = Path(__file__).with_name("contradiction.json")
_UNSPACED = "\u0e00"  # from here on, scripts have no spaces between words


class PairFeatures(NamedTuple):
    """Features of an older and a newer statement; flags are 0 or 1."""

    meaning: float
    """Cosine of the multilingual encoder's vectors."""
    slot: float
    """Flag: another value in the same words (`changes.slot_score`)."""
    changed: float
    """Flag: the newer statement has a word of change."""
    negation: float
    """Flag: one statement is negative, the other is not."""
    values: float
    """Flag: they have values of one kind that differ, such as two dates."""
    shared: float
    """Share of the shorter statement's words that the other has."""
    repeated: float
    """Share of the newer statement's words that the older has."""
    people: float
    """Flag: they name different kinds of people, such as "sister"."""
    opening: float
    """Flag: they begin with the same two words."""
    names: float
    """Flag: each has a name that the other lacks."""
    meaning_if_negation: float
    meaning_if_changed: float


class PairModel(NamedTuple):
    """`weights` has one number for each feature, the constant last; the limits are probabilities."""

    weights: tuple[float, ...]
    sure: float
    unsure: float

    def probability(self, features: PairFeatures) -> float:
        """Return how likely the newer statement contradicts or updates the older, 0 to 1."""
        score = sum(weight * value for weight, value in zip(self.weights, features, strict=False))
        return probability(score + self.weights[-1])


@cache
def pair_model() -> PairModel:
    """Return the fitted model."""
    stored = json.loads(MODEL_FILE.read_text(encoding="utf-8"))
    return PairModel(tuple(stored["weights"][name] for name in (*PairFeatures._fields, "constant")), **stored["limits"])


def pair_features(
    newer: str, olders: Sequence[str], bundled: Mapping[str, NDArray[np.float32]] | None = None
) -> list[PairFeatures]:
    """Return the features of a statement with each older one.

    `bundled` has vectors of the bundled model by text. The encoder embeds other texts, in 3 to 4 ms each; raises
    EmbeddingFailed if its files cannot be read.
    """
    known = {
        text: _encoder_half(vector) for text, vector in (bundled or {}).items() if vector[STATIC_DIMENSIONS:].any()
    }

    def vector(text: str) -> NDArray[np.float32]:
        return known[text] if text in known else _vector(text)

    new, own = _read(newer), vector(newer)
    return [_features(new, _read(older), float(own @ vector(older))) for older in olders]


def _encoder_half(vector: NDArray[np.float32]) -> NDArray[np.float32]:
    return unit_rows(vector[None, STATIC_DIMENSIONS:])[0]


def _features(new: _Statement, old: _Statement, cosine: float) -> PairFeatures:
    found = Comparison(statements(new.text)[0], statements(old.text)[0]) if new.text and old.text else None
    common = len(new.terms & old.terms)
    negation, changed = float(new.is_negative != old.is_negative), float(announces_change(new.text))
    return PairFeatures(
        meaning=cosine,
        slot=float(slot_score(new.text, old.text, cosine=cosine) >= CONTRADICTS),
        changed=changed,
        negation=negation,
        values=float(bool(found and found.values)),
        shared=common / max(1, min(len(new.terms), len(old.terms))),
        repeated=common / max(1, len(new.terms)),
        people=float(new.people != old.people),
        opening=float(new.opening == old.opening),
        names=float(bool(found and found.other_names)),
        meaning_if_negation=cosine * negation,
        meaning_if_changed=cosine * changed,
    )


@dataclass(frozen=True, slots=True)
class _Statement:
    text: str
    terms: frozenset[str]
    people: frozenset[str]
    opening: str
    is_negative: bool


@lru_cache(maxsize=1_024)
def _read(text: str) -> _Statement:
    text = " ".join(text.split())
    folded = fold(text)
    opening = folded[:2] if folded[:1] >= _UNSPACED else " ".join(folded.split(" ")[:2])
    people = frozenset[str]().union(*(clause.people for clause in statements(text)))
    return _Statement(text, frozenset(index_terms(text)), people, opening, is_negative(text))


@lru_cache(maxsize=1_024)
def _vector(text: str) -> NDArray[np.float32]:
    (vector,) = shared_encoder().embed([text])
    return vector
