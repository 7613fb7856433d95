"""Statements that close promises: "Told about Bruno's 40 euros", which supersedes the promise to tell it.

A promise is closed as done by any statement that supersedes it, other than a promise. The agent says that it told what
it was asked to, so this needs no words of the user.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mcp_memory.core.types import Atom, Kind, StatementKind
from mcp_memory.longterm.verification.trust import Embed, checked_claim
from mcp_memory.store.protocol import Store
from mcp_memory.store.values import NewAtom

__all__ = ["DONE", "closed_by", "closing", "is_note", "kind_of_successor"]

DONE = "done"
"""Why a promise that was kept no longer holds (`Atom.closed_because`)."""
_UNSAID = {"unstated", "unsaid"}


def closed_by(kind: StatementKind | None, older: Sequence[Atom]) -> list[str]:
    """Return the promises, among statements that one of this kind supersedes, that it closes as done."""
    return [] if kind == "promise" else [atom.id for atom in older if atom.label == "promise"]


def is_note(kind: StatementKind | None, older: Sequence[Atom]) -> bool:
    """Tell whether a statement only says that promises were kept: no kind is given, and it supersedes nothing else."""
    return kind is None and bool(older) and all(atom.label == "promise" for atom in older)


def kind_of_successor(older: Sequence[Atom]) -> Kind:
    """Return the kind of a statement that is given none: that of the first it supersedes, but of a promise episodic."""
    if not older:
        return "persona"
    return "episodic" if older[0].label == "promise" else older[0].kind


def closing(
    store: Store, space: str, atom: NewAtom, closed: Sequence[str], *, embed: Embed, typed: bool, dated: bool
) -> tuple[NewAtom, str | None]:
    """Return the accepted form of a statement (`checked_claim`) that closes promises, and a note for the agent.

    If the user did not say it, it is the agent's word. One that reads like an attack closes nothing.
    """
    accepted, note = checked_claim(store, space, atom, embed=embed, typed=typed, dated=dated)
    if not closed:
        return accepted, note
    if _UNSAID.intersection(accepted.held):
        word = replace(atom, source="assistant", kind="episodic", supersedes=())
        accepted, note = checked_claim(store, space, word, embed=embed, dated=dated)
    if accepted.held:
        return accepted, note
    because = accepted.because or ("" if accepted.supersedes else DONE)
    return replace(accepted, supersedes=(*accepted.supersedes, *closed), because=because), note
