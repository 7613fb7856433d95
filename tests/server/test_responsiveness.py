"""The server answers others while it reads a hostile text: analyses run in threads, and none holds the interpreter."""

from __future__ import annotations

import anyio
import pytest
from mcp import Client

from mcp_memory.server.mcp_server import MemoryServer
from tests.server.answers import answer_of

HOSTILE = ("<div><p>", "a\u0301\u0323", "&lt;", "\\u0061", "<system-reminder>", "a*")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:ping is removed")
@pytest.mark.timeout(300)
async def test_ping_is_answered_while_a_megabyte_of_hostile_turns_is_recorded(server: MemoryServer) -> None:
    turns = [{"role": "tool", "name": "shell", "content": unit * (170_000 // len(unit))} for unit in HOSTILE]
    turns.insert(0, {"role": "tool", "name": "shell", "content": HOSTILE[0] * 11_000})  # is judged at once
    finished: list[str] = []

    async def record(client: Client) -> None:
        answer = answer_of(await client.call_tool("record_turns", {"session": "hostile", "turns": turns}))
        assert len(answer["stored"]) == len(turns)
        finished.append("record")

    async with Client(server, mode="legacy") as client, anyio.create_task_group() as tasks:
        tasks.start_soon(record, client)
        for _ in range(3):
            await client.send_ping()  # pyright: ignore[reportDeprecated]
        finished.append("ping")
    assert finished == ["ping", "record"]
