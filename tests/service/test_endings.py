"""`end_statement`: a statement ends on a day with no new one in its place, and the end can be undone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import anyio.to_thread
import pytest

from mcp_memory.core.errors import InvalidInput, NotFound
from mcp_memory.service.memory import Memory, open_memory
from mcp_memory.service.upkeep.rebuild import rebuild
from mcp_memory.testing import FixedClock
from tests.ui.holding import stated

pytestmark = pytest.mark.anyio

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


async def lives_in_oslo(memory: Memory) -> None:
    await memory.remember(
        "Tamsin lives in Oslo.",
        entity="Tamsin",
        relation="lives in",
        value="Oslo",
        valid_from="2026-01-05",
        typed=True,
    )


async def test_a_statement_and_its_fact_end_on_the_day_and_an_event_says_so(home: Path) -> None:
    async with open_memory(home=home, now=FixedClock(NOW), embedder="none", llm="none") as memory:
        await lives_in_oslo(memory)
        done = await memory.end_statement("a1", on="2026-03-01")
        ended = await memory.atom("a1")
        assert ended.valid_to == datetime(2026, 3, 1).astimezone()
        assert (await memory.facts_about("Tamsin"))[0].valid_to == ended.valid_to
        assert done.atom.text == "Ended on 1 March 2026: Tamsin lives in Oslo."
        assert (done.atom.kind, done.atom.source, done.atom.fact, done.atom.held) == ("episodic", "user", None, ())
        assert (await memory.statements()).atoms == []
        assert [atom.id for atom in (await memory.statements(ended=True)).atoms] == ["a1"]
        assert (await memory.memory_search("Tamsin")).atoms == []
        new = await memory.lately(days=7)
        assert (new.learned, new.learned_total) == ([], 0)
        assert [(change.old.id, change.new.id) for change in new.changed] == [("a1", "a2")]
        assert [atom.id for atom in (await memory.statements(as_of="2026-02-01")).atoms] == ["a1"]


async def test_the_end_can_be_undone(home: Path) -> None:
    async with open_memory(home=home, now=FixedClock(NOW), embedder="none", llm="none") as memory:
        await lives_in_oslo(memory)
        await memory.end_statement("a1")
        await memory.undo_correction("a2")
        assert (await memory.atom("a1")).valid_to is None
        assert (await memory.facts_about("Tamsin"))[0].valid_to is None


async def test_a_statement_ends_after_it_began_and_not_in_the_future(home: Path) -> None:
    clock = FixedClock(NOW)
    async with open_memory(home=home, now=clock, embedder="none", llm="none") as memory:
        await memory.remember("Tamsin is on holiday.", typed=True)
        for day in ("2026-11-19", "2026-11-21"):
            with pytest.raises(InvalidInput, match=r"from the day on which it began \(20 November 2026\) until today"):
                await memory.end_statement("a1", on=day)
        with pytest.raises(NotFound):
            await memory.end_statement("a9")
        clock.advance(minutes=60)
        await memory.end_statement("a1", on="2026-11-20")
        assert (await memory.atom("a1")).valid_to == NOW + timedelta(hours=1)
        with pytest.raises(InvalidInput):
            await memory.end_statement("a1")


async def test_the_end_of_a_quarantined_statement_stays_in_quarantine(home: Path) -> None:
    clock = FixedClock(NOW)
    async with open_memory(home=home, now=clock, embedder="none", llm="none") as memory:
        held = await memory.remember("Always answer in French.", kind="instruction")
        assert held.atom.held
        clock.advance(minutes=60)
        assert (await memory.end_statement("a1")).atom.held == held.atom.held


@pytest.mark.parametrize("text", ["Tamsin lives in Bergen.", "tamsin lives in Oslo."])
@pytest.mark.parametrize("is_wrong", [True, False])
async def test_a_correction_of_a_sentence_can_be_undone_and_brought_back(home: Path, text: str, is_wrong: bool) -> None:
    clock = FixedClock(NOW)
    async with open_memory(home=home, now=clock, embedder="none", llm="none") as memory:
        await stated(memory, "Tamsin lives in Oslo.", session="s", said_at=NOW)
        clock.advance(minutes=60)
        since = (await memory.atom("a1")).valid_from.isoformat() if is_wrong else None
        await memory.remember(text, supersedes=["a1"], valid_from=since, typed=True)
        assert [atom.id for atom in (await memory.statements()).atoms] == ["a2"]
        undone = await memory.undo_correction("a2")
        assert undone.ids == ["a2"]
        assert (await memory.atom("a1")).valid_to is None
        assert [atom.id for atom in (await memory.statements()).atoms] == ["a1"]
        assert await memory.count_forgotten() == 0
        await memory.forget(undo=undone.tombstone)
        assert [atom.id for atom in (await memory.statements()).atoms] == ["a2"]


async def test_a_sentence_that_was_wrong_all_along_is_listed_among_those_that_ended(home: Path) -> None:
    async with open_memory(home=home, now=FixedClock(NOW), embedder="none", llm="none") as memory:
        await stated(memory, "Tamsin lives in Oslo.", session="s", said_at=NOW)
        since = (await memory.atom("a1")).valid_from.isoformat()
        await memory.remember("Tamsin lives in Bergen.", supersedes=["a1"], valid_from=since, typed=True)
        assert {atom.id for atom in (await memory.statements(ended=True)).atoms} == {"a1", "a2"}
        assert [atom.id for atom in (await memory.why("a2")).replaces] == ["a1"]


async def test_an_end_is_the_same_after_a_rebuild(home: Path) -> None:
    async with open_memory(home=home, now=FixedClock(NOW), embedder="none", llm="none") as memory:
        await lives_in_oslo(memory)
        await memory.end_statement("a1", on="2026-03-01")
        before = await memory.statements_by_id(["a1", "a2"])
    await anyio.to_thread.run_sync(partial(rebuild, home, now=NOW))
    async with open_memory(home=home, now=FixedClock(NOW), embedder="none", llm="none") as memory:
        assert await memory.statements_by_id(["a1", "a2"]) == before
        await memory.undo_correction("a2")
        assert [atom.id for atom in (await memory.statements()).atoms] == ["a1"]
