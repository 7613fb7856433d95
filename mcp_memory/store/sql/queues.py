"""Queues of background work: when workers look at each space next, and which worker has claimed it.

A queue is a kind of work that the workers of all processes share. The table `due` has a row for each queue and space. A
write marks its space as due immediately. A worker claims the space that has been due longest. The claim ends when the
worker releases it or, if the worker died, when its lease expires. A worker that got no answer to a claim or a release
opens its queue again, which ends its claim. A space that is written to while it is claimed becomes due again.

A claim only avoids duplicate work. Two workers may work on one space if a lease was too short, but nothing is stored
twice, because each write is checked (`job_rows.finish`, `put_vectors`, `put_chunks`). Times are those of the clock of
the database, so the clocks of servers may differ.
"""

from __future__ import annotations

import secrets
from datetime import timedelta

from mcp_memory.store.sql.home_rows import DELETED
from mcp_memory.store.sql.transaction import NOW, Engine, HomeTransaction, milliseconds
from mcp_memory.store.values import Claim

LONGEST_LEASE = timedelta(hours=7)
"""A lease that ends later was taken before the clock was set back, and is treated as expired."""

_DUE = f"d.queue = ? AND d.at <= {NOW} AND (d.until <= {NOW} OR d.until > {NOW} + ?)"


def open_queue(tx: HomeTransaction, queue: str, *, worker: str = "") -> None:
    """Create a queue: every space is due now, and again after each write to it.

    A claim that `worker` has not released ends: it may have got no answer when it claimed or released the space.
    """
    tx.run("INSERT INTO queue (name) VALUES (?) ON CONFLICT DO NOTHING", queue)
    tx.run(
        f"INSERT INTO due (space, queue, at, token, until) SELECT id, ?, {NOW}, '', 0 FROM space"
        f" WHERE name NOT LIKE '{DELETED}%' ON CONFLICT DO NOTHING",
        queue,
    )
    if worker:
        tx.run(
            f"UPDATE due SET until = 0, at = CASE WHEN at < until THEN at ELSE {NOW} END"
            " WHERE queue = ? AND token = ? AND until > 0",
            *(queue, worker),
        )


def look_again(tx: HomeTransaction, queue: str) -> None:
    """Make every space due in a queue."""
    tx.run(f"UPDATE due SET at = {NOW} WHERE queue = ?", queue)


def count_waiting(tx: HomeTransaction, queue: str) -> int:
    """Count the spaces of a queue that are due or claimed."""
    return tx.get(f"SELECT count(*) FROM due WHERE queue = ? AND (at <= {NOW} OR until > {NOW})", queue)


def is_due(tx: HomeTransaction, queue: str) -> bool:
    """Return whether a queue has a space that can be claimed now."""
    return tx.one(f"SELECT 1 FROM due d WHERE {_DUE} LIMIT 1", queue, milliseconds(LONGEST_LEASE)) is not None


def claim(
    tx: HomeTransaction, queue: str, *, lease: timedelta, space: str | None = None, worker: str = ""
) -> Claim | None:
    """Claim the space that has been due longest and is not claimed; return None if there is none.

    With `space`, claim that space even if it is not due; return None if it is claimed or unknown. `worker` is the name
    of a worker that has one claim at a time.
    """
    if space is None:
        condition, values = _DUE, (queue, milliseconds(LONGEST_LEASE))
    else:
        tx.run(
            f"INSERT INTO due (space, queue, at, token, until) SELECT id, ?, {NOW}, '', 0 FROM space WHERE name = ?"
            " ON CONFLICT DO NOTHING",
            *(queue, space),
        )
        condition = _DUE.replace(f"d.at <= {NOW}", "s.name = ?")
        values = (queue, space, milliseconds(LONGEST_LEASE))
    row = tx.one(
        f"SELECT d.space, s.name, {NOW} - d.at FROM due d JOIN space s ON s.id = d.space WHERE {condition}"
        f" ORDER BY d.at LIMIT 1 {tx.skip_locked.format('d')}",
        *values,
    )
    if row is None:
        return None
    number, name, late = row
    token = worker or secrets.token_hex(8)
    tx.run(
        f"UPDATE due SET token = ?, at = {NOW} + ?, until = {NOW} + ? WHERE space = ? AND queue = ?",
        *(token, milliseconds(lease), milliseconds(lease), number, queue),
    )
    return Claim(queue=queue, space=name, token=token, age=timedelta(milliseconds=max(0, late)))


def claim_space(
    store: Engine, queue: str, *, lease: timedelta, space: str | None = None, worker: str = ""
) -> Claim | None:
    """Claim the space that has been due longest in a queue; None if no space is due, or all are claimed.

    With `space`, claim that space, due or not; None if it is claimed. The claim ends with `release` or, by the clock of
    the database, after `lease`, or when its `worker` opens the queue again. Usually nothing is due; then nothing is
    written.
    """
    if space is None and not store.read_home(is_due, queue):
        return None
    return store.write_home(claim, queue, lease=lease, space=space, worker=worker)


def release(tx: HomeTransaction, claim: Claim, *, again: timedelta) -> None:
    """Release a claim. Its space is due after `again`, or now if it was written to during the claim.

    Does nothing if the lease has expired and another worker has claimed the space.
    """
    tx.run(
        f"UPDATE due SET until = 0, at = CASE WHEN at < until THEN at ELSE {NOW} + ? END"
        " WHERE token = ? AND queue = ? AND space = (SELECT id FROM space WHERE name = ?)",
        *(milliseconds(again), claim.token, claim.queue, claim.space),
    )
