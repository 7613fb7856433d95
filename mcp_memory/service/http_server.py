"""Runs an HTTP server in this process: listens, closes idle and slow connections, stops on a signal.

uvicorn has no read timeout, and a client that reads nothing of a stream would keep it in memory.
"""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import anyio
from anyio import TASK_STATUS_IGNORED
from anyio.abc import TaskStatus

from mcp_memory.core.errors import Refused

if TYPE_CHECKING:
    from starlette.types import ASGIApp
    from uvicorn.protocols.http.h11_impl import H11Protocol


_GRACE_SECONDS = 2
_IDLE_SECONDS = 75
"""Longer than clients keep idle connections (often 5 s, uvicorn's default): a request is lost if it is sent while the
server closes the connection."""


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket. Port 0 takes any free port. Raises Refused if it cannot listen there."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family)
        # asyncio sets it only on sockets with an explicit TCP protocol, unlike those of create_server. Without it a
        # response in two writes waits 40 ms for the client to acknowledge the first.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    except (OSError, OverflowError) as error:
        raise Refused(f"Cannot listen on {host} port {port}: {error}. Choose another --host or --port.") from None


def address_of(host: str, listener: socket.socket) -> str:
    """Return the address of a listener on `host`, such as `http://127.0.0.1:8765`."""
    port = listener.getsockname()[1]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


async def run_http(
    app: ASGIApp,
    listener: socket.socket,
    *,
    started: Callable[[], None],
    stopping: Callable[[], None] | None = None,
) -> None:
    """Serve an application on a socket until SIGTERM or SIGINT.

    `started` is called once requests and signals are handled, and `stopping` after the first signal. Open streams have
    two seconds to end after that signal.
    """
    import uvicorn

    class Http(uvicorn.Server):
        @contextmanager
        def capture_signals(self) -> Generator[None]:
            yield  # uvicorn would raise the signal again before the store is closed; `on_signal` takes it

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets=sockets)
            if self.started:
                started()

    http = Http(
        uvicorn.Config(
            app,
            http=make_protocol(),
            log_config=None,
            access_log=False,
            ws="none",
            server_header=False,
            timeout_keep_alive=_IDLE_SECONDS,
            timeout_graceful_shutdown=_GRACE_SECONDS,
        )
    )

    async def stop(signum: int) -> None:
        if stopping is not None:
            stopping()
        http.handle_exit(signum, None)

    async with anyio.create_task_group() as tasks:
        await tasks.start(on_signal, stop)  # first: asyncio would cancel uvicorn's start, which it logs as an error
        await http.serve(sockets=[listener])
        tasks.cancel_scope.cancel()


async def on_signal(
    react: Callable[[int], Awaitable[object]], *, task_status: TaskStatus[None] = TASK_STATUS_IGNORED
) -> None:
    """Call `react` for each SIGTERM and SIGINT until cancelled. On Windows, return at once."""
    # On Windows Ctrl-C raises KeyboardInterrupt, and there is no SIGTERM.
    try:
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as received:
            task_status.started()
            async for signum in received:
                await react(signum)
    except NotImplementedError:
        task_status.started()


HEAD_SECONDS = 20.0
_TAKING_SECONDS = 60.0


def make_protocol(seconds: float = HEAD_SECONDS, taking: float = _TAKING_SECONDS) -> type[H11Protocol]:
    """Return uvicorn's HTTP protocol with timeouts.

    A client has `seconds` to send the head of each request. A client that reads nothing of its response is disconnected
    after `taking` seconds; slow reading is allowed.
    """
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Patient(H11Protocol):
        _timer: asyncio.TimerHandle | None = None
        _full: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._restart_idle_timer()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._restart_idle_timer()

        def connection_lost(self, exc: Exception | None) -> None:
            self._cancel_idle_timer()
            self._on_buffer_drained()
            super().connection_lost(exc)

        def pause_writing(self) -> None:
            super().pause_writing()
            self._on_buffer_drained()
            self._full = self.loop.call_later(taking, self._check_progress, self.transport.get_write_buffer_size())

        def resume_writing(self) -> None:
            self._on_buffer_drained()
            super().resume_writing()

        def _check_progress(self, before: int) -> None:
            left = self.transport.get_write_buffer_size()
            if left < before:
                self._full = self.loop.call_later(taking, self._check_progress, left)
            else:
                self.transport.abort()  # `close` would first send the buffer, which the client does not read

        def _on_buffer_drained(self) -> None:
            if self._full is not None:
                self._full.cancel()
                self._full = None

        def _restart_idle_timer(self) -> None:
            cycle: Any = self.cycle  # None before the first request
            if cycle is not None and not cycle.response_complete:
                self._cancel_idle_timer()
            elif self._timer is None:
                self._timer = self.loop.call_later(seconds, self.transport.close)

        def _cancel_idle_timer(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    return Patient
