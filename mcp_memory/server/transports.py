"""Transports: stdio, streamable HTTP at `/mcp`, HTTP with SSE at `/sse`.

On stdio, standard output carries only the protocol. HTTP and SSE listen on this machine only by default, and reject web
pages that rebind DNS. Every request needs a bearer token: on this machine the first start creates it, unless
`--no-token` is given; on other addresses the server does not start without a token (`authentication`). Each transport
ends cleanly on SIGTERM, on SIGINT and when its client has exited.

glibc gives threads separate heaps (arenas), up to eight per processor, and each keeps the most that was ever free in
it: a server grew by 20 MB a minute under load. With two arenas it does not grow, and answers as fast (`bench.load`).
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import AsyncIterator
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Protocol, cast

import anyio
import anyio.to_thread
import mcp.types as wire
from anyio.streams.memory import MemoryObjectSendStream
from mcp.server.stdio import stdio_server
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage

from mcp_memory.core import audit, telemetry
from mcp_memory.core.client_exit import exit_watch
from mcp_memory.core.config import Settings, unknown_variables
from mcp_memory.core.errors import McpMemoryError, Refused
from mcp_memory.core.logs import SafeText, set_up
from mcp_memory.core.malloc import limit_malloc_arenas
from mcp_memory.server import authorization
from mcp_memory.server.mcp_server import DEFINITIONS, MemoryServer, use_session
from mcp_memory.service.http_server import address_of, listen, on_signal, run_http
from mcp_memory.service.jsonrpc import error_reply, repair_message

_INTERVAL_SECONDS = 2.0


if TYPE_CHECKING:
    from mcp_memory.server.http_middleware import AuthenticationMiddleware
logger = logging.getLogger(__name__)
TRANSPORTS = ("stdio", "http", "sse")
MAX_BODY = 64 * 2**20
_MAX_SESSIONS = 1_000
"""Open sessions of older clients. A session whose client vanishes keeps its 0.2 MB for half an hour."""


def serve(
    settings: Settings,
    transport: str = "stdio",
    host: str = "127.0.0.1",
    port: int = 8765,
    *,
    needs_token: bool = True,
    session: str | None = None,
) -> None:
    """Serve until the client exits (stdio) or a signal arrives. Port 0 chooses a free port.

    On stdio, turns that name no session are recorded in `session`, by default in a new one.

    Without `needs_token`, clients of this machine need no token as long as no token exists. Raises Refused if other
    machines can reach the server and it has no token, if the token cannot be stored, and for a port in use.
    """
    limit_malloc_arenas()
    set_up(level=settings.log_level, form=settings.log_format, contents=settings.log_contents)
    set_up_observation(settings)
    token_notice = ""
    if transport != "stdio":
        reachable = authorization.is_reachable(host, settings.allowed_hosts)
        settings, token_notice = _with_token(settings, host, reachable=reachable, needs_token=needs_token)
    server = MemoryServer(settings)
    server.memory.what = f"serve {transport}"
    if transport == "stdio":
        with use_session(session) if session else nullcontext():
            anyio.run(_serve_stdio, server)
    else:
        app = http_app(server, settings, transport=transport, host=host)
        anyio.run(_serve_http, server, app, transport, host, port, token_notice)


def set_up_observation(settings: Settings) -> None:
    """Set up the audit log and telemetry, and warn of variables that are no settings."""
    audit.set_up(settings.audit_log)
    for name, nearest in unknown_variables().items():
        meant = f" Did you mean {nearest}?" if nearest else ""
        logger.warning("%s is not a setting and has no effect.%s", SafeText(name), SafeText(meant))
    if telemetry.is_configured():
        from mcp_memory.server.prompts import PROMPTS

        telemetry.set_up({*(tool.name for tool in DEFINITIONS), *(prompt.name for prompt in PROMPTS)})


def _with_token(settings: Settings, host: str, *, reachable: bool, needs_token: bool) -> tuple[Settings, str]:
    """Make the machine's token if needed, and return the settings with it and the notice about it for the user.

    Raises Refused if the token cannot be read or stored, if other machines can reach a server without tokens, and if
    `--no-token` is not possible.
    """
    from mcp_memory.server.authentication import (
        local_token_file,
        make_local_token,
        read_local_token,
    )

    token = None if settings.token or not needs_token else read_local_token(settings.home)
    if token is not None:
        notice = f"Clients show the token in {local_token_file(settings.home)}."
        return settings.model_copy(update={"token": token}), notice
    try:
        has_tokens = _has_tokens(settings)
    except McpMemoryError:  # a home that cannot be opened now: its clients get that error
        has_tokens = False
    if not needs_token and (reachable or has_tokens):
        why = "this memory has tokens already" if has_tokens else f"{host} can be reached from other machines"
        raise Refused(f"--no-token cannot be used: {why}, so clients must show one. Leave it out.")
    if has_tokens or not needs_token:
        return settings, ""
    if reachable:
        raise Refused(
            f"{host} can be reached from other machines, so clients must prove who they are: make a token for each "
            "with `mcp-memory token create`, or set MCP_MEMORY_TOKEN to a long random secret, or MCP_MEMORY_OAUTH_"
            "ISSUER to an authorization server; or listen on 127.0.0.1."
        )
    token = make_local_token(settings.home)
    notice = (
        f"Clients must send this token, which is shown only now and kept in {local_token_file(settings.home)}:\n"
        f"Authorization: Bearer {token}"
    )
    return settings.model_copy(update={"token": token}), notice


def http_app(server: MemoryServer, settings: Settings, *, transport: str, host: str) -> AuthenticationMiddleware:
    """Return the ASGI application of `transport` (http or sse) with authentication; with http, the pages are at `/ui`.

    Raises InvalidInput for an invalid setting.
    """
    from mcp_memory.server.authentication import Credentials, TokenAuthenticator
    from mcp_memory.server.http_middleware import AuthenticationMiddleware

    security = authorization.transport_security(host, settings.allowed_hosts)
    if transport == "sse":
        app = server.sse_app(host=host, max_request_body_size=MAX_BODY, transport_security=security)
    else:
        app = server.streamable_http_app(
            host=host, max_request_body_size=MAX_BODY, transport_security=security, max_sessions=_MAX_SESSIONS
        )
    reachable = authorization.is_reachable(host, settings.allowed_hosts)
    credentials = Credentials(settings, server.memory.get, reachable=reachable)
    pages = None
    if transport == "http":
        from mcp_memory.ui.app import Interface

        pages = Interface(server.memory.get, TokenAuthenticator(credentials), base="/ui", host=None, has_tokens=True)
    return AuthenticationMiddleware(
        app,
        credentials,
        security=security,
        per_minute=settings.rate_limit,
        pages=pages,
        metrics_token=settings.metrics_token,
    )


def _has_tokens(settings: Settings) -> bool:
    """Return whether a client can have a token. Does not create the home."""
    if settings.token or settings.oauth_issuer:
        return True
    if settings.store is None and not (settings.home / "memory.db").exists():
        return False
    from mcp_memory.service.memory import open_memory

    async def look() -> bool:
        async with open_memory(settings, embedder="none", llm="none", rerank=False) as memory:
            return bool(await memory.tokens())

    return anyio.run(look)


# --- stdio ------------------------------------------------------------------------------------------
async def _serve_stdio(server: MemoryServer) -> None:
    async with server.hold_open(), anyio.create_task_group() as tasks:
        tasks.start_soon(on_signal, partial(_exit, server))
        tasks.start_soon(_exit_with_client, server, os.dup(1))  # the SDK redirects 1 itself
        await serve_lines(server)
        tasks.cancel_scope.cancel()


class Lines(Protocol):
    """Lines of text that are read and written as those of an `anyio.AsyncFile`."""

    def __aiter__(self) -> AsyncIterator[str]: ...
    async def write(self, text: str, /) -> object: ...
    async def flush(self) -> object: ...


async def serve_lines(server: MemoryServer, client: Lines | None = None) -> None:
    """Serve a client over lines of JSON until its lines end, by default over standard input and output."""
    low = server._lowlevel_server  # pyright: ignore[reportPrivateUsage]
    both = cast("anyio.AsyncFile[str] | None", client)
    async with stdio_server(both, both) as (lines, replies), anyio.create_task_group() as tasks:
        checked, messages = anyio.create_memory_object_stream[SessionMessage]()
        tasks.start_soon(_answer_malformed, lines, checked, replies)
        await low.run(messages, replies, low.create_initialization_options())
        tasks.cancel_scope.cancel()


async def _exit_with_client(server: MemoryServer, output: int) -> None:
    has_exited = exit_watch(output)
    while not has_exited():  # noqa: ASYNC110 no event exists
        await anyio.sleep(_INTERVAL_SECONDS)
    logger.info("the client has exited, although standard input is still open")
    await _exit(server, 0)


async def _exit(server: MemoryServer, _signum: int) -> None:
    await server.memory.close()
    await anyio.to_thread.run_sync(telemetry.finish)
    # A thread is blocked reading standard input, and nothing can wake it: without this the process would wait for its
    # client to close the pipe. Everything that must be closed is closed.
    sys.stderr.flush()
    os._exit(0)


async def _answer_malformed(
    lines: ReadStream[SessionMessage | Exception],
    checked: MemoryObjectSendStream[SessionMessage],
    replies: WriteStream[SessionMessage],
) -> None:
    """Pass valid messages on, and answer invalid lines, whose client the SDK would leave waiting forever."""
    async with checked:
        async for line in lines:
            message = repair_message(line) if isinstance(line, Exception) else line
            # The SDK treats a request with an invalid id (`{}`, true, null or 1.5) as a notification, so its client
            # would wait forever. The names of MCP's notifications all begin alike.
            body = message.message
            if isinstance(body, wire.JSONRPCNotification) and not body.method.startswith("notifications/"):
                message = error_reply(None, wire.INVALID_REQUEST, "The id of a request must be a string or an integer.")
            await (replies if isinstance(message.message, wire.JSONRPCError) else checked).send(message)


# --- HTTP and SSE -----------------------------------------------------------------------------------
async def _serve_http(
    server: MemoryServer, app: AuthenticationMiddleware, transport: str, host: str, port: int, token_notice: str
) -> None:
    listener = listen(host, port)
    path = "mcp" if transport == "http" else "sse"
    lines = [f"mcp-memory listens on {address_of(host, listener)}/{path}", *([token_notice] if token_notice else [])]
    async with server.hold_open():
        await run_http(app, listener, started=partial(print, *lines, sep="\n", file=sys.stderr), stopping=app.stop)
