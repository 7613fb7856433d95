"""Finds the stored statements that a new statement may repeat, continue or contradict.

Two statements are candidates for merging (`near_statements`) if they share a single-valued relation, or if they are
similar enough. Their similarity grows with the words that they share, weighted by rarity, and with the excess of their
cosine over the usual cosine of the new statement, in which models and languages differ. Numbers and months do not
count, because they are the parts that change.

`similar` judges explicit statements at once, without a model: does one contradict, update or repeat another?
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from mcp_memory.core.errors import EmbeddingFailed
from mcp_memory.core.types import Atom
from mcp_memory.language.words import fold, query_terms
from mcp_memory.longterm.changes import CONTRADICTS, slot_score
from mcp_memory.longterm.contradiction import pair_features, pair_model
from mcp_memory.longterm.names import name_words
from mcp_memory.longterm.search.ranking import rarity
from mcp_memory.longterm.search.search import Search, SearchContext
from mcp_memory.longterm.validity import span_of
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import atom_rows
from mcp_memory.store.values import Draft, Filters, NewAtom, Vectors, WrittenAtom

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

logger = logging.getLogger(__name__)

_MAX_SIMILAR = 5  # statements that a draft is compared with, as upstream

# Measured with the bundled model on 76 pairs that belong together (reworded, carried on, contradicted) and on 92
# unrelated statements, all written from real conversations. Share of the pairs found, and of the others that
# would be asked about in vain:
#   English, with 50 statements: 86 and 12 %; with 160 of one life: 86 and 35 %; German 77 and 19; Chinese 54 and 6.
# At 0.55: 90 and 20, 88 and 48, 85 and 56, 54 and 6. Without vectors at 0.6: English 76 and 18, 78 and 47, German 38
# and 6, Chinese 38 and 0. Facts and names, which a draft brings and these did not, find more: a changed city,
# employer or friend.
_NEAR = 0.6
_NEAR_UNSEEN = 0.9
"""Like `_NEAR`, for a draft whose extraction was shown the nearest atoms and could have decided about them."""
_SAME_RELATION = 2.0
_SAME_PHRASE = 0.9
"""Similarity of two statements that share a pair of rare neighbouring words."""
_MAX_MEANING = 0.5
_UNKNOWN_MEANING = 0.35  # assumed for an atom without a vector; a quarter of the words is enough then
_HINT = 0.15  # a name that few mention, a relation that may have several values
_FEW = 5

_WEIGHT = 10  # assumed statements in every space: the first few say little about usual similarity
_USUAL_COSINE = 0.35  # cosine of the assumed statements
_BACKGROUND = 1_000  # statements from which the usual similarity is computed
_LOOKED_AT = 30
_SPACED_WORD = re.compile(r"[^\W\d_\u0e00-\uffff]+")
_NO_MATTER = re.compile(r"\d|^s$|^[\u2e80-\U0003ffff]$")  # numbers, the s of "Ann's", single Chinese characters


class _ComparedStatement(NamedTuple):
    """The terms and names of a statement, and the relation that it states. `single`: it has one value at a time."""

    terms: frozenset[str]
    phrases: frozenset[tuple[str, str]]
    """Neighbouring words, such as "raised beds"."""
    names: frozenset[str]
    relation: tuple[str, str] | None
    single: bool = False


class _Neighbourhood(NamedTuple):
    """The atoms near a draft, their cosines to it, and the usual cosine of any atom to it."""

    atoms: list[Atom]
    cosines: Mapping[str, float]
    usual: float
    far: float
    """The similarity in meaning of an atom that is not among the nearest."""
    vector: NDArray[np.float32] | None
    is_bundled: bool
    """Whether the cosines are the bundled model's, by which changes are judged."""

    def meaning(self, cosine: float | None) -> float:
        if cosine is None:
            return self.far
        return min(_MAX_MEANING, max(0.0, (cosine - self.usual) / (1 - self.usual)))

    def cosine_to(self, other: _Neighbourhood) -> float | None:
        if self.vector is None or other.vector is None or self.vector.shape != other.vector.shape:
            return None
        return float(self.vector @ other.vector)


