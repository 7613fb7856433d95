"""Snapshots: reads of a thread that share a connection, a transaction and what it has read."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, Generic, TypeVar

C = TypeVar("C")
T = TypeVar("T")


class Snapshot(Generic[C]):
    """The connection of a snapshot, in a transaction that begins with the first read.

    `transactions` are those of the engine on this connection, by space; that of the home has the key None.
    """

    def __init__(self, begin: Callable[[], AbstractContextManager[C]]) -> None:
        self.transactions: dict[str | None, Any] = {}
        self._begin = begin
        self._con: C | None = None
        self._stack = ExitStack()

    def connection(self) -> C:
        if self._con is None:
            self._con = self._stack.enter_context(self._begin())
        return self._con

    def end(self, error: BaseException | None = None) -> None:
        """End the transaction, with an error if it failed. The next read begins another."""
        self._con = None
        self.transactions.clear()
        stack = self._stack.pop_all()
        stack.__exit__(error and type(error), error, error and error.__traceback__)


class Snapshots(Generic[C]):
    """The snapshots of all threads; `begin` lends a connection in a transaction."""

    def __init__(self, begin: Callable[[], AbstractContextManager[C]]) -> None:
        self._begin = begin
        self._threads = threading.local()

    @property
    def current(self) -> Snapshot[C] | None:
        """The snapshot of this thread, None outside of `run`."""
        return getattr(self._threads, "snapshot", None)

    def run(self, work: Callable[[], T]) -> T:
        """Call `work` with a snapshot for the reads of this thread."""
        self._threads.snapshot = snapshot = Snapshot(self._begin)
        try:
            result = work()
        except BaseException as error:
            snapshot.end(error)
            raise
        else:
            snapshot.end()
            return result
        finally:
            self._threads.snapshot = None

    @contextmanager
    def outside(self) -> Generator[None]:
        """End the transaction of this thread's snapshot, if there is one, and leave it during the block."""
        snapshot = self.current
        if snapshot is not None:
            snapshot.end()
        self._threads.snapshot = None
        try:
            yield
        finally:
            self._threads.snapshot = snapshot
