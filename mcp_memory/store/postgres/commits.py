"""Finds out whether a transaction was committed if its COMMIT was not answered.

`pg_xact_status` is not reliable here: after a crash or a failover, the server may reuse the number of a transaction of
which nothing was flushed (or sent), and would then report the outcome of the later transaction. So every transaction
that writes also inserts a random number, its mark, into `commit_mark`, which is committed or lost with it. Marks of
transactions with a known outcome are deleted, many at a time.

To learn the outcome, another transaction inserts the same mark. The insert waits while the first transaction is
running, finds the mark if it was committed, and otherwise prevents it from being committed later.
"""

from __future__ import annotations

import secrets
import time
from collections import deque
from typing import Any

import psycopg

from mcp_memory.store.postgres.pool import Pool, PoolExhausted

Connection = psycopg.Connection[Any]

_AT_ONCE = 200  # marks deleted per write
_AGAIN = 0.1  # seconds between two questions


class Unknown(Exception):
    """The outcome of a COMMIT is unknown, because no server answered in time."""


class Commits:
    """Inserts the marks of this process's transactions, and deletes old marks. Safe to use from any thread."""

    def __init__(self) -> None:
        self._known: deque[int] = deque()

    def forget_old(self, con: Connection) -> None:
        """Delete marks older than a day, which were left by processes that ended."""
        con.execute("DELETE FROM commit_mark WHERE at < now() - interval '1 day'")

    def mark(self, con: Connection) -> int:
        """Insert a new mark if the transaction has written anything, and return it. Call this right before COMMIT."""
        token = secrets.randbits(63)
        if len(self._known) >= _AT_ONCE:
            con.execute("DELETE FROM commit_mark WHERE token = ANY(%s)", (self._some(),))
        con.execute(
            "INSERT INTO commit_mark (token) SELECT %s WHERE pg_current_xact_id_if_assigned() IS NOT NULL", (token,)
        )
        return token

    def note_committed(self, mark: int) -> None:
        """Note that a transaction was committed, so that its mark can be deleted."""
        self._known.append(mark)

    def _some(self) -> list[int]:
        taken: list[int] = []
        while len(taken) < _AT_ONCE:
            try:
                taken.append(self._known.popleft())
            except IndexError:  # another thread took them
                break
        return taken


def was_committed(mark: int, pool: Pool, *, ask_for: float) -> bool:
    """Return whether a transaction was committed; if not, it can no longer be committed afterwards.

    Raises Unknown if no server answers within `ask_for` seconds.
    """
    until = time.monotonic() + ask_for
    while True:
        try:
            with pool.connection() as con, con.transaction():
                return _ask(con, mark, until - time.monotonic())
        except (psycopg.Error, PoolExhausted):
            pass
        if time.monotonic() > until:
            raise Unknown
        time.sleep(_AGAIN)


def _ask(con: Connection, mark: int, seconds: float) -> bool:
    """Return whether a mark was committed; if not, insert it, so that its transaction can no longer be committed.

    The inserted mark is dated in the future, so that a repeated question does not mistake it for a committed mark.
    """
    con.execute(
        "SELECT set_config('lock_timeout', %s, true), set_config('synchronous_commit', 'off', true)",
        (f"{max(1, round(1_000 * seconds))}",),
    )
    row = con.execute(
        "INSERT INTO commit_mark (token, at) VALUES (%s, now() + interval '1 day') ON CONFLICT (token)"
        " DO UPDATE SET at = commit_mark.at RETURNING at < now() + interval '12 hours'",
        (mark,),
    ).fetchone()
    return row == (True,)
