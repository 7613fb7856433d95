"""`/metrics`: the metrics of this process and its store, for Prometheus, behind a separate token.

A scrape is always answered within two seconds. If the store does not answer in that time, its samples are left out and
`mcp_memory_store_up` is 0; everything that this process counts itself is there. The store is read at most every five
seconds, whoever asks, and by one query at a time.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from starlette.responses import PlainTextResponse, Response

from mcp_memory.core import metrics
from mcp_memory.core.errors import McpMemoryError
from mcp_memory.core.metrics import Sample

if TYPE_CHECKING:
    from starlette.types import Scope

    from mcp_memory.service.memory import Memory

logger = logging.getLogger(__name__)

PATH = "/metrics"
_CACHE_SECONDS = 5.0
_PATIENCE_SECONDS = 2.0


class Scrapes:
    """Answers scrapes with `token`; without one, `/metrics` is a path like any other."""

    def __init__(self, token: str | None, memory: Callable[[], Awaitable[Memory]]) -> None:
        self._token, self._memory = token, memory
        self._reading: asyncio.Task[Sequence[Sample] | None] | None = None
        self._samples: Sequence[Sample] | None = None
        self._read_at = float("-inf")
        self._threads = anyio.CapacityLimiter(1)

    def is_scrape(self, scope: Scope) -> bool:
        return self._token is not None and scope["path"] == PATH and scope["method"] in ("GET", "HEAD")

    def admits(self, token: str | None) -> bool:
        return bool(token and self._token) and hmac.compare_digest(
            (token or "").encode("utf-8", "replace"), (self._token or "").encode()
        )

    async def answer(self) -> Response:
        samples = await self._read_store()
        up = Sample("mcp_memory_store_up", "Whether the store answered this scrape.", float(samples is not None))
        # Calls that wait for the database may occupy all threads that are shared.
        text = await anyio.to_thread.run_sync(metrics.text, [up, *(samples or ())], limiter=self._threads)
        return PlainTextResponse(text, media_type=metrics.CONTENT_TYPE, headers={"Cache-Control": "no-store"})

    async def _read_store(self) -> Sequence[Sample] | None:
        if self._reading is None and anyio.current_time() - self._read_at <= _CACHE_SECONDS:
            return self._samples
        if self._reading is None:
            self._reading = asyncio.create_task(self._measure(), name="mcp-memory metrics")
        reading = self._reading
        await asyncio.wait([reading], timeout=_PATIENCE_SECONDS)
        if not reading.done():
            return None
        if self._reading is reading:
            self._reading, self._read_at = None, anyio.current_time()
            self._samples = reading.result()
        return self._samples

    async def _measure(self) -> Sequence[Sample] | None:
        try:
            return await (await self._memory()).measurements()
        except McpMemoryError as error:
            logger.warning("the store cannot be measured: %s", error)
        except Exception:
            logger.exception("the store could not be measured")
        return None
