"""Probes of load balancers and orchestrators, which have no token and learn nothing else.

`/livez` answers 200 as long as the process does. `/readyz` answers 200 if the store answers a query and has this
program's schema, else 503; the reason is in the log. The store is asked at most once a second, whoever asks.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import anyio
from starlette.responses import Response

from mcp_memory.core.errors import McpMemoryError

if TYPE_CHECKING:
    from starlette.types import Scope

    from mcp_memory.service.memory import Memory


logger = logging.getLogger(__name__)

_LIVE, _READY = "/livez", "/readyz"
_ASKED_S = 1.0


class Probes:
    """The probes of one server."""

    def __init__(self, memory: Callable[[], Awaitable[Memory]]) -> None:
        self._memory = memory
        self._lock = anyio.Lock()
        self._asked = float("-inf")
        self._is_ready = False

    async def answer(self, scope: Scope) -> Response | None:
        """Return the answer to a probe; None for other requests."""
        if scope["path"] not in (_LIVE, _READY) or scope["method"] not in ("GET", "HEAD"):
            return None
        is_good = scope["path"] == _LIVE or await self._ready()
        return Response(status_code=200 if is_good else 503, headers={"Cache-Control": "no-store"})

    async def _ready(self) -> bool:
        async with self._lock:
            if anyio.current_time() - self._asked > _ASKED_S:
                self._is_ready = await self._ask()
                self._asked = anyio.current_time()
            return self._is_ready

    async def _ask(self) -> bool:
        try:
            reason = await (await self._memory()).not_ready()
        except McpMemoryError as error:
            reason = str(error)
        if reason is not None:
            logger.warning("not ready: %s", reason)
        return reason is None
