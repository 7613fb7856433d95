"""The connected agent as the model: it asks for a question, answers it, and is told what of its answer was kept."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import anyio
import pytest

from bench import reader
from mcp_memory.core.errors import InvalidInput, NotFound, Refused
from mcp_memory.core.types import Distilled, NewTurn
from mcp_memory.service.memory import Memory, open_memory
from mcp_memory.testing import FixedClock, HashEmbedder
from tests.leases import pass_time

ANSWERS = {"extract": reader.extract, "merge": reader.merge, "scenes": reader.scenes, "persona": reader.persona}


@pytest.fixture
async def memory(home: Path, clock: FixedClock) -> AsyncIterator[Memory]:
    async with open_memory(home=home, now=clock, embedder=HashEmbedder()) as opened:
        yield opened


async def tell(memory: Memory, *said: str) -> None:
    await memory.record_turns([NewTurn(role="user", content=text) for text in said], session="s")


def answer(asked: Distilled) -> str:
    assert asked.next is not None
    return json.dumps(ANSWERS[asked.next.stage](asked.next.question))


async def distil_all(memory: Memory) -> list[str]:
    """Answer until there is no question, and return the stages that asked."""
    stages: list[str] = []
    asked = await memory.distill()
    while asked.next is not None:
        stages.append(asked.next.stage)
        asked = await memory.distill(asked.next.work_id, answer(asked))
        assert asked.refused == []
    return stages


async def test_an_agent_answers_its_way_from_turns_to_the_persona(memory: Memory) -> None:
    await tell(memory, "I keep bees in Porto.", "I play the cello on Sundays.")
    assert await distil_all(memory) == ["extract", "scenes", "persona"]
    assert [atom.text for atom in await memory.atoms()] == ["I keep bees in Porto.", "I play the cello on Sundays."]
    (scene,) = await memory.scenes()
    assert scene.slug in (await memory.read_persona()).text
    walked = await memory.verify()
    assert (walked.personas, walked.scenes, walked.atoms, walked.problems) == (1, 1, 2, [])
    assert (await memory.distill()).next is None


async def test_a_question_carries_its_rules_its_data_and_the_schema_of_its_reply(memory: Memory) -> None:
    await tell(memory, "I keep bees in Porto.")
    asked = await memory.distill()
    assert asked.next is not None
    assert (asked.next.stage, asked.waiting) == ("extract", 1)
    assert "I keep bees in Porto." in asked.next.question
    assert "quote" in asked.next.instructions
    assert "notes" in asked.next.reply_schema["properties"]


async def test_asking_again_gives_the_same_question(memory: Memory) -> None:
    await tell(memory, "I keep bees in Porto.")
    assert await memory.distill() == await memory.distill()


async def test_a_reply_that_cannot_be_used_comes_back_once_with_the_reason_and_then_the_question_is_put_aside(
    memory: Memory,
) -> None:
    await tell(memory, "I keep bees in Porto.")
    first = await memory.distill()
    assert first.next is not None
    again = await memory.distill(first.next.work_id, "I would rather not.")
    assert again.next == first.next
    assert again.kept == []
    assert "JSON" in again.refused[0]
    again = await memory.distill(first.next.work_id, "never")
    assert (again.next, again.waiting) == (None, 1)
    (work,) = (await memory.status())["pyramid"]["works"]
    assert (work["state"], work["attempts"]) == ("parked", 1)


async def test_what_nobody_said_is_named_and_not_kept(memory: Memory) -> None:
    await tell(memory, "I keep bees in Porto.")
    first = await memory.distill()
    assert first.next is not None
    notes = json.loads(answer(first))
    notes["notes"].append({"turn": "t1", "quote": "my yacht", "text": "The user has a yacht."})
    done = await memory.distill(first.next.work_id, json.dumps(notes))
    assert len(done.kept) == 1
    assert "yacht" in done.refused[0]


async def test_a_late_answer_is_told_that_it_is_late_and_changes_nothing(memory: Memory) -> None:
    await tell(memory, "I keep bees in Porto.")
    first = await memory.distill()
    assert first.next is not None
    await memory.distill(first.next.work_id, answer(first))
    late = await memory.distill(first.next.work_id, answer(first))
    assert late.note is not None
    assert "answered already" in late.note
    assert len(await memory.atoms()) == 1


async def test_an_answer_to_a_question_that_never_was_is_refused(memory: Memory) -> None:
    with pytest.raises(NotFound, match="w99"):
        await memory.distill("w99", "{}")
    with pytest.raises(InvalidInput, match="together"):
        await memory.distill("w1")


async def test_chatter_is_skipped_without_a_question(memory: Memory) -> None:
    await tell(memory, "hello!", "good morning", "thanks a lot!")
    assert (await memory.distill()).next is None
    status = (await memory.status())["pyramid"]
    assert status["waiting"]["turns"] == 0
    assert status["done"]["extract"] == {**status["done"]["extract"], "turns": 3, "skipped": 3, "atoms": 0}


async def test_two_agents_on_one_home_never_get_the_same_question(
    home: Path, clock: FixedClock, memory: Memory
) -> None:
    await tell(memory, "I keep bees in Porto.")
    async with open_memory(home=home, now=clock, embedder=HashEmbedder()) as other:
        mine, theirs = await memory.distill(), await other.distill()
        assert (mine.next is not None, theirs.next) == (True, None)
        store = other._parts.store  # pyright: ignore[reportPrivateUsage]
        await anyio.to_thread.run_sync(pass_time, store, timedelta(minutes=21))  # the first has gone away
        theirs = await other.distill()
        assert theirs.next is not None


async def test_without_a_model_nobody_can_be_told_to_do_it_by_itself(memory: Memory) -> None:
    with pytest.raises(Refused, match="MCP_MEMORY_LLM"):
        await memory.consolidate()


async def test_forgetting_takes_what_was_made_of_it_out_of_everything(memory: Memory) -> None:
    await tell(memory, "I keep bees in Porto.", "I play the cello on Sundays.")
    await distil_all(memory)
    (bees,) = [atom.id for atom in await memory.atoms() if "bees" in atom.text]
    done = await memory.forget([bees, "t1"])
    (scene,) = await memory.scenes()
    assert "bees" not in scene.body
    assert "bees" not in await memory.scene_page(scene.slug)
    assert "bees" not in (await memory.read_persona()).text
    assert "bees" not in (await memory.recall("bees", budget_tokens=2_000)).dynamic
    await memory.forget(undo=done.tombstone)
    assert "bees" in (await memory.scene(scene.slug)).body


async def test_a_scene_goes_back_to_an_earlier_version_and_its_history_says_so(memory: Memory) -> None:
    await tell(memory, "I keep bees in Porto.", "I play the cello on Sundays.")
    await distil_all(memory)
    (scene,) = await memory.scenes()
    await memory.restore_scene(scene.slug, 1)
    assert [(one.version, one.action) for one in await memory.scene_history(scene.slug)] == [
        (2, "restore"),
        (1, "create"),
    ]
    with pytest.raises(NotFound, match=scene.slug):
        await memory.scene("nothing-of-the-kind")


async def test_the_persona_is_written_from_scratch_when_that_is_asked_for(memory: Memory) -> None:
    await tell(memory, "I keep bees in Porto.", "I play the cello on Sundays.")
    await distil_all(memory)
    await memory.rebuild_persona()
    asked = await memory.distill()
    assert asked.next is not None
    assert asked.next.stage == "persona"
    await memory.distill(asked.next.work_id, answer(asked))
    assert (await memory.persona_history())[0].version >= 2
    assert isinstance(await memory.persona_diff(), str)
