"""The door of HTTP and SSE: who comes in, into which space, with what right, how often, and for how long."""

from __future__ import annotations

import socket
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import anyio
import anyio.to_thread
import httpx2
import pytest
import uvicorn
from hypothesis import given
from hypothesis import strategies as st
from mcp import Client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp.types import ToolAnnotations

from mcp_memory.core.config import Settings, load_settings
from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.logs import LogFormatter
from mcp_memory.server import http_middleware
from mcp_memory.server.authorization import (
    OWNER,
    Grant,
    grant_of_request,
    is_reachable,
    transport_security,
    visible_status,
)
from mcp_memory.server.http_middleware import SPACE_HEADER, ConcurrencyLimit
from mcp_memory.server.mcp_server import MemoryServer
from mcp_memory.server.tools import TOOLS
from mcp_memory.server.transports import http_app
from mcp_memory.service.http_server import listen, make_protocol
from mcp_memory.service.memory import Memory, open_memory
from tests.server.answers import INITIALIZE, WAIT, answer_of, error_of
from tests.server.served import bearer, served

HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
LIST: dict[str, Any] = {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}

READING = {"recall", "memory_search", "conversation_search", "read_persona", "expand_node"}
REMOVING = {"forget"}


def settings_of(home: Path, **more: Any) -> Settings:
    return load_settings({}, home=home, embedder="none", **more)


async def tokens_of(settings: Settings, *wanted: tuple[str, list[str], Any], **more: Any) -> list[str]:
    async with open_memory(settings) as memory:
        return [(await memory.create_token(name, spaces=s, right=right, **more))[1] for name, s, right in wanted]


def id_of(token: str) -> str:
    return token.split("_")[1]


@dataclass(frozen=True)
class Door:
    """A server that most tests here share; each makes tokens and spaces of its own."""

    url: str
    server: MemoryServer
    settings: Settings

    async def tokens(self, *wanted: tuple[list[str], Any]) -> list[str]:
        memory = await self.server.memory.get()
        return [(await memory.create_token(uuid4().hex, spaces=s, right=right))[1] for s, right in wanted]


@pytest.fixture(scope="module")
async def door(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Door]:
    settings = settings_of(tmp_path_factory.mktemp("door") / "home")
    async with served(settings) as (url, server):
        yield Door(url, server, settings)


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as stack:
        yield stack


async def client_of(stack: AsyncExitStack, url: str, token: str | None, era: Any = "auto", **headers: str) -> Client:
    http = await stack.enter_async_context(bearer(token, **headers))
    return await stack.enter_async_context(Client(streamable_http_client(url, http_client=http), mode=era))


# --- tokens, spaces, rights -------------------------------------------------------------------------


async def test_a_client_sees_and_calls_the_tools_that_its_right_allows(
    door: Door, era: Any, stack: AsyncExitStack
) -> None:
    made = await door.tokens((["a"], "read"), (["a"], "write"), (["a"], "admin"))
    everything = {tool.name for tool in TOOLS}
    for token, allowed in zip(made, (READING, everything - REMOVING, everything), strict=True):
        client = await client_of(stack, f"{door.url}/mcp", token, era)
        assert {tool.name for tool in (await client.list_tools()).tools} == allowed
        for name in sorted(everything - allowed):
            assert "needs the right" in error_of(await client.call_tool(name, {}))
    admin = await client_of(stack, f"{door.url}/mcp", made[-1], era)
    told = answer_of(await admin.call_tool("remember", {"text": f"Boats are best ({era})."}))
    answer_of(await admin.call_tool("forget", {"ids": [told["atom"]["id"]]}))


async def test_a_client_is_in_the_first_space_of_its_token_or_the_one_that_it_names(
    door: Door, era: Any, stack: AsyncExitStack
) -> None:
    (token,) = await door.tokens((["one", "zwei & drei"], "write"))
    first = await client_of(stack, f"{door.url}/mcp", token, era)
    by_query = await client_of(stack, f"{door.url}/mcp?space=zwei%20%26%20drei", token, era)
    by_header = await client_of(stack, f"{door.url}/mcp", token, era, **{SPACE_HEADER: "zwei & drei"})
    answer_of(await by_query.call_tool("remember", {"text": "The harbour office opens at eight."}))
    for client, expected in ((first, 0), (by_query, 1), (by_header, 1)):
        found = answer_of(await client.call_tool("memory_search", {"query": "harbour"}))
        assert len(found["atoms"]) == expected


