"""The log of recalls, written on a separate thread, so that no recall waits for the disk or fails with it.

The thread starts with the first entry and ends with `close`, which writes the waiting entries. Entries are lost if the
store cannot be written to, or if the queue is full: the log is for information, and nothing depends on it.
"""

from __future__ import annotations

import logging
import threading
from collections import deque

from mcp_memory.core.errors import McpMemoryError
from mcp_memory.store.protocol import Store
from mcp_memory.store.values import RecallEntry

logger = logging.getLogger(__name__)

_MOST_WAITING = 100
_CLOSING_S = 5.0
_WRITTEN_S = 2.0


class RecallLog:
    """The entries that wait, and the thread. `open_memory` calls `close()`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._waiting = deque[tuple[str, RecallEntry]](maxlen=_MOST_WAITING)
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_writing = False
        self._is_closed = False

    def note(self, space: str, entry: RecallEntry) -> None:
        """Have an entry written soon. Never raises."""
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

    def written(self) -> None:
        """Wait, though not for long, until all that was noted is written."""
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting and not self._is_writing, timeout=_WRITTEN_S)

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
                if not self._waiting:
                    return
                space, entry = self._waiting.popleft()
                self._is_writing = True
            try:
                self._store.note_recall(space, entry)
            except McpMemoryError as error:
                logger.info("a recall was not logged: %s", error)
