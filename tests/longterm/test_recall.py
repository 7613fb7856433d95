"""Recall: two blocks within an exact budget, and nothing where nothing is relevant."""

from __future__ import annotations

import pytest

from mcp_memory.errors import InvalidInput
from mcp_memory.memory import Memory
from mcp_memory.tokens import token_counter
from mcp_memory.types import Bundle, NewTurn

COUNT = token_counter("o200k_base").count


async def fill(memory: Memory) -> None:
    await memory.remember("Is called Maya", entity="user", relation="name", value="Maya")
    await memory.remember("Answer briefly", kind="instruction")
    await memory.remember("Plays the cello in a quartet")
    await memory.record_turns(
        [
            NewTurn(role="user", content="Our quartet rehearses Dvořák on Thursdays"),
            NewTurn(role="assistant", content="Enjoy the rehearsal!"),
            NewTurn(role="user", content="The boiler was repaired for 240 euros"),
        ],
        session="s",
    )


async def test_an_empty_memory_recalls_nothing(memory: Memory) -> None:
    assert await memory.recall("anything") == Bundle(stable="", dynamic="", tokens=0, left_out=[])


async def test_the_stable_block_does_not_change_with_the_question(memory: Memory) -> None:
    await fill(memory)
    blocks = {(await memory.recall(question)).stable for question in ("", "boiler", "quartet rehearsal")}
    (stable,) = blocks
    assert stable == (
        '<mcp-memory-recall part="stable">\nUser: name: Maya\nAlways:\n- Answer briefly\n## About the user\n'
        "- Is called Maya (a1)\n- Plays the cello in a quartet (a3)\n</mcp-memory-recall>"
    )


async def test_the_dynamic_block_holds_what_the_question_needs(memory: Memory) -> None:
    await fill(memory)
    dynamic = (await memory.recall("boiler repaired")).dynamic
    assert "240 euros" in dynamic
    assert "Dvořák" not in dynamic
    assert (await memory.recall("zebra crossing")).dynamic == ""


async def test_a_session_lends_its_last_words_to_the_question(memory: Memory) -> None:
    await fill(memory)
    await memory.record_turns([NewTurn(role="user", content="boiler repaired 240 euros")], session="now")
    assert "240 euros" in (await memory.recall(session="now")).dynamic


@pytest.mark.parametrize("budget", [100, 150, 400])
async def test_no_bundle_exceeds_its_budget_and_what_is_left_out_is_named(memory: Memory, budget: int) -> None:
    for i in range(30):
        await memory.remember(
            f"Quartet detail number {i}: the cello part of bar {i} needs a lighter bow", kind="episodic"
        )
    await memory.record_turns([NewTurn(role="user", content=f"quartet note {i} " * 20) for i in range(5)], session="s")
    bundle = await memory.recall("quartet detail cello bow", budget_tokens=budget)
    assert sum(COUNT(block) for block in (bundle.stable, bundle.dynamic) if block) == bundle.tokens <= budget
    assert bundle.left_out


async def test_a_budget_out_of_range_says_the_range(memory: Memory) -> None:
    with pytest.raises(InvalidInput, match="budget_tokens is 5; it can be 100"):
        await memory.recall("x", budget_tokens=5)
