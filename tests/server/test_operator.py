"""An operator administers spaces and tokens over HTTP by the commands, without the database; nobody else can."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from mcp_memory.core.config import Settings, load_settings
from mcp_memory.core.errors import InvalidInput, McpMemoryError, NoRoom, NotFound
from mcp_memory.core.rights import RIGHTS, Right
from mcp_memory.core.types import NewTurn
from mcp_memory.service.memory import Memory, open_memory
from mcp_memory.service.remote import verbs
from tests.server.answers import answer_of, error_of
from tests.server.served import bearer, served

pytestmark = pytest.mark.anyio


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[tuple[str, Memory]]:
    async with served(load_settings({}, home=tmp_path / "home", embedder="none")) as (url, server):
        yield url, await server.memory.get()


async def remote_settings(tmp_path: Path, server: tuple[str, Memory], right: Right) -> Settings:
    url, memory = server
    _, token = await memory.create_token(f"a {right}", spaces=["work"], right=right)
    return load_settings({}, home=tmp_path / "laptop", server=f"{url}/mcp", server_token=token)


async def test_an_operator_makes_limits_and_deletes_spaces_and_tokens(
    tmp_path: Path, server: tuple[str, Memory]
) -> None:
    _, memory = server
    async with open_memory(await remote_settings(tmp_path, server, "operator")) as operator:
        assert await operator.create_space("team")
        assert not await operator.create_space("team")
        await operator.set_quotas("team", {"turns": 2})
        await operator.set_space_retention("team", {"turns": 365})
        token, text = await operator.create_token("bot", spaces=["team"], right="write", expires=timedelta(days=90))
        assert text.startswith("mcm_")
        assert {made.name for made in await operator.tokens()} == {"a operator", "bot"}
        assert {made.hash for made in await operator.tokens()} == {b""}
        team = memory.in_space("team")
        await team.record_turns([NewTurn(role="user", content="one")], session="s")
        with pytest.raises(NoRoom):
            await team.record_turns([NewTurn(role="user", content=text) for text in ("two", "three")], session="s")
        (summary,) = [summary for summary in await operator.space_summaries() if summary.name == "team"]
        assert (summary.turns, summary.quotas[0].used, summary.retention[0].days) == (1, 1, 365)
        assert (await operator.delete_space("team")).revoked == ["bot"]
        assert await memory.valid_token(token.id) is None
        with pytest.raises(NotFound):
            await operator.space_summary("team")
        with pytest.raises(InvalidInput):
            await operator.create_space("../up")
        with pytest.raises(InvalidInput):
            await operator.set_quotas("work", {"turns": -1})
        await operator.revoke_token("a operator")


@pytest.mark.parametrize("right", RIGHTS[:3])
async def test_without_the_right_nothing_is_done_and_nothing_is_said_of_other_spaces(
    tmp_path: Path, server: tuple[str, Memory], right: Right
) -> None:
    _, memory = server
    await memory.create_space("their-secret-project")
    calls: dict[str, tuple[Any, ...]] = {
        "space_summaries": (),
        "space_summary": ("their-secret-project",),
        "create_space": ("new",),
        "delete_space": ("their-secret-project",),
        "set_quotas": ("work", {"turns": 1}),
        "set_space_retention": ("work", {"turns": 1}),
        "tokens": (),
        "create_token": ("me too",),
        "revoke_token": ("me too",),
    }
    assert set(calls) == {name for name, (_, needed) in verbs.VERBS.items() if needed == "operator"}
    async with open_memory(await remote_settings(tmp_path, server, right)) as client:
        for verb, arguments in calls.items():
            with pytest.raises(McpMemoryError, match="needs the right operator") as refused:
                await getattr(client, verb)(*arguments)
            assert "secret" not in str(refused.value)
    assert await memory.spaces() == ["their-secret-project"]
    assert [token.name for token in await memory.tokens()] == [f"a {right}"]


async def test_a_program_calls_the_same_verbs_over_mcp(server: tuple[str, Memory]) -> None:
    url, memory = server
    _, operator = await memory.create_token("ops", right="operator")
    _, writer = await memory.create_token("bot", right="admin")
    async with bearer(operator) as http, Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client:
        made = answer_of(await client.call_tool("verb.create_space", {"space": "team"}))
        assert made == {"result": True}
        listed = answer_of(await client.call_tool("verb.space_summaries", {}))
        assert [row["name"] for row in listed["result"]] == ["team"]
    async with bearer(writer) as http, Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client:
        assert "needs the right operator" in error_of(await client.call_tool("verb.space_summaries", {}))
