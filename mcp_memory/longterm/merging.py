"""L1, merging: drafts become atoms, beside the stored statements that they repeat or contradict.

A draft is added, replaces a stored atom, joins one, or is dropped; the words of a dropped draft become further
evidence. Drafts that resemble nothing need no model. Of the rest, one question covers up to 20 drafts with their
candidates. `merge_resolution` guarantees that no draft is lost. Old atoms are closed, never changed.

Two statements are candidates (`near_statements`) if they share a single-valued relation, or if meaning and words
together say so: how much higher their cosine is than usual for the new statement, and how many words they share,
weighted by rarity. Cosines are taken relative to the usual ones, because models and languages differ in them. Numbers
and months do not count: they are the parts that change.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from pydantic import BaseModel

from mcp_memory.core.errors import EmbeddingFailed, InvalidInput
from mcp_memory.core.text import one_line
from mcp_memory.core.types import Atom, Evidence, Turn
from mcp_memory.language.words import fold, query_terms
from mcp_memory.longterm.changes import CONTRADICTS, slot_score
from mcp_memory.longterm.contradiction import pair_features, pair_model
from mcp_memory.longterm.doubts import doubt_of, is_doubted
from mcp_memory.longterm.extraction import ExtractionBasis
from mcp_memory.longterm.merge_resolution import (
    Decision,
    MergeContext,
    MergeReply,
    MergeTarget,
    resolve_merge,
    same_statement,
)
from mcp_memory.longterm.names import name_words
from mcp_memory.longterm.search.ranking import rarity
from mcp_memory.longterm.search.search import Search, SearchContext
from mcp_memory.longterm.validity import span_of
from mcp_memory.models.metered import Applied, ModelQuestion, StageDefinition
from mcp_memory.models.prompts import fenced, prompt
from mcp_memory.store.protocol import Store
from mcp_memory.store.values import Draft, Filters, Merge, NewAtom, Vectors, Work, WrittenAtom

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

logger = logging.getLogger(__name__)

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
_NEAR_UNSEEN = 0.9
"""The same where the extraction was shown the nearest atoms and could have said that it repeats or ends them."""
_SAME_RELATION = 2.0
_SAME_PHRASE = 0.9
"""Of two that share two neighbouring words that few others have."""
_MOST_MEANING = 0.5
_UNKNOWN_MEANING = 0.35  # of what has no vector yet: a quarter of the words suffices then
_HINT = 0.15  # a name that few mention, a relation that may have several values
_FEW = 5

_WEIGHT = 10  # assumed statements in every space: the first few say little about usual similarity
_USUAL_COSINE = 0.35  # of those
_BACKGROUND = 1_000  # statements from which the usual similarity is computed
_LOOKED_AT = 30
_SPACED_WORD = re.compile(r"[^\W\d_\u0e00-\uffff]+")
_NO_MATTER = re.compile(r"\d|^s$|^[\u2e80-\U0003ffff]$")  # numbers, the s of "Ann's", single Chinese characters


class _ComparedStatement(NamedTuple):
    """The terms and names of a statement, held or new, and the relation that it states."""

    terms: frozenset[str]
    phrases: frozenset[tuple[str, str]]
    """Neighbouring words, such as "raised beds"."""
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


def near_statements(context: SearchContext, drafts: Sequence[Draft]) -> dict[str, list[str]]:
    """Return for each draft the ids of current atoms and of other drafts to compare it with, the nearest first."""
    background = _Background(context, drafts)
    new = {draft.id: _of_draft(draft.atom) for draft in drafts}
    around = {draft.id: _neighbourhood(context, draft.atom) for draft in drafts}
    extractions = _extractions(context, drafts)
    compared: dict[str, list[str]] = {}
    for draft in drafts:
        near = around[draft.id]
        similarity: dict[str, float] = {}
        compared_before = bool(extractions[draft.job].held)
        for atom in near.found:
            cosine = near.cosines.get(atom.id)
            similarity[atom.id] = background.similarity(new[draft.id], _of_atom(atom), near.meaning(cosine))
            if not compared_before:
                # A statement that gives another value for the same is near enough, whatever its words are.
                slot = slot_score(draft.atom.text, atom.text, cosine=cosine if near.known else None)
                changed = _NEAR + slot if slot >= CONTRADICTS else 0.0
                similarity[atom.id] = max(similarity[atom.id], changed)
        for other in new.keys() - {draft.id}:
            meaning = near.meaning(near.cosine_to(around[other]))
            similarity[other] = background.similarity(new[draft.id], new[other], meaning)
        apart = {
            atom.id for atom in near.found if similarity[atom.id] < _SAME_RELATION and _are_apart(draft.atom, atom)
        }
        ranked = sorted(similarity.keys() - apart, key=lambda one: (-similarity[one], one))
        least = _NEAR_UNSEEN if compared_before else _NEAR
        alike = [one for one in ranked if similarity[one] >= least][:MOST]
        compared[draft.id] = list(dict.fromkeys([*draft.atom.supersedes, *alike]))
    return compared


def _are_apart(new: NewAtom, held: Atom) -> bool:
    """Return whether both are events with dates, and neither happened when the other did: then both are true, however
    alike they are.
    """
    if new.kind != "episodic" or held.kind != "episodic" or held.id in new.supersedes:
        return False
    one, other = (span_of(each.valid_from, each.text, named=True) for each in (new, held))
    return one is not None and other is not None and (one[1] <= other[0] or other[1] <= one[0])


class _Background:
    """Statistics of all current atoms: how common each word and each name is."""

    def __init__(self, context: SearchContext, drafts: Sequence[Draft]) -> None:
        held = context.store.list_atoms(context.space, filters=Filters(), limit=_BACKGROUND)
        texts = [*(atom.text for atom in held), *(draft.atom.text for draft in drafts)]
        self._total = len(texts) + _WEIGHT
        self._with = Counter(term for text in texts for term in _terms(text))
        self._phrases = Counter(phrase for text in texts for phrase in _phrases(text))
        self._named = Counter(fold(name) for atom in held for name in atom.entities)

    def similarity(self, one: _ComparedStatement, other: _ComparedStatement, meaning: float) -> float:
        """Return how likely it is that two statements speak of the same, 0 to 2; from `_NEAR` on they are compared."""
        same_relation = one.relation is not None and one.relation == other.relation
        if same_relation and (one.single or other.single):
            return _SAME_RELATION
        shared = sum(rarity(self._with[term], self._total) for term in one.terms & other.terms)
        both = sum(rarity(self._with[term], self._total) for statement in (one, other) for term in statement.terms)
        rare = min(_FEW, self._total / 4)
        if any(self._phrases[phrase] <= rare for phrase in one.phrases & other.phrases):
            return max(_SAME_PHRASE, meaning)
        hinted = same_relation or any(self._named[name] <= rare for name in one.names & other.names)
        return meaning + (2 * shared / both if both else 0.0) + (_HINT if hinted else 0.0)


def _neighbourhood(context: SearchContext, atom: NewAtom) -> _Neighbourhood:
    store, space = context.store, context.space
    vectors = context.of_query(atom.text)
    near = store.nearest(space, "atom", vectors[0], filters=Filters(), limit=_BACKGROUND) if vectors else []
    sound = Filters(unheld=True)
    hits = context.search(space, "atom", atom.text, embed=lambda _: vectors, filters=sound, limit=_LOOKED_AT)
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
    """Return the pairs of neighbouring words that both say something, of scripts with spaces between words."""
    telling = _terms(text) - name_words("user")
    words = [next(iter(_terms(word) & telling), "") for word in _SPACED_WORD.findall(text)]
    return frozenset((one, other) for one, other in pairwise(words) if one and other)


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
_COMPARED = 8  # candidates by words, and again as many by cosine


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarAtoms:
    """Current atoms near a new one, the likeliest contradictions first, then repetitions.

    `contradicting` and `unsure` are ids of those that it surely, or perhaps, contradicts or updates.
    """

    atoms: list[Atom]
    contradicting: list[str]
    unsure: list[str]


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
    candidates: list[_Candidate] = []
    for atom in store.atoms(space, [id for id in dict.fromkeys([*same, *cosines]) if id not in apart]):
        if fact and atom.fact and fold(fact.entity) != fold(atom.fact.entity):
            continue  # they are about different entities, whatever their words are
        cosine = cosines.get(atom.id)
        slot = slot_score(new.text, atom.text, cosine=cosine if known else None)
        alike = (cosine or 0.0) >= _SAME_COSINE or _alike(new, atom)
        candidates.append(_Candidate(atom, slot, alike, cosine or 0.0))
    compared = _compared(candidates)
    return _judged(new.text, compared, _bundled_vectors(store, space, new.text, vectors, compared))


class _Candidate(NamedTuple):
    atom: Atom
    slot: float
    alike: bool
    cosine: float


def _compared(candidates: Sequence[_Candidate]) -> list[_Candidate]:
    """Return the candidates that the pair model judges: the first by slots and words, and the nearest of the others."""
    ordered = sorted(candidates, key=lambda one: (-one.slot, -one.alike, -one.cosine))
    return [*ordered[:_COMPARED], *sorted(ordered[_COMPARED:], key=lambda one: -one.cosine)[:_COMPARED]]


def _bundled_vectors(
    store: Store, space: str, text: str, vectors: Sequence[Vectors], compared: Sequence[_Candidate]
) -> dict[str, NDArray[np.float32]]:
    """Return the bundled model's vectors by text, as far as they are stored; none if another model embeds."""
    from mcp_memory.models.embed.bundled import IDENTITY

    own = next((one.data[0] for one in vectors if one.identity == IDENTITY), None)
    if own is None:
        return {}
    texts = {one.atom.id: one.atom.text for one in compared}
    stored = store.vectors_of(space, "atom", list(texts), IDENTITY)
    return {text: own} | {texts[id]: vector for id, vector in stored.items()}


