"""L1, merging: drafts become atoms.

A draft is added, replaces a stored atom, joins one, or is dropped; the words of a dropped draft become further
evidence. Drafts that resemble nothing need no model. Of the rest, one question covers up to 20 drafts with their
candidates. `merge_resolution` guarantees that no draft is lost. Old atoms are closed, never changed.
"""

from __future__ import annotations

from pydantic import BaseModel

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.text import one_line
from mcp_memory.core.types import Atom
from mcp_memory.longterm.merge_resolution import MergeContext, MergeReply, MergeTarget, resolve_merge, same_statement
from mcp_memory.longterm.search.search import SearchContext
from mcp_memory.longterm.similarity import near_statements
from mcp_memory.models.metered import ModelQuestion
from mcp_memory.models.prompts import fenced, prompt
from mcp_memory.models.stage import Applied, StageDefinition
from mcp_memory.store.values import Merge, NewAtom, Work

__all__ = ["MERGE", "MergeBasis"]

_TOGETHER = 20
_WAITING = 100
_WIDTH = 600


class MergeBasis(BaseModel):
    """Drafts to decide on, and with what each was to be compared: atoms, and others of these drafts."""

    drafts: list[str]
    near: dict[str, list[str]] = {}


def plan(desk: SearchContext, *, session: str | None, smaller: int) -> MergeBasis | None:
    """Return the oldest drafts: those without similar statements, if any, else those that need a question."""
    drafts = desk.store.drafts(desk.space, limit=_TOGETHER)
    if not drafts:
        return None
    basis = MergeBasis(drafts=[draft.id for draft in drafts], near=near_statements(desk, drafts))
    shown = _shown(desk, basis)
    there = [id for id in basis.drafts if id in shown.drafts]  # others may merge meanwhile
    if not there:
        return None
    clear = [id for id in there if _is_clear(shown, id)]
    chosen = clear or there[: max(1, _TOGETHER >> smaller)]
    compared = {id: [other for other in basis.near[id] if other[0] == "a" or other in chosen] for id in chosen}
    return MergeBasis(drafts=chosen, near={id: others for id, others in compared.items() if others})


def _is_clear(shown: MergeContext, draft: str) -> bool:
    """Tell whether no one has to be asked about a draft: it resembles nothing, or something clear in every word."""
    same = same_statement(shown, draft)
    if same is None:
        return not _to_compare(shown, draft)
    return same in shown.held or _is_clear(shown, same)


def _to_compare(shown: MergeContext, draft: str) -> list[str]:
    return [other for other in shown.near[draft] if other in shown.held or same_statement(shown, other) is None]


def question(desk: SearchContext, basis: MergeBasis) -> ModelQuestion[MergeReply] | None:
    shown = _shown(desk, basis)
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


def apply(desk: SearchContext, work: Work, basis: MergeBasis, reply: MergeReply | None) -> Applied:
    """Commit the resolutions of the drafts. Raises InvalidInput if a reply mentions none of them."""
    shown = _shown(desk, basis)
    decisions = reply.decisions if reply is not None else []
    if decisions and not any(decision.draft in shown.drafts for decision in decisions):
        known = ", ".join(shown.drafts)
        raise InvalidInput(f"No decision names a new statement. Put its id into `draft`: one of {known}.")
    merged, done = resolve_merge(shown, decisions)
    vectors = desk.of_rows([merging.atom.text for merging in merged if merging.atom is not None])
    desk.store.commit(desk.space, work.id, Merge(merged=merged, vectors=vectors), outcome=done.outcome, now=desk.now)
    return done


# --- the question -----------------------------------------------------------------------------------


def _shown(desk: SearchContext, basis: MergeBasis) -> MergeContext:
    store, space = desk.store, desk.space
    drafts = {draft.id: draft for draft in store.drafts(space, limit=_WAITING) if draft.id in basis.drafts}
    wanted = dict.fromkeys(id for near_statements in basis.near.values() for id in near_statements if id[0] == "a")
    atoms = [atom for atom in store.atoms(space, wanted) if atom.valid_to is None]
    words = {atom.id: store.evidence(space, atom.id) for atom in atoms}
    words |= {id: draft.atom.evidence for id, draft in drafts.items()}
    turns = {turn.id: turn for turn in store.turns(space, {one.turn for some in words.values() for one in some})}
    notes = {id for id, turn in turns.items() if turn.role == "note"}
    held = {atom.id: MergeTarget(atom=atom, told=atom.evidence in notes, evidence=words[atom.id]) for atom in atoms}
    there = held.keys() | drafts.keys()
    return MergeContext(
        said_at={id: turn.said_at for id, turn in turns.items()},
        drafts=drafts,
        held=held,
        near={id: [other for other in basis.near.get(id, ()) if other in there] for id in drafts},
    )


def _held_line(held: MergeTarget) -> str:
    return _line(held.atom.id, held.atom, ", told" if held.told else "")


def _draft_line(shown: MergeContext, id: str) -> str:
    near_statements = _to_compare(shown, id)
    compare = f" -> compare with {', '.join(near_statements)}" if near_statements else ""
    return _line(id, shown.drafts[id].atom) + compare


def _line(id: str, atom: Atom | NewAtom, told: str = "") -> str:
    standing = "always" if atom.priority < 0 else f"priority {atom.priority}"
    fact = atom.fact if isinstance(atom, Atom) else atom
    parts = f"{fact.entity} | {fact.relation} | {fact.value}" if fact and fact.entity else ""
    return f"{id} [{atom.kind}, {standing}, since {atom.valid_from:%Y-%m-%d}{told}] {_said(atom.text, parts)}"


def _said(text: str, fact: str) -> str:
    told = one_line(text, _WIDTH) + (f" (fact: {one_line(fact, 200)})" if fact else "")
    return fenced(told, "held", "new")


MERGE = StageDefinition(name="merge", basis=MergeBasis, reply=MergeReply, plan=plan, question=question, apply=apply)
