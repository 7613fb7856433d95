"""Supersession: which statements a new one ends, and what has ended it already.

What is told explicitly is the latest word: it ends the open atoms that it names, and the holder of its single-valued
fact. What was extracted from turns may come in any order, a conversation of last year after one of today. So

* of a single-valued fact, values follow each other by when they became true, each until the next: one that comes late
  is put between them, and what was true at any moment is the same whatever order they came in;
* what it names to replace is replaced if that was said no later; otherwise it is itself the one that was replaced;
* what is known to have ended has a time of its own: a summer in Paris does not end the life in Lisbon around it.

Nothing ends before it began: what is ended at its own start was never true, and ends nothing else.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from mcp_memory.store.sql.entities import key
from mcp_memory.store.sql.transaction import Transaction, marks, numbers_of, to_ms
from mcp_memory.store.values import NewAtom

__all__ = ["Supersession", "end", "follows_single", "of_explicit", "of_extracted", "still_open"]

_VALUE = (
    "r.valid_from, (SELECT max(t.said_at) FROM evidence e JOIN turn t ON t.space = e.space AND t.id = e.turn"
    " WHERE e.space = r.space AND e.atom = r.id), r.folded, r.id, r.valid_to"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Supersession:
    """Atoms that a new one ends; and when it was ended itself, by which atom if by one."""

    ends: Sequence[int]
    until: int | None = None
    by: int | None = None


@dataclass(frozen=True, slots=True, order=True)
class _TimedAtom:
    """A statement that was true from `start`; of those with one start, what was said last comes last."""

    start: int
    said: int
    folded: str
    number: int
    end: int | None


def of_explicit(tx: Transaction, atom: NewAtom) -> Supersession:
    """Return what an explicit statement ends; its `supersedes` has open atoms only."""
    holders = [one.number for one in _values(tx, atom) if one.end is None]
    return Supersession(ends=sorted({*numbers_of(atom.supersedes, "a"), *holders}))


def of_extracted(tx: Transaction, atom: NewAtom, folded: str, *, said: int, now: datetime) -> Supersession:
    """Return what a statement ends that was extracted from turns, the last of them said at `said`.

    An end that is yet to come is no end: the text tells of it.
    """
    start, named = to_ms(atom.valid_from), _named(tx, atom.supersedes)
    ends = {one.number for one in named if one.said <= said}
    if atom.valid_to is not None and atom.valid_to <= now:
        return Supersession(ends=sorted(ends), until=max(start, to_ms(atom.valid_to)))
    later = {one for one in named if one.said > said}
    values = {one for one in _values(tx, atom) if one.number not in ends}
    later |= {one for one in values if (one.start, one.said, one.folded) > (start, said, folded)}
    if not later:
        return Supersession(ends=sorted(ends | _reaching(values, start)))
    next_one = min(later)
    until = max(start, next_one.start)
    if until > start:
        ends |= _reaching(values - later, start)
    return Supersession(ends=sorted(ends), until=until, by=next_one.number)


def _reaching(values: Collection[_TimedAtom], moment: int) -> set[int]:
    return {one.number for one in values if one.end is None or one.end > moment}


def follows_single(tx: Transaction, atom: NewAtom) -> bool:
    """Tell whether an atom takes over a single-valued fact from one that it replaces."""
    older = numbers_of(atom.supersedes, "a")
    sql = (
        f"SELECT max(single_valued) FROM fact WHERE space = :space AND atom IN ({marks(older)})"
        " AND entity_key = ? AND relation = ?"
    )
    return bool(tx.get(sql, *older, key(atom.entity or ""), atom.relation))


def still_open(tx: Transaction, ids: Collection[str]) -> list[str]:
    """Return those of some atoms that have not ended."""
    numbers = numbers_of(ids, "a")
    sql = f"SELECT id FROM atom WHERE space = :space AND id IN ({marks(numbers)}) AND valid_to IS NULL"
    return [f"a{number}" for number in tx.column(f"{sql} AND tombstone IS NULL", *numbers)]


def end(tx: Transaction, atoms: Sequence[int], *, by: int, at: datetime, because: str) -> None:
    """Note that one atom replaces others, from `at` on."""
    for number in atoms:
        began: int = tx.get("SELECT valid_from FROM atom WHERE space = :space AND id = ?", number)
        ended = max(to_ms(at), began)
        tx.run(
            "UPDATE atom SET valid_to = ?, superseded_by = ?, closed_because = ? WHERE space = :space AND id = ?",
            *(ended, by, because or None, number),
        )
        tx.run("UPDATE fact SET valid_to = ? WHERE space = :space AND atom = ?", ended, number)


def _named(tx: Transaction, ids: Sequence[str]) -> list[_TimedAtom]:
    numbers = numbers_of(ids, "a")
    rows = tx.all(f"SELECT {_VALUE} FROM atom r WHERE r.space = :space AND r.id IN ({marks(numbers)})", *numbers)
    return [_TimedAtom(*row) for row in rows]


def _values(tx: Transaction, atom: NewAtom) -> list[_TimedAtom]:
    """Return the values that an atom's single-valued fact has had, each until the next.

    Those that were never true are left out, and those that had a time of their own.
    """
    if not (atom.single_valued and atom.entity and atom.relation):
        return []
    rows = tx.all(
        f"SELECT {_VALUE} FROM fact f JOIN atom r ON r.space = f.space AND r.id = f.atom"
        " WHERE f.space = :space AND f.entity_key = ? AND f.relation = ? AND f.tombstone IS NULL"
        " AND (r.valid_to IS NULL OR (r.valid_to > r.valid_from AND r.superseded_by IS NOT NULL))",
        *(key(atom.entity), atom.relation),
    )
    return [_TimedAtom(*row) for row in rows]
