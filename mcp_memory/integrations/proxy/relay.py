"""Relays messages between a client and a server.

`wrap` puts the parts together; `Relay` relays both directions and tracks pending requests. Only answers to these are
inspected; while a large answer is kept, other messages overtake it. A second answer to a request is dropped. No message
of either side ends the relay: if our code fails on a message, the message passes unchanged. When the server ends, every
pending request gets an error, so that no client waits forever.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeGuard, cast

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from mcp_memory.core.logs import SafeText, set_up
from mcp_memory.core.lru import LRU
from mcp_memory.core.text import one_line
from mcp_memory.integrations.proxy import stdio as wire
from mcp_memory.integrations.proxy.answer_editor import Editor
from mcp_memory.integrations.proxy.kept_results import ProxiedCall, ResultKeeper
from mcp_memory.integrations.proxy.stdio import (
    LinePart,
    Message,
    NotAMessage,
    ServerProcess,
    Splitter,
    StdioClient,
    UnreadableLine,
    key_of,
)

if TYPE_CHECKING:
    from mcp_memory.core.config import Settings
    from mcp_memory.core.server_address import ServerAccess
    from mcp_memory.integrations.proxy.http_server import HttpServer

logger = logging.getLogger(__name__)

SMALL_LINE = 262_144  # bytes; longer lines are parsed in a thread
LARGE_LINE = 8 * 2**20  # bytes; longer lines are kept before the next message is read
AT_ONCE = 8
DRAIN_SECONDS = 10.0
STRAY_LINES = 20
MOST_DONE = 1_000

_META = "io.modelcontextprotocol/"
"""Prefix of the `_meta` keys of protocol versions without a handshake: each message names its sender."""


@dataclass(frozen=True, slots=True)
class PendingRequest:
    """A request without an answer: its id, its method, and the tool call, if it is one."""

    id: object
    method: str
    call: ProxiedCall | None = None


class Relay:
    """Relays between a client and a server. Without an `editor`, all answers pass unchanged."""

    def __init__(self, client: StdioClient, server: ServerProcess | HttpServer, editor: Editor | None) -> None:
        self._client = client
        self._server = server
        self._editor = editor
        self._pending: dict[str, PendingRequest] = {}
        self._expanding: dict[str, anyio.CancelScope] = {}
        self._client_name = ""
        self._slots = anyio.Semaphore(AT_ONCE)
        self._stray = 0
        self._done = LRU[str, bool](MOST_DONE)
        """Requests that were answered. An id that is used again is pending again."""
        self._repeated = 0

    async def run(self) -> int:
        """Relay until the server has ended, or the client and then the server; return the server's exit code."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._from_client, tasks)
            async with anyio.create_task_group() as editing:
                await self._from_server(editing)
                editing.cancel_scope.deadline = anyio.current_time() + DRAIN_SECONDS
            code = await self._server.wait()
            await self._fail_pending(code)
            tasks.cancel_scope.cancel()
            return code
        raise AssertionError("unreachable")

    async def _send(self, line: bytes) -> None:
        try:
            await self._client.send(line)
        except OSError:  # the client has gone
            self._server.close_input()

    # --- from the client ----------------------------------------------------------------------------

    async def _from_client(self, tasks: TaskGroup) -> None:
        splitter = Splitter()
        async for chunk in self._client.chunks():
            for line in splitter.feed(chunk):
                if isinstance(line, LinePart):
                    await self._server.send(line.data)
                elif not await self._try_handle(line, tasks):
                    await self._server.send(line + b"\n")
        if rest := splitter.rest():
            await self._server.send(rest)
        self._server.close_input()

    async def _try_handle(self, line: bytes, tasks: TaskGroup) -> bool:
        """Process a message; return whether it is answered here. A bug of ours must not end the relay."""
        try:
            return await self._handle(line, tasks)
        except Exception:
            logger.exception("a message of the client passes as it is")
            return False

    async def _handle(self, line: bytes, tasks: TaskGroup) -> bool:
        """Track a message of the client; return whether it is a call of the added tool, or cancels such a call."""
        try:
            message = await _parse(line)
        except (NotAMessage, UnreadableLine):
            return False  # the server will report the error
        if isinstance(message, list):
            for item in message:
                if isinstance(item, dict):
                    self._note(cast("Message", item), call=None)
            return False
        value = message.get("params")
        params = cast("Message", value) if isinstance(value, dict) else {}
        self._client_name = _name_in(params, "clientInfo") or self._client_name
        match message.get("method"):
            case "notifications/cancelled":
                return self._cancel(key_of(params.get("requestId")))
            case "tools/call":
                name, arguments = params.get("name"), params.get("arguments")
                editor = self._editor
                if editor is not None and wire.has_id(message) and editor.is_expand_call(name, arguments):
                    await self._start_expanding(editor, message, str(name), arguments, tasks)
                    return True
                self._note(message, call=ProxiedCall(str(name), arguments, message.get("id"), self._client_name))
            case _:
                self._note(message, call=None)
        return False

    def _note(self, message: Message, call: ProxiedCall | None) -> None:
        if wire.has_id(message) and isinstance(method := message.get("method"), str):
            key = key_of(message["id"])
            self._done.pop(key)
            self._pending[key] = PendingRequest(message["id"], method, call)

    def _cancel(self, key: str) -> bool:
        self._pending.pop(key, None)
        scope = self._expanding.get(key)
        if scope:
            scope.cancel()
        return scope is not None

    async def _start_expanding(
        self, editor: Editor, request: Message, name: str, arguments: object, tasks: TaskGroup
    ) -> None:
        """Begin to answer a call of the added tool; an id that is in use already gets an error."""
        key = key_of(request["id"])
        if key in self._expanding:
            text = f"A request with the id {one_line(key, 60)} is in progress. Use each id once."
            await self._send(wire.failure(request["id"], text, wire.INVALID_REQUEST))
            return
        self._expanding[key] = anyio.CancelScope()
        tasks.start_soon(self._expand, editor, key, request, name, arguments)

    async def _expand(self, editor: Editor, key: str, request: Message, name: str, arguments: object) -> None:
        """Answer a call of the added tool."""
        try:
            with self._expanding[key]:
                result = await editor.open(name, arguments)
                meta = request["params"].get("_meta")
                if isinstance(meta, dict) and f"{_META}protocolVersion" in meta:
                    result["resultType"] = "complete"
                await self._send(wire.success(request["id"], result))
        except Exception:  # a bug of ours must not end the relay
            logger.exception("%s failed", SafeText(name))
            await self._send(wire.failure(request["id"], "Internal error. Its traceback is in the log of this proxy."))
        finally:
            del self._expanding[key]

    # --- from the server ----------------------------------------------------------------------------

    async def _from_server(self, editing: TaskGroup) -> None:
        passing, dropping, cut_off = False, False, None
        async for line in self._server.lines():
            if isinstance(line, bytes):
                if line.strip():
                    await self._relay_to_client(line, editing)
                continue
            if not passing and not dropping:
                dropping = self._is_repeated(wire.id_in(line.data))
            if dropping:
                dropping = not line.last
                continue
            if not passing:
                logger.warning("a message is over %d MB and passes as it is", wire.MAX_LINE // 2**20)
                cut_off = self._pop_request(wire.id_in(line.data))
                await self._client.hold()
            passing = not line.last
            try:
                await self._client.send_piece(line.data)
            except OSError:
                self._server.close_input()
            if line.last:
                self._client.release()
        if passing:
            await self._end_piece(cut_off)

    async def _end_piece(self, request: PendingRequest | None) -> None:
        """End a line that the server left unfinished, so that the client can read later messages.

        The request that the line answered is pending again.
        """
        try:
            await self._client.send_piece(b"\n")
        except OSError:
            self._server.close_input()
        self._client.release()
        if request:
            self._pending[key_of(request.id)] = request

    async def _relay_to_client(self, line: bytes, editing: TaskGroup) -> None:
        """Process a message of the server; a bug of ours must not end the relay."""
        try:
            await self._one_from_server(line, editing)
        except Exception:
            logger.exception("a message of the server passes as it is")
            await self._send(line + b"\n")

    async def _one_from_server(self, line: bytes, editing: TaskGroup) -> None:
        try:
            message = await _parse(line)
        except NotAMessage:
            await self._report_broken_line(line)
            return
        except UnreadableLine:
            key = wire.id_in(line)
            if self._is_repeated(key):
                return
            self._pop_request(key)
            await self._send(line + b"\n")
            return
        if isinstance(message, list):
            fresh = [item for item in message if not self._is_second(item)]
            if len(fresh) < len(message):
                if not fresh:
                    return
                message, line = fresh, json.dumps(fresh).encode()
        elif self._is_second(message):
            return
        request = self._match_request(message)
        editor = self._editor
        if request is None or isinstance(message, list) or editor is None:
            await self._send(line + b"\n")
            return
        result = message.get("result")
        if isinstance(result, dict) and (name := _name_in(cast("Message", result), "serverInfo")):
            editor.set_server_name(name)
        if request.call is None or len(line) > LARGE_LINE:
            await self._edit(editor, line, message, request)
        else:
            await self._slots.acquire()
            editing.start_soon(self._edit_beside, editor, line, message, request)

    async def _edit(self, editor: Editor, line: bytes, message: Message, request: PendingRequest) -> None:
        try:
            edited = await editor.edit(message, request.method, request.call)
        except Exception:
            logger.exception("an answer to %s passes as it is", request.method)  # a bug of ours
            edited = None
        await self._send(edited or line + b"\n")

    async def _edit_beside(self, editor: Editor, line: bytes, message: Message, request: PendingRequest) -> None:
        try:
            await self._edit(editor, line, message, request)
        finally:
            self._slots.release()

    def _match_request(self, message: Message | list[Any]) -> PendingRequest | None:
        """Remove the pending request that this message answers, and return it.

        For a batch, all its requests are removed and None is returned, because batches are not edited.
        """
        if isinstance(message, list):
            for item in message:
                if isinstance(item, dict):
                    self._match_request(cast("Message", item))
            return None
        return self._pop_request(key_of(message["id"])) if _is_answer(message) else None

    def _is_second(self, message: object) -> bool:
        return _is_answer(message) and self._is_repeated(key_of(message["id"]))

    def _pop_request(self, key: str | None) -> PendingRequest | None:
        request = None if key is None else self._pending.pop(key, None)
        if request is not None and key is not None:
            self._done.put(key, True)
        return request

    def _is_repeated(self, key: str | None) -> bool:
        """Return whether a request was answered before, and log it."""
        if key is None or key in self._pending or key not in self._done:
            return False
        self._repeated += 1
        if self._repeated <= STRAY_LINES:
            logger.warning("left out a second answer to a request (%d so far)", self._repeated)
        return True

    async def _report_broken_line(self, line: bytes) -> None:
        """Log a line that is not a message; answer its request with an error, if it names one."""
        request = self._pop_request(wire.id_in(line)) if line.lstrip()[:1] == b"{" else None
        if request:
            text = f"{self._server.name} answered with a line that is not JSON ({len(line):,} bytes)."
            await self._send(wire.failure(request.id, text, wire.PARSE_ERROR))
        self._stray += 1
        if self._stray <= STRAY_LINES:
            shown = one_line(line[:400].decode("utf-8", "replace"), 200)
            logger.warning("left out a line of the server's output that is no message: %s", shown)
        elif self._stray == STRAY_LINES + 1:
            logger.warning("further lines that are no messages are left out without a word")

    async def _fail_pending(self, code: int) -> None:
        """Answer all pending requests with an error."""
        text = f"{self._server.name} has ended (exit code {code}) and did not answer."
        pending, self._pending = self._pending, {}
        for request in pending.values():
            await self._send(wire.failure(request.id, text))


def _is_answer(message: object) -> TypeGuard[Message]:
    return isinstance(message, dict) and "id" in message and "method" not in message


async def _parse(line: bytes) -> Message | list[Any]:
    if len(line) <= SMALL_LINE:
        return wire.parse(line)
    return await anyio.to_thread.run_sync(wire.parse, line)


def _name_in(params: Message, key: str) -> str | None:
    """Return the name of the sender: from the handshake, or from the `_meta` of each message."""
    meta = params.get("_meta")
    info = params.get(key) or (cast("Message", meta).get(_META + key) if isinstance(meta, dict) else None)
    name = cast("Message", info).get("name") if isinstance(info, dict) else None
    return name if isinstance(name, str) else None


@dataclass(frozen=True, kw_only=True)
class WrapOptions:
    """What to wrap, a command or a URL, and how. Texts of more than `over` tokens are kept."""

    command: Sequence[str]
    url: str | None
    headers: Sequence[str]
    over: int
    session: str | None
    folder: str
    """The client's working folder; see `ResultKeeper`."""
    offers_tool: bool


def wrap(options: WrapOptions, settings: Callable[[], Settings]) -> int:
    """Relay between the server and our standard input and output until the server has ended; return its exit code.

    `settings` are read at the first large result: if they are invalid, it passes unchanged. Raises NotFound, Refused
    and InvalidInput for invalid options, or if the server cannot be started.
    """
    set_up(prefix="mcp-memory wrap: ")
    return anyio.run(_wrap, options, settings)


async def _wrap(options: WrapOptions, settings: Callable[[], Settings]) -> int:
    keeper = ResultKeeper(settings, over=options.over, session=options.session, folder=options.folder)
    async with AsyncExitStack() as stack:
        server = await _server(options, stack)
        await stack.enter_async_context(keeper.hold_open())
        tasks = await stack.enter_async_context(anyio.create_task_group())
        tasks.start_soon(_forward_signals, server)
        code = await Relay(StdioClient(), server, Editor(keeper, offers_tool=options.offers_tool)).run()
        tasks.cancel_scope.cancel()
        return code
    raise AssertionError("unreachable")


def forward(access: ServerAccess) -> int:
    """Relay between the memory's server and our standard input and output, unchanged, until the client has ended.

    Return the exit code. Raises Refused without a token.
    """
    set_up(prefix="mcp-memory serve: ")
    url = access.address.url.removesuffix(access.address.path) + access.target
    return anyio.run(_forward, url, access.headers())


async def _forward(url: str, headers: Mapping[str, str]) -> int:
    from mcp_memory.integrations.proxy.http_server import connect

    async with connect(url, headers) as server, anyio.create_task_group() as tasks:
        tasks.start_soon(_forward_signals, server)
        code = await Relay(StdioClient(), server, None).run()
        tasks.cancel_scope.cancel()
        return code
    raise AssertionError("unreachable")


async def _server(options: WrapOptions, stack: AsyncExitStack) -> ServerProcess | HttpServer:
    if options.url is None:
        return await ServerProcess.start(options.command)
    from mcp_memory.integrations.proxy.http_server import (
        connect,
        parse_headers,  # imports the SDK, which takes half a second
    )

    return await stack.enter_async_context(connect(options.url, parse_headers(options.headers)))


async def _forward_signals(server: ServerProcess | HttpServer) -> None:
    try:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as received:
            async for signum in received:
                server.signal(signum)
    except (NotImplementedError, AttributeError):  # Windows: Ctrl-C raises KeyboardInterrupt
        await anyio.sleep_forever()


def exit_now(code: int) -> None:
    """End this process at once: a thread may still be working on an abandoned task."""
    sys.stderr.flush()
    os._exit(code)
