"""Server-sent events that notify open pages of the topics of changes, whichever process made them.

The store is asked twice a second for the number of the last change, which blocks no writer. A stream ends with its
session, and when the server stops.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TYPE_CHECKING

import anyio

from mcp_memory.core.errors import McpMemoryError

if TYPE_CHECKING:
    from mcp_memory.service.memory import Memory


_POLL_SECONDS = 0.5
_QUIET_SECONDS = 15.0
_MOST_TOPICS = 200
_MOST_STREAMS = 32


class Streams:
    """The streams of one server, at most 32 of a session."""

    def __init__(self) -> None:
        self._open = Counter[bytes]()
        self._stopping = anyio.Event()

    def stop(self) -> None:
        """End all streams, soon."""
        self._stopping.set()

    def may_open(self, session: bytes) -> bool:
        return self._open[session] < _MOST_STREAMS

    async def of(self, session: bytes, memory: Memory, goes_on: Callable[[], Awaitable[bool]]) -> AsyncGenerator[bytes]:
        """Yield events for a page that is open, as long as `goes_on`."""
        self._open[session] += 1
        try:
            after, quiet = await memory.last_change(), 0.0
            yield b"retry: 2000\n\n"
            while not self._stopping.is_set() and await goes_on():
                topics, after = await _changed(memory, after)
                if topics is not None:
                    yield b"data: " + json.dumps({"topics": topics}).encode() + b"\n\n"
                    quiet = 0.0
                elif quiet >= _QUIET_SECONDS:
                    yield b": still here\n\n"  # fails where the reader is gone
                    quiet = 0.0
                with anyio.move_on_after(_POLL_SECONDS):
                    await self._stopping.wait()
                quiet += _POLL_SECONDS
        finally:
            self._open[session] -= 1
            if not self._open[session]:
                del self._open[session]


async def _changed(memory: Memory, after: int) -> tuple[list[str] | None, int]:
    """Return the topics that changed since a change, None for none, and the number of the last change."""
    try:
        now = await memory.last_change()
        if now == after:
            return None, after
        changes = await memory.changes(after)
    except McpMemoryError:  # a lock, a full disk: the next look may do better
        return None, after
    return list(dict.fromkeys(change.topic for change in changes))[:_MOST_TOPICS], now
