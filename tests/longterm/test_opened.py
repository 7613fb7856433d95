"""Every id in an answer can be opened, and a turn in `supersedes` means its statements."""

from __future__ import annotations

import pytest

from mcp_memory.core.errors import NotFound
from mcp_memory.core.types import NewTurn
from mcp_memory.service.memory import Memory


async def recorded(memory: Memory, *texts: str) -> list[str]:
    turns = [NewTurn(role="user" if place % 2 == 0 else "assistant", content=text) for place, text in enumerate(texts)]
    return (await memory.record_turns(turns, session="s")).stored


async def test_a_turn_is_opened_whole_between_its_neighbours(memory: Memory) -> None:
    long = "The rent is 940 a month. " * 100
    before, id, after = await recorded(memory, "How much is it?", long, "Thank you.")
    opened = await memory.expand_node(id)
    assert [part in opened.text for part in (f"[{before} · user", f"[{id} · assistant", f"[{after} · user")] == [
        True
    ] * 3
    assert long.strip() in opened.text
    assert (await memory.expand_answer(ref=id)).text == opened.text


async def test_a_long_turn_is_opened_in_pages(memory: Memory) -> None:
    (id,) = await recorded(memory, " ".join(f"word{number}" for number in range(4_000)))
    first = await memory.expand_node(id, max_tokens=500)
    assert first.tokens <= 500
    assert first.cursor is not None
    assert "word0 " in first.text
    assert "word0 " not in (await memory.expand_node(id, max_tokens=500, cursor=first.cursor)).text


async def test_a_statement_is_opened_with_its_turn(memory: Memory) -> None:
    await recorded(memory, "I live in Lugo.")
    atom = (await memory.remember("I live in Lugo.")).atom
    opened = (await memory.expand_node(atom.id)).text
    assert f"[{atom.id} · persona · true from " in opened
    assert f"[{atom.evidence} · note" in opened


@pytest.mark.parametrize("id", ["t99", "a99"])
async def test_an_unknown_id_is_refused_with_the_tool_that_finds_ids(memory: Memory, id: str) -> None:
    with pytest.raises(NotFound, match=rf"There is no \w+ {id} in this space\. Find \w+ with \w+_search\."):
        await memory.expand_node(id)


async def test_a_turn_in_supersedes_means_the_statements_based_on_it(memory: Memory) -> None:
    await recorded(memory, "I live in Lugo.")
    old = (await memory.remember("I live in Lugo.")).atom
    await recorded(memory, "I live in Vigo now.")
    assert (await memory.remember("I live in Vigo now.", supersedes=[old.evidence])).replaced[0].id == old.id


async def test_a_turn_without_a_statement_is_not_superseded_and_says_so(memory: Memory) -> None:
    (turn,) = await recorded(memory, "I live in Lugo.")
    with pytest.raises(NotFound, match=f"No statement is based on turn {turn}.*Leave {turn} out"):
        await memory.remember("I live in Vigo.", supersedes=[turn])