async def test_what_the_door_says_of_a_space_is_the_same_whether_it_is_there_or_not(door: Door) -> None:
    mine, other = await door.tokens((["mine"], "read"), (["theirs"], "write"))
    async with bearer(mine) as http, AsyncExitStack() as stack:
        owner = await client_of(stack, f"{door.url}/mcp", other)
        answer_of(await owner.call_tool("remember", {"text": "Secret."}))
        told = [
            await http.post(f"{door.url}/mcp?space={space}", json=LIST, headers=HEADERS)
            for space in ("theirs", "nobodys")
        ]
    assert [one.status_code for one in told] == [403, 403]
    assert told[0].text.replace("theirs", "nobodys") == told[1].text
    assert told[0].json()["error"]["message"] == "'theirs' is not a space of this token. Its spaces: mine."


async def test_an_mcp_session_answers_the_client_that_opened_it_in_its_space_alone(door: Door) -> None:
    one, two = await door.tokens((["a", "b"], "write"), (["a"], "admin"))
    async with bearer(one) as http:
        opened = await http.post(f"{door.url}/mcp", json=INITIALIZE, headers=HEADERS)
        session = {**HEADERS, "Mcp-Session-Id": opened.headers["mcp-session-id"]}
        told = [
            await http.post(f"{door.url}/mcp", json=LIST, headers=session),
            await http.post(f"{door.url}/mcp?space=b", json=LIST, headers=session),
            await http.post(f"{door.url}/mcp", json=LIST, headers={**session, "Authorization": f"Bearer {two}"}),
            await http.delete(f"{door.url}/mcp", headers={**session, "Authorization": f"Bearer {two}"}),
            await http.post(f"{door.url}/mcp", json=LIST, headers={**session, "Mcp-Session-Id": "0" * 32}),
        ]
    assert [answer.status_code for answer in told] == [200, 404, 404, 404, 404]
    assert told[1].text == told[2].text == told[3].text == told[4].text


async def test_an_sse_stream_takes_messages_of_the_client_that_opened_it_alone(
    home: Path, stack: AsyncExitStack
) -> None:
    settings = settings_of(home)
    one, two = await tokens_of(settings, ("one", ["a", "b"], "write"), ("two", ["a", "b"], "write"))
    url, _ = await stack.enter_async_context(served(settings, "sse"))
    authorized = {"Authorization": f"Bearer {one}"}
    for space in ("a", "b"):
        client = await stack.enter_async_context(Client(sse_client(f"{url}/sse?space={space}", authorized)))
        answer_of(await client.call_tool("remember", {"text": f"Only in {space}."}))
        found = answer_of(await client.call_tool("memory_search", {"query": "only"}))
        assert [shown["atom"]["text"] for shown in found["atoms"]] == [f"Only in {space}."]

    http = await stack.enter_async_context(bearer(one))
    async with http.stream("GET", f"{url}/sse?space=b") as stream:
        lines = stream.aiter_lines()
        with anyio.fail_after(WAIT):
            where = next(line for line in [await anext(lines), await anext(lines)] if line.startswith("data: "))[6:]
        assert where.startswith("/space/b/messages/?session_id=")
        in_another_space = where.replace("/space/b/", "/space/a/")
        told = [
            await http.post(url + where, json=INITIALIZE),
            await http.post(url + in_another_space, json=INITIALIZE),
            await http.post(url + where.replace("/space/b", ""), json=INITIALIZE),
            await http.post(url + where, json=INITIALIZE, headers={"Authorization": f"Bearer {two}"}),
            await http.post(url + where[:-32] + "0" * 32, json=INITIALIZE),
        ]
    assert [(answer.status_code, answer.text) for answer in told] == [
        (202, "Accepted"),
        *[(404, "Could not find session")] * 4,
    ]


