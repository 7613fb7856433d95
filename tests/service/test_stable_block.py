"""A session that names itself gets the block about the user once, and its further recalls have room for more."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from mcp_memory.core.types import NewTurn
from mcp_memory.service.memory import Memory, open_memory
from mcp_memory.testing import FixedClock

QUESTION = "When does the night boat sail?"


@pytest.fixture
async def memory(home: Path, clock: FixedClock) -> AsyncIterator[Memory]:
    async with open_memory(home=home, embedder="none", llm="none", now=clock) as opened:
        yield opened


async def about_the_user(memory: Memory) -> None:
    await memory.remember("Always answer in French", kind="instruction", typed=True)
    await memory.record_turns([NewTurn(role="user", content="The night boat sails at two")], session="said")


async def test_a_session_gets_the_stable_block_once(memory: Memory) -> None:
    await about_the_user(memory)
    first = await memory.recall_answer(QUESTION, session="s")
    again = await memory.recall_answer(QUESTION, session="s")
    assert "Always answer in French" in first.stable
    assert again.stable == ""
    assert "sails at two" in again.dynamic
    assert "Always answer in French" not in again.dynamic
    assert again.tokens < first.tokens
    assert (await memory.recall_answer(QUESTION, session="another")).stable == first.stable


async def test_what_is_about_the_question_comes_again_although_the_session_has_it(memory: Memory) -> None:
    await memory.remember("The dentist is Dr Kohl", typed=True)
    assert "Dr Kohl" in (await memory.recall_answer("Who is the dentist?", session="s")).stable
    assert "Dr Kohl" in (await memory.recall_answer("Who is the dentist?", session="s")).dynamic


async def test_after_an_hour_the_stable_block_comes_again(memory: Memory, clock: FixedClock) -> None:
    await about_the_user(memory)
    await memory.recall_answer(QUESTION, session="s")
    clock.moment += timedelta(hours=1)
    assert (await memory.recall_answer(QUESTION, session="s")).stable


async def test_a_changed_stable_block_comes_again(memory: Memory) -> None:
    await about_the_user(memory)
    await memory.recall_answer(QUESTION, session="s")
    await memory.remember("Never use exclamation marks", kind="instruction", typed=True)
    assert "exclamation marks" in (await memory.recall_answer(QUESTION, session="s")).stable
    assert (await memory.recall_answer(QUESTION, session="s")).stable == ""


async def test_the_start_of_a_session_counts(memory: Memory) -> None:
    await about_the_user(memory)
    start = await memory.recall_stable(session="s", budget_tokens=360)
    assert start.stable
    assert (await memory.recall_answer(QUESTION, session="s", budget_tokens=1_200)).stable == ""


async def test_a_recall_without_a_session_or_a_question_has_the_stable_block(memory: Memory) -> None:
    await about_the_user(memory)
    for _ in range(2):
        assert (await memory.recall_answer(QUESTION)).stable
        assert (await memory.recall_answer(session="s")).stable


async def test_a_program_that_builds_its_prompt_anew_always_gets_the_stable_block(memory: Memory) -> None:
    await about_the_user(memory)
    for _ in range(2):
        assert (await memory.recall(QUESTION, session="s")).stable
