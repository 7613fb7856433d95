"""Checks a statement that supersedes others (`remember`): their ids, the facts that it keeps, the promises it closes.

Any statement that supersedes a promise closes it as done, unless it is a promise itself. "I told the user about Bruno's
40 euros" is a note of the agent on its own action, so it needs no words of the user. The words of the promise never
count as evidence that it was kept. A statement that the user made in other words closes only promises about the same
matter, because an agent may give a wrong id.

`store.sql.supersession` ends the superseded statements.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from mcp_memory.core.errors import InvalidInput, NotFound
from mcp_memory.core.text import day_in_words
from mcp_memory.core.types import Atom, Fact, Kind, StatementKind
from mcp_memory.language.words import fold
from mcp_memory.longterm.names import USER, contains_name, entities_in
from mcp_memory.longterm.row_text import ROW
from mcp_memory.longterm.search.scenes import names_of
from mcp_memory.longterm.statements import MAX_CHARS, explicit_atom
from mcp_memory.longterm.verification.claims import Embed, check_claim
from mcp_memory.longterm.verification.comparison import known_terms, share_of
from mcp_memory.longterm.verification.own_words import is_near
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import atom_rows
from mcp_memory.store.values import NewAtom

_UNSAID = {"unstated", "unsaid"}


def superseded_ids(store: Store, space: str, ids: Sequence[str]) -> list[str]:
    """Return the ids, with each turn replaced by the current statements that are based on it.

    Raises NotFound if a turn has no current statements.
    """
    resolved: list[str] = []
    for id in ids:
        if not (id.startswith("t") and ROW.fullmatch(id)):
            resolved.append(id)
            continue
        based = [atom.id for atom in store.read(space, atom_rows.based_on, [id])[id] if atom.valid_to is None]
        if not based:
            raise NotFound(
                f"No statement is based on turn {id}, so there is nothing to supersede. Leave {id} out: what was said "
                "later counts as the newer value automatically."
            )
        resolved += based
    return list(dict.fromkeys(resolved))


def fact_still_stated(store: Store, space: str, text: str, older: Iterable[Atom]) -> Fact | None:
    """Return the first fact of the superseded statements whose entity and value are in the new text, or None.

    If the entity is the user, the text need not name it.
    """

    def is_named(name: str) -> bool:
        return contains_name(names_of(store, space, name), text)

    for fact in (atom.fact for atom in older if atom.fact):
        if (fold(fact.entity) == USER or is_named(fact.entity)) and is_named(fact.value):
            return fact
    return None


def ending_of(old: Atom, begin: datetime | None, end: datetime | None, *, session: str, now: datetime) -> NewAtom:
    """Return the event that a statement ended: on the day from `begin` to `end`, or now if they are None.

    On the day on which the statement began, the event is at the end of that day, or now. Raises InvalidInput for a day
    in the future, or before the statement began.
    """
    at = now if begin is None or end is None or end > now else begin
    if begin is not None and end is not None and begin <= old.valid_from < end:
        at = min(end, now)
    if (begin is not None and begin > now) or at <= old.valid_from:
        raise InvalidInput(
            f"A statement can end from the day on which it began ({_day(old.valid_from)}) until today ({_day(now)}). "
            "Nothing was changed."
        )
    event = explicit_atom(
        f"Ended on {_day(at)}: {old.text}"[:MAX_CHARS],
        kind="episodic",
        session=session,
        entity=None,
        relation=None,
        value=None,
        supersedes=[old.id],
        valid_from=at,
    )
    # It is over when it begins, so no list takes it for a statement that is true.
    return replace(event, entities=old.entities, held=old.held, valid_to=at)


def is_ending(atom: Atom) -> bool:
    """Return whether an atom only records that another statement ended (`ending_of`)."""
    return atom.valid_to == atom.valid_from and atom.superseded_by is None and not atom.is_sentence


def _day(at: datetime) -> str:
    return day_in_words(at.astimezone().date())


def entities_of_correction(
    store: Store, space: str, text: str, older: Sequence[Atom], *, value: str | None = None
) -> list[str]:
    """Return the entities that a new text is about.

    These are the user, if a superseded statement is about the user; the entities that the text names; and `value`, the
    new fact's value, if the value of a superseded fact is an entity.
    """
    about = {name for atom in older for name in atom.entities}
    old_values = {atom.fact.value for atom in older if atom.fact}
    user = [USER] if USER in about else []
    new_value = [value] if value and old_values & about else []
    return list(dict.fromkeys([*user, *entities_in(store, space, text), *new_value]))


# --- promises ---------------------------------------------------------------------------------------


def promises_to_close(kind: StatementKind | None, older: Sequence[Atom]) -> list[Atom]:
    """Return the promises among the superseded statements, unless the new statement is a promise too."""
    return [] if kind == "promise" else [atom for atom in older if atom.label == "promise"]


def may_be_note(kind: StatementKind | None, older: Sequence[Atom]) -> bool:
    """Return whether a statement may only note that promises were kept: it has no kind and supersedes only promises."""
    return kind is None and bool(older) and all(atom.label == "promise" for atom in older)


def kind_of_successor(older: Sequence[Atom]) -> Kind:
    """Return the kind for a statement without a kind: that of the first superseded statement other than a promise.

    `persona` if all of them are promises.
    """
    kinds: list[Kind] = [atom.kind for atom in older if atom.label != "promise"]
    return kinds[0] if kinds else "persona"


def check_closing(
    store: Store,
    space: str,
    atom: NewAtom,
    promises: Sequence[Atom],
    *,
    embed: Embed,
    typed: bool,
    dated: bool,
    is_note: bool,
    said_in: str,
) -> tuple[NewAtom, str | None]:
    """Return the accepted form of a statement that closes promises (`check_claim`), and a note for the agent or None.

    The user's words are searched in the space `said_in`. A statement that the user did not make counts as the agent's.
    So does a possible note (`is_note`), unless the user's other words contain more of its terms than the promises do. A
    statement that resembles an attack closes nothing.
    """
    excluded = [promise.text for promise in promises]
    check = partial(check_claim, store, space, embed=embed, dated=dated, said_in=said_in)
    accepted, note = check(atom, typed=typed, excluded=excluded)
    if not promises:
        return accepted, note
    is_users = accepted.source == "user" and not accepted.held
    if is_note and not typed:
        is_users = is_users and share_of(atom.text, known_terms(accepted.text)) > share_of(
            atom.text, known_terms(*excluded)
        )
    if _UNSAID.intersection(accepted.held) or (is_note and not is_users):
        agents = replace(atom, source="assistant", kind="episodic", priority=70, supersedes=())
        accepted, note = check(agents)
    if accepted.held:
        return accepted, note
    closed = [promise for promise in promises if promise.valid_to is None]
    if is_users and not typed:
        unrelated = [promise.id for promise in closed if not is_near(promise.text, accepted.text)]
        closed = [promise for promise in closed if promise.id not in unrelated]
        notes = [note, *(f"It does not close {id}: that is about something else." for id in unrelated)]
        note = " ".join(filter(None, notes))
    return replace(accepted, supersedes=(*accepted.supersedes, *(promise.id for promise in closed))), note or None
