"""Transports: stdio, streamable HTTP at `/mcp`, HTTP with SSE at `/sse`.

On stdio standard output carries the protocol and nothing else. HTTP and SSE listen on this machine only, and turn
away pages that reach it by DNS rebinding. Every request needs a bearer token: on this machine the first start makes one
(`local_token`), unless `--no-token` says that none is needed; on other addresses the server does not start without
(`authentication`). Each transport ends cleanly on SIGTERM, on SIGINT and when its client is gone.

glibc gives threads separate heaps, up to eight per processor, and each keeps the most that was ever free in it: a
server grew by 20 MB a minute under load. With two heaps it does not, and answers as fast (`python -m bench.load`).
"""

from __future__ import annotations

import ctypes
import logging
import os
import sys
from functools import partial
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import mcp.types as wire
from anyio.streams.memory import MemoryObjectSendStream
from mcp.server.stdio import stdio_server
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage

from mcp_memory.core import telemetry
from mcp_memory.core.config import Settings, unknown_variables
from mcp_memory.core.errors import McpMemoryError, Refused
from mcp_memory.core.logs import SafeText, set_up
from mcp_memory.server import authorization
from mcp_memory.server.app import DEFINITIONS, MemoryServer, build_server
from mcp_memory.server.client_watch import wait_for_clients_end
from mcp_memory.server.local_token import make_token, read_token, token_file
from mcp_memory.service.http_server import address_of, listen, on_signal, run_http
from mcp_memory.service.jsonrpc import error_reply, repaired_message

if TYPE_CHECKING:
    from mcp_memory.server.authentication import AuthenticationMiddleware, Credentials
    from mcp_memory.ui.app import Interface


logger = logging.getLogger(__name__)

TRANSPORTS = ("stdio", "http", "sse")
MAX_BODY = 64 * 2**20
_SESSIONS = 1_000
"""Sessions of clients of the older generation that may be open. One that leaves without a word keeps its 0.2 MB for
half an hour."""


def serve(
    settings: Settings,
    transport: str = "stdio",
    host: str = "127.0.0.1",
    port: int = 8765,
    *,
    needs_token: bool = True,
) -> None:
    """Serve until the client is gone (stdio) or a signal ends it. Port 0 takes any free one; stderr names it.

    Without `needs_token` clients of this machine show none, as long as there is none. Raises Refused where other
    machines can reach it and no token would open it, where the token cannot be stored, and for a port that is taken.
    """
    bound_heaps()
    set_up(level=settings.log_level, form=settings.log_format, contents=settings.log_contents)
    for name, nearest in unknown_variables().items():
        meant = f" Did you mean {nearest}?" if nearest else ""
        logger.warning("%s is no setting, and sets nothing.%s", SafeText(name), SafeText(meant))
    if telemetry.is_configured():
        from mcp_memory.server.prompts import PROMPTS

        telemetry.set_up({*(tool.name for tool in DEFINITIONS), *(prompt.name for prompt in PROMPTS)})
    said = ""
    if transport != "stdio":
        reachable = authorization.is_reachable(host, settings.allowed_hosts)
        settings, said = _with_token(settings, host, reachable=reachable, needs_token=needs_token)
    server = build_server(settings)
    server.memory.what = f"serve {transport}"
    if transport == "stdio":
        anyio.run(_serve_stdio, server)
    else:
        app = http_app(server, settings, transport=transport, host=host)
        anyio.run(_serve_http, server, app, transport, host, port, said)


def _with_token(settings: Settings, host: str, *, reachable: bool, needs_token: bool) -> tuple[Settings, str]:
    """Return the settings with the token of this machine, if that is needed, and what is said about it."""
    kept = None if settings.token or not needs_token else read_token(settings.home)
    if kept is not None:
        said = f"Clients show the token in {token_file(settings.home)}."
        return settings.model_copy(update={"token": kept}), said
    try:
        has_tokens = _has_tokens(settings)
    except McpMemoryError:  # a home that cannot be opened now: its clients hear that
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
    made = make_token(settings.home)
    said = (
        f"Clients must send this token, which is shown only now and kept in {token_file(settings.home)}:\n"
        f"Authorization: Bearer {made}"
    )
    return settings.model_copy(update={"token": made}), said


