"""NOTIFY and LISTEN: servers of a database notify each other of commits within some milliseconds.

A notification inside the transaction of a write would queue all writes of the database behind one lock (999 → 587 turns
a second). So each server sends them on a separate connection, after commits, at most once in `_GAP` seconds. They carry
no data and may be lost: with a server, with the connection, or in a pooler. The changes are in the change feed, which
is also polled.
"""

from __future__ import annotations

import logging
import selectors
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psycopg

from mcp_memory.store.postgres.deadlines import TimedConnection

logger = logging.getLogger(__name__)

_CHANNEL = "mcp_memory"
_NOTIFY = f"BEGIN; SET LOCAL synchronous_commit = off; NOTIFY {_CHANNEL}; COMMIT"
"""Does not wait for the disk. It is LOCAL, because a pooler may lend the connection to a write, which must wait."""
_GAP = 0.02
_AGAIN = 5.0  # seconds until a connection that was lost, or could not be opened, is tried again
_ANSWER = 10.0  # seconds
_CLOSING = 2.0


class Notifications:
    """A connection that listens and notifies, on a dedicated thread."""

    def __init__(self, conninfo: str, heard: Callable[[], None]) -> None:
        """Start the thread. It calls `heard` when another server has committed, and after each new connection.

        Notifications sent before the connection was made are lost, so other servers may have committed by then.
        """
        self._conninfo = conninfo
        self._heard = heard
        self._stop = threading.Event()
        self._wakes, self._wake = socket.socketpair()
        self._wakes.setblocking(False)
        self._wake.setblocking(False)
        self._thread = threading.Thread(target=self._run, name="notifications", daemon=True)
        self._thread.start()

    def send(self) -> None:
        """Notify the other servers soon. Returns at once."""
        with suppress(OSError):  # notifications are already waiting, or it was closed
            self._wake.send(b"\0")

    def close(self) -> None:
        self._stop.set()
        self.send()
        self._thread.join(timeout=_CLOSING)
        self._wake.close()

    def _run(self) -> None:
        with self._wakes:
            while not self._stop.is_set():
                try:
                    with TimedConnection.connect(self._conninfo, autocommit=True) as con:
                        con.patience = _ANSWER
                        con.execute(f"LISTEN {_CHANNEL}")
                        self._heard()
                        self._relay(con)
                except psycopg.Error as error:
                    logger.info("changes of other servers are polled for: %s", error)
                    self._stop.wait(_AGAIN)

    def _relay(self, con: psycopg.Connection[Any]) -> None:
        with selectors.DefaultSelector() as ready:
            ready.register(con.fileno(), selectors.EVENT_READ)
            ready.register(self._wakes, selectors.EVENT_READ)
            while not self._stop.is_set():
                ready.select()
                if self._was_woken():
                    con.execute(_NOTIFY, prepare=False)
                if {notification.pid for notification in con.notifies(timeout=0)} - {con.info.backend_pid}:
                    self._heard()
                self._stop.wait(_GAP)

    def _was_woken(self) -> bool:
        try:
            return bool(self._wakes.recv(4096))
        except BlockingIOError:
            return False
