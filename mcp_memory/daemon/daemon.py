"""The daemon: keeps the memory open for hooks and for MCP clients, so that their answers take milliseconds.

While clients are connected it is their MCP server (`bridge` passes their lines on). Without a client it stays for
hooks: it ends after `hooks_idle_hours` without a question of a hook, at once if no hook ever asked; after ten minutes
without a question it closes the memory, and its process starts afresh (`process`): Python does not give the room of a
model back to the system. It also ends when its endpoint file is gone or replaced, or on SIGTERM; clients then connect
to the next one. Logs to be read are noted on disk until they are read, so the next daemon finishes the work.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import secrets
import signal
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, suppress
from importlib import import_module
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
from anyio.abc import TaskStatus

from mcp_memory import __version__
from mcp_memory.core.config import Settings, load_settings
from mcp_memory.core.errors import HomeGone, McpMemoryError, StoreUnavailable
from mcp_memory.core.regular_files import OpenedFolder, remove_own
from mcp_memory.integrations.hooks.daemon_files import (
    CLIENT_PROTOCOL,
    PROTOCOL,
    DaemonEndpoint,
    DaemonFiles,
    endpoint_files,
    equal,
    is_older,
    pending_logs,
    proof,
)
from mcp_memory.service.shared_memory import SharedMemory

if TYPE_CHECKING:
    from mcp_memory.daemon.hooks import Hooks
    from mcp_memory.server.mcp_server import MemoryServer
    from mcp_memory.service.memory import Memory

logger = logging.getLogger(__name__)

_RETRY_S = 60.0


class DaemonMemory:
    """The memory of a daemon, opened on first use. After a failure, opening is not tried again for a while."""

    def __init__(self, files: DaemonFiles, stack: AsyncExitStack) -> None:
        self._home = OpenedFolder(files.home)
        stack.callback(self._home.close)
        self.settings, self._problem = _load(files)
        self.shared = SharedMemory(self.settings, alongside=self._run_alongside, what="daemon")
        self._has_client = asyncio.Event()
        self._server: asyncio.Task[MemoryServer] | None = None
        self._opened_at = 0.0
        self._rests_until = 0.0

    @property
    def open_for(self) -> float:
        """Seconds since the memory was opened; 0 if it is not open."""
        return time.monotonic() - self._opened_at if self._opened_at else 0.0

    async def memory(self) -> Memory:
        """Open the memory if needed, and return it. Raises the errors of opening, then StoreUnavailable for a while.

        Raises HomeGone if the home that this process was started for is gone: pending logs would be read into a new
        home.
        """
        if not self._home.is_current():
            raise HomeGone(self.settings.home)
        if self._problem:
            raise self._problem
        if time.monotonic() < self._rests_until:
            raise StoreUnavailable("The store could not be opened a moment ago; it is tried again in a minute.")
        try:
            memory = await self.shared.get()
        except Exception:
            self._rests_until = time.monotonic() + _RETRY_S
            raise
        self._opened_at = self._opened_at or time.monotonic()
        return memory

    async def server(self) -> MemoryServer:
        """Return the MCP server over this memory, made for the first client. Raises InvalidInput for wrong settings."""
        if self._problem:
            raise self._problem
        if self._server is None:
            self._server = asyncio.create_task(self._make_server())
            self._has_client.set()
        return await asyncio.shield(self._server)

    async def _make_server(self) -> MemoryServer:
        def set_up() -> type[MemoryServer]:
            from mcp_memory.server.transports import MemoryServer, set_up_observation

            set_up_observation(self.settings)
            return MemoryServer

        make = await anyio.to_thread.run_sync(set_up)  # imports the SDK, which takes half a second
        return make(self.settings, self.shared)

    async def _run_alongside(self, memory: Memory, *, task_status: TaskStatus[None]) -> None:
        """Once there is a client, run what its server runs while the memory is open."""
        task_status.started()
        await self._has_client.wait()
        server = await self.server()
        async with anyio.create_task_group() as tasks:
            await tasks.start(server.run_alongside, memory)


RESTING_S = 600.0
"""Seconds without a question after which the memory is closed."""
_LOOKING_S = 0.5
_FINISHING_S = 30.0
_PROVING_S = 2.0
_MAX_QUESTION = 2**28
_MAX_LINE = 2**28
_LINGERING_S = 1.0
"""Seconds without a client after which a daemon that no hook uses ends."""


async def serve(files: DaemonFiles, *, silent: float = 0.0) -> float | None:
    """Answer hooks and clients until there is nothing more to do, then close the memory.

    `silent` is how many seconds the process before this one had no question of a hook, infinite if none was ever
    asked. Returns None at the end, or the seconds without a question if the process is to start afresh.
    """
    async with AsyncExitStack() as stack:
        memory = DaemonMemory(files, stack)
        await stack.enter_async_context(memory.shared.hold())
        daemon = Daemon(files, memory, silent=silent)
        await daemon.run()
    return daemon.silent if daemon.is_resting else None


class Daemon:
    """Answers hooks and clients on a loopback port, and ends when it is no longer needed."""

    def __init__(self, files: DaemonFiles, store: DaemonMemory, *, silent: float = 0.0) -> None:
        self._files = files
        self._store = store
        self._rests = False
        self._token = secrets.token_hex(16)
        self._ending = asyncio.Event()
        self._heard = time.monotonic() - silent
        self._clients = set[asyncio.Task[None]]()
        self._client_left = time.monotonic()
        self._idle_s = 3600 * store.settings.hooks_idle_hours
        self._loading_hooks: asyncio.Task[Hooks] | None = None

    async def run(self) -> None:
        if self.silent != math.inf:  # it is started for hooks
            await self._hooks()
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=_MAX_LINE)
        self._end_on_signals()  # first: a reader of the endpoint file may end us at once
        try:
            self._publish_endpoint(server.sockets[0].getsockname()[1])
            if logs := pending_logs(self._files):
                await (await self._hooks()).resume_reading(logs)
            while not self._should_end():
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._ending.wait(), _LOOKING_S)
        finally:
            server.close()
            self._remove_endpoint()
            for client in self._clients:
                client.cancel()
            left = {*self._clients, *((await self._hooks()).finish() if self._loading_hooks else ())}
            if left:
                await asyncio.wait(left, timeout=_FINISHING_S)

    async def _hooks(self) -> Hooks:
        """Return what answers hooks; its modules take a quarter of a second to import, so only hooks wait for it."""
        if self._loading_hooks is None:
            self._loading_hooks = asyncio.create_task(self._load_hooks())
        return await asyncio.shield(self._loading_hooks)

    async def _load_hooks(self) -> Hooks:
        module = await anyio.to_thread.run_sync(import_module, "mcp_memory.daemon.hooks")
        return module.Hooks(self._store.memory, self._store.settings, self._files)

    def _publish_endpoint(self, port: int) -> None:
        """Write the endpoint file and end daemons of older versions (only older, or two could end each other)."""
        for file in endpoint_files(self._files.home):
            endpoint = DaemonEndpoint.read(file)
            if endpoint is not None and is_older(endpoint.version, __version__):
                remove_own(file)
        DaemonEndpoint(os.getpid(), port, self._token, __version__).write(self._files.file)

    def _end_on_signals(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            try:
                asyncio.get_running_loop().add_signal_handler(number, self._ending.set)
            except NotImplementedError:  # Windows: the process just ends; pending logs are noted on disk
                pass

    def _remove_endpoint(self) -> None:
        if self._owns_endpoint():
            remove_own(self._files.file)

    def _owns_endpoint(self) -> bool:
        endpoint = DaemonEndpoint.read(self._files.file)
        return endpoint is not None and endpoint.token == self._token

    @property
    def is_resting(self) -> bool:
        """Whether it ends only to start afresh without an open memory."""
        return self._rests and not self._ending.is_set()

    @property
    def silent(self) -> float:
        """Seconds since the last question."""
        return time.monotonic() - self._heard

    def _should_end(self) -> bool:
        if self._ending.is_set() or not self._owns_endpoint():
            return True
        if self._clients or time.monotonic() - self._client_left < _LINGERING_S:
            return False
        if self.silent > self._idle_s:
            return True
        self._rests = min(self._store.open_for, self.silent) > RESTING_S
        return self._rests

    # --- connections --------------------------------------------------------------------------------

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_PROVING_S):
                protocol = await self._proven_protocol(reader, writer)
            if protocol == PROTOCOL:
                length = int(await reader.readline())
                if length <= _MAX_QUESTION:
                    self._heard = time.monotonic()
                    question = await reader.readexactly(length)
                    await (await self._hooks()).answer(question, reader, writer)
            elif protocol == CLIENT_PROTOCOL:
                await self._serve_client(reader, writer)
        except (OSError, ValueError, EOFError, TimeoutError):
            pass  # the hook was killed, or it is another program
        finally:
            writer.close()

    async def _proven_protocol(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes | None:
        """Exchange proofs of the token, and return what the connection is for; None if the proof is wrong."""
        protocol, _, nonce = (await reader.readline()).strip().partition(b" ")
        if protocol not in (PROTOCOL, CLIENT_PROTOCOL):
            return None
        ours = os.urandom(16).hex().encode()
        writer.write(proof(self._token, "resident", nonce) + b" " + ours + b"\n")
        is_right = equal((await reader.readline()).strip(), proof(self._token, "hook", ours))
        return protocol if is_right else None

    async def _serve_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Be the MCP server of a client, until it has gone."""
        task = asyncio.current_task()
        assert task is not None
        self._clients.add(task)
        try:
            session = (await reader.readline()).decode().strip()
            server = await self._store.server()
            from mcp_memory.server.mcp_server import use_session
            from mcp_memory.server.transports import serve_lines

            with use_session(session):
                await serve_lines(server, _Lines(reader, writer))
        except McpMemoryError as error:
            logger.warning("a client was not served: %s", error)
        except BaseExceptionGroup as errors:
            if errors.split((OSError, ValueError))[1]:
                logger.error("a client was not served, by a fault of this program", exc_info=errors)
        finally:
            self._clients.discard(task)
            self._client_left = time.monotonic()


class _Lines:
    """The lines of a client's connection, in the form in which the SDK reads and writes files."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def __aiter__(self) -> AsyncGenerator[str]:
        async for line in self._reader:
            yield line.decode("utf-8", "replace")

    async def write(self, text: str) -> None:
        self._writer.write(text.encode())

    async def flush(self) -> None:
        await self._writer.drain()


def _load(files: DaemonFiles) -> tuple[Settings, McpMemoryError | None]:
    """Return the settings; if they are wrong, the defaults and the error, which answers report."""
    try:
        return load_settings(home=files.home, space=files.space), None
    except McpMemoryError as error:
        return Settings(home=files.home), error