def _judged(text: str, compared: Sequence[_Candidate], vectors: Mapping[str, NDArray[np.float32]]) -> SimilarAtoms:
    """Return the candidates that a statement contradicts, may contradict or repeats.

    Where the model's files cannot be read, slots and words alone decide, and nothing is sure.
    """
    model = pair_model()
    try:
        features = pair_features(text, [one.atom.text for one in compared], vectors)
        chances = [model.probability(one) for one in features]
    except EmbeddingFailed as error:
        logger.warning("Statements are compared by their words alone. %s", error)
        chances = [0.0] * len(compared)
    judged = sorted(zip(chances, compared, strict=True), key=lambda one: (-one[0], -one[1].slot, -one[1].alike))
    sure = {one.atom.id for chance, one in judged if chance >= model.sure}
    unsure = {one.atom.id for chance, one in judged if chance >= model.unsure or one.slot >= CONTRADICTS} - sure
    shown = [one.atom for _, one in judged if one.alike or one.atom.id in sure | unsure][:_SIMILAR]
    return SimilarAtoms(
        atoms=shown,
        contradicting=[atom.id for atom in shown if atom.id in sure],
        unsure=[atom.id for atom in shown if atom.id in unsure],
    )


def knows_scale(vectors: Sequence[Vectors]) -> bool:
    """Return whether cosines of these vectors are of the model that changes are judged by: other models have others."""
    from mcp_memory.models.embed.bundled import IDENTITY

    return bool(vectors) and all(one.identity == IDENTITY for one in vectors)


