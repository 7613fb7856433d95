"""Quotas: how much a space may store, and how much its model calls may use in a month.

Turns and bytes (the text of turns and statements, and the raw bytes of tool results) are counted by triggers of the
tables, in the transaction that stores or purges them, whichever program runs it. A transaction that would exceed a
quota fails with NoRoom, so the quota is exact for any number of servers. Forgotten rows count until they are purged.

Tokens and costs are counted when a call is recorded in the usage ledger, and checked before the next call of the space.
Months are those of UTC. A space without quotas is not counted at all.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, get_args

from mcp_memory.core.errors import NoRoom
from mcp_memory.store.sql.transaction import HomeTransaction, Transaction, to_ms

QuotaKind = Literal["turns", "bytes", "tokens", "cost"]
QUOTA_KINDS: tuple[QuotaKind, ...] = get_args(QuotaKind)
MONTHLY: tuple[QuotaKind, ...] = ("tokens", "cost")
DOLLAR = 1_000_000
"""The stored number of a cost of one US dollar."""

_STORED = {
    "turns": "SELECT count(*) FROM turn WHERE space = :space AND role <> 'note' AND purged_at IS NULL",
    "bytes": "SELECT (SELECT coalesce(sum(octet_length(content)), 0) FROM turn WHERE space = :space)"
    " + (SELECT coalesce(sum(bytes), 0) FROM ref WHERE space = :space AND purged_at IS NULL)",
}
_FAILURE = re.compile(r"\bquota (turns|bytes)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """A quota of a space and what is used of it: turns, bytes, or tokens or millionths of a US dollar this month."""

    what: QuotaKind
    most: int
    used: int

    @property
    def is_used_up(self) -> bool:
        return self.used >= self.most


def list_quotas(tx: Transaction, *, now: datetime) -> list[Quota]:
    """Return the quotas of the space, in the order of `QUOTA_KINDS`."""
    rows = tx.all("SELECT what, most, used, month FROM quota WHERE space = :space")
    return _quotas(rows, now)


def quotas_of_all(tx: HomeTransaction, *, now: datetime) -> dict[str, list[Quota]]:
    """Return the quotas of all spaces that have any, by name."""
    found: dict[str, list[Any]] = {}
    sql = "SELECT s.name, q.what, q.most, q.used, q.month FROM quota q JOIN space s ON s.id = q.space"
    for name, *row in tx.all(sql):
        found.setdefault(name, []).append(row)
    return {name: _quotas(rows, now) for name, rows in found.items()}


def put_quota(tx: Transaction, what: QuotaKind, most: int | None, *, now: datetime) -> None:
    """Set a quota, or remove it if `most` is None. Counts all stored turns or bytes, however many there are."""
    tx.make_space()
    if most is None:
        tx.run("DELETE FROM quota WHERE space = :space AND what = ?", what)
        return
    used = int(tx.get(_STORED[what])) if what in _STORED else 0
    recount = "used = excluded.used, " if what in _STORED else ""
    tx.run(
        "INSERT INTO quota (space, what, most, used, month) VALUES (:space, ?, ?, ?, ?)"
        f" ON CONFLICT (space, what) DO UPDATE SET {recount}most = excluded.most",
        *(what, most, used, _month(now)),
    )


def used_up(tx: HomeTransaction, space: str, *, now: datetime) -> Quota | None:
    """Return a monthly quota of a space that is used up, or None."""
    rows = tx.all(
        "SELECT q.what, q.most, q.used, q.month FROM quota q JOIN space s ON s.id = q.space"
        " WHERE s.name = ? AND q.what IN ('tokens', 'cost')",
        space,
    )
    return next((quota for quota in _quotas(rows, now) if quota.is_used_up), None)


def count_call(tx: HomeTransaction, space: str, *, tokens: int, cost: float | None, at: datetime) -> None:
    """Count a model call for the monthly quotas of a space, if it has any."""
    month = _month(at)
    for what, amount in (("tokens", tokens), ("cost", round((cost or 0.0) * DOLLAR))):
        tx.run(
            "UPDATE quota SET used = CASE WHEN month = ? THEN used ELSE 0 END + ?, month = ?"
            " WHERE what = ? AND space = (SELECT id FROM space WHERE name = ?)",
            *(month, amount, month, what, space),
        )


def quota_error(message: str) -> NoRoom | None:
    """Return the error for the message with which a trigger stopped a transaction; None for another message."""
    found = _FAILURE.search(message)
    if found is None:
        return None
    return NoRoom(
        f"This space has used up its quota of {found[1]}. Nothing was stored. `mcp-memory status` shows the"
        " quota. Ask who runs the memory for more (`mcp-memory space quota`), or to purge what is no longer needed."
    )


def set_aside(tx: HomeTransaction) -> list[Any]:
    """Remove and return all quotas, so that a rebuild can store everything; `put_back` takes them."""
    rows = tx.all("SELECT space, what, most, used, month FROM quota")
    tx.run("DELETE FROM quota")
    return rows


def put_back(tx: HomeTransaction, rows: Sequence[Any]) -> None:
    for space, what, most, used, month in rows:
        if what in _STORED:
            used = tx.get(_STORED[what].replace(":space", "?"), *[space] * _STORED[what].count(":space"))
        tx.run(
            "INSERT INTO quota (space, what, most, used, month) VALUES (?, ?, ?, ?, ?)", space, what, most, used, month
        )


def _quotas(rows: Sequence[Any], now: datetime) -> list[Quota]:
    month = _month(now)
    found = [
        Quota(what=what, most=most, used=0 if what in MONTHLY and of_month != month else used)
        for what, most, used, of_month in rows
    ]
    return sorted(found, key=lambda quota: QUOTA_KINDS.index(quota.what))


def _month(moment: datetime) -> int:
    return to_ms(moment.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0))
