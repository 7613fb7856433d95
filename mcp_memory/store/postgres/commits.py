"""Finds out whether a transaction was committed if its COMMIT was not acknowledged.

A COMMIT is acknowledged if it was answered without a warning. PostgreSQL ends its wait for a synchronous standby with a
warning if the backend is cancelled or terminated: the transaction is then committed on the primary only, and would be
lost in a failover.

`pg_xact_status` is not reliable here: after a crash or a failover, the server may reuse the number of a transaction of
which nothing was flushed (or sent), and would then report the outcome of the later transaction. So every transaction
that writes also inserts a random number, its mark, into `commit_mark`, which is committed or lost with it. Marks of
transactions with a known outcome are deleted, many at a time.

To learn the outcome, another transaction inserts the same mark. The insert waits while the first transaction is
running, finds the mark if it was committed, and otherwise prevents it from being committed later. This transaction
writes and waits for the standby itself, so if it is acknowledged, everything before it is on the standby too.

A client that repeats a write after an unknown outcome gets the same certainty: a write locks its space, which is a
change of the log, so it waits for the standby even if it finds everything already stored.
"""

from __future__ import annotations

import secrets
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import psycopg

from mcp_memory.core.metrics import Counter, Histogram
from mcp_memory.store.postgres.pool import Pool, PoolExhausted
from mcp_memory.store.postgres.standby import Standby

Connection = psycopg.Connection[Any]

_AT_ONCE = 200  # marks deleted per write
_AGAIN = 0.1  # seconds between two questions

_SECONDS = Histogram(
    "mcp_memory_commit_seconds",
    "How long confirmed commits waited for their last answer: the remaining statements, the disk and the standby.",
)
_UNCONFIRMED = Counter(
    "mcp_memory_commits_unconfirmed_total", "Commits that a standby, or the server, did not confirm in time.", "by"
)


class Unconfirmed(Exception):
    """It is unknown whether a transaction is stored; `str(error)` says who did not confirm it."""

    def __init__(self, *, by_standby: bool) -> None:
        super().__init__("not confirmed by the standby" if by_standby else "not confirmed by the server")
        self.by_standby = by_standby


@dataclass(frozen=True, slots=True)
class Mark:
    """The mark of a transaction. `inserted` is the statement that inserts it if the transaction has written."""

    token: int
    inserted: psycopg.Cursor[Any]

    @property
    def is_inserted(self) -> bool:
        """Whether the transaction has written, which is known after the COMMIT: if not, that waited for nobody."""
        return self.inserted.rowcount == 1


class Commits:
    """Inserts the marks of this process's transactions, and deletes old marks. Safe to use from any thread."""

    def __init__(self, standby: Standby) -> None:
        self._known: deque[int] = deque()
        self._standby = standby
        for who in ("standby", "server"):
            _UNCONFIRMED.add(0, who)

    def forget_old(self, con: Connection) -> None:
        """Delete marks older than a day, which were left by processes that ended. Does not wait for a standby."""
        with con.transaction():
            con.execute("SET LOCAL synchronous_commit = off")
            con.execute("DELETE FROM commit_mark WHERE at < now() - interval '1 day'")

    def mark(self, con: Connection) -> Mark:
        """Insert a new mark if the transaction has written anything, and return it. Call this right before COMMIT.

        The server then sends its warnings, whatever `client_min_messages` is.
        """
        token = secrets.randbits(63)
        if len(self._known) >= _AT_ONCE:
            con.execute("DELETE FROM commit_mark WHERE token = ANY(%s)", (self._some(),))
        inserted = con.execute(
            "INSERT INTO commit_mark (token) SELECT %s WHERE pg_current_xact_id_if_assigned() IS NOT NULL"
            " AND set_config('client_min_messages', 'warning', true) <> ''",
            (token,),
        )
        return Mark(token, inserted)

    def note_committed(self, mark: Mark) -> None:
        """Note that a transaction was committed, so that its mark can be deleted."""
        self._known.append(mark.token)

    def note_confirmed(self, seconds: float) -> None:
        """Note that a commit is on the disk and the standby, which took so long."""
        self._standby.note_confirmed()
        _SECONDS.observe(seconds)

    def note_unconfirmed(self, error: Unconfirmed) -> None:
        if error.by_standby:
            self._standby.note_silent()
        _UNCONFIRMED.add(1, "standby" if error.by_standby else "server")

    def _some(self) -> list[int]:
        taken: list[int] = []
        while len(taken) < _AT_ONCE:
            try:
                taken.append(self._known.popleft())
            except IndexError:  # another thread took them
                break
        return taken


def was_committed(mark: Mark, pool: Pool, *, deadline: float, warned: bool) -> bool:
    """Return whether a transaction was committed and, if so, is on the standby; if not, it can no longer be committed.

    `warned`: its COMMIT ended with a warning. Raises Unconfirmed if the answer is not known before the deadline.
    """
    while time.monotonic() < deadline:
        with suppress(psycopg.Error, PoolExhausted), pool.connection(deadline) as con:
            try:
                with con.transaction():
                    is_committed = _ask(con, mark.token)
                if not (is_committed and con.has_warned):
                    return is_committed
            finally:
                warned |= con.has_warned
        time.sleep(_AGAIN)
    raise Unconfirmed(by_standby=warned)


def _ask(con: Connection, token: int) -> bool:
    """Return whether a mark was committed; if not, insert it, so that its transaction can no longer be committed.

    The inserted mark is dated in the future, so that a repeated question does not mistake it for a committed mark.
    """
    row = con.execute(
        "INSERT INTO commit_mark (token, at) VALUES (%s, now() + interval '1 day') ON CONFLICT (token)"
        " DO UPDATE SET at = commit_mark.at"
        " RETURNING set_config('client_min_messages', 'warning', true) <> '' AND at < now() + interval '12 hours'",
        (token,),
    ).fetchone()
    return row == (True,)