def _alike(one: Atom, other: Atom) -> bool:
    """Return whether two statements share most of their words, or speak of the same entity's same relation.

    Function words and names of the user do not count: nearly all statements about the user share them.
    """
    facts = [(fact.entity.casefold(), fact.relation) for fact in (one.fact, other.fact) if fact]
    if len(facts) == 2 and facts[0] == facts[1]:
        return True
    mine, theirs = (set(query_terms(atom.text)) - name_words("user") for atom in (one, other))
    return bool(mine and theirs) and len(mine & theirs) / min(len(mine), len(theirs)) >= _SAME_WORDS


_TOGETHER = 20
_WAITING = 100
_WIDTH = 600


class MergeBasis(BaseModel):
    """Drafts to decide on, and with what each was to be compared: atoms, and others of these drafts."""

    drafts: list[str]
    near: dict[str, list[str]] = {}


def plan(context: SearchContext, *, session: str | None, smaller: int) -> MergeBasis | None:
    """Return the oldest drafts: those without similar statements, if any, else those that need a question."""
    drafts = context.store.drafts(context.space, limit=_TOGETHER)
    if not drafts:
        return None
    basis = MergeBasis(drafts=[draft.id for draft in drafts], near=near_statements(context, drafts))
    shown = _shown(context, basis)
    there = [id for id in basis.drafts if id in shown.drafts]  # others may merge meanwhile
    if not there:
        return None
    clear = [id for id in there if _is_clear(shown, id)]
    chosen = clear or there[: max(1, _TOGETHER >> smaller)]
    compared = {id: [other for other in basis.near[id] if other[0] == "a" or other in chosen] for id in chosen}
    return MergeBasis(drafts=chosen, near={id: others for id, others in compared.items() if others})


