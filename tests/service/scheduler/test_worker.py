"""The background of a server: it reads by itself what is due, never in the way of a call, and stops when it is told."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from bench.reader import Reader
from mcp_memory.core.errors import NoUsableReply
from mcp_memory.core.types import NewTurn
from mcp_memory.models.llm import Completion, ModelPrompt
from mcp_memory.service.memory import Memory, open_memory
from mcp_memory.service.scheduler_thread import SchedulerThread
from mcp_memory.store.sql import queues
from mcp_memory.store.values import DISTIL
from mcp_memory.testing import FixedClock

SAID = [NewTurn(role="user", content="I keep bees in Porto."), NewTurn(role="assistant", content="How many hives?")]


async def until(memory: Memory, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    with anyio.fail_after(20):
        while True:
            status = await memory.status()
            if wanted(status):
                return status
            await anyio.sleep(0.01)


async def test_a_turn_becomes_a_statement_without_being_asked_for(home: Path) -> None:
    async with open_memory(home=home, embedder="none", llm=Reader(), batch_turns=1) as memory:
        await memory.record_turns(SAID, session="s")
        status = await until(memory, lambda status: status["counts"]["current"] == 1)
        assert status["pyramid"]["answered_by"] == "reader/1"
        assert [atom.text for atom in await memory.atoms()] == ["I keep bees in Porto."]


async def test_with_the_setting_off_or_without_a_model_nothing_is_read_by_itself(home: Path) -> None:
    reader = Reader()
    async with open_memory(home=home, embedder="none", llm=reader, distil=False) as memory:
        await memory.record_turns(SAID, session="s")
        assert (await memory.status())["pyramid"]["answered_by"] is None
    async with open_memory(home=home, embedder="none") as memory:
        assert (await memory.status())["pyramid"]["waiting"]["turns"] == 2
    assert reader.asked == []


async def test_a_model_that_takes_its_time_is_in_nobodys_way(home: Path) -> None:
    asked, answer = threading.Event(), threading.Event()

    class Slow(Reader):
        def ask(self, prompt: ModelPrompt, *, timeout: float) -> Completion:
            asked.set()
            answer.wait(30)
            return super().ask(prompt, timeout=timeout)

    async with open_memory(home=home, embedder="none", llm=Slow(), batch_turns=1) as memory:
        await memory.record_turns(SAID, session="s")
        await anyio.to_thread.run_sync(asked.wait, 20)
        with anyio.fail_after(20):
            await memory.record_turns([NewTurn(role="user", content="I also play chess.")], session="s")
            assert (await memory.conversation_search("chess")).hits
            await memory.remember("Bees matter.", typed=True)
        answer.set()
        await until(memory, lambda status: status["counts"]["current"] >= 2)


async def test_a_pause_stops_the_background_and_its_end_lets_it_go_on(home: Path) -> None:
    clock, reader = FixedClock(), Reader()
    async with open_memory(home=home, embedder="none", llm=reader, now=clock, batch_turns=1) as memory:
        await memory.pause("enough for today")
        await memory.record_turns(SAID, session="s")
        status = await until(memory, lambda status: status["pyramid"]["paused"] is not None)
        assert status["pyramid"]["paused"]["reason"] == "enough for today"
        assert reader.asked == []
        await memory.resume()
        await until(memory, lambda status: status["counts"]["current"] == 1)


async def test_two_servers_on_one_home_read_each_turn_once(home: Path) -> None:
    readers = Reader(), Reader()
    async with (
        open_memory(home=home, embedder="none", llm=readers[0]) as one,
        open_memory(home=home, embedder="none", llm=readers[1]) as other,
    ):
        for number in range(6):
            memory = (one, other)[number % 2]
            await memory.record_turns(
                [NewTurn(role="user", content=f"I have seen {number} whales.")], session=f"s{number}"
            )
            await memory.flush(f"s{number}")
        await until(one, lambda status: status["pyramid"]["waiting"]["turns"] == 0)
        await one.consolidate()
        texts = sorted(atom.text for atom in await one.atoms())
    assert texts == [f"I have seen {number} whales." for number in range(6)]


async def test_a_space_that_nobody_has_open_is_read_too(home: Path) -> None:
    async with open_memory(home=home, embedder="none", llm=Reader(), distil=False) as memory:
        for space in ("left", "alone"):
            await memory.in_space(space).record_turns(SAID, session="s")
    async with open_memory(home=home, embedder="none", llm=Reader(), batch_turns=1) as memory:
        for space in ("left", "alone"):
            await until(memory.in_space(space), lambda status: status["counts"]["current"] == 1)


@pytest.mark.parametrize("fault", [RuntimeError("a bug"), NoUsableReply("no JSON")])
async def test_what_fails_at_one_space_keeps_no_other_from_being_read(home: Path, fault: Exception) -> None:
    class Choosy(Reader):
        def ask(self, prompt: ModelPrompt, *, timeout: float) -> Completion:
            if any("bees" in message.text for message in prompt.messages):
                raise fault
            return super().ask(prompt, timeout=timeout)

    async with open_memory(home=home, embedder="none", llm=Choosy(), batch_turns=1) as memory:
        await memory.in_space("broken").record_turns(SAID, session="s")
        await memory.record_turns([NewTurn(role="user", content="I play chess.")], session="s")
        await until(memory, lambda status: status["counts"]["current"] == 1)


async def test_nothing_is_claimed_while_models_are_paused(home: Path) -> None:
    async with open_memory(home=home, embedder="none", llm=Reader(), distil=False, batch_turns=2) as memory:
        parts = memory._parts  # pyright: ignore[reportPrivateUsage]
        assert parts.model is not None
        thread = SchedulerThread(parts.store, lambda _: parts.scheduler, parts.model, parts.settings)
        serve = thread._serve_next  # pyright: ignore[reportPrivateUsage]
        await memory.record_turns(SAID, session="s")
        await memory.waiting()  # turns are judged
        await anyio.to_thread.run_sync(parts.store.write_home, queues.open_queue, DISTIL)
        await memory.pause()
        assert await anyio.to_thread.run_sync(serve) is False
        await memory.resume()
        assert await anyio.to_thread.run_sync(serve) is True
        assert (await memory.status())["pyramid"]["waiting"]["turns"] == 0
