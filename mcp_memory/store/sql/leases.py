"""Who may do what alone, across processes: leases that expire, and the pause that stops every model."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import apsw

from mcp_memory.store.sql.rows import from_ms, to_ms

__all__ = ["LONGEST", "hold", "let_go", "pause", "paused", "resume"]


LONGEST = timedelta(hours=7)
"""Nothing is held for longer: what ends later was taken before the clock was set back, and holds no more."""


def hold(con: apsw.Connection, name: str, holder: str, *, until: datetime, now: datetime) -> bool:
    """See `Store.hold`."""
    got = con.execute(
        "INSERT INTO lease (name, holder, until) VALUES (?1, ?2, ?3) ON CONFLICT (name) DO UPDATE"
        " SET holder = ?2, until = ?3 WHERE holder = ?2 OR until <= ?4 OR until > ?5 RETURNING 1",
        (name, holder, to_ms(until), to_ms(now), to_ms(now + LONGEST)),
    ).get
    return got is not None


def let_go(con: apsw.Connection, name: str, holder: str) -> None:
    con.execute("DELETE FROM lease WHERE name = ? AND holder = ?", (name, holder))


def pause(con: apsw.Connection, reason: str, *, now: datetime) -> None:
    con.execute(
        "INSERT INTO pause (id, reason, at) VALUES (1, ?1, ?2) ON CONFLICT (id) DO UPDATE SET reason = ?1, at = ?2",
        (reason, to_ms(now)),
    )


def resume(con: apsw.Connection) -> None:
    con.execute("DELETE FROM pause")


def paused(con: apsw.Connection) -> tuple[str, datetime] | None:
    row: Any = con.execute("SELECT reason, at FROM pause").fetchone()
    return None if row is None else (row[0], from_ms(row[1]))