def _is_clear(shown: MergeContext, draft: str) -> bool:
    """Return whether no one has to be asked about a draft: it resembles nothing, or something clear in every word.

    One that a check doubts is asked about.
    """
    same = same_statement(shown, draft)
    if is_doubted(shown.drafts[draft].atom):
        return False
    if same is None:
        return not _to_compare(shown, draft)
    return same in shown.held or _is_clear(shown, same)


def _to_compare(shown: MergeContext, draft: str) -> list[str]:
    """Return what a draft resembles, without what its extraction was shown: that it adds to this was decided there."""
    unsure = [other for other in shown.near[draft] if other not in shown.known[draft]]
    return [other for other in unsure if other in shown.held or same_statement(shown, other) is None]


def question(context: SearchContext, basis: MergeBasis) -> ModelQuestion[MergeReply] | None:
    shown = _shown(context, basis)
    if all(_is_clear(shown, id) for id in shown.drafts):
        return None
    return ModelQuestion(
        purpose="merge",
        messages=prompt(
            "merge",
            held="\n".join(map(_held_line, shown.held.values())) or "Nothing.",
            new="\n".join(_draft_line(shown, id) for id in shown.drafts if same_statement(shown, id) is None),
        ),
        reply=MergeReply,
        max_tokens=6_000,  # a decision takes some 80; a model that thinks first takes more
    )


def apply(context: SearchContext, work: Work, basis: MergeBasis, reply: MergeReply | None) -> Applied:
    """Commit the resolutions of the drafts. Raises InvalidInput if a reply mentions none of them."""
    shown = _shown(context, basis)
    decisions = list(reply.decisions) if reply is not None else []
    if decisions and not any(decision.draft in shown.drafts for decision in decisions):
        known = ", ".join(shown.drafts)
        raise InvalidInput(f"No decision names a new statement. Put its id into `draft`: one of {known}.")
    by_draft = {decision.draft: decision for decision in reversed(decisions)}  # of several the first counts
    ending = [
        _with_ends(by_draft.get(id), draft, shown.said_at.get(draft.atom.evidence[0].turn, context.now))
        for id, draft in shown.drafts.items()
        if draft.atom.supersedes
    ]
    merged, done = resolve_merge(shown, [*ending, *decisions])
    vectors = context.of_rows([merging.atom.text for merging in merged if merging.atom is not None])
    context.store.commit(
        context.space, work.id, Merge(merged=merged, vectors=vectors), outcome=done.outcome, now=context.now
    )
    return done


