"""A single open Memory per process: opened on first use, closed when the last connection has gone.

An SDK lifespan covers a connection on stdio and SSE, and the process on HTTP, so the Memory cannot live in it. It lives
in a separate task, which opens it, runs `alongside`, and closes it, as task groups require. If a home cannot be opened,
the call that needed it fails, and the next call tries again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

import anyio
import anyio.to_thread
from anyio.abc import TaskStatus

from mcp_memory.core.config import Settings
from mcp_memory.core.errors import McpMemoryError

if TYPE_CHECKING:
    from mcp_memory.service.memory import Memory


logger = logging.getLogger(__name__)

_CLOSING_SECONDS = 20.0
_OPENING_DELAY_SECONDS = 0.05
"""Delay before opening, so that a new client's first requests are served before opening keeps the interpreter busy."""
_RETENTION_SECONDS = 3_600.0
_MAX_CLIENTS = 100  # client names that are kept: clients choose them freely


class Alongside(Protocol):
    """Work to do while the Memory is open. The first caller gets the Memory after `task_status.started()`."""

    async def __call__(self, memory: Memory, *, task_status: TaskStatus[None]) -> None: ...


class SharedMemory:
    """The Memory of `settings`, shared by all callers of `hold()`. `what` is the purpose shown to other processes."""

    def __init__(self, settings: Settings, *, alongside: Alongside, what: str = "serve") -> None:
        self.what = what
        self._settings = settings
        self._alongside = alongside
        self._clients = dict[str, None]()
        self._holders = 0
        self._keeper: asyncio.Task[None] | None = None
        self._opened: asyncio.Future[Memory] | None = None
        self._closing, self._wanted = asyncio.Event(), asyncio.Event()

    @asynccontextmanager
    async def hold(self) -> AsyncGenerator[None]:
        """Keep the Memory open until the block ends, once `get` has opened it. The last block to end closes it."""
        self._holders += 1
        try:
            yield
        finally:
            self._holders -= 1
            if not self._holders:
                await self.close()

    async def get(self) -> Memory:
        """Return the open Memory, opening it if necessary. Raises the error of opening it."""
        opened = self.open_soon()
        self._wanted.set()
        return await asyncio.shield(opened)

    def open_soon(self) -> asyncio.Future[Memory]:
        """Start opening the Memory, unless it is open or being opened; return its future."""
        if self._keeper is None or self._keeper.done() or self._closing.is_set():
            self._closing, self._wanted = asyncio.Event(), asyncio.Event()
            self._opened = asyncio.get_running_loop().create_future()
            self._opened.add_done_callback(_mark_retrieved)
            self._keeper = asyncio.create_task(
                self._keep(self._opened, self._closing, self._wanted), name="mcp-memory store"
            )
        assert self._opened is not None
        return self._opened

    def meet(self, client: str) -> None:
        """Register the name of a client: other processes see it once the store is open. At most 100 names are kept."""
        if client in self._clients or len(self._clients) >= _MAX_CLIENTS:
            return
        self._clients[client] = None
        opened = self._opened
        if opened is not None and opened.done() and not opened.cancelled() and opened.exception() is None:
            asyncio.get_running_loop().run_in_executor(None, opened.result().add_client, client)

    async def _keep(self, opened: asyncio.Future[Memory], closing: asyncio.Event, is_needed: asyncio.Event) -> None:
        with anyio.move_on_after(_OPENING_DELAY_SECONDS):
            await is_needed.wait()
        if closing.is_set():
            opened.cancel()
            return
        try:
            module = await anyio.to_thread.run_sync(import_module, "mcp_memory.service.memory")
            async with (
                module.open_memory(self._settings, what=self.what) as memory,
                anyio.create_task_group() as tasks,
            ):
                await tasks.start(self._alongside, memory)
                tasks.start_soon(_apply_retention, memory)
                opened.set_result(memory)
                for client in [*self._clients]:
                    await anyio.to_thread.run_sync(memory.add_client, client)
                await closing.wait()
                tasks.cancel_scope.cancel()
        except Exception as error:  # this task is an edge: the waiting callers get the error
            if opened.done():
                logger.exception("the store was closed by an error; the next call opens it again")
            else:
                opened.set_exception(error)

    async def close(self) -> None:
        """Close the Memory if it is open. The next `get` opens it again."""
        keeper = self._keeper
        if keeper is None or keeper.done():
            return
        self._closing.set()
        self._wanted.set()
        with anyio.CancelScope(shield=True):
            await asyncio.wait([keeper], timeout=_CLOSING_SECONDS)
        if not keeper.done():
            logger.warning("the store did not close within %s s and is left as it is", _CLOSING_SECONDS)
            keeper.cancel()


async def _apply_retention(memory: Memory) -> None:
    """Apply the retention policies of all spaces, every hour until cancelled.

    Each policy runs once a day, in the first process to try.
    """
    while True:
        with _log_errors():
            for space in await memory.spaces_with_policies():
                with _log_errors():  # a failure in one space does not stop the others
                    await memory.in_space(space).follow_retention()
        await anyio.sleep(_RETENTION_SECONDS)


@contextmanager
def _log_errors() -> Generator[None]:
    try:
        yield
    except McpMemoryError as error:
        logger.warning("a retention policy was not applied: %s", error)


def _mark_retrieved(opened: asyncio.Future[Memory]) -> None:
    if not opened.cancelled():
        opened.exception()  # callers get the exception; without callers (a warm-up), asyncio must not warn
