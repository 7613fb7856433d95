"""A wrapped server at a URL: streamable HTTP, through the SDK's transport.

Messages are lines in the relay, and HTTP requests here. The HTTP headers (protocol version, method, names and arguments
for routing) are derived from the messages, because the client does not know about HTTP. A request that cannot be
delivered is answered with the reason, and the next request may succeed.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

import anyio
import anyio.to_thread
import httpx2
import mcp.types as wire
from mcp.client.streamable_http import streamable_http_client
from mcp.shared import inbound
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.text import one_line
from mcp_memory.integrations.proxy.answer_editor import tools_of
from mcp_memory.integrations.proxy.stdio import MAX_LINE, failure
from mcp_memory.service.jsonrpc import repair_message

logger = logging.getLogger(__name__)

_VERSION = "io.modelcontextprotocol/protocolVersion"
_PARTING_SECONDS = 2.0
_CONNECT_SECONDS = 30.0


def parse_headers(lines: Sequence[str], environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Parse `Name: value` lines, with `${NAME}` replaced from the environment.

    Raises InvalidInput for a malformed line, or a variable that is not set.
    """
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not re.fullmatch("[!#$%&'*+.^_`|~0-9A-Za-z-]+", name.strip()):
            raise InvalidInput(f"The header {one_line(name, 40)!r} is not of the form 'Name: value'.")
        for variable in re.findall(r"\$\{(\w+)\}", value):
            if variable not in environ:
                raise InvalidInput(f"The header {name.strip()!r} names ${{{variable}}}, which is not set.")
            value = value.replace(f"${{{variable}}}", environ[variable])
        headers[name.strip()] = value.strip()
    return headers


class HttpServer:
    """A connection to a server at a URL. Made by `connect`."""

    def __init__(self, url: str, read: ReadStream[SessionMessage | Exception], write: WriteStream[SessionMessage]):
        self.name = url
        self._read = read
        self._write = write
        self._line_sender, self._line_receiver = anyio.create_memory_object_stream[bytes](1)
        self._is_closed = False
        self._version: str | None = None
        self._routed: dict[str, Any] = {}

    async def listen(self) -> None:
        """Receive the server's messages until the connection ends."""
        async with self._line_sender:
            async for message in self._read:
                if isinstance(message, Exception):
                    logger.warning("%s sent what is no message: %s", self.name, one_line(str(message), 200))
                    continue
                try:
                    self._learn(message.message)
                except Exception:
                    logger.exception("a message of %s was not inspected", self.name)  # a bug of ours
                line = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                try:
                    await self._line_sender.send(line.encode())
                except anyio.ClosedResourceError:
                    return

    async def lines(self) -> AsyncIterator[bytes]:
        async for line in self._line_receiver:
            yield line

    async def send(self, line: bytes) -> None:
        """Send a message; an invalid line is answered with an error in the server's place."""
        if not line.strip():
            return
        message = _parse_message(line)
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):  # the server has gone
            if isinstance(message, wire.JSONRPCError) and message.id is None:
                await self._line_sender.send(message.model_dump_json(by_alias=True, exclude_unset=True).encode())
                return
            headers = ClientMessageMetadata(headers=self._headers(message))
            await self._write.send(SessionMessage(message, headers))

    def close_input(self) -> None:
        self._is_closed = True
        self._line_sender.close()

    def signal(self, signum: int) -> None:
        self.close_input()

    def close(self) -> None:
        self._line_sender.close()
        self._line_receiver.close()

    async def wait(self) -> int:
        return 0 if self._is_closed else 1

    def _learn(self, message: wire.JSONRPCMessage) -> None:
        """Remember the negotiated version, and which arguments of each tool are sent as HTTP headers for routing."""
        match message:
            case wire.JSONRPCResponse(result={"protocolVersion": str() as version, "capabilities": _}):
                self._version = version
            case wire.JSONRPCResponse(result={"tools": [*_]} as page):
                for tool in tools_of(page):
                    schema = tool.get("inputSchema")
                    if inbound.find_invalid_x_mcp_header(schema) is None:
                        self._routed[tool["name"]] = inbound.x_mcp_header_map(schema)
            case _:
                pass

    def _headers(self, message: wire.JSONRPCMessage) -> dict[str, str]:
        if not isinstance(message, wire.JSONRPCRequest | wire.JSONRPCNotification):
            return self._version_headers()
        params: dict[str, Any] = message.params or {}
        meta: object = params.get("_meta")
        version = cast("dict[str, Any]", meta).get(_VERSION) if isinstance(meta, dict) else None
        if not isinstance(version, str) or version not in MODERN_PROTOCOL_VERSIONS:
            return {} if message.method == "initialize" else self._version_headers()
        headers = {inbound.MCP_PROTOCOL_VERSION_HEADER: version, inbound.MCP_METHOD_HEADER: message.method}
        name = params.get(inbound.NAME_BEARING_METHODS.get(message.method, ""))
        if isinstance(name, str):
            headers[inbound.MCP_NAME_HEADER] = inbound.encode_header_value(name)
            if message.method == "tools/call" and name in self._routed:
                arguments: object = params.get("arguments")
                if isinstance(arguments, dict):
                    headers |= inbound.mcp_param_headers(self._routed[name], cast("dict[str, Any]", arguments))
        return headers

    def _version_headers(self) -> dict[str, str]:
        return {inbound.MCP_PROTOCOL_VERSION_HEADER: self._version} if self._version else {}


