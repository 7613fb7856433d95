"""Retention policies: how long a space keeps rows of each kind, when a policy last ran, and which rows are overdue.

The age of a turn counts from when it was stored, so an old history that is imported today is not deleted tomorrow; the
age of a result counts from when it was taken. Turns and results that are evidence of a statement are kept at any age,
and counted. Files of projects are kept while they exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from mcp_memory.store.forgetting import Keeping, Policy
from mcp_memory.store.sql.quarantine_rows import THERE
from mcp_memory.store.sql.transaction import HomeTransaction, Transaction, from_ms, to_ms
from mcp_memory.store.sql.word_index import IN_PROJECT

EVERY = timedelta(hours=23)
"""A little less than a day, so that a server that runs at the same hours applies the policies every day."""
_COLUMNS = "what, days, at, ran_at, took"
_IS_EVIDENCE = (
    "EXISTS (SELECT 1 FROM evidence e JOIN atom a ON a.space = e.space AND a.id = e.atom"
    " WHERE e.space = t.space AND e.turn = t.id AND a.tombstone IS NULL)"
)
_CITED = (
    "EXISTS (SELECT 1 FROM citation c WHERE c.space = r.space AND c.ref = r.id AND substr(c.source, 1, 1) = 'a'"
    f" AND {THERE.format(id='c.source', space='c.space')})"
)

_OLD: dict[Keeping, tuple[str, str, str, str]] = {
    "turns": (
        "'t' || t.id",
        "turn t WHERE t.space = :space AND t.learned_at < ? AND t.tombstone IS NULL AND t.role <> 'note'",
        _IS_EVIDENCE,
        "t.learned_at, t.id",
    ),
    "results": (
        "r.id",
        "ref r WHERE r.space = :space AND unixepoch(r.timestamp, 'subsec') * 1000 < ? AND r.tombstone IS NULL"
        f" AND NOT {IN_PROJECT}",
        _CITED,
        "r.id",
    ),
    "purge": (
        "'x' || x.id",
        "tombstone x WHERE x.space = :space AND x.at < ? AND x.undone_at IS NULL AND x.purged_at IS NULL"
        """ AND x.took LIKE '%"how": "retention"%'""",  # as `json.dumps` writes it; JSON functions differ
        "1 = 0",
        "x.id",
    ),
}
"""SQL for each kind: the id of a row, the old rows, the condition of old rows that are kept, and the order."""


def list_policies(tx: Transaction) -> list[Policy]:
    """Return the retention policies of the space."""
    return [_policy(row) for row in tx.all(f"SELECT {_COLUMNS} FROM retention WHERE space = :space ORDER BY what DESC")]


def policies_of_all(tx: HomeTransaction) -> dict[str, list[Policy]]:
    """Return the retention policies of all spaces that have any, by name."""
    found: dict[str, list[Policy]] = {}
    columns = ", ".join(f"r.{column}" for column in _COLUMNS.split(", "))
    for name, *row in tx.all(
        f"SELECT s.name, {columns} FROM retention r JOIN space s ON s.id = r.space ORDER BY r.what DESC"
    ):
        found.setdefault(name, []).append(_policy(row))
    return found


def put_policy(tx: Transaction, what: Keeping, days: int | None, *, now: datetime) -> None:
    """Set the retention policy for a kind of rows, or remove it if `days` is None."""
    tx.make_space()
    if days is None:
        tx.run("DELETE FROM retention WHERE space = :space AND what = ?", what)
        return
    tx.run(
        "INSERT INTO retention (space, what, days, at, took) VALUES (:space, ?, ?, ?, 0) ON CONFLICT (space, what)"
        " DO UPDATE SET days = excluded.days, at = excluded.at, ran_at = NULL",
        *(what, days, to_ms(now)),
    )


def start_due(tx: Transaction, *, now: datetime, eager: bool = False) -> list[Policy]:
    """Record that the policies that have not run for 23 hours (with `eager`, all) run now, and return them.

    The caller must run them.
    """
    at = to_ms(now)
    rows = tx.all(
        "UPDATE retention SET ran_at = ? WHERE space = :space AND"
        f" (? = 1 OR ran_at IS NULL OR ran_at <= ? OR ran_at > ?) RETURNING {_COLUMNS}",
        *(at, int(eager), to_ms(now - EVERY), at),
    )
    return sorted(map(_policy, rows), key=lambda policy: policy.what == "purge")  # new tombstones are too young


def next_run(policy: Policy, *, now: datetime) -> datetime:
    """Return when a policy runs next, in a server that is open then; servers look every hour."""
    return now if policy.ran_at is None or policy.ran_at > now else max(now, policy.ran_at + EVERY)


def note_retained(tx: Transaction, what: Keeping, took: int) -> None:
    """Add to the number of rows that a policy has forgotten or purged."""
    tx.run("UPDATE retention SET took = took + ? WHERE space = :space AND what = ?", took, what)


def overdue(tx: Transaction, what: Keeping, *, before: datetime, limit: int) -> list[str]:
    """Return ids of the rows from before a moment: turns (oldest first), results, or tombstones of policies.

    Turns and results that are evidence of a statement are left out, because they are kept.
    """
    named, old, stays, order = _OLD[what]
    return tx.column(f"SELECT {named} FROM {old} AND NOT {stays} ORDER BY {order} LIMIT ?", to_ms(before), limit)


def count_overdue(tx: Transaction, what: Keeping, *, before: datetime) -> tuple[int, int]:
    """Count the rows that `overdue` would return without a limit, and those kept as evidence of a statement."""
    _, old, stays, _ = _OLD[what]
    all_old, staying = tx.all(f"SELECT count(*), count(CASE WHEN {stays} THEN 1 END) FROM {old}", to_ms(before))[0]
    return all_old - staying, staying


def _policy(row: Sequence[Any]) -> Policy:
    what, days, at, ran_at, took = row
    return Policy(what=what, days=days, at=from_ms(at), ran_at=None if ran_at is None else from_ms(ran_at), took=took)
