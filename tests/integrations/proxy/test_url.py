"""A server at an address, on loopback: what a client of lines says arrives as HTTP, and what cannot is answered."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
import uvicorn
from mcp.server.mcpserver import MCPServer
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from mcp_memory.core.errors import InvalidInput
from mcp_memory.integrations.proxy.http_server import HttpServer, connect, parse_headers
from tests.integrations.proxy.sdk_server import build
from tests.server.answers import HANDSHAKE

WAIT = 20
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


@asynccontextmanager
async def listening(app: ASGIApp) -> AsyncIterator[str]:
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, ws="none", timeout_graceful_shutdown=0))
    with socket.create_server(("127.0.0.1", 0)) as taken, anyio.fail_after(WAIT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.serve, [taken])
            yield f"http://127.0.0.1:{taken.getsockname()[1]}/mcp"
            server.should_exit = True


@asynccontextmanager
async def talking(url: str, headers: Mapping[str, str] | None = None) -> AsyncIterator[Talk]:
    async with connect(url, headers or {}) as address:
        yield Talk(address)
        address.close_input()


class Talk:
    """A client that says lines and hears lines."""

    def __init__(self, address: HttpServer) -> None:
        self._address = address
        self._lines = address.lines()

    async def say(self, method: str, params: Any = None, id: int | None = 1) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params or {}} | ({} if id is None else {"id": id})
        await self.say_raw(json.dumps(message).encode() + b"\n")

    async def say_raw(self, line: bytes) -> None:
        await self._address.send(line)

    async def hear(self) -> Any:
        with anyio.fail_after(WAIT):
            return json.loads(await anext(self._lines))

    async def ask(self, method: str, params: Any = None, id: int = 1) -> Any:
        await self.say(method, params, id)
        return await self.hear()


async def test_a_session_of_the_handshake_is_held() -> None:
    async with listening(build().streamable_http_app()) as url, talking(url) as talk:
        assert (await talk.ask("initialize", HANDSHAKE))["result"]["serverInfo"]["name"] == "sdk server"
        await talk.say("notifications/initialized", id=None)
        await talk.say("tools/call", {"name": "test_tool_with_progress", "_meta": {"progressToken": "p"}}, 2)
        heard = [await talk.hear() for _ in range(4)]
        assert [told["params"]["progress"] for told in heard[:3]] == [0, 50, 100]
        assert heard[3]["result"]["content"][0]["text"] == "done"
        await talk.say("tools/call", {"name": "sleep"}, 3)
        await talk.say("tools/call", {"name": "rows", "arguments": {"count": 1}}, 4)
        assert (await talk.hear())["id"] == 4
        await talk.say("notifications/cancelled", {"requestId": 3}, id=None)
        while (await talk.ask("tools/call", {"name": "has_slept"}, 5)).get("result", {}).get("structuredContent") != {
            "result": True
        }:
            pass


async def test_single_requests_carry_their_headers() -> None:
    async with listening(build().streamable_http_app()) as url, talking(url) as talk:
        assert "supportedVersions" in (await talk.ask("server/discover", {"_meta": META}))["result"]
        routed = {"name": "test_x_mcp_header", "arguments": {"region": "Zürich"}, "_meta": META}
        await talk.ask("tools/list", {"_meta": META}, 2)
        assert (await talk.ask("tools/call", routed, 3))["result"]["content"][0]["text"] == "Zürich"
        assert (await talk.ask("nothing/such", {"_meta": META}, 4))["error"]["code"] == -32601


async def test_what_is_no_message_is_answered_here_and_half_an_emoji_is_mended() -> None:
    async with listening(build().streamable_http_app()) as url, talking(url) as talk:
        await talk.say_raw(b"no json\n")
        assert (await talk.hear())["error"]["code"] == -32700
        await talk.say_raw(b"\n")
        await talk.ask("tools/list", {"_meta": META}, 2)
        call = {"name": "test_x_mcp_header", "arguments": {"region": "\ud83d"}, "_meta": META}
        assert (await talk.ask("tools/call", call))["result"]["content"][0]["text"] == "\ufffd"


async def test_what_cannot_be_delivered_is_answered_with_the_reason_and_the_next_may_succeed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    async with talking(f"http://127.0.0.1:{port}/mcp") as talk:
        for id in (1, 2):
            refused = await talk.ask("initialize", HANDSHAKE, id)
            assert refused["id"] == id
            assert "cannot be reached" in refused["error"]["message"]


async def test_a_token_is_sent_and_one_that_is_missing_is_asked_for() -> None:
    app = guarded(build())
    async with listening(app) as url:
        async with talking(url) as talk:
            refused = await talk.ask("initialize", HANDSHAKE)
            assert "HTTP 401 Unauthorized" in refused["error"]["message"]
            assert "--header" in refused["error"]["message"]
        async with talking(url, parse_headers(["Authorization: Bearer ${TOKEN}"], {"TOKEN": "s3cret"})) as talk:
            assert "result" in await talk.ask("initialize", HANDSHAKE)


def guarded(server: MCPServer) -> ASGIApp:
    app = server.streamable_http_app()

    async def guard(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (b"authorization", b"Bearer s3cret") not in scope["headers"]:
            await PlainTextResponse("who are you", status_code=401)(scope, receive, send)
        else:
            await app(scope, receive, send)

    return guard


@pytest.mark.parametrize("line", ["no colon", ": value", "two words: x", "Authorization: ${NOT_SET}"])
def test_a_header_that_is_none_is_refused(line: str) -> None:
    with pytest.raises(InvalidInput):
        parse_headers([line], {})


async def test_an_address_is_one_of_http() -> None:
    with pytest.raises(InvalidInput, match="http"):
        async with connect("example.com/mcp", {}):
            pass