@asynccontextmanager
async def connect(url: str, headers: Mapping[str, str]) -> AsyncGenerator[HttpServer]:
    """Yield a connection to the server at `url`. Nothing is sent before the first message.

    Raises InvalidInput unless `url` begins with `http://` or `https://`, and for certificates or a proxy of the
    environment that cannot be used.
    """
    if not re.match("https?://", url):
        raise InvalidInput(f"{one_line(url, 100)!r} is no address of a server: it begins with http:// or https://.")
    timeout = httpx2.Timeout(_CONNECT_SECONDS, read=None)  # a stream of updates may be silent for hours
    # In a thread, because it reads the system's certificates.
    try:
        client = await anyio.to_thread.run_sync(lambda: _ErrorAnsweringClient(headers=dict(headers), timeout=timeout))
    except (OSError, ImportError, ValueError) as error:  # certificates and proxies of the environment
        raise InvalidInput(f"SSL_CERT_FILE or a variable such as HTTPS_PROXY cannot be used: {error}") from None
    with anyio.CancelScope() as parting:
        async with (
            client,
            streamable_http_client(url, http_client=client, max_sse_event_size=MAX_LINE) as (read, write),
            anyio.create_task_group() as tasks,
        ):
            address = HttpServer(url, read, write)
            tasks.start_soon(address.listen)
            try:
                yield address
            finally:
                address.close()
                tasks.cancel_scope.cancel()
                parting.deadline = anyio.current_time() + _PARTING_SECONDS


class _ErrorAnsweringClient(httpx2.AsyncClient):
    """Answers a message that cannot be delivered with a JSON-RPC error, where the SDK's transport would end."""

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        if request.method != "POST":
            return await super().send(request, **options)
        try:
            response = await super().send(request, **options)
        except httpx2.TransportError as error:
            return _error_response(request, 502, f"{request.url} cannot be reached: {error or type(error).__name__}.")
        kind = response.headers.get("content-type", "")
        if response.status_code < 400 or response.status_code == 404 or kind.startswith("application/json"):
            return response
        await response.aclose()
        text = f"{request.url} answered HTTP {response.status_code} {response.reason_phrase}."
        if response.status_code in (401, 403):
            text += " It may want a token: mcp-memory wrap --url … --header 'Authorization: Bearer ${TOKEN}'."
        return _error_response(request, response.status_code, text)


def _parse_message(line: bytes) -> wire.JSONRPCMessage:
    """Return the message of a line, or the error to answer; lone surrogates, which HTTP cannot carry, become U+FFFD."""
    try:
        return wire.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError as error:
        message = repair_message(error).message
    text = json.dumps(message.model_dump(by_alias=True, exclude_unset=True), ensure_ascii=False)
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return wire.jsonrpc_message_adapter.validate_json(whole, by_name=False)


def _error_response(request: httpx2.Request, status: int, text: str) -> httpx2.Response:
    headers = {"content-type": "application/json"}
    return httpx2.Response(status, content=failure(None, text), headers=headers, request=request)