def http_app(server: MemoryServer, settings: Settings, *, transport: str, host: str) -> AuthenticationMiddleware:
    """Return the ASGI application of `transport` (http or sse) behind its door; with http, the pages are at `/ui`.

    Raises InvalidInput for a setting that cannot be.
    """
    from mcp_memory.server.authentication import AuthenticationMiddleware, Credentials

    security = authorization.security(host, settings.allowed_hosts)
    if transport == "sse":
        app = server.sse_app(host=host, max_request_body_size=MAX_BODY, transport_security=security)
    else:
        app = server.streamable_http_app(
            host=host, max_request_body_size=MAX_BODY, transport_security=security, max_sessions=_SESSIONS
        )
    reachable = authorization.is_reachable(host, settings.allowed_hosts)
    credentials = Credentials(settings, server.memory.get, reachable=reachable)
    pages = _pages(server, credentials) if transport == "http" else None
    return AuthenticationMiddleware(app, credentials, security=security, a_minute=settings.rate_limit, pages=pages)


def _pages(server: MemoryServer, credentials: Credentials) -> Interface:
    from mcp_memory.server.token_door import TokenDoor
    from mcp_memory.ui.app import Interface

    return Interface(server.memory.get, TokenDoor(credentials), base="/ui", host=None, has_tokens=True)


def _has_tokens(settings: Settings) -> bool:
    """Return whether there is a token that a client can show. A home that is not there is not made."""
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
    low = server._lowlevel_server  # pyright: ignore[reportPrivateUsage]
    async with server.running(), anyio.create_task_group() as tasks:
        tasks.start_soon(on_signal, partial(_leave, server))
        tasks.start_soon(_leave_with_client, server, os.dup(1))  # the SDK redirects 1 itself
        async with stdio_server() as (lines, replies):
            checked, messages = anyio.create_memory_object_stream[SessionMessage]()
            tasks.start_soon(_answer_malformed, lines, checked, replies)
            await low.run(messages, replies, low.create_initialization_options())
        tasks.cancel_scope.cancel()


async def _leave_with_client(server: MemoryServer, output: int) -> None:
    await wait_for_clients_end(output)
    logger.info("the client has gone, though standard input did not end")
    await _leave(server, 0)


async def _leave(server: MemoryServer, _signum: int) -> None:
    await server.memory.close()
    await anyio.to_thread.run_sync(telemetry.finish)
    # A thread is blocked reading standard input, and nothing can wake it: without this the process would wait for its
    # client to close the pipe. Everything that has to be closed is closed.
    sys.stderr.flush()
    os._exit(0)


async def _answer_malformed(
    lines: ReadStream[SessionMessage | Exception],
    checked: MemoryObjectSendStream[SessionMessage],
    replies: WriteStream[SessionMessage],
) -> None:
    """Pass messages on. A line that is none is answered, where the SDK would let its client wait for ever."""
    async with checked:
        async for line in lines:
            message = repaired_message(line) if isinstance(line, Exception) else line
            # A request whose id no answer can carry (`{}`, true, null or 1.5) is a notification to the SDK, and its
            # client would wait for ever. Those of MCP all begin alike.
            said = message.message
            if isinstance(said, wire.JSONRPCNotification) and not said.method.startswith("notifications/"):
                message = error_reply(None, wire.INVALID_REQUEST, "The id of a request must be a string or an integer.")
            await (replies if isinstance(message.message, wire.JSONRPCError) else checked).send(message)


# --- HTTP and SSE -----------------------------------------------------------------------------------


async def _serve_http(
    server: MemoryServer, app: AuthenticationMiddleware, transport: str, host: str, port: int, about_token: str
) -> None:
    listener = listen(host, port)
    path = "mcp" if transport == "http" else "sse"
    lines = [f"mcp-memory listens on {address_of(host, listener)}/{path}", *([about_token] if about_token else [])]
    async with server.running():
        await run_http(app, listener, started=partial(print, *lines, sep="\n", file=sys.stderr), stopping=app.stop)


# --- both -------------------------------------------------------------------------------------------


_M_ARENA_MAX = -8
_HEAPS = 2


def bound_heaps() -> None:
    """Let threads that are still to come share two heaps, unless MALLOC_ARENA_MAX says how many."""
    if sys.platform != "linux" or "MALLOC_ARENA_MAX" in os.environ:
        return
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        set_option(_M_ARENA_MAX, _HEAPS)
