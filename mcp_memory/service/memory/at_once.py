"""`compress` for programs that are not async: one call opens the memory, compresses and closes it again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import anyio

from mcp_memory.core.errors import InvalidInput

if TYPE_CHECKING:
    from pathlib import Path

    from mcp_memory.core.config import Settings
    from mcp_memory.service.compression.run import Compressed
    from mcp_memory.service.memory.opening import Memory

__all__ = ["compress"]


def compress(
    messages: Sequence[Any],
    *,
    window: int,
    memory: Memory | None = None,
    settings: Settings | None = None,
    home: Path | str | None = None,
    space: str | None = None,
    **options: Any,
) -> Compressed:
    """Return the messages compressed to a window of so many tokens: `Memory.compress`, which says what `options` are.

    It works on an open `memory`, or else on the one that `settings`, `home` and `space` name, by default the one of
    the environment. Async code awaits `memory.compress` instead; where an event loop runs this is InvalidInput.
    """

    async def once() -> Compressed:
        from mcp_memory.service.memory.opening import open_memory

        if memory is not None:
            return await memory.compress(messages, window=window, **options)
        # Without vectors it opens in milliseconds; what is stored is embedded by whoever opens it next.
        given: dict[str, Any] = {"home": home, "space": space}
        overrides = {name: value for name, value in given.items() if value is not None}
        async with open_memory(settings, distil=False, embedder="none", **overrides) as opened:
            return await opened.compress(messages, window=window, **options)

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return anyio.run(once)
    raise InvalidInput("An event loop runs here, and compress() would block it. Use `await memory.compress(…)`.")
