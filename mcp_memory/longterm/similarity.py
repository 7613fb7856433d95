"""Finds the stored statements that a new one may repeat or contradict.

Two statements are candidates if they share a single-valued relation, or if meaning and words together say so: how much
higher their cosine is than usual for the new statement, and how many words they share, weighted by rarity. Cosines are
taken relative to the usual ones, because models and languages differ in them. Numbers and months do not count: they are
the parts that change.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from mcp_memory.core.types import Atom
from mcp_memory.language.words import fold, index_terms, query_terms
from mcp_memory.longterm.changes import CONTRADICTS, slot_score
from mcp_memory.longterm.search.search import Search, SearchContext
from mcp_memory.store.protocol import Draft, Filters, NewAtom, Store, Vectors, WrittenAtom

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["near_statements", "similar"]

MOST = 5
"""Statements that one is compared with, as upstream."""

# Measured with the bundled model on 76 pairs that belong together (reworded, carried on, contradicted) and on 92
# statements that stand alone, all written of real conversations. Share of the pairs found, and of the others that
# would be asked about in vain:
#   English, beside 50 statements: 86 and 12 %; beside 160 of one life: 86 and 35 %; German 77 and 19; Chinese 54 and 6.
# At 0.55: 90 and 20, 88 and 48, 85 and 56, 54 and 6. Without vectors at 0.6: English 76 and 18, 78 and 47, German 38
# and 6, Chinese 38 and 0. Facts and names, which a draft brings and these did not, find more: a changed city,
# employer or friend.
_NEAR = 0.6
_MOST_MEANING = 0.5
_UNKNOWN_MEANING = 0.35  # of what has no vector yet: a quarter of the words suffices then
_HINT = 0.15  # a name that few mention, a relation that may have several values
_FEW = 5

_WEIGHT = 10  # statements that count as held in any space, so that the first few tell little of what is usual
_USUAL_COSINE = 0.35  # of those
_BACKGROUND = 1_000  # statements that tell what is usual
_LOOKED_AT = 30
_NO_MATTER = re.compile(r"\d|^s$|^[\u2e80-\U0003ffff]$")  # numbers, the s of "Ann's", Chinese characters by themselves


@dataclass(frozen=True, slots=True, kw_only=True)
class _ComparedStatement:
    """What counts of a statement, held or new."""

    terms: frozenset[str]
    names: frozenset[str]
    relation: tuple[str, str] | None
    single: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Sight:
    """The neighbourhood of one draft: atoms that a search finds, how near all are, and how near is usual."""

    found: list[Atom]
    cosines: Mapping[str, float]
    usual: float
    far: float
    """What to take for an atom that is not among the nearest."""
    vector: NDArray[np.float32] | None
    known: bool
    """The cosines are of the model that changes are judged by."""

    def meaning(self, cosine: float | None) -> float:
        if cosine is None:
            return self.far
        return min(_MOST_MEANING, max(0.0, (cosine - self.usual) / (1 - self.usual)))


def near_statements(desk: SearchContext, drafts: Sequence[Draft]) -> dict[str, list[str]]:
    """Return for each draft the ids of current atoms and of other drafts to compare it with, the nearest first."""
    background = _Background(desk, drafts)
    new = {draft.id: _of_draft(draft.atom) for draft in drafts}
    sights = {draft.id: _sight(desk, draft.atom) for draft in drafts}
    texts = {draft.id: draft.atom.text for draft in drafts}
    compared: dict[str, list[str]] = {}
    for id, sight in sights.items():
        likeness = {
            atom.id: max(
                background.likeness(new[id], _of_atom(atom), sight.meaning(sight.cosines.get(atom.id))),
                _changed(texts[id], atom.text, sight.cosines.get(atom.id) if sight.known else None),
            )
            for atom in sight.found
        }
        for other in drafts:
            if other.id != id:
                meaning = sight.meaning(_cosine(sight, sights[other.id]))
                likeness[other.id] = background.likeness(new[id], new[other.id], meaning)
        ranked = sorted(likeness, key=lambda one: (-likeness[one], one))
        compared[id] = [one for one in ranked if likeness[one] >= _NEAR][:MOST]
    return compared


def _changed(newer: str, older: str, cosine: float | None) -> float:
    """Return a likeness that suffices where a statement gives another value for the same, else 0."""
    score = slot_score(newer, older, cosine=cosine)
    return _NEAR + score if score >= CONTRADICTS else 0.0


class _Background:
    """Statistics of all current atoms: how common each word and each name is."""

    def __init__(self, desk: SearchContext, drafts: Sequence[Draft]) -> None:
        held = desk.store.list_atoms(desk.space, filters=Filters(), limit=_BACKGROUND)
        texts = [*(atom.text for atom in held), *(draft.atom.text for draft in drafts)]
        self._total = len(texts) + _WEIGHT
        self._with = Counter(term for text in texts for term in _terms(text))
        self._named = Counter(fold(name) for atom in held for name in atom.entities)

    def likeness(self, one: _ComparedStatement, other: _ComparedStatement, meaning: float) -> float:
        """Return how likely it is that two statements speak of the same, 0 to 2; from `_NEAR` on they are compared."""
        same_relation = one.relation is not None and one.relation == other.relation
        if same_relation and (one.single or other.single):
            return 2.0
        shared = sum(self._rarity(term) for term in one.terms & other.terms)
        both = sum(self._rarity(term) for statement in (one, other) for term in statement.terms)
        hinted = same_relation or any(map(self._is_rare, one.names & other.names))
        return meaning + (2 * shared / both if both else 0.0) + (_HINT if hinted else 0.0)

    def _is_rare(self, name: str) -> bool:
        return self._named[name] <= min(_FEW, self._total / 4)

    def _rarity(self, term: str) -> float:
        documents = self._with[term]
        return math.log(1 + (self._total - documents + 0.5) / (documents + 0.5))


def _sight(desk: SearchContext, atom: NewAtom) -> _Sight:
    store, space = desk.store, desk.space
    vectors = desk.of_query(atom.text)
    scores = (
        {hit.id: hit.score for hit in store.nearest(space, "atom", vectors[0], filters=Filters(), limit=_BACKGROUND)}
        if vectors
        else {}
    )
    sound = Filters(unheld=True)
    hits = desk.search(space, "atom", atom.text, embed=lambda _: vectors, filters=sound, limit=_LOOKED_AT)
    ids = [hit.id for hit in hits]
    if atom.entity and atom.relation:
        same = store.facts(
            space, filters=Filters(entity=atom.entity, unheld=True), relation=atom.relation, limit=_LOOKED_AT
        )
        ids += [fact.atom for fact in same]
    return _Sight(
        found=store.atoms(space, dict.fromkeys(ids)),
        cosines=scores,
        usual=_usual(list(scores.values())),
        far=0.0 if len(scores) == _BACKGROUND else _UNKNOWN_MEANING,
        vector=vectors[0].data[0] if vectors else None,
        known=knows_scale(vectors),
    )


def _usual(cosines: Sequence[float]) -> float:
    middle = sorted(cosines)[len(cosines) // 2] if cosines else 0.0
    return (middle * len(cosines) + _USUAL_COSINE * _WEIGHT) / (len(cosines) + _WEIGHT)


def _cosine(one: _Sight, other: _Sight) -> float | None:
    if one.vector is None or other.vector is None or one.vector.shape != other.vector.shape:
        return None
    return float(one.vector @ other.vector)


def _of_draft(atom: NewAtom) -> _ComparedStatement:
    return _statement(atom.text, atom.entities, atom.entity, atom.relation, single=atom.single_valued)


def _of_atom(atom: Atom) -> _ComparedStatement:
    fact = atom.fact
    return _statement(
        atom.text, atom.entities, fact.entity if fact else None, fact.relation if fact else None, single=False
    )


def _statement(
    text: str, names: Sequence[str], entity: str | None, relation: str | None, *, single: bool
) -> _ComparedStatement:
    return _ComparedStatement(
        terms=_terms(text),
        names=frozenset(map(fold, names)),
        relation=(fold(entity), relation) if entity and relation else None,
        single=single,
    )


@lru_cache(maxsize=4_096)  # a plan is made anew whenever something may be due, of the same statements
def _terms(text: str) -> frozenset[str]:
    return frozenset(term for term in query_terms(text) if not _NO_MATTER.search(term)) - _months()


@cache
def _months() -> frozenset[str]:
    from mcp_memory.language.when.vocabulary import LANGUAGES, lexicon

    names = (name for language in LANGUAGES for name in lexicon(language).words.get("MONTH", ()))
    return frozenset(
        term for name in names for term in query_terms(name) if len(term) > 2 and not _NO_MATTER.search(term)
    )


_SAME_COSINE = 0.85
_SAME_WORDS = 0.7
_SIMILAR = 5  # shown, as upstream takes
_SEARCHED = 40
_SMALL = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarAtoms:
    """Current atoms near a new one, best first: contradictions, then repetitions. `contradicting` are ids of them."""

    atoms: list[Atom]
    contradicting: list[str]


def similar(
    store: Store,
    search: Search,
    space: str,
    written: WrittenAtom,
    *,
    embed: Callable[[str], Sequence[Vectors]],
) -> SimilarAtoms:
    """Return current atoms that may repeat or contradict the one just written, five at most."""
    new = written.atom
    apart = {new.id, *(atom.id for atom in written.replaced)}
    vectors = embed(new.text)
    hits = search(space, "atom", new.text, embed=lambda _: vectors, filters=Filters(unheld=True), limit=_SEARCHED)
    cosines = {hit.id: hit.cosine for hit in hits}
    if len(hits) < _SEARCHED:  # few words are shared, and vectors may be off: a small memory is looked through
        held = store.list_atoms(space, filters=Filters(unheld=True), limit=_SMALL)
        cosines = dict.fromkeys(atom.id for atom in held) | cosines
    of_the_same = _of_the_same(store, space, new)
    ids = [id for id in dict.fromkeys([*of_the_same, *cosines]) if id not in apart]
    known = knows_scale(vectors)
    judged = [(atom, *_judged(new, atom, cosines.get(atom.id), known=known)) for atom in store.atoms(space, ids)]
    ranked = sorted(judged, key=lambda one: (-one[1], -one[2]))[:_SIMILAR]
    found = [one for one in ranked if one[1] or one[2]]
    return SimilarAtoms(
        atoms=[atom for atom, _, _ in found],
        contradicting=[atom.id for atom, contradiction, _ in found if contradiction >= CONTRADICTS],
    )


def _of_the_same(store: Store, space: str, new: Atom) -> list[str]:
    """Return the atoms of current facts about the same relation of the same entity."""
    if new.fact is None:
        return []
    current = Filters(entity=new.fact.entity, unheld=True)
    return [fact.atom for fact in store.facts(space, filters=current, relation=new.fact.relation, limit=_SEARCHED)]


def knows_scale(vectors: Sequence[Vectors]) -> bool:
    """Tell whether cosines of these vectors are of the model that changes are judged by: other models have others."""
    from mcp_memory.models.embed.bundled import IDENTITY

    return bool(vectors) and all(one.identity == IDENTITY for one in vectors)


def _judged(new: Atom, old: Atom, cosine: float | None, *, known: bool) -> tuple[float, float]:
    """Return how likely the new atom contradicts an old one, and whether it is like it at all, each 0 to 1."""
    if _other_subject(new, old):
        return 0.0, 0.0
    alike = (cosine or 0.0) >= _SAME_COSINE or _alike(new, old)
    return slot_score(new.text, old.text, cosine=cosine if known else None), 1.0 if alike else 0.0


def _other_subject(new: Atom, old: Atom) -> bool:
    """Tell whether two facts are about different entities, whatever their words are."""
    return bool(new.fact and old.fact and fold(new.fact.entity) != fold(old.fact.entity))


def _alike(one: Atom, other: Atom) -> bool:
    """Tell whether two statements share most of their words, or speak of the same entity's same relation."""
    if one.fact and other.fact:
        same = (one.fact.entity.casefold(), one.fact.relation) == (
            other.fact.entity.casefold(),
            other.fact.relation,
        )
        if same:
            return True
    mine, theirs = set(index_terms(one.text)), set(index_terms(other.text))
    return bool(mine and theirs) and len(mine & theirs) / min(len(mine), len(theirs)) >= _SAME_WORDS
