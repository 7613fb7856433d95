"""The memory behind the hooks: opened when it is first wanted, kept open, and left alone for a while where it fails."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack

import anyio.to_thread

from mcp_memory.core.config import load_settings
from mcp_memory.core.errors import StoreUnavailable
from mcp_memory.integrations.hooks.rendezvous import Place
from mcp_memory.service.memory import Memory, open_memory

__all__ = ["Opening"]

logger = logging.getLogger(__name__)

_REST_S = 60.0


class Opening:
    """The memory of a place. What it opens is closed by the stack."""

    def __init__(self, place: Place, stack: AsyncExitStack) -> None:
        self._place = place
        self._stack = stack
        self._opening: asyncio.Task[Memory] | None = None
        self._rests_until = 0.0

    async def memory(self) -> Memory:
        """Return the open memory. Raises what opening it raised, and StoreUnavailable for a while after that."""
        if self._opening is None:
            if asyncio.get_running_loop().time() < self._rests_until:
                raise StoreUnavailable("The store could not be opened a moment ago; it is tried again in a minute.")
            self._opening = asyncio.create_task(self._open())
        return await asyncio.shield(self._opening)

    async def _open(self) -> Memory:
        try:
            settings = await anyio.to_thread.run_sync(
                lambda: load_settings(home=self._place.home, space=self._place.space)
            )
            return await self._stack.enter_async_context(open_memory(settings, distil=False, what="hooks"))
        except BaseException:
            self._opening = None
            self._rests_until = asyncio.get_running_loop().time() + _REST_S
            raise
