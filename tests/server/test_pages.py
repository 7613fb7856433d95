"""The pages at `/ui` of a server: a reader shows a token, and sees what that token opens."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import httpx2
import pytest

from mcp_memory.core.config import load_settings
from mcp_memory.core.rights import Right
from mcp_memory.core.types import NewTurn
from mcp_memory.service.memory import Memory
from tests.server.answers import WAIT
from tests.server.served import served

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def team(home: Path) -> AsyncGenerator[tuple[str, Memory]]:
    """A server with two spaces, and its memory."""
    async with served(load_settings({}, home=home, embedder="none")) as (url, server):
        memory = await server.memory.get()
        await memory.remember("Tamsin lives in Bergen.", typed=True)
        await memory.in_space("work").remember("The office is on the quay.", typed=True)
        await memory.create_token("first", spaces=["default"])  # from now on the server asks for tokens
        yield url, memory


async def token(memory: Memory, right: Right, *spaces: str) -> str:
    return (await memory.create_token(f"{right} {spaces}", spaces=spaces, right=right))[1]


@asynccontextmanager
async def reader(url: str, shown: str) -> AsyncGenerator[tuple[httpx2.AsyncClient, httpx2.Response]]:
    """A browser that has shown a token, and the page that it came to."""
    async with httpx2.AsyncClient(base_url=url, follow_redirects=True, timeout=WAIT) as browser:
        own = {"Origin": url, "Sec-Fetch-Site": "same-origin"}
        yield browser, await browser.post("/ui/.enter", data={"key": shown}, headers=own)


async def test_a_token_opens_the_pages_of_its_spaces_with_its_right(home: Path) -> None:
    async with team(home) as (url, memory):
        async with reader(url, await token(memory, "read", "work")) as (browser, page):
            assert (page.status_code, page.url.path) == (200, "/ui/work/")
            (atom,) = await memory.in_space("work").atoms()
            item = (await browser.get(f"/ui/work/{atom.id}")).text
            assert "The office is on the quay." in item
            assert re.findall(r'<form [^>]*method="post" action="([^"]*)"', item) == ["/ui/work/do/leave"]
            elsewhere = [await browser.get(f"/ui/{space}/a1") for space in ("default", "nowhere")]
            assert {(answer.status_code, answer.text) for answer in elsewhere} == {(404, elsewhere[0].text)}
        async with reader(url, await token(memory, "write", "default", "work")) as (browser, page):
            assert page.url.path == "/ui/default/"
            switch = page.text.partition('<select name="space"')[2].partition("</select>")[0]
            assert re.findall(r"<option [^>]*>([^<]*)", switch) == ["default", "work"]
            form = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', page.text))
            own = {"Origin": url, "Sec-Fetch-Site": "same-origin"}
            for action, status in (("remember", 200), ("forget", 403), ("create_token", 403)):
                fields = {**form, "text": "Tamsin swims.", "ids": "a1", "name": "mine"}
                answer = await browser.post(f"/ui/default/do/{action}", data=fields, headers=own)
                assert answer.status_code == status
        assert {atom.text for atom in await memory.atoms()} == {"Tamsin lives in Bergen.", "Tamsin swims."}


async def test_the_owner_of_a_space_with_the_right_admin_is_not_the_owner_of_the_machine(home: Path) -> None:
    async with team(home) as (url, memory), reader(url, await token(memory, "admin", "work")) as (browser, _):
        page = (await browser.get("/ui/work/home")).text
        assert str(home) not in page
        assert "first" not in page


@pytest.mark.parametrize("right", ["read", "admin"])
async def test_no_page_of_a_space_or_probe_changes_with_the_size_of_another(home: Path, right: Right) -> None:
    async with team(home) as (url, memory), reader(url, await token(memory, right, "work")) as (browser, _):

        async def pages() -> list[str]:
            paths = [f"/ui/work/{name}" for name in ("", "home", "savings", "conversations", "tasks", "review", "live")]
            answers = [await browser.get(path) for path in (*paths, "/readyz", "/livez")]
            assert {answer.status_code for answer in answers} == {200}
            return [_VOLATILE.sub("", answer.text) for answer in answers]

        before = await pages()
        said = [NewTurn(role="user", content=f"Tamsin counts {number} gulls.") for number in range(50)]
        await memory.record_turns(said, session="harbour")
        await memory.offload_tool_result("run", "42 passed\n" * 500, session="harbour")
        assert await pages() == before


_VOLATILE = re.compile(r'value="[^"]*"|<time [^>]*>[^<]*</time>')


async def test_without_a_session_the_pages_ask_for_a_token_and_a_bearer_token_is_none(home: Path) -> None:
    async with team(home) as (url, memory), httpx2.AsyncClient(base_url=url, timeout=WAIT) as browser:
        bearer = {"Authorization": f"Bearer {await token(memory, 'admin', 'default')}"}
        for path, headers in (("/ui/default/a1", {}), ("/ui/default/a1", bearer)):
            answer = await browser.get(path, headers=headers)
            assert (answer.status_code, "Tamsin" in answer.text) == (401, False)
        assert (await browser.get("/ui")).headers["location"] == "/ui/"
        assert (await browser.get("/uix")).status_code == 401
        assert (await browser.get("/ui/", headers={"Host": "evil.example"})).status_code == 421


async def test_a_revoked_token_ends_its_sessions_and_their_streams(home: Path) -> None:
    async with team(home) as (url, memory), reader(url, await token(memory, "read", "work")) as (browser, _):
        with anyio.fail_after(WAIT):
            async with browser.stream("GET", "/ui/work/events") as events:
                lines = events.aiter_lines()
                assert await anext(lines) == "retry: 2000"
                await memory.revoke_token("read ('work',)")
                assert not [line async for line in lines if line]
        assert (await browser.get("/ui/work/a2")).status_code == 401


async def test_wrong_tokens_are_limited_with_those_of_all_other_requests(home: Path) -> None:
    async with team(home) as (url, _), httpx2.AsyncClient(base_url=url, timeout=WAIT) as browser:
        own = {"Origin": url, "Sec-Fetch-Site": "same-origin"}
        seen = [
            (await browser.post("/ui/.enter", data={"key": f"mcm_{n}"}, headers=own)).status_code for n in range(25)
        ]
        assert seen[0] == 403
        assert seen[-1] == 429
        wrong = {"Authorization": "Bearer mcm_wrong"}
        assert 429 in [(await browser.get("/mcp", headers=wrong)).status_code for _ in range(3)]


@pytest.mark.parametrize(
    "headers", [{}, {"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "same-origin"}, {"Origin": "null"}]
)
async def test_a_token_is_taken_from_pages_of_this_server_only(home: Path, headers: dict[str, str]) -> None:
    async with team(home) as (url, memory), httpx2.AsyncClient(base_url=url, timeout=WAIT) as browser:
        shown = await token(memory, "read", "work")
        answer = await browser.post("/ui/.enter", data={"key": shown}, headers=headers)
        assert answer.status_code == 403
        assert not browser.cookies


async def test_with_sse_there_are_no_pages(home: Path) -> None:
    async with (
        served(load_settings({}, home=home, embedder="none", token="secret"), "sse") as (url, _),
        httpx2.AsyncClient(base_url=url, timeout=WAIT) as browser,
    ):
        assert (await browser.get("/ui/")).status_code == 401
        assert (await browser.get("/ui/", headers={"Authorization": "Bearer secret"})).status_code == 404