async def test_two_clients_of_one_space_that_name_no_session_draw_on_canvases_of_their_own(
    door: Door, stack: AsyncExitStack
) -> None:
    made = await door.tokens((["a"], "write"), (["a"], "write"))
    call = {"tool_name": "bash", "result": "42 passed\n" * 200}
    clients = [await client_of(stack, f"{door.url}/mcp", token) for token in made]
    done = [answer_of(await client.call_tool("offload_tool_result", call)) for client in clients]
    assert done[0]["session"] != done[1]["session"]


# --- who needs one ----------------------------------------------------------------------------------


@pytest.mark.slow
async def test_on_this_machine_nobody_needs_a_token_until_there_is_one_and_for_ever_after(home: Path) -> None:
    settings = settings_of(home)
    async with served(settings) as (url, server), bearer(None) as http:
        assert (await http.post(f"{url}/mcp", json=INITIALIZE, headers=HEADERS)).status_code == 200
        memory = await server.memory.get()
        made, text = await memory.create_token("first")
        with anyio.fail_after(WAIT):  # it looks once a second
            while (await http.post(f"{url}/mcp", json=INITIALIZE, headers=HEADERS)).status_code == 200:
                pass
        authorized = {**HEADERS, "Authorization": f"Bearer {text}"}
        assert (await http.post(f"{url}/mcp", json=INITIALIZE, headers=authorized)).status_code == 200
        await memory.revoke_token(made.id)
        assert (await http.post(f"{url}/mcp", json=INITIALIZE, headers=authorized)).status_code == 401
        assert (await http.post(f"{url}/mcp", json=INITIALIZE, headers=HEADERS)).status_code == 401


@pytest.mark.slow
async def test_a_token_that_another_process_revokes_opens_nothing_from_then_on_and_its_streams_end(
    door: Door, stack: AsyncExitStack
) -> None:
    (token,) = await door.tokens((["a"], "read"))
    http = await stack.enter_async_context(bearer(token))
    opened = await http.post(f"{door.url}/mcp", json=INITIALIZE, headers=HEADERS)
    session = {"Accept": "text/event-stream", "Mcp-Session-Id": opened.headers["mcp-session-id"]}
    async with http.stream("GET", f"{door.url}/mcp", headers=session) as stream:
        assert stream.status_code == 200
        async with open_memory(door.settings) as another_process:
            await another_process.revoke_token(id_of(token))
        assert (await http.post(f"{door.url}/mcp", json=INITIALIZE, headers=HEADERS)).status_code == 401
        with anyio.fail_after(WAIT):
            assert [chunk async for chunk in stream.aiter_lines() if chunk.startswith("data")] == []


@pytest.mark.slow
async def test_a_listener_of_2026_is_told_nothing_once_its_token_is_revoked(door: Door, stack: AsyncExitStack) -> None:
    reader, writer = await door.tokens((["a"], "read"), (["a"], "write"))
    url, server = door.url, door.server
    listening = await client_of(stack, f"{url}/mcp", reader)
    writing = await client_of(stack, f"{url}/mcp", writer)
    with anyio.fail_after(WAIT):
        async with listening.listen(resource_subscriptions=["memory://persona"]) as updates:
            said = {"turns": [{"role": "user", "content": "I like rain."}]}
            answer_of(await writing.call_tool("record_turns", said))
            answer_of(await writing.call_tool("remember", {"text": "I like rain."}))
            await anext(updates)
            await (await server.memory.get()).revoke_token(id_of(reader))
            with pytest.raises(SubscriptionLost):
                await anext(updates)


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.7"])
async def test_beyond_this_machine_nothing_is_served_without_a_token(home: Path, host: str) -> None:
    settings = settings_of(home)
    async with served(settings, host=host) as (url, _), bearer(None) as http:
        answer = await http.post(f"{url}/mcp", json=INITIALIZE, headers={**HEADERS, "Host": host})
    assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, 'Bearer realm="mcp-memory"')


