"""How a transaction ended whose COMMIT was not answered.

`pg_xact_status` alone does not tell. A server that crashed, and a standby that took over, may give the number of a
transaction of which nothing was flushed (or sent) to another one: then it would tell how that one ended. So every
transaction that writes leaves a mark in `commit_mark`, which is committed or lost with it. Marks of transactions whose
end is known are deleted, many at a time.
"""

from __future__ import annotations

import secrets
import time
from collections import deque
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import errors

from mcp_memory.store.postgres.pool import Pool, PoolExhausted

__all__ = ["Commits", "Unanswered", "Unknown", "was_committed"]

Connection = psycopg.Connection[Any]

_AT_ONCE = 200  # marks deleted by one write
_AGAIN = 0.1  # seconds between two questions


class Unknown(Exception):
    """The server could not be asked in time."""


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A transaction whose COMMIT was not answered: its mark and its number."""

    token: int
    xid: str


class Commits:
    """The commits of one process. Safe to use from any thread."""

    def __init__(self) -> None:
        self._known: deque[int] = deque()

    def forget_old(self, con: Connection) -> None:
        """Delete the marks of processes that ended."""
        con.execute("DELETE FROM commit_mark WHERE at < now() - interval '1 day'")

    def mark(self, con: Connection) -> Unanswered | None:
        """Mark a transaction, as its last statement before COMMIT; None for one that wrote nothing."""
        token = secrets.randbits(63)
        row = con.execute(
            "INSERT INTO commit_mark (token) SELECT %s WHERE pg_current_xact_id_if_assigned() IS NOT NULL"
            " RETURNING pg_current_xact_id()::text",
            (token,),
        ).fetchone()
        if row is not None and len(self._known) >= _AT_ONCE:
            con.execute("DELETE FROM commit_mark WHERE token = ANY(%s)", (self._some(),))
        return Unanswered(token, row[0]) if row is not None else None

    def answered(self, mark: Unanswered | None) -> None:
        """Note that a transaction was committed, so that its mark can be deleted."""
        if mark is not None:
            self._known.append(mark.token)

    def _some(self) -> list[int]:
        taken: list[int] = []
        while len(taken) < _AT_ONCE:
            try:
                taken.append(self._known.popleft())
            except IndexError:  # another thread took them
                break
        return taken


def was_committed(mark: Unanswered, pool: Pool, *, ask_for: float) -> bool:
    """Ask how a transaction ended. Raises Unknown if no server says it for `ask_for` seconds."""
    until = time.monotonic() + ask_for
    while True:
        try:
            with pool.connection() as con:
                answer = _ask(con, mark)
        except (psycopg.Error, PoolExhausted):
            answer = None
        if answer is not None:
            return answer
        if time.monotonic() > until:
            raise Unknown
        time.sleep(_AGAIN)


def _ask(con: Connection, mark: Unanswered) -> bool | None:
    """Return whether a transaction was committed; None while it goes on."""
    try:
        row = con.execute("SELECT pg_xact_status(%s::xid8)", (mark.xid,)).fetchone()
    except errors.InvalidParameterValue:  # this server has not given the number yet: it never saw the transaction
        return False
    match row:
        case ("in progress",):
            return None
        case ("aborted",):
            return False
        case _:  # a statement of its own, which sees what was committed before it
            return con.execute("SELECT 1 FROM commit_mark WHERE token = %s", (mark.token,)).fetchone() is not None
