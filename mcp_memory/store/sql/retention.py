"""How long a space keeps what, in SQLite: policies, when each was last followed, and what is older than it allows.

Age counts from when something came in, so that an old history which is imported today is not gone tomorrow; of a
result from when it was taken. Turns and results that a statement rests on stay, whatever their age: they are counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import apsw

from mcp_memory.store.forgetting import Keeping, Policy
from mcp_memory.store.sql.rows import from_ms, space_for, space_id, stands, to_ms

__all__ = ["count_overdue", "due", "listed", "note", "overdue", "put"]

_EVERY = timedelta(hours=23)
"""A little less than a day: a server that is open at the same hours does it each day."""
_COLUMNS = "what, days, at, ran_at, took"
_RESTED_ON = (
    "EXISTS (SELECT 1 FROM evidence e JOIN atom a ON a.id = e.atom WHERE e.turn = t.id AND a.tombstone IS NULL)"
)
_CITED = (
    "EXISTS (SELECT 1 FROM citation c WHERE c.space = f.space AND c.ref = f.id AND c.source GLOB 'a*'"
    f" AND {stands('c.source')})"
)

_OLD: dict[Keeping, tuple[str, str, str]] = {
    "turns": (
        "'t' || t.id",
        "turn t WHERE t.space = ? AND t.learned_at < ? AND t.tombstone IS NULL AND t.role <> 'note'",
        _RESTED_ON,
    ),
    "results": (
        "f.id",
        "ref f WHERE f.space = ? AND unixepoch(f.timestamp, 'subsec') * 1000 < ? AND f.tombstone IS NULL",
        _CITED,
    ),
    "purge": (
        "'x' || x.id",
        "tombstone x WHERE x.space = ? AND x.at < ? AND x.undone_at IS NULL AND x.purged_at IS NULL"
        " AND x.took ->> 'how' = 'retention'",
        "0",
    ),
}
"""How each is named, what is old of it, and what of that stays."""


def listed(con: apsw.Connection, space: str) -> list[Policy]:
    """See `Store.policies`."""
    rows: Any = con.execute(
        f"SELECT {_COLUMNS} FROM retention WHERE space = ? ORDER BY what DESC", (space_id(con, space),)
    )
    return [_policy(row) for row in rows]


def put(con: apsw.Connection, space: str, what: Keeping, days: int | None, *, now: datetime) -> None:
    """See `Store.put_policy`."""
    number = space_for(con, space)
    if days is None:
        con.execute("DELETE FROM retention WHERE space = ? AND what = ?", (number, what))
        return
    con.execute(
        "INSERT INTO retention (space, what, days, at) VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE"
        " SET days = excluded.days, at = excluded.at, ran_at = NULL",
        (number, what, days, to_ms(now)),
    )


def due(con: apsw.Connection, space: str, *, now: datetime, eager: bool) -> list[Policy]:
    """See `Store.due_policies`."""
    rows: Any = con.execute(
        "UPDATE retention SET ran_at = ?1 WHERE space = ?2 AND (?3 OR ran_at IS NULL OR ran_at <= ?4 OR ran_at > ?1)"
        f" RETURNING {_COLUMNS}",
        (to_ms(now), space_id(con, space), eager, to_ms(now - _EVERY)),
    ).fetchall()
    return sorted(map(_policy, rows), key=lambda policy: policy.what == "purge")  # what is forgotten now is young


def note(con: apsw.Connection, space: str, what: Keeping, took: int) -> None:
    """See `Store.note_kept`."""
    con.execute("UPDATE retention SET took = took + ? WHERE space = ? AND what = ?", (took, space_id(con, space), what))


def overdue(con: apsw.Connection, space: str, what: Keeping, *, before: datetime, limit: int) -> list[str]:
    """See `Store.overdue`."""
    named, old, rests = _OLD[what]
    ids = con.execute(
        f"SELECT {named} FROM {old} AND NOT {rests} LIMIT ?", (space_id(con, space), to_ms(before), limit)
    )
    return [str(id) for (id,) in ids]


def count_overdue(con: apsw.Connection, space: str, what: Keeping, *, before: datetime) -> tuple[int, int]:
    """See `Store.count_overdue`."""
    _, old, rests = _OLD[what]
    values = (space_id(con, space), to_ms(before))
    row: Any = con.execute(f"SELECT count(*), coalesce(sum({rests}), 0) FROM {old}", values).fetchone()
    old_ones, staying = row
    return old_ones - staying, staying


def _policy(row: Sequence[Any]) -> Policy:
    what, days, at, ran_at, took = row
    return Policy(what=what, days=days, at=from_ms(at), ran_at=None if ran_at is None else from_ms(ran_at), took=took)