async def test_the_setting_token_is_the_owners_and_no_other_space_is_his(home: Path) -> None:
    settings = settings_of(home, token="s3cret", space="mine")
    async with served(settings) as (url, _), bearer("s3cret") as http, AsyncExitStack() as stack:
        client = await client_of(stack, f"{url}/mcp", "s3cret")
        assert {tool.name for tool in (await client.list_tools()).tools} == {tool.name for tool in TOOLS}
        assert str(home) in str(await client.read_resource("memory://status"))
        assert (await http.post(f"{url}/mcp?space=other", json=LIST, headers=HEADERS)).status_code == 403


@pytest.fixture(scope="module")
async def forge(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Memory, str]]:
    async with open_memory(settings_of(tmp_path_factory.mktemp("forge") / "home")) as memory:
        yield memory, (await memory.create_token("good"))[1]


@given(shown=st.binary(max_size=80) | st.from_regex(rb"mcm_[0-9a-f]{8}_[\w-]{43}", fullmatch=True))
async def test_no_forgery_is_a_token_and_none_is_an_error(forge: tuple[Memory, str], shown: bytes) -> None:
    memory, _ = forge
    assert await memory.token_shown(shown.decode("latin-1")) is None


async def test_a_token_is_right_to_the_last_character(forge: tuple[Memory, str]) -> None:
    memory, good = forge
    wrong = [good[:-1], good + "A", good[:-1] + ("A" if good[-1] != "A" else "B"), good.upper(), good.replace("_", "-")]
    assert [await memory.token_shown(text) for text in wrong] == [None] * len(wrong)
    token = await memory.token_shown(good)
    assert token is not None
    assert token.name == "good"


async def test_a_token_ends_when_it_was_said_to(home: Path) -> None:
    settings = settings_of(home)
    now = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
    async with open_memory(settings, now=lambda: now) as memory:
        _, text = await memory.create_token("short", expires=timedelta(hours=1))
        assert await memory.token_shown(text) is not None
        now += timedelta(hours=1)
        assert await memory.token_shown(text) is None


# --- how often and how much -------------------------------------------------------------------------


def test_as_many_are_held_at_once_as_there_may_be() -> None:
    held = ConcurrencyLimit(1)
    with held.slot("k") as first, held.slot("k") as second, held.slot("other") as third:
        assert (first, second, third) == (True, False, True)
    with held.slot("k") as again:
        assert again