def near_statements(
    context: SearchContext, drafts: Sequence[Draft], *, compared_before: Collection[str]
) -> dict[str, list[str]]:
    """Return for each draft the ids of current atoms and of other drafts to compare it with.

    The atoms that the draft's extraction ends come first, then the nearest. `compared_before` are the drafts whose
    extraction was shown similar atoms.
    """
    background = _Background(context, drafts)
    compared = {draft.id: _of_draft(draft.atom) for draft in drafts}
    around = {draft.id: _neighbourhood(context, draft.atom) for draft in drafts}
    nearest: dict[str, list[str]] = {}
    for draft in drafts:
        near, statement = around[draft.id], compared[draft.id]
        similarity: dict[str, float] = {}
        for atom in near.atoms:
            cosine = near.cosines.get(atom.id)
            value = background.similarity(statement, _of_atom(atom), near.meaning(cosine))
            if draft.id not in compared_before:
                # Another value of the same property is near enough, in whatever words.
                slot = slot_score(draft.atom.text, atom.text, cosine=cosine if near.is_bundled else None)
                value = max(value, _NEAR + slot if slot >= CONTRADICTS else 0.0)
            if value >= _SAME_RELATION or not _are_distinct_events(draft.atom, atom):
                similarity[atom.id] = value
        for other in compared.keys() - {draft.id}:
            meaning = near.meaning(near.cosine_to(around[other]))
            similarity[other] = background.similarity(statement, compared[other], meaning)
        least = _NEAR_UNSEEN if draft.id in compared_before else _NEAR
        ranked = sorted(similarity, key=lambda id: (-similarity[id], id))
        alike = [id for id in ranked if similarity[id] >= least][:_MAX_SIMILAR]
        nearest[draft.id] = list(dict.fromkeys([*draft.atom.supersedes, *alike]))
    return nearest


def _are_distinct_events(new: NewAtom, old: Atom) -> bool:
    """Return whether both are events with dates that do not overlap: then both are true, however alike they are."""
    if new.kind != "episodic" or old.kind != "episodic" or old.id in new.supersedes:
        return False
    first, second = (span_of(atom.valid_from, atom.text, named=True) for atom in (new, old))
    return first is not None and second is not None and (first[1] <= second[0] or second[1] <= first[0])


class _Background:
    """Statistics of current atoms and drafts: how common each word, phrase and name is."""

    def __init__(self, context: SearchContext, drafts: Sequence[Draft]) -> None:
        atoms = context.store.read(context.space, atom_rows.list_atoms, filters=Filters(), limit=_BACKGROUND)
        texts = [*(atom.text for atom in atoms), *(draft.atom.text for draft in drafts)]
        self._total = len(texts) + _WEIGHT
        self._with = Counter(term for text in texts for term in _terms(text))
        self._phrases = Counter(phrase for text in texts for phrase in _phrases(text))
        self._named = Counter(fold(name) for atom in atoms for name in atom.entities)

    def similarity(self, new: _ComparedStatement, other: _ComparedStatement, meaning: float) -> float:
        """Return the similarity of two statements, 0 to 2; from `_NEAR` on, they are compared."""
        is_same_relation = new.relation is not None and new.relation == other.relation
        if is_same_relation and (new.single or other.single):
            return _SAME_RELATION
        shared = sum(rarity(self._with[term], self._total) for term in new.terms & other.terms)
        total = sum(rarity(self._with[term], self._total) for statement in (new, other) for term in statement.terms)
        rare = min(_FEW, self._total / 4)
        if any(self._phrases[phrase] <= rare for phrase in new.phrases & other.phrases):
            return max(_SAME_PHRASE, meaning)
        is_hinted = is_same_relation or any(self._named[name] <= rare for name in new.names & other.names)
        return meaning + (2 * shared / total if total else 0.0) + (_HINT if is_hinted else 0.0)