def _with_ends(own: Decision | None, draft: Draft, said_at: datetime) -> Decision:
    """Return the decision on a draft with that of its extraction: which atoms it ends.

    Whoever answers here does not see these, so a draft that is added beside others ends them all the same. The reason
    has no words of the turn: they may be forgotten.
    """
    ends = [*draft.atom.supersedes]
    if own is None or own.action == "add":
        reason = f"said otherwise on {said_at:%Y-%m-%d}"
        return Decision(draft=draft.id, action="update", targets=ends, text="", priority=None, reason=reason)
    if own.action == "update":
        return own.model_copy(update={"targets": list(dict.fromkeys([*own.targets, *ends]))})
    return own


# --- the question -----------------------------------------------------------------------------------


def _shown(context: SearchContext, basis: MergeBasis) -> MergeContext:
    store, space = context.store, context.space
    drafts = {draft.id: draft for draft in store.drafts(space, limit=_WAITING) if draft.id in basis.drafts}
    wanted = dict.fromkeys(id for near_statements in basis.near.values() for id in near_statements if id[0] == "a")
    atoms = [atom for atom in store.atoms(space, wanted) if atom.valid_to is None]
    words = {atom.id: store.evidence(space, atom.id) for atom in atoms}
    words |= {id: draft.atom.evidence for id, draft in drafts.items()}
    turns = {turn.id: turn for turn in store.turns(space, {one.turn for some in words.values() for one in some})}
    notes = {id for id, turn in turns.items() if turn.role == "note"}
    held = {atom.id: MergeTarget(atom=atom, told=atom.evidence in notes, evidence=words[atom.id]) for atom in atoms}
    there = held.keys() | drafts.keys()
    extractions = _extractions(context, drafts.values())
    return MergeContext(
        said_at={id: turn.said_at for id, turn in turns.items()},
        drafts=drafts,
        held=held,
        near={id: [other for other in basis.near.get(id, ()) if other in there] for id in drafts},
        known={id: _known(extractions[draft.job], words, turns) for id, draft in drafts.items()},
    )


def _known(basis: ExtractionBasis, words: Mapping[str, Sequence[Evidence]], turns: Mapping[str, Turn]) -> set[str]:
    """Return what an extraction was shown or made itself: drafts and atoms that rest on turns it read."""

    def was_read(turn: Turn | None) -> bool:
        return turn is not None and any(
            part.session == turn.session and part.start <= turn.position < part.stop for part in basis.parts
        )

    made = {id for id, quotes in words.items() if quotes and all(was_read(turns.get(one.turn)) for one in quotes)}
    return {*basis.held, *made}


def _held_line(held: MergeTarget) -> str:
    return _line(held.atom.id, held.atom, ", told" if held.told else "")


def _draft_line(shown: MergeContext, id: str) -> str:
    near_statements = _to_compare(shown, id)
    compare = f" -> compare with {', '.join(near_statements)}" if near_statements else ""
    doubt = doubt_of(shown.drafts[id].atom, shown.said_at)
    return _line(id, shown.drafts[id].atom) + compare + (f" -> {fenced(doubt, 'held', 'new')}" if doubt else "")


def _line(id: str, atom: Atom | NewAtom, told: str = "") -> str:
    standing = "always" if atom.priority < 0 else f"priority {atom.priority}"
    fact = atom.fact if isinstance(atom, Atom) else atom
    parts = f"{fact.entity} | {fact.relation} | {fact.value}" if fact and fact.entity else ""
    return f"{id} [{atom.kind}, {standing}, since {atom.valid_from:%Y-%m-%d}{told}] {_said(atom.text, parts)}"


def _said(text: str, fact: str) -> str:
    told = one_line(text, _WIDTH) + (f" (fact: {one_line(fact, 200)})" if fact else "")
    return fenced(told, "held", "new")


def _extractions(context: SearchContext, drafts: Iterable[Draft]) -> dict[str, ExtractionBasis]:
    """Return what the extractions of drafts read and showed, by job."""
    jobs = {draft.job for draft in drafts}
    return {id: ExtractionBasis.model_validate_json(context.store.job(context.space, id).basis) for id in jobs}


MERGE = StageDefinition(name="merge", basis=MergeBasis, reply=MergeReply, plan=plan, question=question, apply=apply)
