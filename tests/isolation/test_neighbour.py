"""What another space holds, however much and in the same words, changes no answer of this one: no id, score or text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcp_memory.core.config import load_settings
from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.types import MemoryResults, NewTurn
from mcp_memory.service.excerpts import ExcerptRequest, shown_memories
from mcp_memory.service.memory import Memory, open_memory
from mcp_memory.store.sql import quarantine_rows

pytestmark = pytest.mark.slow

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
PLACES = ("harbour", "station", "market", "library", "garden", "bridge", "tower", "museum")
THINGS = ("kettle", "ladder", "carpet", "mirror", "basket", "pencil", "saddle", "lantern", "anchor")
QUESTIONS = (
    "Where was the kettle of number 7 left?",
    "What did Maya say about the harbour",
    "number 41 lantern",
    "plan",
    "Where does Maya work?",
    "What is the wifi password?",
)
ROOM = 20_000
"""A budget that cuts nothing."""
BUDGETS = (60, 100, 180, 320, 600, 1_000, ROOM)


async def fill(memory: Memory, turns: int, statements: int, *, first: int = 0) -> None:
    said = [
        NewTurn(
            role=("user", "assistant")[n % 2],
            content=f"The plan says: {THINGS[n % 9]} number {n} was left at the {PLACES[n % 8]} by Maya.",
            said_at=NOON - timedelta(minutes=20_000 - n),
        )
        for n in range(first, first + turns)
    ]
    await memory.record_turns(said, session=f"talk {first}")
    for n in range(first, first + statements):
        await memory.remember(
            f"Maya keeps the {THINGS[n % 9]} of number {n} at the {PLACES[n % 8]}.", session="told", typed=True
        )
    log = "\n".join(f"{n} {THINGS[n % 9]} of Maya found at the {PLACES[n % 8]}" for n in range(first, first + 200))
    await memory.offload_tool_result("find_things", log, session="told", tool_call_id=f"call-{first}")


def _shown(page: MemoryResults, question: str, memory: Memory, budget: int) -> list[str]:
    """Return the ids that a page shows within a budget, without the cursor, which has ids in it."""
    whole = replace(page, cursor=None, start="")
    asking = ExcerptRequest(query=question, detail="concise", counter=memory._parts.counter, budget=budget)
    try:
        shown = shown_memories(whole, asking)
    except InvalidInput:
        return []
    return [*(one.atom.id for one in shown.atoms), *(turn.id for run in shown.passages for turn in run.turns)]


async def answers(memory: Memory, budgets: Sequence[int]) -> list[str]:
    """Ask everything, and return each answer as text."""
    found: list[Any] = []
    for question in QUESTIONS:
        found.append(asdict(await memory.conversation_search(question, limit=8, neighbours=1)))
        found.append(asdict(await memory.find(question, limit=8)))
        page = await memory.memory_search(question, limit=5)
        found.append(asdict(page))
        if page.cursor:
            found.append(asdict(await memory.memory_search(question, limit=5, cursor=page.cursor)))
        found += [asdict(await memory.recall(question, budget_tokens=budget)) for budget in budgets]
        for budget in budgets:
            found.append(await anyio.to_thread.run_sync(_shown, page, question, memory, budget))
        found.append(asdict(await memory.recall_beyond(question, known="", session="told", budget_tokens=ROOM)))
        found.append(asdict(await memory.explain(question)))
        found.append(asdict(await memory.explain_recall(question, budget_tokens=ROOM)))
    found.append(asdict(await memory.memory_search("", limit=20)))
    found.append(asdict(await memory.read_persona()))
    status = await memory.status()
    found.append({name: status[name] for name in ("counts", "grown", "pyramid", "offload", "savings", "held")})
    return [repr(one) for one in found]


SPACES = ("mine", "theirs")


async def told(home: Path, *, embedder: str, turns: int, beside: int, budgets: Sequence[int] = (ROOM,)) -> list[str]:
    """Answer from a space; with `beside`, another one of so many turns is written before, between and after it."""
    settings = load_settings({}, home=home, embedder=embedder, space="mine", rate_limit=0)
    async with open_memory(settings, now=lambda: NOON, distil=False) as memory:
        theirs = memory.in_space("theirs")
        for place, (first, mine, statements) in enumerate([(0, turns, 12), (turns, 30, 6)]):
            if beside:
                await fill(theirs, beside // 3, 20, first=place * beside)
            await fill(memory, mine, statements, first=first)
        if beside:
            await fill(theirs, beside // 3, 20, first=2 * beside)
        indexing, store = memory._parts.indexing, memory._parts.store

        def is_waiting() -> bool:
            state = indexing.state()
            is_embedded = embedder == "none" or state.embedded == state.total
            return (
                bool(state.refs_waiting)
                or not is_embedded
                or any(store.read(of, quarantine_rows.unjudged, limit=1) for of in SPACES)
            )

        while await anyio.to_thread.run_sync(is_waiting):
            indexing.stored()
            await anyio.sleep(0.02)
        return await answers(memory, budgets)


async def test_a_large_neighbour_with_the_same_words_changes_no_answer_whatever_its_budget(tmp_path: Path) -> None:
    alone = await told(tmp_path / "alone", embedder="none", turns=1_600, beside=0, budgets=BUDGETS)
    beside = await told(tmp_path / "beside", embedder="none", turns=1_600, beside=1_800, budgets=BUDGETS)
    assert beside == alone


async def test_nor_does_one_that_is_searched_by_meaning(tmp_path: Path) -> None:
    alone = await told(tmp_path / "alone", embedder="bundled", turns=120, beside=0)
    beside = await told(tmp_path / "beside", embedder="bundled", turns=120, beside=900)
    assert beside == alone
