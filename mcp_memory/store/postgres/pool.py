"""Connections to a database, lent to threads: at most `size`, opened on demand.

A connection is opened in the thread that needs it, so this thread gets the reason why the server cannot be reached, and
the first use after an outage reconnects at once. When a connection turns out to be lost, all idle connections are
closed, because they went to the same server.

A connection is lent with a deadline (see `deadlines`), which also limits the time for connecting.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from math import inf
from threading import BoundedSemaphore, Lock
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, timeout_from_conninfo
from psycopg.pq import TransactionStatus

from mcp_memory.core import telemetry
from mcp_memory.core.errors import StoreUnavailable
from mcp_memory.core.metrics import Counter, Gauge, Histogram
from mcp_memory.store.nesting import NestingGuard
from mcp_memory.store.postgres.deadlines import NoAnswer, TimedConnection

_UNUSED = 600.0  # seconds until an unused connection is closed
_AGE = 3600.0  # seconds until a connection is replaced, so that all follow a server that has moved
_SHORTEST = 2  # seconds for connecting to a host, which psycopg cannot shorten

_SIZE = Gauge("mcp_memory_pool_size", "Connections to the database that this server may open.")
_IN_USE = Gauge("mcp_memory_pool_in_use", "Connections in use.")
_WAITING = Gauge("mcp_memory_pool_waiting", "Calls that wait for a connection.")
_WAIT = Histogram("mcp_memory_pool_wait_seconds", "How long calls waited for a connection, opening it included.")
_EXHAUSTED = Counter("mcp_memory_pool_exhausted_total", "Calls that failed because no connection became free in time.")


class PoolExhausted(Exception):
    """No connection became free in time; `str(error)` says of how many."""


class Pool:
    """A pool of connections in autocommit mode, which `connection()` lends."""

    def __init__(
        self, conninfo: str, *, size: int, wait: float, equip: Callable[[psycopg.Connection[Any]], None]
    ) -> None:
        """Create the pool without opening a connection.

        `wait` is how many seconds to wait for a free connection. `equip` sets up each new connection.
        """
        self.size = size
        _SIZE.set(size)
        self.wait = wait
        self._conninfo = conninfo
        self._hosts = 1 + str(conninfo_to_dict(conninfo).get("host", "")).count(",")
        self._connect_timeout = timeout_from_conninfo(conninfo_to_dict(conninfo))
        self._equip = equip
        self._places = BoundedSemaphore(size)
        self._nesting = NestingGuard()
        self._lock = Lock()
        self._unused: deque[tuple[TimedConnection, float, float]] = deque()  # with when it was opened, and last used
        self._closed = False

    @contextmanager
    def connection(self, deadline: float = inf) -> Generator[TimedConnection]:
        """Lend a connection until `deadline`, a time of `time.monotonic()`.

        It has to be returned without an open transaction; a broken connection is closed. Raises PoolExhausted if none
        becomes free in time, psycopg.OperationalError if none can be opened (NoAnswer if that would take too long),
        StoreUnavailable after `close()`, and NestedCall in a thread that already has a connection.
        """
        asked = time.monotonic()
        with self._nesting.call(), self._place(deadline):
            con, opened = self._take(deadline)
            waited = time.monotonic() - asked
            _WAIT.observe(waited)
            telemetry.set_attribute("pool_wait_ms", round(waited * 1_000, 3))
            try:
                yield con
            finally:
                self._give_back(con, opened)

    @contextmanager
    def _place(self, deadline: float) -> Generator[None]:
        with _WAITING.one_more():
            if not self._places.acquire(timeout=max(0.0, min(self.wait, deadline - time.monotonic()))):
                _EXHAUSTED.add()
                raise PoolExhausted(f"{self.size} connections")
        try:
            with _IN_USE.one_more():
                yield
        finally:
            self._places.release()

    def close(self) -> None:
        """Close all idle connections now, and lent connections when they are returned. May be called twice."""
        with self._lock:
            self._closed = True
            unused = self._unused_before(float("inf"))
        _close(unused)

    def _take(self, deadline: float) -> tuple[TimedConnection, float]:
        with self._lock:
            if self._closed:
                raise StoreUnavailable("This store was closed. Open it again.")
            if self._unused:
                con, opened, _ = self._unused.pop()  # the most recently used, so that the others become old
                con.start(deadline)
                return con, opened
        con = self._connect(deadline)
        con.start(deadline)
        self._equip(con)
        return con, time.monotonic()

    def _connect(self, deadline: float) -> TimedConnection:
        left = deadline - time.monotonic()
        if left <= 0:
            raise NoAnswer("no time is left to connect")
        seconds = max(_SHORTEST, int(min(self._connect_timeout, left / self._hosts)))
        return TimedConnection.connect(self._conninfo, autocommit=True, connect_timeout=seconds)

    def _give_back(self, con: TimedConnection, opened: float) -> None:
        now = time.monotonic()
        in_order = (
            con.info.transaction_status == TransactionStatus.IDLE and now - opened < _AGE and not con.was_cancelled
        )
        with self._lock:
            done_with = self._unused_before(float("inf") if con.closed else now - _UNUSED)
            if in_order and not self._closed:
                self._unused.append((con, opened, now))
            else:
                done_with.append(con)
        _close(done_with)

    def _unused_before(self, moment: float) -> list[TimedConnection]:
        """Remove and return the idle connections that were last used before `moment`; they are sorted by last use."""
        taken: list[TimedConnection] = []
        while self._unused and self._unused[0][2] < moment:
            taken.append(self._unused.popleft()[0])
        return taken


def _close(connections: list[TimedConnection]) -> None:
    for con in connections:
        con.close()