async def test_a_client_that_asks_too_often_waits_and_others_do_not(home: Path) -> None:
    settings = settings_of(home, rate_limit=3)
    one, two = await tokens_of(settings, ("one", ["a"], "read"), ("two", ["a"], "read"))
    async with served(settings) as (url, _), bearer(one) as http, bearer(two) as other:
        answers = [await http.post(f"{url}/mcp", json=INITIALIZE, headers=HEADERS) for _ in range(4)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
        assert 1 <= int(answers[3].headers["Retry-After"]) <= 20
        assert (await other.post(f"{url}/mcp", json=INITIALIZE, headers=HEADERS)).status_code == 200


@pytest.mark.parametrize("era", ["auto", "legacy"])
async def test_a_client_is_told_in_words_why_the_door_stays_shut(home: Path, stack: AsyncExitStack, era: str) -> None:
    settings = settings_of(home, rate_limit=6)
    (token,) = await tokens_of(settings, ("one", ["a"], "read"))
    async with served(settings) as (url, _):
        client = await client_of(stack, f"{url}/mcp", token, era)
        with pytest.raises(MCPError, match=r"^Too many requests\. Try again in \d+ s\.$"):
            await ask_often(client, 6)
        await stack.aclose()


async def ask_often(client: Client, times: int) -> None:
    for _ in range(times):
        await client.call_tool("memory_search", {"query": "harbour"})


async def test_a_network_that_gives_itself_addresses_is_one_that_asks(home: Path) -> None:
    async with served(settings_of(home, token="s3cret")) as (url, _), bearer("wrong") as http:
        told = [
            await http.post(f"{url}/mcp", json=INITIALIZE, headers={**HEADERS, "X-Forwarded-For": address})
            for address in [*(f"2001:db8::{number:x}" for number in range(22)), "2001:db8:0:1::1", "192.0.2.7"]
        ]
    assert [one.status_code for one in told] == [401] * 20 + [429] * 2 + [401] * 2


async def test_another_machine_that_asks_too_often_waits_whatever_it_shows(home: Path) -> None:
    settings = settings_of(home, rate_limit=3, token="s3cret")
    async with served(settings) as (url, _), bearer(None) as http:  # a proxy on this machine says who it speaks for
        for address, expected in (("192.0.2.9", [401, 401, 401, 429]), ("192.0.2.10", [401])):
            told = [await http.post(f"{url}/mcp", headers={"X-Forwarded-For": address}) for _ in expected]
            assert [answer.status_code for answer in told] == expected


async def test_who_guesses_has_to_wait_and_whoever_has_a_token_comes_in_from_the_same_address(home: Path) -> None:
    settings = settings_of(home, token="s3cret")
    (later,) = await tokens_of(settings, ("later", ["a"], "read"))
    async with (
        served(settings) as (url, _),
        bearer("s3cret") as owner,
        bearer("wrong") as guesser,
        bearer(later) as new,
    ):
        assert (await owner.post(f"{url}/mcp", json=INITIALIZE, headers=HEADERS)).status_code == 200
        told = [(await guesser.post(f"{url}/mcp", json=INITIALIZE, headers=HEADERS)).status_code for _ in range(22)]
        assert told == [401] * 20 + [429] * 2
        assert (await owner.post(f"{url}/mcp", json=INITIALIZE, headers=HEADERS)).status_code == 200
        assert (await new.post(f"{url}/mcp", json=INITIALIZE, headers=HEADERS)).status_code == 200


async def test_a_token_is_let_in_while_strangers_ask_without_end_from_its_address(home: Path) -> None:
    settings = settings_of(home, rate_limit=3)
    (token,) = await tokens_of(settings, ("one", ["a"], "read"))
    there = {**HEADERS, "X-Forwarded-For": "192.0.2.9"}
    async with served(settings) as (url, _), bearer("wrong") as guesser, bearer(None) as bare, bearer(token) as http:
        told = [(await one.post(f"{url}/mcp", headers=there)).status_code for one in [guesser, bare] * 3]
        assert told == [401] * 3 + [429] * 3
        assert (await http.post(f"{url}/mcp", json=INITIALIZE, headers=there)).status_code == 200


async def test_a_head_that_is_too_large_is_refused(home: Path) -> None:
    async with served(settings_of(home)) as (url, _), bearer(None) as http:
        answer = await http.post(f"{url}/mcp", json=LIST, headers={**HEADERS, "X-Padding": "x" * 40_000})
        assert answer.status_code == 431
        try:
            assert (await http.post(f"{url}/mcp", json=LIST, headers={"X": "x" * 500_000})).status_code in (400, 431)
        except httpx2.HTTPError:
            pass  # it was cut off while it still sent


def answer_to(url: str, sent: bytes) -> bytes:
    """Send these bytes, no more, and return what comes before the server hangs up."""
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=WAIT) as one:
        one.sendall(sent)
        return b"".join(iter(lambda: one.recv(1_000), b""))


