"""Tools take whatever they are called with: what broke them once, and a round of the calls that `bench.fuzz` draws."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from bench.fuzz import oracle
from bench.fuzz.protocol import hunted
from mcp_memory.core.config import load_settings
from mcp_memory.server.mcp_server import MemoryServer

CALLS: list[tuple[str, dict[str, Any]]] = [
    ("forget", {"query": "hi", "session": ""}),
    ("forget", {"query": "hi", "since": "yesterday", "until": "now"}),
    ("record_turns", {"turns": [{"role": "user", "content": "hi", "said_at": "0001-01-01T00:00:00"}]}),
    ("record_turns", {"turns": [{"role": "user", "content": "hi", "said_at": "9999-12-31T23:59:59"}]}),
    ("record_turns", {"turns": [{"role": "user", "content": "hi", "said_at": "9999-12-31T23:59:59-14:00"}]}),
    ("record_turns", {"turns": [{"role": "user", "content": "hi", "said_at": "0001-01-01T00:00:00+14:00"}]}),
    ("record_turns", {"turns": [{"role": "user", "content": "hi", "said_at": 1e18}]}),
    ("conversation_search", {"query": "hi", "since": "9999-12-31T23:59:59-14:00"}),
    ("memory_search", {"query": "hi", "as_of": "0001-01-01T00:00:00+14:00"}),
    ("remember", {"text": "I live in Bern", "kind": "persona", "valid_from": "9999-12-31T23:59:59-14:00"}),
    ("conversation_search", {"query": "hi", "session": "x" * 30_000}),
    ("conversation_search", {"query": "yesterday " * 4_000}),
    ("expand_node", {"node": "9" * 5_000}),
    ("expand_node", {"node": "001-N" + "9" * 30}),
    ("fold_canvas", {"task": "9" * 5_000}),
    ("forget", {"ids": ["t" + "9" * 30]}),
    ("remember", {"text": "The account is " + "9" * 5_000, "kind": "episodic"}),
]
ADDRESSES = ["memory://" + "a\n" * 20_000, "memory://session/" + "[" * 30_000, "memory://scene/%00", "memory://"]
LINES = [
    '{"jsonrpc": "2.0", "id": false, "method": 7}',
    '{"jsonrpc": "2.0", "id": 1e400, "method": "ping"}',
    '{"jsonrpc": "2.0", "id": %s, "method": "ping"}' % (10**400),
    '{"jsonrpc": "2.0", "id": "half \\ud83d", "method": "ping"}',
    '{"jsonrpc": "2.0", "id": {"a": [null]}, "method": "ping"}',
    '{"jsonrpc": "2.0", "id": 1, "method": "half \\ud83d"}',
    "[" * 30_000,
    "null",
]


@pytest.fixture(scope="module")
async def client(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Client]:
    home = tmp_path_factory.mktemp("fuzz") / "home"
    server = MemoryServer(load_settings({}, home=home, embedder="none"))
    async with server.hold_open(), Client(server) as client:
        yield client


@pytest.mark.parametrize(("tool", "arguments"), CALLS)
async def test_a_call_that_broke_a_tool_once_is_answered_or_refused_in_a_sentence(
    client: Client, tool: str, arguments: dict[str, Any]
) -> None:
    assert [*oracle.of_answer(tool, await client.call_tool(tool, arguments), None)] == []


@pytest.mark.parametrize("address", ADDRESSES, ids=range(len(ADDRESSES)))
async def test_no_address_is_an_internal_error(client: Client, address: str) -> None:
    with pytest.raises(MCPError) as told:
        await client.read_resource(address)
    assert [*oracle.of_error("resource", told.value)] == []


@pytest.mark.slow
def test_no_line_ends_a_server(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mcp_memory", "--home", str(tmp_path / "home"), "serve"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number, line in enumerate(LINES):
            ping = json.dumps({"jsonrpc": "2.0", "id": f"alive-{number}", "method": "ping"})
            process.stdin.write(f"{line}\n{ping}\n")
            process.stdin.flush()
            while json.loads(process.stdout.readline())["id"] != f"alive-{number}":
                pass
        process.stdin.close()
        assert process.wait(30) == 0


@pytest.mark.slow
async def test_a_round_of_calls_breaks_neither_servers_nor_home(home: Path) -> None:
    with anyio.fail_after(100):
        calls, found = await hunted(home, seconds=60, start=7, rounds=1, most=15, env={"MCP_MEMORY_EMBEDDER": "none"})
    assert calls >= 15
    assert found == []
