"""A goal that was copied from the user's words is forgotten with them; one that the agent wrote is offered."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from mcp_memory.core.errors import NotFound
from mcp_memory.core.types import FORGOTTEN, Forgotten, NewTurn
from mcp_memory.service.memory import Memory
from mcp_memory.shortterm.canvas.flowchart import goal_of
from mcp_memory.store.sql import tombstone_rows
from mcp_memory.store.sqlite.store import open_store
from mcp_memory.testing import FixedClock
from tests.service.forgetting.conftest import left_in

pytestmark = pytest.mark.files

SAID = "Write to my lover Evangelina about the hotel"
AGENTS = "Letter to lover Evangelina about hotel"
LONG = "Please " + "look at every single invoice of the hotel in Bergen, " * 5
RESULT = "a line of the first result\n" * 40


async def _worked(memory: Memory, said: str = SAID, *, task: str | None = None, results: int = 2) -> list[str]:
    """Record what the user said, and offload results; return the ids of the results."""
    await memory.record_turns([NewTurn(role="user", content=said)], session="s")
    done = [
        await memory.offload_tool_result("bash", f"{number} {RESULT}", session="s", task=task)
        for number in range(results)
    ]
    return [one.ref for one in done]


async def _goal(memory: Memory) -> tuple[str, str]:
    row = await memory.canvas(1)
    return goal_of(row.text) or "", row.label


async def _purged(memory: Memory, *done: Forgotten) -> None:
    report = await memory.purge([str(one.tombstone) for one in done])
    assert report.is_proven
    assert await memory.problems() == []


@pytest.mark.parametrize(
    ("said", "word"),
    [
        (SAID, "evangelina"),
        (LONG, "invoice"),
        ("Schreib \n\n meiner  Geliebten Evangelina", "evangelina"),
        ("My key is sk-ant-api03-" + "x" * 40 + ", ask Evangelina", "evangelina"),
        ("<document>\nPrices\n</document>\nAsk Evangelina about them", "evangelina"),
        ("给伊万杰琳写信谈谈酒店", "伊万杰琳"),
    ],
)
async def test_a_goal_copied_from_a_turn_is_purged_with_it(home: Path, memory: Memory, said: str, word: str) -> None:
    await _worked(memory, said)
    assert left_in(home, word) != []
    done = await memory.forget([turn.id for turn in await memory.session_turns("s")])
    assert await _goal(memory) == (FORGOTTEN, FORGOTTEN)
    assert done.along == ["The goal of the task 001 with it."]
    await _purged(memory, done)
    assert left_in(home, word) == []


async def test_the_goal_of_a_task_that_began_in_the_middle_of_a_session_is_purged(
    home: Path, memory: Memory, clock: FixedClock
) -> None:
    await _worked(memory, "Sort the photos of the garden")
    clock.advance(minutes=1)
    await _worked(memory, "Thanks. Next task: write to Evangelina about the hotel. Be brief.")
    assert (await memory.canvas(2)).label == "write-to-evangelina-about-the"
    await _purged(memory, await memory.forget(["t2"]))
    assert left_in(home, "evangelina") == []
    assert await _goal(memory) == ("Sort the photos of the garden", "sort-the-photos-of-the-garden")


async def test_undoing_restores_goal_and_file_while_nothing_else_forgets_them(home: Path, memory: Memory) -> None:
    refs = await _worked(memory)
    before, file = await _goal(memory), home / "spaces/default/mmds/001-write-to-my-lover-evangelina.mmd"
    for ids, restored_first in (["t1"], 0), (refs, 0), (["t1"], 1), (refs, 1):
        others = refs if ids == ["t1"] else ["t1"]
        done = [await memory.forget(ids), await memory.forget(others)]
        assert not file.exists()
        await memory.forget(undo=done[restored_first].tombstone)
        assert await _goal(memory) == (FORGOTTEN, FORGOTTEN)
        await memory.forget(undo=done[1 - restored_first].tombstone)
        assert await _goal(memory) == before
        assert file.exists()
    assert await memory.problems() == []


async def test_a_goal_that_the_agent_wrote_is_offered_and_goes_when_it_is_named(home: Path, memory: Memory) -> None:
    await _worked(memory, task=AGENTS)
    shown = await memory.forget(["t1"], dry_run=True)
    assert (shown.also, shown.also_previews) == (["001"], ["001: task letter-to-lover-evangelina"])
    turn = await memory.forget(["t1"])
    assert (await _goal(memory))[0] == AGENTS
    goal = await memory.forget(turn.also)
    assert (goal.ids, await _goal(memory)) == (["001"], (FORGOTTEN, FORGOTTEN))
    with pytest.raises(NotFound, match="001"):
        await memory.forget(["001"])
    await memory.forget(undo=goal.tombstone)
    assert (await _goal(memory))[0] == AGENTS
    await _purged(memory, turn, await memory.forget(["001"]))
    assert left_in(home, "evangelina") == []


async def test_a_purge_takes_the_goal_of_a_turn_that_was_forgotten_alone(
    home: Path, memory: Memory, clock: FixedClock
) -> None:
    """As by a version that left the goal."""
    await _worked(memory)

    def forget_alone() -> None:
        store = open_store(home)
        store.write("default", tombstone_rows.forget, ["t1"], reason="", now=clock())
        store.close()

    await anyio.to_thread.run_sync(forget_alone)
    (tombstone,) = await memory.purgeable()
    await memory.purge([tombstone.id])
    assert left_in(home, "evangelina") == []


async def test_another_task_keeps_its_goal(memory: Memory) -> None:
    await _worked(memory, task="Book a hotel")
    done = await memory.forget(["t1"])
    assert (done.also, done.along) == ([], [])
    assert await _goal(memory) == ("Book a hotel", "book-a-hotel")
