"""A real server on loopback, in this process: HTTP or SSE, behind its door."""

from __future__ import annotations

import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, nullcontext

import anyio
import httpx2
import uvicorn

from mcp_memory.core.config import Settings
from mcp_memory.server.mcp_server import MemoryServer
from mcp_memory.server.transports import http_app
from mcp_memory.service.http_server import HEAD_SECONDS, make_protocol
from tests.server.answers import WAIT


@asynccontextmanager
async def served(
    settings: Settings,
    transport: str = "http",
    *,
    host: str = "127.0.0.1",
    head_seconds: float = HEAD_SECONDS,
    listener: socket.socket | None = None,
) -> AsyncGenerator[tuple[str, MemoryServer]]:
    """Yield the address without a path, and the server. `host` is what it believes to be bound to.

    `listener` is for those who have to know the address before.
    """
    server = MemoryServer(settings)
    app = http_app(server, settings, transport=transport, host=host)
    with listener or socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        http = uvicorn.Server(
            uvicorn.Config(
                app, http=make_protocol(head_seconds), log_config=None, ws="none", timeout_graceful_shutdown=1
            )
        )
        http.capture_signals = nullcontext  # type: ignore[method-assign]
        ended = anyio.Event()

        async def serve() -> None:
            await http.serve([listener])
            ended.set()

        async with server.hold_open(), anyio.create_task_group() as tasks:
            tasks.start_soon(serve)
            with anyio.fail_after(WAIT):
                while not http.started:  # noqa: ASYNC110 - uvicorn has no event for it
                    await anyio.sleep(0.005)
            try:
                yield f"http://127.0.0.1:{listener.getsockname()[1]}", server
            finally:
                http.should_exit = True
                with anyio.CancelScope(shield=True):  # a failed test must not leave its socket to the next one
                    await ended.wait()


def bearer(token: str | None, **headers: str) -> httpx2.AsyncClient:
    given = {} if token is None else {"Authorization": f"Bearer {token}"}
    return httpx2.AsyncClient(headers={**given, **headers}, timeout=WAIT)
