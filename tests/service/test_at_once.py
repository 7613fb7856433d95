"""Calls of one memory at the same time: each gives what it gives alone, and none waits for another for ever."""

from __future__ import annotations

import zipfile
from pathlib import Path

import anyio
import pytest

from mcp_memory.core.types import NewTurn
from mcp_memory.service.memory import Memory, open_memory

pytestmark = pytest.mark.anyio
SECONDS = 60


async def filled(memory: Memory) -> None:
    await memory.record_turns([NewTurn(role="user", content="The ferry leaves at nine.")], session="trip")
    for number in range(3):
        await memory.offload_tool_result("bash", f"line {number}\n" * 200, session="trip", task="Find the timetable")


async def test_more_exports_at_once_than_connections_all_end_and_have_the_same_bytes(
    home: Path, tmp_path: Path
) -> None:
    sums = list[str]()
    async with open_memory(home=home, embedder="none") as memory:
        await filled(memory)

        async def export(number: int) -> None:
            sums.append((await memory.export(tmp_path / f"{number}.zip")).sha256)

        with anyio.fail_after(SECONDS):
            async with anyio.create_task_group() as tasks:
                for number in range(12):
                    tasks.start_soon(export, number)
                for _ in range(12):
                    tasks.start_soon(memory.recall, "When does the ferry leave?")
    assert (len(sums), len(set(sums))) == (12, 1)
    with zipfile.ZipFile(tmp_path / "0.zip") as packed:
        assert len([name for name in packed.namelist() if "/refs/" in name]) == 3


async def test_searches_and_recalls_at_once_give_what_they_give_one_by_one(home: Path) -> None:
    async with open_memory(home=home, embedder="none") as memory:
        for number in range(20):
            space = memory.in_space(f"space{number % 5}")
            await space.record_turns([NewTurn(role="user", content=f"Ferry {number} leaves at nine.")], session="s")

        async def ask(number: int, answers: dict[int, object]) -> None:
            space = memory.in_space(f"space{number % 5}")
            hits = (await space.conversation_search(f"ferry {number}")).hits
            answers[number] = [hit.turn for hit in hits], (await space.recall(f"ferry {number}")).dynamic

        alone, together = dict[int, object](), dict[int, object]()
        for number in range(20):
            await ask(number, alone)
        with anyio.fail_after(SECONDS):
            async with anyio.create_task_group() as tasks:
                for number in range(20):
                    tasks.start_soon(ask, number, together)
    assert together == alone


async def test_turns_recorded_at_once_are_each_stored_once_and_logged_recalls_are_all_there(home: Path) -> None:
    async with open_memory(home=home, embedder="none") as memory:

        async def record(number: int) -> None:
            turn = NewTurn(role="user", content=f"Word {number // 2}.", client_id=f"c{number // 2}")
            await memory.record_turns([turn], session="s")

        with anyio.fail_after(SECONDS):
            async with anyio.create_task_group() as tasks:
                for number in range(40):
                    tasks.start_soon(record, number)
        stored = await memory.session_turns("s")
        assert sorted(turn.content for turn in stored) == sorted(f"Word {number}." for number in range(20))
        assert [turn.position for turn in stored] == list(range(20))
