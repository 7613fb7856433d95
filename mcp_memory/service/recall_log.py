"""The log of recalls, and the context that the sessions of this process were shown in the last hour.

The log is written on a separate thread, every few seconds, so that no recall waits for the disk or fails with it. The
thread starts with the first entry and ends with `close`, which writes the waiting entries. Entries are lost if the
process is killed, the store cannot be written to, or the queue is full: the log is for information, and nothing depends
on it.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Set as AbstractSet
from datetime import datetime, timedelta

from mcp_memory.core.errors import McpMemoryError
from mcp_memory.core.lru import LRU
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import recall_rows
from mcp_memory.store.values import RecallEntry

logger = logging.getLogger(__name__)

_MAX_WAITING = 1_000
_EVERY_S = 2.0  # from the first waiting entry until all of them are written together
_CLOSING_S = 5.0
_WRITTEN_S = 2.0
_SESSIONS = 1_000  # sessions whose recalled context is remembered
_KEPT = timedelta(hours=1)  # recalled context in a session's prompt; an older prompt may have been cut


class RecallLog:
    """Queues entries and writes them on its thread. `open_memory` calls `close()`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting = deque[tuple[str, RecallEntry]](maxlen=_MAX_WAITING)
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_writing = False
        self._is_urgent = False
        self._is_closed = False

    def note(self, space: str, entry: RecallEntry) -> None:
        """Queue an entry, unless the store is read-only or the log is closed. If the queue is full, drop the oldest."""
        if self._store.read_only is not None:
            return
        with self._changed:
            if self._is_closed:
                return
            self._waiting.append((space, entry))
            if self._thread is None:
                self._thread = threading.Thread(target=self._write, name="recall-log", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def wait_until_written(self) -> None:
        """Write the queue now, and wait for that at most two seconds."""
        with self._changed:
            self._is_urgent = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._waiting and not self._is_writing, timeout=_WRITTEN_S)
            self._is_urgent = False

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(_CLOSING_S)

    def _write(self) -> None:
        while True:
            with self._changed:
                self._is_writing = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._waiting or self._is_closed)
                self._changed.wait_for(lambda: self._is_urgent or self._is_closed, timeout=_EVERY_S)
                if not self._waiting:
                    return
                entries = [*self._waiting]
                self._waiting.clear()
                self._is_writing = True
            try:
                self._store.write_home(recall_rows.note_recalls, entries)
            except McpMemoryError as error:
                logger.info("%d recalls were not logged: %s", len(entries), error)


class RecalledContexts:
    """The stable block and the promises that each session was shown in the last hour."""

    def __init__(self) -> None:
        self._stable_blocks = LRU[tuple[str, str], tuple[int, datetime]](_SESSIONS)
        self._promises = LRU[tuple[str, str], tuple[frozenset[str], datetime]](_SESSIONS)

    def has_stable(self, space: str, session: str, block: str, *, now: datetime) -> bool:
        last = self._stable_blocks.get((space, session))
        return last is not None and last[0] == hash(block) and now - last[1] < _KEPT

    def promises(self, space: str, session: str, *, now: datetime) -> frozenset[str]:
        last = self._promises.get((space, session))
        return last[0] if last is not None and now - last[1] < _KEPT else frozenset()

    def note_stable(self, space: str, session: str, block: str, *, now: datetime) -> None:
        self._stable_blocks.put((space, session), (hash(block), now))

    def note_promises(self, space: str, session: str, ids: AbstractSet[str], *, now: datetime) -> None:
        self._promises.put((space, session), (self.promises(space, session, now=now) | ids, now))
