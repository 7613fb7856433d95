"""Follows logs as they are written. Files are looked at, not subscribed to: that works on every system and share."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path

import anyio
from anyio.to_thread import run_sync as to_thread

from mcp_memory.core.errors import McpMemoryError
from mcp_memory.integrations.importers.finding import Log
from mcp_memory.integrations.importers.follow import Followed, follow
from mcp_memory.service.memory import Memory

__all__ = ["watch"]

_PASS_S = 10.0
"""After so many seconds with one log it is the turn of the others."""
_SHARE = 20
"""Looking takes at most one part in so many of the time."""


async def watch(
    memory: Memory,
    find: Callable[[], Iterable[Log]],
    *,
    told: Callable[[Log, Followed | McpMemoryError], None],
    every: float = 1.0,
) -> None:
    """Follow the logs that `find` finds, new ones too, until cancelled. It is asked again every so many seconds.

    What they hold at the first look is history; what comes later is live. `told` hears of each that was read, and of
    what went wrong: that log is tried again at the next look.
    """
    seen: dict[Path, tuple[int, int]] = {}
    live = False
    while True:
        begun = time.monotonic()
        logs = await to_thread(_looked, find)
        took = time.monotonic() - begun
        for log, stamp in logs:
            if seen.get(log.path) == stamp:
                continue
            try:
                read = await follow(memory, log.path, live=live, client=log.client, within_s=_PASS_S)
                told(log, read)
                if not read.unread:
                    seen[log.path] = stamp
            except McpMemoryError as error:
                told(log, error)
        live = True
        await anyio.sleep(max(every, _SHARE * took))


def _looked(find: Callable[[], Iterable[Log]]) -> list[tuple[Log, tuple[int, int]]]:
    looked: list[tuple[Log, tuple[int, int]]] = []
    for log in find():
        try:
            found = log.path.stat()
        except OSError:
            continue
        looked.append((log, (found.st_mtime_ns, found.st_size)))
    return looked
