"""What asks to go on from an earlier conversation, and what recall brings then."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mcp_memory.core.types import NewTurn
from mcp_memory.longterm.recall.dynamic_block import asks_to_continue
from mcp_memory.service.memory import Memory, open_memory


@pytest.mark.parametrize(
    "question",
    [
        "Where were we?",
        "let's pick up where we left off",
        "morning! can you continue where we were yesterday? I only remember something about the nightly report",
        "What did we do last time?",
        "Can we resume our last conversation?",
        "Wo waren wir stehen geblieben?",
        "lass uns da weitermachen, wo wir gestern aufgehört haben",
        "Où en étions-nous ?",
        "¿Dónde lo dejamos?",
        "dove eravamo rimasti?",
        "onde ficamos?",
        "На чём мы остановились?",
        "我们上次说到哪里了？",
        "前回の続きをお願いします",
        "어디까지 했지?",
    ],
)
def test_a_question_asks_to_go_on(question: str) -> None:
    assert asks_to_continue(question)


@pytest.mark.parametrize(
    "question",
    [
        "Where were you born?",
        "go on",
        "Continue the list with ten more items",
        "The report has been failing since yesterday",
        "What did Anna eat yesterday?",
        "In our previous conversation you gave me a recipe for bread. How much salt was in it?",
        "Where did I put the keys?",
        "Wo waren wir? " * 40,
    ],
)
def test_a_question_is_about_something_else(question: str) -> None:
    assert not asks_to_continue(question)


@pytest.fixture
async def memory(home: Path) -> AsyncIterator[Memory]:
    async with open_memory(home=home, embedder="none") as opened:
        for session, day, said in (
            ("monday", 2, ["The roof of the hives leaks.", "Tar paper would do."]),
            ("tuesday", 3, ["Is the timetable of the ferry right?", "No: line 7 is wrong. Open: the winter table."]),
        ):
            roles = ("user", "assistant")
            at = datetime(2026, 11, day, 12, tzinfo=UTC)
            turns = [NewTurn(role=role, content=text, said_at=at) for role, text in zip(roles, said, strict=True)]
            await opened.record_turns(turns, session=session)
        yield opened


async def test_who_asks_to_go_on_gets_the_end_of_the_last_conversation_latest_first(memory: Memory) -> None:
    brought = (await memory.recall("Where were we?")).dynamic
    assert "session tuesday, ended so on 2026-11-03" in brought
    assert brought.index("Open: the winter table") < brought.index("timetable of the ferry")
    assert "hives" not in brought


async def test_the_last_conversation_is_not_the_one_that_goes_on(memory: Memory) -> None:
    brought = (await memory.recall("Where were we?", session="tuesday")).dynamic
    assert "session monday" in brought
    assert "winter table" not in brought


async def test_unasked_it_comes_with_the_first_prompt_alone(memory: Memory) -> None:
    first = await memory.recall_beyond("Where were we?", known="", session="wednesday")
    assert "session tuesday" in first.dynamic
    later = await memory.recall_beyond("Where were we?", known="", session="tuesday")
    assert later.dynamic == ""


async def test_on_an_empty_memory_there_is_nothing_to_go_on_from(home: Path) -> None:
    async with open_memory(home=home / "empty", embedder="none") as memory:
        assert (await memory.recall("Where were we?")).dynamic == ""
