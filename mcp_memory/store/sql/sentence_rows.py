"""Statements that a program, the sentence reader, extracts from sentences of the user.

The reader processes the turns of the user in the order of their numbers; its cursor is that of the stage `read`. Turns
that it reads out of order are marked one by one (`mark_read`): turns released from quarantine, and imported turns that
another home has read. When a model has read all turns of such a statement, the statement is replaced or withdrawn
(`replaced_sentences`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime

from mcp_memory.core.types import Turn
from mcp_memory.store.row_types import READ, read_mark
from mcp_memory.store.sql import atom_rows, digests, evidence_rows, job_rows, supersession, turn_rows, word_index
from mcp_memory.store.sql.transaction import Transaction, marks, number_of, numbers_of
from mcp_memory.store.values import UNJUDGED, NewAtom, Readings, WrittenAtom

_BY_USER = "t.space = :space AND t.role = 'user' AND t.tombstone IS NULL"
_NO_MODEL = "t.position >= coalesce(p.position, 0)"
_PROGRESS = "LEFT JOIN progress p ON p.space = t.space AND p.session = t.session"
_NOT_MARKED = f"NOT EXISTS (SELECT 1 FROM origin o WHERE o.space = t.space AND o.origin = '{read_mark('t')}' || t.id)"
_QUARANTINED = "h.verdict IS NULL OR h.verdict = 'kept'"
_NOT_QUARANTINED = (
    f"NOT EXISTS (SELECT 1 FROM held h WHERE h.space = t.space AND h.id = 't' || t.id AND ({_QUARANTINED}))"
)
_HELD_TURN = "SELECT CAST(substr(h.id, 2) AS BIGINT) FROM held h WHERE h.space = :space AND substr(h.id, 1, 1) = 't'"


# --- which turns are read next ----------------------------------------------------------------------


def unread_turns(tx: Transaction, *, limit: int) -> list[Turn]:
    """Return the next turns of the user for the sentence reader. A commit of `Readings` moves the reader's cursor.

    These are turns after the reader's cursor that no model has read, up to the first turn that waits for the background
    check of quarantine; quarantined turns are left out. Turns before the cursor that were released from quarantine
    since come first.
    """
    upto = _cursor(tx)
    released = tx.column(
        f"SELECT t.id FROM turn t {_PROGRESS} WHERE {_BY_USER} AND {_NO_MODEL} AND {_NOT_MARKED} AND t.id <= ?"
        f" AND t.id IN ({_HELD_TURN} AND h.verdict = 'released') ORDER BY t.id LIMIT ?",
        *(upto, limit),
    )
    numbers = [*released, *_numbers_after(tx, upto, limit=limit - len(released))]
    return turn_rows.by_ids(tx, [f"t{number}" for number in numbers])


def _cursor(tx: Transaction) -> int:
    return tx.get("SELECT position FROM stage_cursor WHERE space = :space AND stage = 'read'") or 0


def _numbers_after(tx: Transaction, upto: int, *, limit: int) -> list[int]:
    """Return the numbers of the next turns after `upto`, before the first turn that is not judged yet."""
    unjudged = _first_unjudged(tx, upto)
    return tx.column(
        f"SELECT t.id FROM turn t {_PROGRESS} WHERE {_BY_USER} AND {_NO_MODEL} AND {_NOT_MARKED} AND t.id > ?"
        f" {'' if unjudged is None else 'AND t.id < ?'} AND {_NOT_QUARANTINED} ORDER BY t.id LIMIT ?",
        *(upto, *(() if unjudged is None else (unjudged,)), limit),
    )


def _first_unjudged(tx: Transaction, upto: int) -> int | None:
    return tx.get(
        f"SELECT min(t.id) FROM turn t WHERE {_BY_USER} AND t.id > ? AND t.id IN"
        f" ({_HELD_TURN} AND h.verdict IS NULL AND h.reasons LIKE ?)",
        *(upto, f'%"{UNJUDGED}"%'),
    )


def skip_read_turns(tx: Transaction) -> None:
    """Move the cursor past turns that a model has read, so that `unread_turns` does not scan them again."""
    upto = _cursor(tx)
    first = next(iter(_numbers_after(tx, upto, limit=1)), None) or _first_unjudged(tx, upto)
    position = tx.last("turn") if first is None else first - 1
    if position > upto:
        tx.run(
            "INSERT INTO stage_cursor (space, stage, position, at) VALUES (:space, 'read', ?, 0)"
            " ON CONFLICT (space, stage) DO UPDATE SET position = excluded.position",
            position,
        )


def mark_read(tx: Transaction, numbers: Collection[int]) -> None:
    """Mark turns of the user as read, except quarantined turns, which are read when they are released.

    Turns before the cursor count as read and get no mark, unless they were ever quarantined.
    """
    read = tx.among(
        f"SELECT t.id FROM turn t WHERE {_BY_USER} AND (t.id > ? OR t.id IN ({_HELD_TURN})) AND {_NOT_QUARANTINED}"
        " AND t.id IN ({})",
        *(numbers, _cursor(tx)),
    )
    tx.many(
        "INSERT INTO origin (space, origin, id) VALUES (:space, ?, ?) ON CONFLICT DO NOTHING",
        [(read_mark(f"t{number}"), READ) for (number,) in read],
    )


# --- storing ----------------------------------------------------------------------------------------


def put(tx: Transaction, readings: Readings, *, now: datetime) -> list[WrittenAtom]:
    """Store the statements of the sentence reader and move its cursor.

    A statement is left out if its words or any of its turns were forgotten, or if a model has read its turns in the
    meantime. Its fact is never single-valued, because only the reader decides which statements it ends (`supersedes`).
    """
    written = {
        place: atom_rows.put(
            tx, replace(atom, single_valued=False, supersedes=supersession.still_open(tx, atom.supersedes)), now=now
        )
        for place, atom in enumerate(readings.atoms)
        if evidence_rows.are_turns_present(tx, atom.evidence) and _is_to_be_stored(tx, atom)
    }
    new = {place: number_of(made.atom.id, "a") for place, made in written.items() if not made.duplicate}
    if readings.vectors is not None and new:
        tx.index.put_vectors("atom", list(new.values()), readings.vectors, rows=list(new))
    word_index.make_due(tx, readings.vectors)
    turns_read = numbers_of(readings.turns, "t")
    job_rows.advance_stage(tx, "read", max(turns_read), now=now)
    mark_read(tx, turns_read)
    return list(written.values())


def _is_to_be_stored(tx: Transaction, atom: NewAtom) -> bool:
    quotes = evidence_rows.check_quotes(tx, atom.evidence)
    said_in = [turn for turn, *_ in quotes]
    is_unread = tx.one(
        f"SELECT 1 FROM turn t {_PROGRESS} WHERE t.space = :space AND t.id IN ({marks(said_in)}) AND {_NO_MODEL}",
        *said_in,
    )
    return is_unread is not None and not digests.was_forgotten(tx, atom.text, quotes)
