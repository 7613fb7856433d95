"""What a new statement ends, and what has ended it already: its place in time among those that are held.

What is told explicitly is the latest word: it ends the open atoms that it names, and the holder of its single-valued
fact. What was drawn from turns may come in any order, a conversation of last year after one of today. So

* of a single-valued fact, values follow each other by when they became true, each until the next: one that comes late
  is put between them, and what is held true at any moment is the same whatever order they came in;
* what it names to replace is replaced if that was said no later; otherwise it is itself the one that was replaced;
* what is known to have ended has a time of its own: a summer in Paris does not end the life in Lisbon around it.

Nothing ends before it began: what is ended at its own start was never held true, and ends nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import apsw

from mcp_memory.store.protocol import NewAtom
from mcp_memory.store.sql.entities import key
from mcp_memory.store.sql.rows import marks, numbers_of, to_ms

__all__ = ["Place", "end", "follows_single", "of_drawn", "of_told", "still_open"]

_SAID = "(SELECT max(t.said_at) FROM evidence e JOIN turn t ON t.id = e.turn WHERE e.atom = r.id)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Atoms that a new one ends; and when it was ended itself, by which atom if by one."""

    ends: Sequence[int]
    until: int | None = None
    by: int | None = None


@dataclass(frozen=True, slots=True, order=True)
class _Held:
    """A statement that held from `start`; of those with one start, what was said last comes last."""

    start: int
    said: int
    folded: str
    number: int
    end: int | None


def of_told(con: apsw.Connection, space: int, atom: NewAtom) -> Place:
    """Return the place of what was told; `supersedes` has open atoms only."""
    holders = [held.number for held in _values(con, space, atom) if held.end is None]
    return Place(ends=sorted({*numbers_of(atom.supersedes, "a"), *holders}))


def of_drawn(con: apsw.Connection, space: int, atom: NewAtom, folded: str, *, said: int, now: datetime) -> Place:
    """Return the place of what was drawn from turns, the last of them said at `said`.

    An end that is yet to come is no end: the text tells of it.
    """
    start, named = to_ms(atom.valid_from), _named(con, atom.supersedes)
    ends = {held.number for held in named if held.said <= said}
    if atom.valid_to is not None and atom.valid_to <= now:
        return Place(ends=sorted(ends), until=max(start, to_ms(atom.valid_to)))
    later = {held for held in named if held.said > said}
    values = {held for held in _values(con, space, atom) if held.number not in ends}
    later |= {held for held in values if (held.start, held.said, held.folded) > (start, said, folded)}
    if not later:
        return Place(ends=sorted(ends | _reaching(values, start)))
    next_one = min(later)
    until = max(start, next_one.start)
    if until > start:
        ends |= _reaching(values - later, start)
    return Place(ends=sorted(ends), until=until, by=next_one.number)


def _reaching(values: Collection[_Held], moment: int) -> set[int]:
    return {held.number for held in values if held.end is None or held.end > moment}


def follows_single(con: apsw.Connection, atom: NewAtom) -> bool:
    """Tell whether an atom takes over a single-valued fact from one that it replaces."""
    older = numbers_of(atom.supersedes, "a")
    sql = f"SELECT max(single_valued) FROM fact WHERE atom IN ({marks(older)}) AND entity_key = ? AND relation = ?"
    return bool(con.execute(sql, (*older, key(atom.entity or ""), atom.relation)).get)


def still_open(con: apsw.Connection, space: int, ids: Collection[str]) -> list[str]:
    """Return those of some atoms that are held true still."""
    numbers = numbers_of(ids, "a")
    rows: Any = con.execute(
        f"SELECT id FROM atom WHERE id IN ({marks(numbers)}) AND +space = ? AND valid_to IS NULL AND tombstone IS NULL",
        (*numbers, space),
    )
    return [f"a{number}" for (number,) in rows]


def end(con: apsw.Connection, atoms: Sequence[int], *, by: int, at: datetime, because: str) -> None:
    """Note that one atom replaces others, from `at` on."""
    for number in atoms:
        ended: int = con.execute(
            "UPDATE atom SET valid_to = max(?, valid_from), superseded_by = ?, closed_because = ? WHERE id = ?"
            " RETURNING valid_to",
            (to_ms(at), by, because or None, number),
        ).get
        con.execute("UPDATE fact SET valid_to = ? WHERE atom = ?", (ended, number))


def _named(con: apsw.Connection, ids: Sequence[str]) -> list[_Held]:
    numbers = numbers_of(ids, "a")
    rows: Any = con.execute(
        f"SELECT r.valid_from, {_SAID}, r.folded, r.id, r.valid_to FROM atom r WHERE r.id IN ({marks(numbers)})",
        numbers,
    )
    return [_Held(*row) for row in rows]


def _values(con: apsw.Connection, space: int, atom: NewAtom) -> list[_Held]:
    """Return the values that an atom's single-valued fact has had, each until the next.

    Those that were never held true are left out, and those that had a time of their own.
    """
    if not (atom.single_valued and atom.entity and atom.relation):
        return []
    rows: Any = con.execute(
        f"SELECT r.valid_from, {_SAID}, r.folded, r.id, r.valid_to FROM fact f JOIN atom r ON r.id = f.atom"
        " WHERE f.space = ? AND f.entity_key = ? AND f.relation = ? AND f.tombstone IS NULL"
        " AND (r.valid_to IS NULL OR (r.valid_to > r.valid_from AND r.superseded_by IS NOT NULL))",
        (space, key(atom.entity), atom.relation),
    )
    return [_Held(*row) for row in rows]
