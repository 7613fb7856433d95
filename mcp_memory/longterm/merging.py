"""L1, merging: drafts become atoms, after a comparison with the stored statements that they repeat or contradict.

A draft is added, replaces a stored atom, is joined with it, or is dropped; the words of a dropped draft become further
evidence. Drafts without similar statements (`similar_statements`) need no model. One question covers up to 20 of the
other drafts with their candidates. Each draft ends in exactly one atom, or waits; `merge_resolution` has the rules. Old
atoms are closed, never changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import takewhile

from pydantic import BaseModel

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.text import one_line
from mcp_memory.core.types import Atom, Evidence, Turn
from mcp_memory.longterm.doubts import doubt_of, is_doubted, with_corrections
from mcp_memory.longterm.extraction import ExtractionBasis
from mcp_memory.longterm.merge_resolution import (
    Decision,
    MergeReply,
    MergeTarget,
    Resolution,
    fact_key,
    is_repetition,
    news_in,
    obstacle_to_joining,
    resolved_atom,
    usable_text,
    why_protected,
)
from mcp_memory.longterm.search.search import SearchContext
from mcp_memory.longterm.similar_statements import near_statements
from mcp_memory.models.metered import Applied, ModelQuestion, StageDefinition
from mcp_memory.models.prompts import fenced, prompt
from mcp_memory.store.sql import atom_rows, job_rows, stage_outputs, turn_rows
from mcp_memory.store.values import Draft, Merge, Merging, NewAtom, Work


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeContext:
    """The content of a question: drafts, current statements, and what each draft is compared with."""

    drafts: Mapping[str, Draft]
    targets: Mapping[str, MergeTarget]
    near: Mapping[str, Sequence[str]]
    seen: Mapping[str, Collection[str]]
    """By draft, the statements that its extraction was shown or made."""
    said_at: Mapping[str, datetime]
    """Times of the turns that the drafts and targets are based on."""


def repeated_statement(context: MergeContext, draft: str) -> str | None:
    """Return the id of an atom or earlier draft that a draft repeats, so that it needs no question; else None."""
    earlier = list(takewhile(lambda id: id != draft, context.drafts))
    for id in sorted(context.near.get(draft, ()), key=lambda id: (id not in context.targets, len(id), id)):
        if id in context.targets:
            other = context.targets[id].atom
        else:
            other = context.drafts[id].atom if id in earlier else None
        if other is not None and is_repetition(context.drafts[draft].atom, other):
            return id
    return None


# --- the stage ---------------------------------------------------------------------------------------

_DRAFTS = 20  # drafts in one prompt
_WAITING = 100
_WIDTH = 600


class MergeBasis(BaseModel):
    """Drafts to decide on, and the atoms and other drafts that each is compared with."""

    drafts: list[str]
    near: dict[str, list[str]] = {}


def plan(context: SearchContext, *, session: str | None, smaller: int) -> MergeBasis | None:
    """Return the waiting drafts that need no question, or else those for the next question; None if no draft waits.

    Only the oldest drafts are looked at.
    """
    drafts = context.store.read(context.space, stage_outputs.drafts, limit=_DRAFTS)
    if not drafts:
        return None
    extractions = _extractions(context, drafts)
    compared_before = {draft.id for draft in drafts if extractions[draft.job].held}
    near = near_statements(context, drafts, compared_before=compared_before)
    basis = MergeBasis(drafts=[draft.id for draft in drafts], near=near)
    merge = _merge_context(context, basis)
    waiting = [id for id in basis.drafts if id in merge.drafts]  # others may merge meanwhile
    if not waiting:
        return None
    clear = [id for id in waiting if _is_clear(merge, id)]
    chosen = clear or waiting[: max(1, _DRAFTS >> smaller)]
    compared = {id: [other for other in near[id] if other[0] == "a" or other in chosen] for id in chosen}
    return MergeBasis(drafts=chosen, near={id: others for id, others in compared.items() if others})


def _is_clear(merge: MergeContext, draft: str) -> bool:
    """Return whether a draft needs no question.

    It needs none if it repeats an atom or a draft that needs none, or resembles only statements that its extraction was
    shown. A draft that a check labelled always needs a question.
    """
    if is_doubted(merge.drafts[draft].atom):
        return False
    repeated = repeated_statement(merge, draft)
    if repeated is None:
        return not _to_compare(merge, draft)
    return repeated in merge.targets or _is_clear(merge, repeated)


def _to_compare(merge: MergeContext, draft: str) -> list[str]:
    """Return the similar statements that the draft's extraction was not shown, and so has not decided about.

    Drafts that repeat another statement are left out.
    """
    unseen = [other for other in merge.near[draft] if other not in merge.seen[draft]]
    return [other for other in unseen if other in merge.targets or repeated_statement(merge, other) is None]


def question(context: SearchContext, basis: MergeBasis) -> ModelQuestion[MergeReply] | None:
    merge = _merge_context(context, basis)
    if all(_is_clear(merge, id) for id in merge.drafts):
        return None
    return ModelQuestion(
        purpose="merge",
        messages=prompt(
            "merge",
            held="\n".join(map(_target_line, merge.targets.values())) or "Nothing.",
            new="\n".join(_draft_line(merge, id) for id in merge.drafts if repeated_statement(merge, id) is None),
        ),
        reply=MergeReply,
        max_tokens=6_000,  # a decision takes some 80; a model that thinks first takes more
    )


def apply(context: SearchContext, work: Work, basis: MergeBasis, reply: MergeReply | None) -> Applied:
    """Commit the resolutions of the drafts. Raises InvalidInput if no decision of a reply is about these drafts."""
    merge = _merge_context(context, basis)
    decisions = reply.decisions if reply is not None else []
    if decisions and not any(decision.draft in merge.drafts for decision in decisions):
        ids = ", ".join(merge.drafts)
        raise InvalidInput(f"No decision names a new statement. Put its id into `draft`: one of {ids}.")
    by_draft = {decision.draft: decision for decision in reversed(decisions)}  # of several the first counts
    for id, draft in merge.drafts.items():
        if draft.atom.supersedes:
            said_at = merge.said_at.get(draft.atom.evidence[0].turn, context.now)
            by_draft[id] = _with_ends(by_draft.get(id), draft, said_at)
    merged, done = resolve_merge(merge, by_draft)
    if reply is not None:
        done.refused.extend(reply.dropped_items)
    vectors = context.of_rows([merging.atom.text for merging in merged if merging.atom is not None])
    context.store.write(
        context.space,
        stage_outputs.commit,
        work.id,
        Merge(merged=merged, vectors=vectors),
        outcome=done.outcome,
        now=context.now,
    )
    return done


def _with_ends(own: Decision | None, draft: Draft, said_at: datetime) -> Decision:
    """Return the decision on a draft, extended by the atoms that its extraction ends.

    The merge question does not show these atoms. A decision to add becomes an update of them; a merge or skip is
    unchanged. The reason has no words of the turn, because these may be forgotten.
    """
    ends = [*draft.atom.supersedes]
    if own is None or own.action == "add":
        reason = f"said otherwise on {said_at:%Y-%m-%d}"
        return Decision(draft=draft.id, action="update", targets=ends, text="", priority=None, reason=reason)
    if own.action == "update":
        return own.model_copy(update={"targets": list(dict.fromkeys([*own.targets, *ends]))})
    return own


def _merge_context(context: SearchContext, basis: MergeBasis) -> MergeContext:
    store, space = context.store, context.space
    drafts = {
        draft.id: draft for draft in store.read(space, stage_outputs.drafts, limit=_WAITING) if draft.id in basis.drafts
    }
    near_atoms = dict.fromkeys(id for near in basis.near.values() for id in near if id[0] == "a")
    atoms = [atom for atom in store.read(space, atom_rows.by_ids, near_atoms) if atom.valid_to is None]
    evidence = {atom.id: store.read(space, atom_rows.evidence, atom.id) for atom in atoms}
    evidence |= {id: draft.atom.evidence for id, draft in drafts.items()}
    turns = {
        turn.id: turn
        for turn in store.read(space, turn_rows.by_ids, {quote.turn for some in evidence.values() for quote in some})
    }
    notes = {id for id, turn in turns.items() if turn.role == "note"}
    targets = {
        atom.id: MergeTarget(atom=atom, is_explicit=atom.evidence in notes, evidence=evidence[atom.id])
        for atom in atoms
    }
    extractions = _extractions(context, drafts.values())
    available = targets.keys() | drafts.keys()
    return MergeContext(
        drafts=drafts,
        targets=targets,
        near={id: [other for other in basis.near.get(id, ()) if other in available] for id in drafts},
        seen={id: _seen_by(extractions[draft.job], evidence, turns) for id, draft in drafts.items()},
        said_at={id: turn.said_at for id, turn in turns.items()},
    )


def _extractions(context: SearchContext, drafts: Iterable[Draft]) -> dict[str, ExtractionBasis]:
    """Return the inputs of the extractions that made the drafts, by job id."""
    jobs = {draft.job for draft in drafts}
    return {
        id: ExtractionBasis.model_validate_json(context.store.read(context.space, job_rows.by_id, id).basis)
        for id in jobs
    }


def _seen_by(
    extraction: ExtractionBasis, evidence: Mapping[str, Sequence[Evidence]], turns: Mapping[str, Turn]
) -> set[str]:
    """Return the statements that an extraction was shown or made, the latter recognised by turns that it read."""

    def was_read(quote: Evidence) -> bool:
        turn = turns.get(quote.turn)
        return turn is not None and any(
            part.session == turn.session and part.start <= turn.position < part.stop for part in extraction.parts
        )

    made = {id for id, quotes in evidence.items() if quotes and all(map(was_read, quotes))}
    return {*extraction.held, *made}


def _target_line(target: MergeTarget) -> str:
    return _line(target.atom.id, target.atom, ", told" if target.is_explicit else "")


def _draft_line(merge: MergeContext, id: str) -> str:
    others = _to_compare(merge, id)
    compare = f" -> compare with {', '.join(others)}" if others else ""
    doubt = doubt_of(merge.drafts[id].atom, merge.said_at)
    return _line(id, merge.drafts[id].atom) + compare + (f" -> {fenced(doubt, 'held', 'new')}" if doubt else "")


def _line(id: str, atom: Atom | NewAtom, mark: str = "") -> str:
    priority = "always" if atom.priority < 0 else f"priority {atom.priority}"
    fact = atom.fact if isinstance(atom, Atom) else atom
    text = one_line(atom.text, _WIDTH)
    if fact and fact.entity:
        text += f" (fact: {one_line(f'{fact.entity} | {fact.relation} | {fact.value}', 200)})"
    return f"{id} [{atom.kind}, {priority}, since {atom.valid_from:%Y-%m-%d}{mark}] {fenced(text, 'held', 'new')}"


# --- the resolutions of all drafts --------------------------------------------------------------------


def resolve_merge(context: MergeContext, decisions: Mapping[str, Decision]) -> tuple[list[Merging], Applied]:
    """Return the rows to commit, and a report of the accepted and refused decisions.

    `decisions` maps draft ids to decisions.
    """
    texts = {id: decision.text for id, decision in decisions.items()}
    context = replace(context, drafts=with_corrections(context.drafts, texts, context.said_at))
    resolver = _Resolver(context)
    resolver.resolve(decisions)
    merged: list[Merging] = []
    counts: Counter[str] = Counter()
    kept: list[str] = []
    for id in context.drafts:
        leader = resolver.resolutions[resolver.leader(id)]
        if leader.waits:
            kept.append(f"{id} waits until the statement that it replaces is stored, and is asked about again.")
            continue
        resolution = resolver.resolutions[id]
        atom = resolver.atom(id) if resolution.action != "skip" else None
        onto = [target.atom.id for target in leader.onto] if leader.action == "skip" else []
        merged.append(Merging(draft=id, atom=atom, onto=onto))
        outcome, line = _report_line(id, resolution, atom, onto)
        counts[outcome] += 1
        kept.append(line)
    return merged, Applied(outcome=dict(counts), kept=kept, refused=resolver.refused)


class _Resolver:
    """Applies the decisions in the order of the drafts; `resolutions` has the results so far."""

    def __init__(self, context: MergeContext) -> None:
        self._context = context
        self.resolutions = {id: Resolution() for id in context.drafts}
        self.refused: list[str] = []
        self._joined_by: dict[str, str] = {}
        """The draft that joins each current statement, by the id of the statement."""

    def resolve(self, decisions: Mapping[str, Decision]) -> None:
        unknown = [id for id in decisions if id not in self.resolutions]
        self.refused += [f"{one_line(id, 20)!r} is no new statement of this question." for id in unknown]
        for id in self.resolutions:
            if problem := self._resolve_draft(id, decisions.get(id)):
                self.refused.append(f"{id} was added as it stands: {problem}.")
        for id, resolution in self.resolutions.items():  # dropped drafts whose target was joined later
            if resolution.action == "skip" and resolution.onto:
                leaders = [self._joined_by.get(target.atom.id) for target in resolution.onto]
                if None not in leaders:
                    self.resolutions[id] = Resolution(action="skip", leader=leaders[0])

    def leader(self, id: str) -> str:
        """Return the draft that finally includes this draft, or the draft itself."""
        while (leader := self.resolutions[id].leader) is not None:
            id = leader
        return id

    def atom(self, id: str) -> NewAtom:
        draft, *followers = self._parts(id)
        resolution = replace(self.resolutions[id], followers=followers)
        return self._without_clash(resolved_atom(draft, resolution, self._context.said_at), resolution)

    # Each of these applies a decision, or returns why it cannot be applied.

    def _resolve_draft(self, id: str, decision: Decision | None) -> str | None:
        repeated = repeated_statement(self._context, id)
        if repeated is not None and (targets := self._current([repeated], id)):
            return self._drop(id, targets)
        if decision is None:
            return None
        leader = self.leader(id)
        if leader != id:
            self._note_lost_targets(id, decision, leader)
            return None
        if decision.action == "add":
            return None
        named = [other for other in dict.fromkeys(decision.targets) if other != id]
        shown = [other for other in named if other in self._context.targets or other in self.resolutions]
        if not shown:
            names = ", ".join(one_line(other, 20) for other in named)
            return (
                f"{decision.action} names {names}, which was not shown"
                if names
                else (f"{decision.action} names no target")
            )
        targets = self._current(shown, id)
        if not targets:  # its targets were dropped for it, or joined with it, before
            text = self._text(id, decision, self._parts(id))
            self.resolutions[id] = Resolution(text=text, kind=decision.kind, priority=decision.priority)
            return None
        match decision.action:
            case "skip":
                return self._drop(id, targets)
            case "update":
                return self._replace(id, decision, targets)
            case "merge":
                return self._join(id, decision, targets)

    def _drop(self, id: str, targets: Sequence[str]) -> str | None:
        onto = self._targets(targets)
        leaders = [other for other in targets if other in self.resolutions and not self.resolutions[other].waits]
        others = [target.atom for target in onto] or [self._draft(other) for other in leaders]
        if not others:
            return "what it is said to repeat is dropped itself, or waits"
        if (news := news_in(self._draft(id), others)) is not None:
            return f"{news} is new beside {', '.join(targets)}"
        self.resolutions[id] = Resolution(action="skip", onto=onto, leader=None if onto else leaders[0])
        return None

    def _replace(self, id: str, decision: Decision, targets: Sequence[str]) -> str | None:
        onto = self._targets(targets)
        waits = any(other in self.resolutions and not self.resolutions[other].waits for other in targets)
        if not onto and not waits:
            return "the statement that it replaces is not there to be replaced"
        problem = self._why_protected(id, onto, decision)
        if problem is None:
            text = self._text(id, decision, [*self._parts(id), *(target.atom for target in onto)])
            self.resolutions[id] = _resolution(decision, onto, text, waits=waits)
        return problem

    def _join(self, id: str, decision: Decision, targets: Sequence[str]) -> str | None:
        onto = [target for target in self._targets(targets) if target.atom.id not in self._joined_by]
        joined = [other for other in targets if other in self.resolutions and self._is_undecided(other)]
        if not onto and not joined:
            return "what it was to join is part of another statement by now"
        drafts = [self._draft(other) for other in (id, *joined)]
        text = usable_text(decision.text, [*self._parts(id), *drafts, *(target.atom for target in onto)])
        problem = self._why_protected(id, onto, decision) or obstacle_to_joining(drafts, onto, text)
        if problem is None:
            self.resolutions[id] = _resolution(decision, onto, text)
            self.resolutions.update({other: Resolution(action="skip", leader=id) for other in joined})
            self._joined_by.update({target.atom.id: id for target in onto})
        return problem

    def _why_protected(self, id: str, onto: Sequence[MergeTarget], decision: Decision) -> str | None:
        reasons = (why_protected(target, self._draft(id), decision.reason) for target in onto)
        return next(filter(None, reasons), None)

    # notes

    def _note_lost_targets(self, id: str, decision: Decision, leader: str) -> None:
        """Note the statements that a draft's own decision did not close, because another draft joined it."""
        onto = {target.atom.id for target in self.resolutions[leader].onto}
        lost = [other for other in decision.targets if other in self._context.targets and other not in onto]
        if decision.action in ("update", "merge") and lost:
            self.refused.append(
                f"{id} was joined by {leader}: its own {decision.action} of {', '.join(lost)} was not done."
            )

    def _text(self, id: str, decision: Decision, sources: Sequence[NewAtom | Atom]) -> str:
        text = usable_text(decision.text, sources)
        if decision.text and not text:
            self.refused.append(f"{id} keeps its own text: the new one says more than the statements do.")
        return text

    # drafts and targets

    def _draft(self, id: str) -> NewAtom:
        return self._context.drafts[id].atom

    def _parts(self, id: str) -> list[NewAtom]:
        """Return a draft and the drafts that it includes."""
        return [self._draft(id), *(self._draft(other) for other in self.resolutions if self._follows(other, id))]

    def _follows(self, id: str, leader: str) -> bool:
        return id != leader and self.leader(id) == leader

    def _current(self, targets: Sequence[str], id: str) -> list[str]:
        """Return the statements that now include these targets, except the draft itself."""
        current: dict[str, None] = {}
        for target in targets:
            if target in self._context.targets:
                current[self._joined_by.get(target, target)] = None
                continue
            leader = self.leader(target)
            resolution = self.resolutions[leader]
            onto = [target.atom.id for target in resolution.onto] if resolution.action == "skip" else []
            current.update(dict.fromkeys(onto or [leader]))
        return [target for target in current if target != id]

    def _targets(self, ids: Sequence[str]) -> list[MergeTarget]:
        return [self._context.targets[id] for id in ids if id in self._context.targets]

    def _is_undecided(self, id: str) -> bool:
        """Return whether nothing is decided about a draft, and it includes no other draft."""
        others = self.resolutions.values()
        return self.resolutions[id] == Resolution() and all(other.leader != id for other in others)

    def _without_clash(self, atom: NewAtom, resolution: Resolution) -> NewAtom:
        """Remove a single-valued fact that would implicitly close a protected statement, and note that.

        Returns the atom.
        """
        fact = fact_key(atom) if atom.single_valued else None
        for target in self._context.targets.values():
            other = fact_key(target.atom)
            is_clash = fact and other and fact[:2] == other[:2] and target not in resolution.onto
            if is_clash and (reason := why_protected(target, atom, "")):
                self.refused.append(f"{one_line(atom.text, 60)!r} was stored without its fact: {reason}.")
                return replace(atom, entity=None, relation=None, value=None, single_valued=False)
        return atom


def _resolution(decision: Decision, onto: Sequence[MergeTarget], text: str, *, waits: bool = False) -> Resolution:
    return Resolution(
        action=decision.action,
        onto=onto,
        waits=waits,
        text=text,
        kind=decision.kind,
        priority=decision.priority,
        reason=decision.reason,
    )


def _report_line(id: str, resolution: Resolution, atom: NewAtom | None, onto: Sequence[str]) -> tuple[str, str]:
    """Return the outcome of a draft, and a sentence about it."""
    text = f": {one_line(atom.text, 100)}" if atom else ""
    old = ", ".join(target.atom.id for target in resolution.onto)
    match resolution.action:
        case "add":
            return "added", f"{id} was added{text}"
        case "update":
            return "updated", f"{id} replaces {old}{text}"
        case "merge":
            return "merged", f"{id} was joined with {old or 'others of these'}{text}"
        case "skip":
            same = ", ".join(onto) or resolution.leader
            return "skipped", f"{id} says what {same} says; its words were added there"


MERGE = StageDefinition(name="merge", basis=MergeBasis, reply=MergeReply, plan=plan, question=question, apply=apply)
