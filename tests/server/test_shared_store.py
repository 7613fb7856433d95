"""Servers that share a memory in PostgreSQL: started as people start them, with `--store`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from mcp import Client, StdioServerParameters

from tests.server.answers import WAIT, answer_of, text_of

pytestmark = [pytest.mark.postgres, pytest.mark.anyio]


def environment(home: Path) -> dict[str, str]:
    return {**os.environ, "MCP_MEMORY_HOME": str(home), "MCP_MEMORY_EMBEDDER": "none"}


def server(url: str, home: Path) -> StdioServerParameters:
    arguments = ["-m", "mcp_memory", "--store", url, "serve"]
    return StdioServerParameters(command=sys.executable, args=arguments, env=environment(home))


def command(*arguments: str, url: str, home: Path) -> subprocess.CompletedProcess[str]:
    given = [sys.executable, "-m", "mcp_memory", "--store", url, *arguments]
    return subprocess.run(given, env=environment(home), capture_output=True, text=True, check=False)


async def test_what_one_server_stored_another_finds_opens_and_forgets(url: str, tmp_path: Path) -> None:
    log = "\n".join(f"line {n} of the build" for n in range(2_000)) + "\nERROR: the kestrel tests failed"
    with anyio.fail_after(WAIT):
        async with Client(server(url, tmp_path / "a")) as one, Client(server(url, tmp_path / "b")) as other:
            said = [{"role": "user", "content": "The ferry to Elba leaves at nine."}]
            answer_of(await one.call_tool("record_turns", {"turns": said, "session": "trip"}))
            kept = answer_of(
                await one.call_tool("offload_tool_result", {"tool_name": "make", "result": log, "session": "trip"})
            )
            found = answer_of(await other.call_tool("conversation_search", {"query": "ferry"}))
            assert [turn["id"] for passage in found["passages"] for turn in passage["turns"]] == ["t1"]
            opened = text_of(await other.call_tool("expand_node", {"node": kept["ref"], "grep": "kestrel"}))
            assert "the kestrel tests failed" in opened
            answer_of(await other.call_tool("forget", {"ids": ["t1"], "dry_run": False}))
            found = answer_of(await one.call_tool("conversation_search", {"query": "ferry"}))
            assert found["passages"] == []
    assert not list(tmp_path.rglob("memory.db"))


def test_commands_read_the_shared_memory_and_those_on_files_say_that_it_has_none(url: str, tmp_path: Path) -> None:
    stored = command("status", url=url, home=tmp_path / "home")
    assert stored.returncode == 0, stored.stderr
    assert {"backups", "on"} & {line.split()[0] for line in stored.stdout.splitlines()} == set()
    examined = command("doctor", url=url, home=tmp_path / "home")
    assert examined.returncode == 0, examined.stdout + examined.stderr
    refused = command("backup", url=url, home=tmp_path / "home")
    assert refused.returncode == 1
    assert "this memory is in PostgreSQL" in refused.stderr
    assert "pg_dump" in refused.stderr


def test_a_database_that_cannot_be_reached_is_named_without_its_password(tmp_path: Path) -> None:
    url = "postgresql://memory:open-sesame@127.0.0.1:1/memory"
    failed = command("status", url=url, home=tmp_path / "home")
    assert failed.returncode == 1
    assert "127.0.0.1:1/memory" in failed.stderr
    assert "open-sesame" not in failed.stderr + failed.stdout
