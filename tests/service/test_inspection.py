"""What people see of a memory through its verbs: pages of statements, facts over time, what happened, what a day saved."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

from mcp_memory.core.errors import InvalidInput, NotFound
from mcp_memory.core.types import NewTurn, Spend
from mcp_memory.service.memory import Memory, open_memory
from mcp_memory.store.sql import home_rows, saving_rows
from mcp_memory.store.values import Saving, SavingKind
from mcp_memory.testing import FixedClock, HashEmbedder


@pytest.fixture
async def memory(home: Path) -> AsyncIterator[Memory]:
    async with open_memory(home=home, now=FixedClock(), embedder=HashEmbedder(), llm="none") as opened:
        yield opened


async def lives_in(memory: Memory, city: str, **more: Any) -> str:
    text = f"Maya lives in {city}."
    told = await memory.remember(text, entity="Maya", relation="lives_in", value=city, **more, typed=True)
    return told.atom.id


# --- statements -------------------------------------------------------------------------------------


async def test_statements_come_in_pages_with_how_many_there_are(memory: Memory) -> None:
    ids = [(await memory.remember(f"Remark {number} on kettles", typed=True)).atom.id for number in range(5)]
    first = await memory.statements(limit=2)
    await memory.remember("Said after the first page", typed=True)
    second = await memory.statements(limit=2, cursor=first.cursor)
    third = await memory.statements(limit=2, cursor=second.cursor)
    assert [one.id for page in (first, second, third) for one in page.atoms] == ids
    assert [(page.total, page.cursor is None) for page in (first, second, third)] == [(5, False), (5, False), (5, True)]


async def test_statements_pass_filters_ended_ones_only_where_they_are_asked_for(memory: Memory) -> None:
    old = await lives_in(memory, "Oslo", valid_from="2026-01-02")
    new = await lives_in(memory, "Bergen", valid_from="2026-03-04", supersedes=[old])
    await memory.remember("Answer briefly", kind="instruction", typed=True)

    async def ids(**filters: Any) -> list[str]:
        return [one.id for one in (await memory.statements(**filters)).atoms]

    assert await ids(entity="maya") == [new]
    assert await ids(entity="Maya", ended=True) == [old, new]
    assert await ids(entity="Maya", as_of="2026-02-01") == [old]
    assert await ids(entity="Maya", as_of="2026-02-01", ended=True) == [old]
    assert await ids(kind="instruction") == ["a3"]


async def test_all_facts_of_an_entity_are_told_oldest_first(memory: Memory) -> None:
    old = await lives_in(memory, "Oslo", valid_from="2026-01-02")
    await lives_in(memory, "Bergen", valid_from="2026-03-04", supersedes=[old])
    await memory.remember("Bo knows Maya", entity="Bo", relation="knows", value="Maya", typed=True)
    assert [fact.value for fact in await memory.facts_about("MAYA")] == ["Oslo", "Bergen"]
    with pytest.raises(NotFound, match="No entity 'nobody'"):
        await memory.facts_about("nobody")


async def test_turns_and_what_was_made_of_them_are_found_by_id(memory: Memory) -> None:
    told = (await memory.remember("Keeps bees", typed=True)).atom
    assert [turn.content for turn in await memory.turns([told.evidence, "t99"])] == ["Keeps bees"]
    assert await memory.statements_about([told.evidence]) == {told.evidence: [told]}


# --- recalls ----------------------------------------------------------------------------------------


async def test_a_recall_is_logged_once_without_its_words(memory: Memory) -> None:
    told = (await memory.remember("The night boat sails at two", typed=True)).atom
    bundle = await memory.recall_answer("When does the night boat sail?", session="s", budget_tokens=400)
    (entry,) = await memory.recalls()
    assert told.id in entry.ids
    assert (entry.how, entry.session, entry.tokens, entry.query) == ("recall", "s", bundle.tokens, None)


async def test_the_words_of_a_recall_are_logged_where_contents_are(home: Path) -> None:
    async with open_memory(home=home, embedder="none", llm="none", log_contents=True) as memory:
        await memory.remember("The night boat sails at two", typed=True)
        await memory.recall("When does the night boat sail?")
    async with open_memory(home=home, embedder="none", llm="none") as again:
        assert [one.query for one in await again.recalls()] == ["When does the night boat sail?"]


async def test_a_recall_that_brings_nothing_is_not_logged(memory: Memory) -> None:
    assert (await memory.recall("When does the night boat sail?")).tokens == 0
    assert await memory.recalls() == []


async def test_recalls_name_no_rows_that_were_forgotten_since(memory: Memory) -> None:
    told = (await memory.remember("The night boat sails at two", typed=True)).atom
    await memory.recall("When does the night boat sail?")
    await memory.forget([told.id], reason="wrong", dry_run=False)
    assert [one.ids for one in await memory.recalls()] == [()]


async def test_a_purge_takes_the_words_of_recalls(home: Path) -> None:
    async with open_memory(home=home, embedder="none", llm="none", log_contents=True) as memory:
        told = (await memory.remember("The quiet harbour is called Torvik", typed=True)).atom
        await memory.recall("What is the quiet harbour Torvik?")
        assert [one.query is None for one in await memory.recalls()] == [False]
        forgotten = await memory.forget([told.id], reason="private", dry_run=False)
        assert forgotten.tombstone is not None
        report = await memory.purge([forgotten.tombstone])
        assert report.provable is memory.has_files
        assert report.is_proven is report.provable  # PostgreSQL's log and standbys are out of sight
        assert [one.query for one in await memory.recalls()] == [None]


# --- what happened ----------------------------------------------------------------------------------


async def test_activity_tells_what_happened_newest_first(memory: Memory) -> None:
    await memory.record_turns([NewTurn(role="user", content="The boiler leaks")], session="talk")
    told = (await memory.remember("The boiler leaks oil", session="talk", typed=True)).atom
    stored = await memory.offload_tool_result("Bash", "line\n" * 400, session="talk")
    gone = (await memory.remember("A mistake", typed=True)).atom
    forgotten = await memory.forget([gone.id], reason="wrong", dry_run=False)
    await memory.recall("What about the boiler?")
    happened = (await memory.activity()).entries
    assert {(one.what, one.id) for one in happened} == {
        ("turn", "t1"),
        ("statement", told.id),
        ("result", stored.ref),
        ("forgotten", forgotten.tombstone),
        ("recall", "1"),
    }
    assert [one.at for one in happened] == sorted((one.at for one in happened), reverse=True)
    assert [(one.text, one.reason) for one in happened if one.what == "forgotten"] == [(gone.id, "wrong")]
    assert {one.session for one in happened if one.what in ("turn", "result")} == {"talk"}
    assert len((await memory.activity(limit=2)).entries) == 2


async def test_activity_has_corrections_their_undoing_and_what_was_brought_back(memory: Memory) -> None:
    await memory.remember("The boiler leaks oil", typed=True)
    await memory.remember("The boiler leaks water", supersedes=["a1"], typed=True)
    undone = await memory.undo_correction("a2")
    await memory.forget(undo=undone.tombstone)
    happened = [(one.what, one.id, one.text, one.reason) for one in (await memory.activity()).entries]
    assert sorted(happened) == [
        ("back", "x1", "a2", ""),
        ("correction", "a2", "The boiler leaks water", "a1"),
        ("statement", "a1", "The boiler leaks oil", ""),
        ("uncorrected", "x1", "a2", ""),
    ]


async def test_pages_of_activity_have_everything_once_whatever_happens_meanwhile(memory: Memory) -> None:
    for number in range(7):
        await memory.record_turns([NewTurn(role="user", content=f"Boiler number {number} leaks")], session="talk")
        await memory.remember(f"Remark {number} on boilers", typed=True)
    await memory.forget(["a3", "t5"], dry_run=False)
    await memory.recall("What about the boilers?")
    everything = (await memory.activity(limit=100)).entries
    page = await memory.activity(limit=4)
    seen = list(page.entries)
    while page.cursor:
        await memory.remember(f"Said after {len(seen)} entries", typed=True)
        page = await memory.activity(limit=4, cursor=page.cursor)
        seen += page.entries
    assert sorted((one.what, one.id) for one in seen) == sorted((one.what, one.id) for one in everything)
    assert len(everything) == 14
    with pytest.raises(InvalidInput):
        await memory.activity(cursor="yesterday")


# --- savings ----------------------------------------------------------------------------------------


async def test_the_savings_of_all_days_are_those_of_the_status(memory: Memory) -> None:
    now = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
    store = memory._parts.store  # pyright: ignore[reportPrivateUsage]

    def fill() -> None:
        events: tuple[tuple[int, SavingKind, int, int], ...] = (
            (40, "offload", 900, 90),
            (2, "offload", 500, 40),
            (2, "expand", 0, 70),
            (1, "compress", 300, 10),
            (0, "canvas", 0, 30),
            (0, "offload", 200, 20),
        )
        for days, kind, saved, spent in events:
            at = now - timedelta(days=days, minutes=spent)
            store.write(
                memory.space, saving_rows.add_saving, Saving(session="s", at=at, kind=kind, saved=saved, spent=spent)
            )
        store.write_home(home_rows.add_spend, Spend(at=now - timedelta(days=2), purpose="extract", model="m", prompt_tokens=100,
                              completion_tokens=20, cost=0.5))  # fmt: skip
        store.write_home(
            home_rows.add_spend, Spend(at=now, purpose="extract", model="m", prompt_tokens=7, completion_tokens=3)
        )

    await anyio.to_thread.run_sync(fill)
    status, days = await memory.status(), await memory.savings_by_day(days=366)
    assert len(days) == 366
    assert sum(day.saved - day.spent for day in days) == status["savings"]["net_tokens"]
    assert sum(day.model_tokens for day in days) == 130
    assert [(day.model_tokens, day.cost) for day in days[-3:]] == [(120, 0.5), (0, None), (10, None)]
    last = await memory.savings_by_day(days=3)
    assert last == days[-3:]
    assert [day.day for day in last] == [last[-1].day - timedelta(days=back) for back in (2, 1, 0)]
    ledger = await memory.ledger()
    assert {name: ledger[name] for name in ("savings", "model")} == {
        name: status[name] for name in ("savings", "model")
    }
