"""Connections that stop waiting for an answer.

A stopped server, or a network that drops packets, ends no connection, and the timeouts of the server do not count then.
Nor does any of them end the wait of a COMMIT for its synchronous standby, which goes on after the client is gone. So
each wait for an answer has a deadline here. After it, the statement is cancelled through a second connection, and the
server has half a second to answer: with an error, so that the transaction is rolled back, or with the end of a COMMIT.
If it does not, NoAnswer is raised, and the outcome is unknown.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import suppress
from math import inf
from typing import Any, TypeVar

import psycopg
from psycopg import pq
from psycopg.errors import Diagnostic

T = TypeVar("T")

CANCELLING = 0.5  # seconds for the connection that cancels, and then again for the answer
_LONG = 90.0  # longer than the statement_timeout that `migrate` sets


def deadline_in(seconds: float) -> float:
    """Return the time after which answers are no longer waited for: then there is enough time left to cancel."""
    return time.monotonic() + seconds - 2 * CANCELLING


class NoAnswer(psycopg.OperationalError):
    """The server answered neither in time nor when the statement was cancelled. The connection is unusable."""


class TimedConnection(psycopg.Connection[Any]):
    """A connection with a deadline, a time of `time.monotonic()`, and a limit for each answer, `patience` in seconds.

    Either may be exceeded by `2 * CANCELLING`. `has_warned` is True if the server has sent a WARNING since `start`; one
    during COMMIT means that the standby has not confirmed it. `was_cancelled`: do not use the connection again.
    """

    def __init__(self, pgconn: pq.abc.PGconn, *args: Any) -> None:
        super().__init__(pgconn, *args)
        self.start(inf)
        self.add_notice_handler(self._note_warning)

    def start(self, deadline: float) -> None:
        """Begin a use of the connection."""
        self.deadline = deadline
        self.patience = inf
        self.has_warned = False
        self.was_cancelled = False

    def wait(self, gen: Generator[Any, Any, T], *args: Any, **kwargs: Any) -> T:
        return super().wait(self._with_deadline(gen), *args, **kwargs)

    def _with_deadline(self, gen: Generator[Any, Any, T]) -> Generator[Any, Any, T]:
        """Pass on `gen`, which psycopg resumes with nothing every 0.1 s while the server is silent."""
        now = time.monotonic()
        deadline = min(self.deadline, now + self.patience)
        if self.was_cancelled and now >= deadline:
            raise NoAnswer("no answer in time")
        try:
            event = next(gen)
            while True:
                ready = yield event
                if not ready and time.monotonic() >= deadline:
                    if self.was_cancelled:
                        raise NoAnswer("no answer in time")
                    self._cancel()
                    deadline = self.deadline = time.monotonic() + CANCELLING
                event = gen.send(ready)
        except StopIteration as end:
            return end.value

    def _cancel(self) -> None:
        self.was_cancelled = True
        with suppress(psycopg.Error):
            self.cancel_safe(timeout=CANCELLING)

    def _note_warning(self, notice: Diagnostic) -> None:
        self.has_warned |= notice.severity_nonlocalized == "WARNING"


def allow_long_answers(con: psycopg.Connection[Any]) -> None:
    """Let the rest of a transaction take any time, as long as each answer arrives before `statement_timeout`."""
    if isinstance(con, TimedConnection):
        con.deadline, con.patience = inf, _LONG


def lift_deadlines(con: psycopg.Connection[Any]) -> None:
    """Let the rest of a transaction, and each of its statements, take any time, also for the server."""
    con.execute("SET LOCAL statement_timeout = 0")
    con.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
    if isinstance(con, TimedConnection):
        con.deadline = con.patience = inf
