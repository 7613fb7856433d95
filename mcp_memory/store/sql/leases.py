"""Leases, which give one process at a time an exclusive right, and the pause of all calls to models."""

from __future__ import annotations

from datetime import datetime, timedelta

from mcp_memory.store.sql.transaction import HomeTransaction, from_ms, to_ms

__all__ = ["LONGEST", "lease", "pause", "paused", "release", "resume"]


LONGEST = timedelta(hours=7)
"""A lease that ends later was taken before the clock was set back, and counts as expired."""


def lease(tx: HomeTransaction, name: str, holder: str, *, until: datetime, now: datetime) -> bool:
    got = tx.get(
        "INSERT INTO lease (name, holder, until) VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE"
        " SET holder = excluded.holder, until = excluded.until"
        " WHERE lease.holder = excluded.holder OR lease.until <= ? OR lease.until > ? RETURNING 1",
        *(name, holder, to_ms(until)),
        *(to_ms(now), to_ms(now + LONGEST)),
    )
    return got is not None


def release(tx: HomeTransaction, name: str, holder: str) -> None:
    tx.run("DELETE FROM lease WHERE name = ? AND holder = ?", name, holder)


def pause(tx: HomeTransaction, reason: str, *, now: datetime) -> None:
    tx.run(
        "INSERT INTO pause (id, reason, at) VALUES (1, ?, ?)"
        " ON CONFLICT (id) DO UPDATE SET reason = excluded.reason, at = excluded.at",
        *(reason, to_ms(now)),
    )


def resume(tx: HomeTransaction) -> None:
    tx.run("DELETE FROM pause")


def paused(tx: HomeTransaction) -> tuple[str, datetime] | None:
    row = tx.one("SELECT reason, at FROM pause")
    return None if row is None else (row[0], from_ms(row[1]))
