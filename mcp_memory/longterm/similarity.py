"""Finds the stored statements that a new one may repeat or contradict.

Two statements are candidates if they share a single-valued relation, or if meaning and words together say so: how much
higher their cosine is than usual for the new statement, and how many words they share, weighted by rarity. Cosines are
taken relative to the usual ones, because models and languages differ in them. Numbers and months do not count: they are
the parts that change.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from mcp_memory.core.types import Atom
from mcp_memory.language.words import fold, index_terms, query_terms
from mcp_memory.longterm.changes import CONTRADICTS, slot_score
from mcp_memory.longterm.search.ranking import rarity
from mcp_memory.longterm.search.search import Search, SearchContext
from mcp_memory.store.protocol import Store
from mcp_memory.store.values import Draft, Filters, NewAtom, Vectors, WrittenAtom

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["near_statements", "similar"]

MOST = 5
"""Statements that one is compared with, as upstream."""

# Measured with the bundled model on 76 pairs that belong together (reworded, carried on, contradicted) and on 92
# unrelated statements, all written of real conversations. Share of the pairs found, and of the others that
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

_WEIGHT = 10  # assumed statements in every space: the first few say little about usual similarity
_USUAL_COSINE = 0.35  # of those
_BACKGROUND = 1_000  # statements from which the usual similarity is computed
_LOOKED_AT = 30
_NO_MATTER = re.compile(r"\d|^s$|^[\u2e80-\U0003ffff]$")  # numbers, the s of "Ann's", single Chinese characters


class _ComparedStatement(NamedTuple):
    """The terms and names of a statement, held or new, and the relation that it states."""

    terms: frozenset[str]
    names: frozenset[str]
    relation: tuple[str, str] | None
    single: bool = False


class _Neighbourhood(NamedTuple):
    """Atoms that a search finds for a draft, how near all are to it, and how near is usual."""

    found: list[Atom]
    cosines: Mapping[str, float]
    usual: float
    far: float
    """The meaning of an atom that is not among the nearest."""
    vector: NDArray[np.float32] | None
    known: bool
    """The cosines are of the model that changes are judged by."""

    def meaning(self, cosine: float | None) -> float:
        if cosine is None:
            return self.far
        return min(_MOST_MEANING, max(0.0, (cosine - self.usual) / (1 - self.usual)))

    def cosine_to(self, other: _Neighbourhood) -> float | None:
        if self.vector is None or other.vector is None or self.vector.shape != other.vector.shape:
            return None
        return float(self.vector @ other.vector)


def near_statements(desk: SearchContext, drafts: Sequence[Draft]) -> dict[str, list[str]]:
    """Return for each draft the ids of current atoms and of other drafts to compare it with, the nearest first."""
    background = _Background(desk, drafts)
    new = {draft.id: _of_draft(draft.atom) for draft in drafts}
    around = {draft.id: _neighbourhood(desk, draft.atom) for draft in drafts}
    compared: dict[str, list[str]] = {}
    for draft in drafts:
        near = around[draft.id]
        similarity: dict[str, float] = {}
        for atom in near.found:
            cosine = near.cosines.get(atom.id)
            # A statement that gives another value for the same is near enough, whatever its words are.
            slot = slot_score(draft.atom.text, atom.text, cosine=cosine if near.known else None)
            changed = _NEAR + slot if slot >= CONTRADICTS else 0.0
            similarity[atom.id] = max(
                background.similarity(new[draft.id], _of_atom(atom), near.meaning(cosine)), changed
            )
        for other in new.keys() - {draft.id}:
            meaning = near.meaning(near.cosine_to(around[other]))
            similarity[other] = background.similarity(new[draft.id], new[other], meaning)
        ranked = sorted(similarity, key=lambda one: (-similarity[one], one))
        compared[draft.id] = [one for one in ranked if similarity[one] >= _NEAR][:MOST]
    return compared


class _Background:
    """Statistics of all current atoms: how common each word and each name is."""

    def __init__(self, desk: SearchContext, drafts: Sequence[Draft]) -> None:
        held = desk.store.list_atoms(desk.space, filters=Filters(), limit=_BACKGROUND)
        texts = [*(atom.text for atom in held), *(draft.atom.text for draft in drafts)]
        self._total = len(texts) + _WEIGHT
        self._with = Counter(term for text in texts for term in _terms(text))
        self._named = Counter(fold(name) for atom in held for name in atom.entities)

    def similarity(self, one: _ComparedStatement, other: _ComparedStatement, meaning: float) -> float:
        """Return how likely it is that two statements speak of the same, 0 to 2; from `_NEAR` on they are compared."""
        same_relation = one.relation is not None and one.relation == other.relation
        if same_relation and (one.single or other.single):
            return 2.0
        shared = sum(rarity(self._with[term], self._total) for term in one.terms & other.terms)
        both = sum(rarity(self._with[term], self._total) for statement in (one, other) for term in statement.terms)
        rare = min(_FEW, self._total / 4)
        hinted = same_relation or any(self._named[name] <= rare for name in one.names & other.names)
        return meaning + (2 * shared / both if both else 0.0) + (_HINT if hinted else 0.0)


def _neighbourhood(desk: SearchContext, atom: NewAtom) -> _Neighbourhood:
    store, space = desk.store, desk.space
    vectors = desk.of_query(atom.text)
    near = store.nearest(space, "atom", vectors[0], filters=Filters(), limit=_BACKGROUND) if vectors else []
    sound = Filters(unheld=True)
    hits = desk.search(space, "atom", atom.text, embed=lambda _: vectors, filters=sound, limit=_LOOKED_AT)
    ids = [hit.id for hit in hits] + _of_relation(store, space, atom.entity, atom.relation, limit=_LOOKED_AT)
    usual = sorted(hit.score for hit in near)[len(near) // 2] if near else 0.0
    return _Neighbourhood(
        found=store.atoms(space, dict.fromkeys(ids)),
        cosines={hit.id: hit.score for hit in near},
        usual=(usual * len(near) + _USUAL_COSINE * _WEIGHT) / (len(near) + _WEIGHT),
        far=0.0 if len(near) == _BACKGROUND else _UNKNOWN_MEANING,
        vector=vectors[0].data[0] if vectors else None,
        known=knows_scale(vectors),
    )


def _of_relation(store: Store, space: str, entity: str | None, relation: str | None, *, limit: int) -> list[str]:
    """Return the atoms of current facts about the same relation of the same entity."""
    if not entity or not relation:
        return []
    current = Filters(entity=entity, unheld=True)
    return [fact.atom for fact in store.facts(space, filters=current, relation=relation, limit=limit)]


def _of_draft(atom: NewAtom) -> _ComparedStatement:
    relation = (fold(atom.entity), atom.relation) if atom.entity and atom.relation else None
    return _ComparedStatement(_terms(atom.text), frozenset(map(fold, atom.entities)), relation, atom.single_valued)


def _of_atom(atom: Atom) -> _ComparedStatement:
    relation = (fold(atom.fact.entity), atom.fact.relation) if atom.fact else None
    return _ComparedStatement(_terms(atom.text), frozenset(map(fold, atom.entities)), relation)


@lru_cache(maxsize=4_096)  # plans are computed often, from the same statements
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
    if len(hits) < _SEARCHED:  # few shared words, perhaps no vectors: scan a small memory
        held = store.list_atoms(space, filters=Filters(unheld=True), limit=_SMALL)
        cosines = dict.fromkeys(atom.id for atom in held) | cosines
    fact = new.fact
    same = _of_relation(store, space, fact.entity, fact.relation, limit=_SEARCHED) if fact else []
    known = knows_scale(vectors)
    judged: list[tuple[float, bool, Atom]] = []
    for atom in store.atoms(space, [id for id in dict.fromkeys([*same, *cosines]) if id not in apart]):
        if fact and atom.fact and fold(fact.entity) != fold(atom.fact.entity):
            continue  # they are about different entities, whatever their words are
        cosine = cosines.get(atom.id)
        contradiction = slot_score(new.text, atom.text, cosine=cosine if known else None)
        alike = (cosine or 0.0) >= _SAME_COSINE or _alike(new, atom)
        if contradiction or alike:
            judged.append((contradiction, alike, atom))
    judged.sort(key=lambda one: (-one[0], -one[1]))
    return SimilarAtoms(
        atoms=[atom for _, _, atom in judged[:_SIMILAR]],
        contradicting=[atom.id for contradiction, _, atom in judged[:_SIMILAR] if contradiction >= CONTRADICTS],
    )


def knows_scale(vectors: Sequence[Vectors]) -> bool:
    """Tell whether cosines of these vectors are of the model that changes are judged by: other models have others."""
    from mcp_memory.models.embed.bundled import IDENTITY

    return bool(vectors) and all(one.identity == IDENTITY for one in vectors)


def _alike(one: Atom, other: Atom) -> bool:
    """Tell whether two statements share most of their words, or speak of the same entity's same relation."""
    facts = [(fact.entity.casefold(), fact.relation) for fact in (one.fact, other.fact) if fact]
    if len(facts) == 2 and facts[0] == facts[1]:
        return True
    mine, theirs = set(index_terms(one.text)), set(index_terms(other.text))
    return bool(mine and theirs) and len(mine & theirs) / min(len(mine), len(theirs)) >= _SAME_WORDS
