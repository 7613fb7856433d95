"""What a memory is asked by a test that has no event loop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import anyio

from mcp_memory.service.memory import Memory, open_memory

T = TypeVar("T")


def in_memory(home: Path, ask: Callable[[Memory], Awaitable[T]], **settings: Any) -> T:
    """Open the memory at `home`, without embeddings unless they are set, and return what is asked of it."""
    given: dict[str, Any] = {"home": home, "embedder": "none", **settings}

    async def visit() -> T:
        async with open_memory(**given) as memory:
            return await ask(memory)

    return anyio.run(visit)
