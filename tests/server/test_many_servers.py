"""Two servers on one memory behind a load balancer: clients of both generations notice only one."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ResourceUpdated

from mcp_memory.core.config import Settings
from mcp_memory.server.mcp_server import MemoryServer
from tests.server.answers import INITIALIZE, WAIT, answer_of
from tests.server.balancer import Balancer, balanced
from tests.server.served import served

TOKEN = "a-secret-of-the-team"
CALL = {"tool_name": "bash", "result": "42 passed\n" * 200}
LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
ACCEPT = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def settings(request: pytest.FixtureRequest, home: Path) -> Settings:
    store = request.getfixturevalue("url") if request.param == "postgres" else None
    return Settings(home=home, store=store, embedder="none", token=TOKEN)


@pytest.fixture
async def servers(settings: Settings) -> AsyncIterator[list[tuple[str, MemoryServer]]]:
    async with served(settings) as one, served(settings) as other:
        yield [one, other]


@pytest.fixture
async def balancer(servers: list[tuple[str, MemoryServer]]) -> AsyncIterator[Balancer]:
    async with balanced(*(url for url, _ in servers)) as made:
        yield made


def http() -> httpx2.AsyncClient:
    """A connection for each request, so that the balancer sees them all."""
    return httpx2.AsyncClient(
        headers={"Authorization": f"Bearer {TOKEN}"}, timeout=WAIT, limits=httpx2.Limits(max_keepalive_connections=0)
    )


@asynccontextmanager
async def connected(url: str, mode: Any) -> AsyncGenerator[Client]:
    async with AsyncExitStack() as stack:
        through = await stack.enter_async_context(http())
        yield await stack.enter_async_context(Client(streamable_http_client(url, http_client=through), mode=mode))


@pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])
async def test_a_client_writes_and_reads_through_a_balancer(balancer: Balancer, mode: Any) -> None:
    sessions = set[str]()
    for number in range(2):  # of the older generation, each is a session on a server of its own
        async with connected(balancer.url, mode) as client:
            for step in range(3):
                answer_of(
                    await client.call_tool(
                        "record_turns", {"turns": [{"role": "user", "content": f"Boat {number} leaves at {step}."}]}
                    )
                )
            found = answer_of(await client.call_tool("offload_tool_result", {**CALL, "result": f"{number}\n" * 900}))
            sessions.add(found["session"])
            page = await client.read_resource(f"memory://session/{found['session']}")
            assert all(f"Boat {number} leaves at {step}." in str(page) for step in range(3))
    assert len(sessions) == 1
    assert sorted(balancer.served) == sorted(balancer.ports)


async def test_what_one_server_writes_is_told_to_a_listener_at_the_other(
    servers: list[tuple[str, MemoryServer]],
) -> None:
    (one, _), (other, _) = servers
    async with (
        connected(f"{one}/mcp", "2026-07-28") as writer,
        connected(f"{other}/mcp", "2026-07-28") as reader,
        reader.listen(resource_subscriptions=["memory://session/s"]) as updates,
    ):
        turns = [{"role": "user", "content": "The boat leaves."}]
        answer_of(await writer.call_tool("record_turns", {"turns": turns, "session": "s"}))
        with anyio.fail_after(WAIT):
            assert await anext(updates) == ResourceUpdated(uri="memory://session/s")


async def test_a_session_of_another_server_is_not_found_and_one_begun_anew_goes_on(
    servers: list[tuple[str, MemoryServer]],
) -> None:
    (one, _), (other, _) = servers
    async with http() as client:
        opened = await client.post(f"{one}/mcp", json=INITIALIZE, headers=ACCEPT)
        session = {**ACCEPT, "Mcp-Session-Id": opened.headers["mcp-session-id"]}
        assert (await client.post(f"{one}/mcp", json=LIST, headers=session)).status_code == 200
        assert (await client.post(f"{other}/mcp", json=LIST, headers=session)).status_code == 404
        again = await client.post(f"{other}/mcp", json=INITIALIZE, headers=ACCEPT)
        session = {**ACCEPT, "Mcp-Session-Id": again.headers["mcp-session-id"]}
        assert (await client.post(f"{other}/mcp", json=LIST, headers=session)).status_code == 200


async def test_the_session_of_a_client_that_names_none_is_of_its_token_and_the_day(
    servers: list[tuple[str, MemoryServer]],
) -> None:
    memory = await servers[0][1].memory.get()
    today, tomorrow = (datetime.now(UTC) + timedelta(days=days) for days in (0, 1))
    session = memory.of_client("token 12").session
    assert session.startswith((f"{today:%Y-%m-%d}-", f"{tomorrow:%Y-%m-%d}-"))
    other = await servers[1][1].memory.get()
    assert other.of_client("token 12").session == session
    assert memory.of_client("token 13").session != session


async def test_what_an_answer_names_can_be_opened_where_the_client_is(
    servers: list[tuple[str, MemoryServer]], settings: Settings
) -> None:
    (one, server), (other, _) = servers
    has_files = (await server.memory.get())._parts.store.has_files  # pyright: ignore[reportPrivateUsage]
    async with connected(f"{one}/mcp", "2026-07-28") as client, connected(f"{other}/mcp", "2026-07-28") as reader:
        result = answer_of(await client.call_tool("offload_tool_result", {**CALL, "task": "Fix the build"}))
        canvas = answer_of(await client.call_tool("fold_canvas", {"task": result["task"]}))
        for address, words in ((result["path"], "42 passed"), (canvas["mmd_file_path"], "flowchart")):
            if has_files:
                file = anyio.Path(settings.home / "spaces" / settings.space / address)
                assert words in await file.read_text()
            else:
                assert words in str(await reader.read_resource(address))
        opened = answer_of(await reader.call_tool("expand_node", {"ref": result["path"], "lines": "1"}))
        assert "42 passed" in opened["text"]
        again = answer_of(await reader.call_tool("fold_canvas", {"task": canvas["mmd_file_path"]}))
        assert again["canvas"] == canvas["canvas"]


async def test_a_client_has_one_rate_on_all_servers(settings: Settings) -> None:
    limited = settings.model_copy(update={"rate_limit": 6})
    async with served(limited) as (one, _), served(limited) as (other, _), http() as client:
        told = [
            (await client.post(f"{url}/mcp", json=INITIALIZE, headers=ACCEPT)).status_code for url in [one, other] * 4
        ]
    assert told == [200] * 6 + [429] * 2


async def test_a_reader_of_the_pages_is_signed_in_at_every_server_and_out_with_the_token(
    balancer: Balancer, servers: list[tuple[str, MemoryServer]]
) -> None:
    memory = await servers[0][1].memory.get()
    token, shown = await memory.create_token("reader", right="write")
    url = balancer.url.removesuffix("/mcp")
    own = {"Origin": url, "Sec-Fetch-Site": "same-origin"}
    unkept = httpx2.Limits(max_keepalive_connections=0)
    async with httpx2.AsyncClient(base_url=url, timeout=WAIT, limits=unkept, follow_redirects=True) as browser:
        pages = [await browser.post("/ui/.enter", data={"key": shown}, headers=own)]
        pages += [await browser.get("/ui/default/review") for _ in range(9)]
        assert {page.status_code for page in pages} == {200}
        assert sorted(balancer.served) == sorted(balancer.ports)
        form = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', pages[-1].text))
        for text in ("Tamsin swims.", "Tamsin rows."):  # one at each server
            done = await browser.post("/ui/default/do/remember", data={**form, "text": text}, headers=own)
            assert done.status_code == 200
        await memory.revoke_token(token.id)
        assert {(await browser.get("/ui/default/review")).status_code for _ in range(4)} == {401}


async def test_a_session_by_the_token_of_the_settings_ends_when_that_changes(settings: Settings) -> None:
    changed = settings.model_copy(update={"token": "another"})
    async with (
        served(settings) as (one, _),
        served(changed) as (other, _),
        httpx2.AsyncClient(timeout=WAIT) as browser,
    ):
        own = {"Origin": one, "Sec-Fetch-Site": "same-origin"}
        await browser.post(f"{one}/ui/.enter", data={"key": TOKEN}, headers=own)
        assert [(await browser.get(f"{url}/ui/default/review")).status_code for url in (one, other)] == [200, 401]


# --- probes -----------------------------------------------------------------------------------------


async def test_probes_answer_without_a_token_and_say_nothing(servers: list[tuple[str, MemoryServer]]) -> None:
    async with httpx2.AsyncClient(timeout=WAIT) as stranger:
        for path in ("/livez", "/readyz"):
            answer = await stranger.get(f"{servers[0][0]}{path}", headers={"Host": "10.0.0.7:8765"})
            assert (answer.status_code, answer.content) == (200, b"")
            assert (await stranger.head(f"{servers[0][0]}{path}")).status_code == 200
            assert (await stranger.post(f"{servers[0][0]}{path}")).status_code == 401


async def until(ask: Callable[[], Awaitable[httpx2.Response]], status: int) -> None:
    with anyio.fail_after(WAIT):
        while (await ask()).status_code != status:  # noqa: ASYNC110 - a server has no event for it
            await anyio.sleep(0.05)


@pytest.mark.postgres
async def test_a_server_whose_database_is_gone_lives_and_is_not_ready(
    postgres: Any, url: str, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    from tests.postgres.proxy import proxied

    with proxied(postgres.port) as proxy:
        settings = Settings(home=home, store=proxy.url(url), embedder="none", token=TOKEN)
        async with served(settings) as (address, _), httpx2.AsyncClient(timeout=WAIT) as probe:
            assert (await probe.get(f"{address}/readyz")).status_code == 200
            proxy.refuse()
            proxy.cut()
            await until(lambda: probe.get(f"{address}/readyz"), 503)
            reason = (await probe.get(f"{address}/readyz")).text
            assert reason.startswith("The database cannot be used (")
            for asked in (reason, (await probe.get(f"{address}/mcp", headers={"Authorization": "Bearer other"})).text):
                assert "127.0.0.1" not in asked
                assert "memory@" not in asked
            assert (await probe.get(f"{address}/livez")).status_code == 200
            assert "Check that the server runs" in caplog.text
            proxy.accept()
            await until(lambda: probe.get(f"{address}/readyz"), 200)
