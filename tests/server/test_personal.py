"""A server of a project with a personal memory: its tools use both, clients with a token only what their token opens."""

from __future__ import annotations

from pathlib import Path

from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from mcp_memory.core.config import Settings, load_settings
from mcp_memory.server.mcp_server import MemoryServer
from mcp_memory.service.memory import open_memory
from tests.server.answers import answer_of, error_of
from tests.server.served import bearer, served

QUESTION = "What does the user drink?"


def settings_of(home: Path) -> Settings:
    return load_settings({}, home=home, embedder="none", space="web", personal_space="default")


async def test_the_tools_use_both_memories(home: Path) -> None:
    server = MemoryServer(settings_of(home))
    async with server.hold_open(), Client(server) as client:
        turn = {"role": "user", "content": "I drink tea, never coffee."}
        answer_of(await client.call_tool("record_turns", {"turns": [turn]}))
        made = answer_of(await client.call_tool("remember", {"text": "The user drinks tea, never coffee."}))
        assert made["atom"]["id"] == "personal:a1"
        assert "tea" in str(answer_of(await client.call_tool("recall", {"query": QUESTION})))
        opened = answer_of(await client.call_tool("expand_node", {"ref": "personal:a1"}))
        assert "I drink tea" in opened["text"]
        done = answer_of(await client.call_tool("forget", {"ids": ["personal:a1"]}))
        assert (done["ids"], done["tombstone"]) == (["personal:a1"], "personal:x1")
        assert "two memories" in error_of(await client.call_tool("forget", {"ids": ["t1", "personal:a1"]}))


async def test_a_token_for_the_project_does_not_open_the_personal_memory(home: Path) -> None:
    settings = settings_of(home)
    async with open_memory(settings) as memory:
        assert memory.personal is not None
        await memory.personal.remember("The user drinks tea, never coffee.", typed=True)
        _, token = await memory.create_token("guest", spaces=["web"], right="admin")
    async with (
        served(settings) as (url, _),
        bearer(token) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client,
    ):
        recalled = answer_of(await client.call_tool("recall", {"query": QUESTION}))
        assert "tea" not in str(recalled)
        made = answer_of(await client.call_tool("remember", {"text": "The user drinks whisky.", "source": "assistant"}))
        assert made["atom"]["id"] == "a1"
        assert "personal:a1" in error_of(await client.call_tool("forget", {"ids": ["personal:a1"]}))
        assert "no" in error_of(await client.call_tool("expand_node", {"ref": "personal:a1"})).lower()
