"""Estimates whether a newer statement contradicts or updates an older statement, and finds the sentences it replaces.

`PairModel` is a logistic regression over features of a pair of statements. It is fitted to pairs in English, German
and Chinese (`scripts/fit_contradiction.py`, `fixtures/hints`) and measured on other languages (`bench.hints`). The fit
also sets two limits: from `sure` on, `remember` offers to replace the older statement; from `unsure` on, it asks.
The model knows no facts about the world: that a vegetarian eats no sausages has to follow from the vectors.

`replaced_in_store` finds only sentences that were extracted without a model, and only if it is sure: the new statement
has a word of change and gives another value for the same thing (`changes.replaces`), as "moved to 9 June" does for "on
19 May", and the encoder's cosine shows that both are about one matter. A wrong replacement hides a true statement; a
missed replacement leaves two dated statements side by side. The cosine is needed because in languages that the encoder
does not know well, words of change alone replaced unrelated sentences. A similar sentence with another value of the
same kind is not enough: as often as not, it is about another person's appointment. Of the 877 pairs of
`fixtures/changes` and `fixtures/hints`, of which 364 are changes, 144 are replaced, 143 of them rightly.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mcp_memory.core.types import Atom
from mcp_memory.language.sentences import is_negative
from mcp_memory.language.words import fold, index_terms
from mcp_memory.longterm.change_values import DENSE_FROM
from mcp_memory.longterm.changes import CONTRADICTS, Comparison, replaces, slot_score
from mcp_memory.longterm.value_clauses import announces_change, value_clauses
from mcp_memory.models.embed.bundled import IDENTITY, STATIC_DIMENSIONS, encoder_vector
from mcp_memory.models.embed.classifiers import probability
from mcp_memory.models.embed.protocol import unit_rows
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import atom_rows
from mcp_memory.store.values import Filters, NewAtom, Vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]


MODEL_FILE = Path(__file__).with_name("contradiction.json")


class PairFeatures(NamedTuple):
    """Features of an older and a newer statement. Flags are 0 or 1; `meaning_if_…` is `meaning` times that flag."""

    meaning: float
    """Cosine of the multilingual encoder's vectors."""
    slot: float
    """Flag: another value in the same words (`changes.slot_score`)."""
    changed: float
    """Flag: the newer statement has a word of change."""
    negation: float
    """Flag: only one statement is negative."""
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
    """The fitted weights, one for each feature and the constant last, and the limits, which are probabilities."""

    weights: tuple[float, ...]
    sure: float
    unsure: float

    def probability(self, features: PairFeatures) -> float:
        """Return how likely the newer statement contradicts or updates the older, 0 to 1."""
        score = sum(weight * value for weight, value in zip(self.weights, features, strict=False))
        return probability(score + self.weights[-1])


@cache
def pair_model() -> PairModel:
    stored = json.loads(MODEL_FILE.read_text(encoding="utf-8"))
    return PairModel(tuple(stored["weights"][name] for name in (*PairFeatures._fields, "constant")), **stored["limits"])


def pair_features(newer: str, olders: Sequence[str], bundled: Mapping[str, Floats] | None = None) -> list[PairFeatures]:
    """Return the features of the newer statement paired with each older statement.

    `bundled` maps texts to their vectors by the bundled model. The encoder embeds other texts, in 3 to 4 ms each;
    raises EmbeddingFailed if its files cannot be read.
    """
    bundled = bundled or {}

    def vector(text: str) -> Floats:
        encoded = bundled[text][None, STATIC_DIMENSIONS:] if text in bundled else None
        return encoder_vector(text) if encoded is None or not encoded.any() else unit_rows(encoded)[0]

    new, new_vector = _read(newer), vector(newer)
    return [_features(new, _read(older), float(new_vector @ vector(older))) for older in olders]