def _neighbourhood(context: SearchContext, atom: NewAtom) -> _Neighbourhood:
    store, space = context.store, context.space
    vectors = context.of_query(atom.text)
    near = store.nearest(space, "atom", vectors[0], filters=Filters(), limit=_BACKGROUND) if vectors else []
    unheld = Filters(unheld=True)
    hits = context.search(
        space, "atom", atom.text, embed=lambda _: vectors, filters=unheld, limit=_LOOKED_AT, is_question=False
    )
    ids = [hit.id for hit in hits] + _of_relation(store, space, atom.entity, atom.relation, limit=_LOOKED_AT)
    usual = sorted(hit.score for hit in near)[len(near) // 2] if near else 0.0
    return _Neighbourhood(
        atoms=store.read(space, atom_rows.by_ids, dict.fromkeys(ids)),
        cosines={hit.id: hit.score for hit in near},
        usual=(usual * len(near) + _USUAL_COSINE * _WEIGHT) / (len(near) + _WEIGHT),
        far=0.0 if len(near) == _BACKGROUND else _UNKNOWN_MEANING,
        vector=vectors[0].data[0] if vectors else None,
        is_bundled=_is_bundled(vectors),
    )


def _of_relation(store: Store, space: str, entity: str | None, relation: str | None, *, limit: int) -> list[str]:
    """Return the ids of the atoms of current facts about a relation of an entity; none if either is missing."""
    if not entity or not relation:
        return []
    current = Filters(entity=entity, unheld=True)
    return [fact.atom for fact in store.read(space, atom_rows.facts, filters=current, relation=relation, limit=limit)]


def _of_draft(atom: NewAtom) -> _ComparedStatement:
    relation = (fold(atom.entity), atom.relation) if atom.entity and atom.relation else None
    names = frozenset(map(fold, atom.entities))
    return _ComparedStatement(_terms(atom.text), _phrases(atom.text), names, relation, atom.single_valued)


def _of_atom(atom: Atom) -> _ComparedStatement:
    relation = (fold(atom.fact.entity), atom.fact.relation) if atom.fact else None
    return _ComparedStatement(_terms(atom.text), _phrases(atom.text), frozenset(map(fold, atom.entities)), relation)


@lru_cache(maxsize=4_096)  # plans are computed often, from the same statements
def _terms(text: str) -> frozenset[str]:
    return frozenset(term for term in query_terms(text) if not _NO_MATTER.search(term)) - _months()


@lru_cache(maxsize=4_096)
def _phrases(text: str) -> frozenset[tuple[str, str]]:
    """Return the pairs of neighbouring content words, in scripts with spaces between words."""
    content = _terms(text) - name_words("user")
    words = [next(iter(_terms(word) & content), "") for word in _SPACED_WORD.findall(text)]
    return frozenset((word, following) for word, following in pairwise(words) if word and following)


@cache
def _months() -> frozenset[str]:
    from mcp_memory.language.when.vocabulary import LANGUAGES, lexicon

    names = (name for language in LANGUAGES for name in lexicon(language).words.get("MONTH", ()))
    return frozenset(
        term for name in names for term in query_terms(name) if len(term) > 2 and not _NO_MATTER.search(term)
    )


# --- explicit statements ----------------------------------------------------------------------------

_SAME_COSINE = 0.85
_SAME_WORDS = 0.7
_SIMILAR = 5  # shown, as upstream
_SEARCHED = 40
_SMALL = 200
_JUDGED = 8  # candidates by words, and as many by cosine


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarAtoms:
    """Current atoms near a new atom, the likeliest contradictions first, then repetitions.

    `contradicting` has the ids of the atoms that it surely contradicts or updates, `unsure` of the doubtful cases.
    """

    atoms: list[Atom]
    contradicting: list[str]
    unsure: list[str]


class _Similarity(NamedTuple):
    atom: Atom
    slot: float
    is_alike: bool
    cosine: float


def similar(
    store: Store,
    search: Search,
    space: str,
    written: WrittenAtom,
    *,
    embed: Callable[[str], Sequence[Vectors]],
) -> SimilarAtoms:
    """Return at most five current atoms that the atom just written may repeat or contradict."""
    new = written.atom
    vectors = embed(new.text)
    hits = search(
        space,
        "atom",
        new.text,
        embed=lambda _: vectors,
        filters=Filters(unheld=True),
        limit=_SEARCHED,
        is_question=False,
    )
    cosines = {hit.id: hit.cosine for hit in hits}
    if len(hits) < _SEARCHED:  # few shared words, perhaps no vectors: scan a small memory
        current = store.read(space, atom_rows.list_atoms, filters=Filters(unheld=True), limit=_SMALL)
        cosines = dict.fromkeys(atom.id for atom in current) | cosines
    fact = new.fact
    same = _of_relation(store, space, fact.entity, fact.relation, limit=_SEARCHED) if fact else []
    excluded = {new.id, *(atom.id for atom in written.replaced)}
    is_bundled = _is_bundled(vectors)
    candidates: list[_Similarity] = []
    for atom in store.read(
        space, atom_rows.by_ids, [id for id in dict.fromkeys([*same, *cosines]) if id not in excluded]
    ):
        if fact and atom.fact and fold(fact.entity) != fold(atom.fact.entity):
            continue  # they are about different entities, whatever their words are
        cosine = cosines.get(atom.id)
        slot = slot_score(new.text, atom.text, cosine=cosine if is_bundled else None)
        is_alike = (cosine or 0.0) >= _SAME_COSINE or _share_words_or_relation(new, atom)
        candidates.append(_Similarity(atom, slot, is_alike, cosine or 0.0))
    ordered = sorted(candidates, key=lambda candidate: (-candidate.slot, -candidate.is_alike, -candidate.cosine))
    nearest = sorted(ordered[_JUDGED:], key=lambda candidate: -candidate.cosine)[:_JUDGED]
    judged = [*ordered[:_JUDGED], *nearest]
    return _judge(new.text, judged, _bundled_vectors(store, space, new.text, vectors, judged))


def _bundled_vectors(
    store: Store, space: str, text: str, vectors: Sequence[Vectors], candidates: Sequence[_Similarity]
) -> dict[str, NDArray[np.float32]]:
    """Return the bundled model's vectors by text, as far as they are stored; none if another model embeds."""
    from mcp_memory.models.embed.bundled import IDENTITY

    own = next((rows.data[0] for rows in vectors if rows.identity == IDENTITY), None)
    if own is None:
        return {}
    texts = {candidate.atom.id: candidate.atom.text for candidate in candidates}
    stored = store.vectors_of(space, "atom", list(texts), IDENTITY)
    return {text: own} | {texts[id]: vector for id, vector in stored.items()}


def _judge(text: str, candidates: Sequence[_Similarity], vectors: Mapping[str, NDArray[np.float32]]) -> SimilarAtoms:
    """Return the candidates that a statement contradicts, may contradict or repeats.

    If the encoder's files cannot be read, `slot_score` and the words alone decide, and no contradiction counts as sure.
    """
    model = pair_model()
    try:
        features = pair_features(text, [candidate.atom.text for candidate in candidates], vectors)
        chances = [model.probability(pair) for pair in features]
    except EmbeddingFailed as error:
        logger.warning("Statements are compared by their words alone. %s", error)
        chances = [0.0] * len(candidates)
    judged = list(zip(chances, candidates, strict=True))
    judged.sort(key=lambda pair: (-pair[0], -pair[1].slot, -pair[1].is_alike))
    sure = {near.atom.id for chance, near in judged if chance >= model.sure}
    unsure = {near.atom.id for chance, near in judged if chance >= model.unsure or near.slot >= CONTRADICTS} - sure
    shown = [near.atom for _, near in judged if near.is_alike or near.atom.id in sure | unsure][:_SIMILAR]
    return SimilarAtoms(
        atoms=shown,
        contradicting=[atom.id for atom in shown if atom.id in sure],
        unsure=[atom.id for atom in shown if atom.id in unsure],
    )


def _is_bundled(vectors: Sequence[Vectors]) -> bool:
    """Return whether vectors are the bundled model's, by whose cosines changes are judged."""
    from mcp_memory.models.embed.bundled import IDENTITY

    return bool(vectors) and all(rows.identity == IDENTITY for rows in vectors)


def _share_words_or_relation(new: Atom, old: Atom) -> bool:
    """Return whether two statements share most of their words, or the relation of an entity.

    Function words and names of the user do not count, because nearly all statements about the user share them.
    """
    if new.fact and old.fact:
        relations = [(fact.entity.casefold(), fact.relation) for fact in (new.fact, old.fact)]
        if relations[0] == relations[1]:
            return True
    new_words, old_words = (set(query_terms(atom.text)) - name_words("user") for atom in (new, old))
    shared = len(new_words & old_words)
    return bool(shared) and shared / min(len(new_words), len(old_words)) >= _SAME_WORDS