async def test_a_connection_that_sends_no_whole_head_is_closed(home: Path) -> None:
    async with served(settings_of(home), head_seconds=0.2) as (url, _):
        for head in (b"", b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1"):
            assert await anyio.to_thread.run_sync(answer_to, url, head) == b""


async def test_a_body_that_does_not_come_is_not_waited_for(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_middleware, "_BODY_SECONDS", 0.2)
    head = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n"
    async with served(settings_of(home)) as (url, _):
        assert (await anyio.to_thread.run_sync(answer_to, url, head + b"{")).startswith(b"HTTP/1.1 408 ")


@asynccontextmanager
async def answering(size: int, taking: float) -> AsyncGenerator[tuple[int, anyio.Event]]:
    """Yield the port of a server that answers so many bytes, and an event for when a client is gone before the end."""
    gone = anyio.Event()

    async def app(_scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": bytes(size), "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
        if (await receive())["type"] == "http.disconnect" and http.server_state.total_requests == 0:
            gone.set()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        http = uvicorn.Server(uvicorn.Config(app, http=make_protocol(taking=taking), log_config=None, lifespan="off"))
        http.capture_signals = nullcontext  # type: ignore[method-assign]
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(http.serve, [listener])
            yield listener.getsockname()[1], gone
            http.should_exit = True


async def test_who_takes_nothing_of_an_answer_is_not_waited_for() -> None:
    async with answering(32 * 2**20, 0.2) as (port, gone), await anyio.connect_tcp("127.0.0.1", port) as client:
        await client.send(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        with anyio.fail_after(WAIT):
            await gone.wait()


@pytest.mark.slow
async def test_who_takes_an_answer_slowly_gets_it_whole() -> None:
    async with answering(16 * 2**20, 1.0) as (port, gone):
        async with await anyio.connect_tcp("127.0.0.1", port) as client:
            await client.send(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            taken = 0
            with anyio.fail_after(WAIT):
                for _ in range(4):
                    await anyio.sleep(0.3)
                    for _ in range(64):
                        taken += len(await client.receive(2**16))
                with suppress(anyio.EndOfStream):
                    while True:
                        taken += len(await client.receive(2**16))
        assert taken > 16 * 2**20
        assert not gone.is_set()


async def test_a_request_whose_token_ends_before_it_has_come_is_told_so(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_middleware, "_TOKEN_CHECK_SECONDS", 0.05)
    monkeypatch.setattr(http_middleware, "_GRACE_SECONDS", 0.05)
    (token,) = await door.tokens((["a"], "read"))
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
        "Connection: close\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"
    )
    async with await anyio.connect_tcp("127.0.0.1", int(door.url.rsplit(":", 1)[1])) as client:
        await client.send(head.encode())
        memory = await door.server.memory.get()
        with anyio.fail_after(WAIT):
            while not any(one.used_at for one in await memory.tokens() if one.id == id_of(token)):  # noqa: ASYNC110 - let in
                await anyio.sleep(0.01)
            await memory.revoke_token(id_of(token))
            answer = b"".join([piece async for piece in client]).decode()
    assert answer.startswith("HTTP/1.1 401 ")
    assert 'www-authenticate: Bearer realm="mcp-memory"' in answer
    assert "The token of this request has ended." in answer


# --- names ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "allowed", "asked", "origin", "status"),
    [
        ("127.0.0.1", None, "127.0.0.1:1", None, 200),
        ("127.0.0.1", None, "evil.example", None, 421),
        ("127.0.0.1", None, "127.0.0.1:8.evil.example", None, 421),
        ("127.0.0.1", None, "localhost:8@evil.example", None, 421),
        ("127.0.0.1", None, "localhost:8", "http://localhost:8@evil.example", 421),
        ("127.0.0.1", None, "localhost:8", "null", 403),
        ("127.0.0.1", None, "[::1]:8", "http://[::1]:9", 200),
        ("0.0.0.0", None, "any.example", "vscode-webview://1f2e3d", 200),
        ("127.0.0.1", None, "localhost:8", "http://evil.example", 403),
        ("127.0.0.1", None, "localhost:8", "http://localhost:9", 200),
        ("127.0.0.1", "memory.example", "memory.example", "https://memory.example", 200),
        ("127.0.0.1", "memory.example", "evil.example", None, 421),
        ("0.0.0.0", None, "any.example", "https://any.example", 200),
        ("0.0.0.0", "memory.example:8443", "memory.example:8443", None, 200),
        ("0.0.0.0", "memory.example:8443", "memory.example:9", None, 421),
        ("0.0.0.0", "memory.example", "evil.example", None, 421),
        ("0.0.0.0", "memory.example", "memory.example", "https://evil.example", 403),
        ("192.0.2.7", None, "192.0.2.7:1", None, 200),
        ("192.0.2.7", None, "memory.example", None, 421),
        ("192.0.2.7", "memory.example", "memory.example:44", "https://memory.example:44", 200),
    ],
)
async def test_a_request_is_taken_under_the_names_of_the_server_alone(
    home: Path, host: str, allowed: str | None, asked: str, origin: str | None, status: int
) -> None:
    settings = settings_of(home, token="s3cret", allowed_hosts=allowed)
    app = http_app(MemoryServer(settings), settings, transport="sse", host=host)
    headers = {"Host": asked, **({"Origin": origin} if origin else {})}
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://x") as client:
        answer = await client.post("/messages/", json=LIST, headers={**headers, "Authorization": "Bearer s3cret"})
    assert answer.status_code == (400 if status == 200 else status)  # 400: no session is named


async def test_a_host_that_is_not_allowed_is_named_to_the_client_in_the_log_and_counted(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.handler.setFormatter(LogFormatter())
    settings = settings_of(home, token="s3cret", metrics_token="scrape")
    app = http_app(MemoryServer(settings), settings, transport="http", host="127.0.0.1")
    problem = "The host 'memory.corp:8443' is not allowed by MCP_MEMORY_ALLOWED_HOSTS of this server."
    counted = 'mcp_memory_http_rejected_total{status="421"}'
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://x") as client:
        answer = await client.post("/mcp", json=LIST, headers={"Host": "memory.corp:8443"})
        metrics = (await client.get("/metrics", headers={"Authorization": "Bearer scrape"})).text
    assert answer.json()["error"]["message"] == f"{problem} Who runs the server can add it."
    assert f"rejected: {problem}\n" in caplog.text
    assert counted in metrics


def test_a_name_that_is_no_name_is_refused() -> None:
    for strange in ("https://memory.example", "*.example", "a b"):
        with pytest.raises(InvalidInput, match="allowed_hosts"):
            transport_security("127.0.0.1", strange)


@pytest.mark.parametrize(
    ("host", "allowed", "expected"),
    [
        ("127.0.0.1", None, False),
        ("::1", None, False),
        ("localhost", " localhost:80, [::1]:80,", False),
        ("127.0.0.1", "memory.example", True),
        ("0.0.0.0", None, True),
        ("memory.example", None, True),
    ],
)
def test_a_server_behind_a_name_is_one_that_others_reach(host: str, allowed: str | None, expected: bool) -> None:
    assert is_reachable(host, allowed) == expected


# --- what the rest of the server asks ---------------------------------------------------------------


def test_a_request_that_came_past_the_door_is_refused() -> None:
    request = type("Request", (), {"scope": {}})()
    with pytest.raises(MCPError, match="bypassed authentication"):
        grant_of_request(request)
    assert grant_of_request(None) is OWNER


def test_names_and_sizes_of_the_home_are_the_owners_and_the_costs_of_models_an_admins() -> None:
    status: dict[str, Any] = {
        "home": "/x",
        "spaces": ["a", "b"],
        "counts": {},
        "model": {},
        "disk": {},
        "embedding": {},
        "tokens": [],
        "connected": [],
    }
    assert visible_status(status, OWNER) == status
    assert visible_status(status, Grant(right="admin")) == {"counts": {}, "model": {}}
    assert visible_status(status, Grant(right="read")) == {"counts": {}}


async def test_a_tool_that_others_add_needs_admin_unless_it_says_less(door: Door, stack: AsyncExitStack) -> None:
    made = await door.tokens((["a"], "read"), (["a"], "write"), (["a"], "admin"))
    url, server = door.url, door.server
    said: dict[str, Any] = {
        "looks": ToolAnnotations(read_only_hint=True),
        "adds": ToolAnnotations(destructive_hint=False),
        "says": None,
    }
    for name, hints in said.items():
        server.add_tool(lambda: "done", name=name, annotations=hints)
    for token, allowed in zip(made, ({"looks"}, {"looks", "adds"}, {"looks", "adds", "says"}), strict=True):
        client = await client_of(stack, f"{url}/mcp", token)
        assert {tool.name for tool in (await client.list_tools()).tools} & set(said) == allowed
        for name in said:
            assert (await client.call_tool(name, {})).is_error == (name not in allowed)
    for name in said:
        server.remove_tool(name)


def test_an_answer_in_two_writes_does_not_wait_for_its_client() -> None:
    with listen("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()) as one:
        with listener.accept()[0] as other:
            assert other.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert one.recv(1) == b""