def _features(new: _Statement, old: _Statement, cosine: float) -> PairFeatures:
    pair = Comparison(value_clauses(new.text)[0], value_clauses(old.text)[0]) if new.text and old.text else None
    shared_terms = len(new.terms & old.terms)
    negation, changed = float(new.is_negative != old.is_negative), float(announces_change(new.text))
    return PairFeatures(
        meaning=cosine,
        slot=float(slot_score(new.text, old.text, cosine=cosine) >= CONTRADICTS),
        changed=changed,
        negation=negation,
        values=float(bool(pair and pair.values_differ)),
        shared=shared_terms / max(1, min(len(new.terms), len(old.terms))),
        repeated=shared_terms / max(1, len(new.terms)),
        people=float(new.people != old.people),
        opening=float(new.opening == old.opening),
        names=float(bool(pair and pair.other_names)),
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
    opening = folded[:2] if folded[:1] >= DENSE_FROM else " ".join(folded.split(" ")[:2])
    people = frozenset[str]().union(*(clause.people for clause in value_clauses(text)))
    return _Statement(text, frozenset(index_terms(text)), people, opening, is_negative(text))


# --- sentences replaced by a new one ----------------------------------------------------------------

_NEAREST = 2  # stored sentences compared with a new statement
_SEARCHED = 16  # statements, of which some are not sentences
_LEAST_COSINE = 0.4
_ONE_MATTER = 0.4  # cosine by the encoder


class Embedded(NamedTuple):
    """A new statement and its vector, None if the embedding model has not embedded its text yet."""

    atom: NewAtom
    vector: Floats | None


def replaced_in_store(store: Store, space: str, new: Embedded, identity: str) -> list[str]:
    """Return the ids of the stored sentences that a new statement replaces; `identity` names the model of its vector.

    Empty if the statement has no vector yet, or if the vector is not the bundled model's. Raises EmbeddingFailed if the
    encoder is needed and its files cannot be read.
    """
    if identity != IDENTITY:  # cosines of other models are on other scales
        return []
    if new.vector is None or not announces_change(new.atom.text):
        return []
    query = Vectors(identity=identity, data=new.vector[None, :])
    hits = store.nearest(space, "atom", query, filters=Filters(unheld=True), limit=_SEARCHED)
    cosines = {hit.id: hit.score for hit in hits if hit.score >= _LEAST_COSINE}
    open_sentences = [atom for atom in store.read(space, atom_rows.by_ids, cosines) if _may_end(atom, new.atom)]
    nearest = sorted(open_sentences, key=lambda atom: -cosines[atom.id])[:_NEAREST]
    stored = store.vectors_of(space, "atom", [atom.id for atom in nearest], identity)
    vectors = {atom.text: stored[atom.id] for atom in nearest if atom.id in stored} | {new.atom.text: new.vector}
    return [atom.id for atom in nearest if _is_replaced(new.atom.text, atom.text, cosines[atom.id], vectors)]


def _may_end(atom: Atom, new: NewAtom) -> bool:
    """Return whether a new statement may replace a stored statement.

    It may replace an open sentence of another turn that was not said later and is no promise.
    """
    is_open = atom.is_sentence and atom.valid_to is None and atom.label != "promise"
    new_turns = {evidence.turn for evidence in new.evidence}
    return is_open and atom.valid_from <= new.valid_from and atom.evidence not in new_turns


def replaced_by(new: Embedded, older: Sequence[Embedded]) -> bool:
    """Return whether a new sentence replaces any of these older sentences, none of which is stored yet.

    Raises EmbeddingFailed if the encoder is needed and its files cannot be read.
    """
    if not announces_change(new.atom.text):
        return False
    for old in older:
        if new.vector is None or old.vector is None or old.atom.label == "promise":
            continue
        cosine = float(new.vector @ old.vector)
        vectors = {new.atom.text: new.vector, old.atom.text: old.vector}
        if cosine >= _LEAST_COSINE and _is_replaced(new.atom.text, old.atom.text, cosine, vectors):
            return True
    return False


def _is_replaced(newer: str, older: str, cosine: float, vectors: Mapping[str, Floats]) -> bool:
    if not replaces(newer, older, cosine=cosine):
        return False
    (pair,) = pair_features(newer, [older], vectors)
    return pair.meaning >= _ONE_MATTER
