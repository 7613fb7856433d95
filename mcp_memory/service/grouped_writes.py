"""Writes of a space that wait for each other are committed together.

The writes of a space are sequential, and each waits for the disk, and for a standby if one is synchronous. While one
is committed, the others of this process wait here, and then run in one transaction: eight clients of a space wait for
two commits instead of eight.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from mcp_memory.core.errors import StoreUnavailable
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql.transaction import Transaction

T = TypeVar("T")

_TOGETHER = 20


@dataclass(slots=True, eq=False)
class _Write:
    """A write that waits: `ready` is set when it is done, or when its thread has to run the waiting writes."""

    work: Callable[[Transaction], Any]
    ready: threading.Event = field(default_factory=threading.Event)
    is_done: bool = False
    result: Any = None
    error: BaseException | None = None


class GroupedWrites:
    """Runs the waiting writes of each space in one transaction. Safe to use from any thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._waiting: dict[str, list[_Write]] = {}
        """The waiting writes of each space of which a write runs."""

    def write(self, space: str, work: Callable[[Transaction], T]) -> T:
        """Do what `Store.write` does. `work` may be called again, so it must change nothing but the database."""
        own = _Write(work)
        with self._lock:
            if (waiting := self._waiting.get(space)) is None:
                self._waiting[space] = []
            else:
                waiting.append(own)
        if waiting is not None:
            own.ready.wait()
        if not own.is_done:
            self._run(space, own)
        if own.error is not None:
            raise own.error
        return cast("T", own.result)

    def _run(self, space: str, own: _Write) -> None:
        """Run a write with the first waiting ones, and let the thread of the next continue."""
        with self._lock:
            waiting = self._waiting[space]
            group = [own, *waiting[: _TOGETHER - 1]]
            del waiting[: _TOGETHER - 1]
        try:
            self._commit(space, group)
        finally:
            with self._lock:
                if self._waiting[space]:
                    self._waiting[space].pop(0).ready.set()
                else:
                    del self._waiting[space]
            for write in group:
                write.is_done = True
                write.ready.set()

    def _commit(self, space: str, group: list[_Write]) -> None:
        try:
            results = self._store.write(space, lambda tx: [write.work(tx) for write in group])
        except BaseException as error:  # noqa: BLE001 - raised by the threads of the writes
            if len(group) == 1 or isinstance(error, StoreUnavailable):
                for write in group:
                    write.error = error
            else:  # one of them has failed: each gets its own error
                for write in group:
                    self._commit(space, [write])
        else:
            for write, result in zip(group, results, strict=True):
                write.result = result
