"""The bench that lives through a conversation, with a model that needs no script."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from bench.pyramid import compare, live
from bench.reader import Reader
from bench.sets import read_set
from mcp_memory.service.memory import open_memory
from mcp_memory.testing import FixedClock


def test_only_questions_that_the_first_turns_answer_are_asked(small_set: Path) -> None:
    haystack = read_set(small_set).haystacks[0]
    assert [len(session.turns) for session in haystack.first(4).sessions] == [3, 1]
    assert [one.id for one in haystack.first(4).questions] == ["q1"]
    assert [one.id for one in haystack.first(99).questions] == ["q1", "q3"]


async def test_every_turn_is_lived_through_and_the_calls_are_counted(small_set: Path, home: Path) -> None:
    haystack = read_set(small_set).haystacks[0].first(99)
    clock = FixedClock((haystack.sessions[0].started_at or FixedClock()()) - timedelta(hours=1))
    reader = Reader()
    async with open_memory(home=home, now=clock, embedder="none", llm=reader, distil=False) as memory:
        lived = await live(memory, haystack, clock)
        assert sorted(lived.ids.values()) == sorted(turn.id for _, turn in haystack.turns() if turn.content.strip())
        assert sum(call["calls"] for call in lived.calls) == len(reader.asked) > 0
        assert (await memory.status())["pyramid"]["waiting"]["turns"] == 0
        shares = await compare(memory, haystack, lived.ids, clock)
    assert {name: len(found) for name, found in shares.items()} == {"turns alone": 2, "atoms and turns": 2}
