"""Statements that close promises: "Told about Bruno's 40 euros", which supersedes the promise to tell it.

Any statement that supersedes a promise closes it as done, other than a promise. The agent says that it told what it was
asked to, so this needs no words of the user. It never gets the words of the promise itself: the user said them of
something else. A statement that the user made in other words closes only promises about the same matter, because an
agent may give a wrong id.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mcp_memory.core.types import Atom, Kind, StatementKind
from mcp_memory.longterm.verification.claims import Embed, check_claim
from mcp_memory.longterm.verification.comparison import known_terms, share_of
from mcp_memory.longterm.verification.own_words import is_near
from mcp_memory.store.protocol import Store
from mcp_memory.store.values import NewAtom

_UNSAID = {"unstated", "unsaid"}


def closed_by(kind: StatementKind | None, older: Sequence[Atom]) -> list[Atom]:
    """Return the promises, among statements that one of this kind supersedes, that it is to close."""
    return [] if kind == "promise" else [atom for atom in older if atom.label == "promise"]


def is_note(kind: StatementKind | None, older: Sequence[Atom]) -> bool:
    """Return whether a statement may only say that promises were kept: it has no kind, and supersedes nothing else."""
    return kind is None and bool(older) and all(atom.label == "promise" for atom in older)


def kind_of_successor(older: Sequence[Atom]) -> Kind:
    """Return the kind of a statement that is given none: that of the first it supersedes which is no promise."""
    kinds: list[Kind] = [atom.kind for atom in older if atom.label != "promise"]
    return kinds[0] if kinds else "persona"


def closing(
    store: Store,
    space: str,
    atom: NewAtom,
    promises: Sequence[Atom],
    *,
    embed: Embed,
    typed: bool,
    dated: bool,
    is_note: bool,
) -> tuple[NewAtom, str | None]:
    """Return the accepted form of a statement (`check_claim`) that is to close promises, and a note for the agent.

    What the user did not say is the agent's word; so is a possible note (`is_note`), unless more of its terms are in
    other words of the user than in the promises. A statement that reads like an attack closes nothing.
    """
    excluded = [one.text for one in promises]
    accepted, note = check_claim(store, space, atom, embed=embed, typed=typed, dated=dated, excluded=excluded)
    if not promises:
        return accepted, note
    is_users = accepted.source == "user" and not accepted.held
    if is_note and not typed:
        is_users = is_users and _more_in(accepted.text, excluded, atom.text)
    if _UNSAID.intersection(accepted.held) or (is_note and not is_users):
        word = replace(atom, source="assistant", kind="episodic", priority=70, supersedes=())
        accepted, note = check_claim(store, space, word, embed=embed, dated=dated)
    if accepted.held:
        return accepted, note
    closed = [one for one in promises if one.valid_to is None]
    if is_users and not typed:
        apart = [one.id for one in closed if not is_near(one.text, accepted.text)]
        closed = [one for one in closed if one.id not in apart]
        notes = [note, *(f"It does not close {id}: that is about something else." for id in apart)]
        note = " ".join(filter(None, notes))
    return replace(accepted, supersedes=(*accepted.supersedes, *(one.id for one in closed))), note or None


def _more_in(words: str, promises: Sequence[str], statement: str) -> bool:
    """Return whether more of a statement's terms are in some words than in promises."""
    return share_of(statement, known_terms(words)) > share_of(statement, known_terms(*promises))
