"""Statements of the user's sentences, made in the background of an open memory."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from mcp_memory.core.types import NewTurn
from mcp_memory.service.memory import Memory, open_memory

SAID = [
    NewTurn(role="user", content="I am a geography teacher and live in Oslo with my two cats."),
    NewTurn(role="assistant", content="A long time!"),
    NewTurn(role="user", content="Never use emoji in mails."),
]


async def statements(memory: Memory) -> list[str]:
    return sorted(atom.text for atom in await memory.atoms())


async def read_statements(memory: Memory) -> list[str]:
    """Return the statements once the background has caught up, for which a search waits."""
    with anyio.fail_after(20):
        while not (found := await statements(memory)):
            await memory.memory_search("kestrel")
    return found


async def test_a_search_finds_statements_of_what_was_just_said(home: Path) -> None:
    async with open_memory(home=home, read_sentences=True) as memory:
        await memory.record_turns(SAID, session="s")
        found = await memory.memory_search("geography")
        assert "I am a geography teacher and live in Oslo with my two cats." in {hit.atom.text for hit in found.atoms}


async def test_closing_a_memory_reads_what_it_has_stored(home: Path) -> None:
    async with open_memory(home=home, read_sentences=True) as memory:
        await memory.record_turns(SAID, session="s")
    async with open_memory(home=home) as memory:
        assert await statements(memory) == [
            "I am a geography teacher and live in Oslo with my two cats.",
            "Never use emoji in mails.",
        ]


async def test_the_setting_turns_reading_off_and_on_again_later(home: Path) -> None:
    async with open_memory(home=home, read_sentences=False) as memory:
        await memory.record_turns(SAID, session="s")
        await memory.memory_search("geography")
        assert await statements(memory) == []
    async with open_memory(home=home, read_sentences=True) as memory:
        await memory.record_turns([NewTurn(role="user", content="The parcel came on Monday.")], session="s")
        assert len(await read_statements(memory)) >= 2


async def test_two_memories_of_one_home_make_no_doubles(home: Path) -> None:
    async with (
        open_memory(home=home, read_sentences=True) as one,
        open_memory(home=home, read_sentences=True, embedder="none") as other,
    ):
        for place, turn in enumerate(SAID):
            await (one, other)[place % 2].record_turns([turn], session=f"s{place}")
        await read_statements(one)
    async with open_memory(home=home) as memory:
        assert await statements(memory) == [
            "I am a geography teacher and live in Oslo with my two cats.",
            "Never use emoji in mails.",
        ]


@pytest.mark.parametrize("said", ["ok so {}", "I like tea. Oh and {}", "{} lol"])
async def test_a_remembered_promise_takes_the_place_of_the_sentence_with_a_lead_in(home: Path, said: str) -> None:
    promise = "Next time I mention Lisbon, tell me that Bruno owes me 40 euros"
    async with open_memory(home=home, read_sentences=True) as memory:
        await memory.record_turns([NewTurn(role="user", content=said.format(promise))], session="s")
        assert promise in await read_statements(memory)
        made = (await memory.remember(promise, kind="promise")).atom
        assert [atom.id for atom in await memory.atoms() if "Lisbon" in atom.text] == [made.id]
        assert not made.is_sentence
        await memory.remember("Told about the 40 euros", supersedes=[made.id])
        assert not [atom for atom in await memory.atoms() if atom.label == "promise"]
