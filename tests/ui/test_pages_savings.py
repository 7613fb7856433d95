"""The page of savings: its numbers are those of the status, and models are paused and resumed from it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio.to_thread
import pytest

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.types import NewTurn, Spend
from mcp_memory.service.memory import Memory, open_memory
from mcp_memory.store.sql import home_rows, saving_rows
from mcp_memory.store.values import Saving, SavingKind
from mcp_memory.testing import FixedClock, ScriptedLLM
from mcp_memory.ui.components import View, day_text
from mcp_memory.ui.elements import text_of
from mcp_memory.ui.pages import page_at
from tests.ui.holding import at, reading
from tests.ui.shown import elements, forms, links, text

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


@pytest.fixture
async def memory(home: Path) -> AsyncIterator[Memory]:
    async with open_memory(home=home, now=FixedClock(NOW), embedder="none", llm=ScriptedLLM(), distil=False) as opened:
        yield opened


async def fill(memory: Memory) -> None:
    store = memory._parts.store  # pyright: ignore[reportPrivateUsage]

    def put() -> None:
        events: list[tuple[int, SavingKind, int, int]] = [
            (2, "offload", 5_000, 40),
            (1, "expand", 0, 700),
            (1, "offload", 2_000, 20),
        ]
        for days, kind, saved, spent in events:
            at = NOW - timedelta(days=days, minutes=spent)
            store.write(
                memory.space, saving_rows.add_saving, Saving(session="s", at=at, kind=kind, saved=saved, spent=spent)
            )
        store.write_home(home_rows.add_spend,
            Spend(
                at=NOW, purpose="extract", model="m/x", prompt_tokens=1_200, completion_tokens=34, cached_tokens=900,
                cost=0.5,
            )
        )  # fmt: skip

    await anyio.to_thread.run_sync(put)


async def test_totals_are_those_of_the_status(memory: Memory) -> None:
    await fill(memory)
    shown, status = text(await at(memory, "/savings")), (await memory.status())["savings"]
    for number in (status["net_tokens"], status["saved_once"], status["saved_later"], status["spent"]["expand"]):
        assert f"{number:,} tokens" in shown
    assert f"cost as much as {status['net_cost']:,} tokens" in shown
    assert "that bill is not known here" in shown


async def test_the_sessions_of_a_week_are_listed_with_what_each_saved_and_spent(memory: Memory) -> None:
    await fill(memory)
    await memory.record_turns([NewTurn(role="user", content="Hello.")], session="s")
    page = await at(memory, "/savings")
    lines = [[text_of(cell) for cell in row.children] for row in elements(page) if row.tag == "tr"]
    saved, spent = next(
        (saved, spent) for name, _, saved, spent, *_ in map(tuple, filter(None, lines)) if "A conv" in name
    )
    sums = next(line for line in lines if line[0] == "Sum")
    assert [saved, spent] == sums[1:3]
    assert "/session/s" in links(page)


async def test_more_spent_than_saved_is_said_so(memory: Memory) -> None:
    loss = Saving(session="s", at=NOW, kind="expand", saved=0, spent=293)
    store = memory._parts.store  # pyright: ignore[reportPrivateUsage]
    await anyio.to_thread.run_sync(store.write, memory.space, saving_rows.add_saving, loss)
    shown = text(await at(memory, "/savings"))
    assert "293 tokens more spent than saved." in shown
    assert "They cost" not in shown  # as much as their number


async def test_days_stand_in_a_table_with_their_sum_beside_the_chart(memory: Memory) -> None:
    await fill(memory)
    page, status = await at(memory, "/savings"), (await memory.status())["savings"]
    lines = [[text_of(cell) for cell in row.children] for row in elements(page) if row.tag == "tr"]
    saved, spent = status["saved_once"] + status["saved_later"], sum(status["spent"].values()) + status["spent_later"]
    net = f"{status['net_tokens']:,}"
    assert lines[1] == ["Sum", f"{saved:,}", f"{spent:,}", net, "1,234", "$0.5000"]
    assert [line[0] for line in lines[2:5]] == [day_text((NOW - timedelta(days=back)).astimezone().date())
                                                for back in (0, 1, 2)]  # fmt: skip
    assert any("days" in one.attributes.get("class", "").split() for one in elements(page))
    assert {"/savings?days=7", "/savings?days=90", "/savings?days=365"} <= set(links(page))


async def test_the_ledger_tells_what_models_were_asked_for(memory: Memory) -> None:
    await fill(memory)
    page = await at(memory, "/savings")
    lines = [[text_of(cell) for cell in row.children] for row in elements(page) if row.tag == "tr"]
    assert lines[-1] == ["extract", "m/x", "1", "0", "1,200", "34", "$0.5000"]
    assert "Read from the provider's cache900 tokens" in text(page)


async def test_models_are_paused_and_resumed_by_who_may(memory: Memory) -> None:
    assert [form.action for form in forms(await at(memory, "/savings"))] == ["/do/pause"]
    await memory.pause("for lunch")
    page = await at(memory, "/savings")
    assert "Models are paused: for lunch." in text(page)
    assert [form.action for form in forms(page)] == ["/do/resume"]
    assert forms(await reading(memory, "/savings")) == []


async def test_who_may_only_read_sees_nothing_of_models(memory: Memory) -> None:
    await fill(memory)
    shown = text(await reading(memory, "/savings"))
    assert "extract" not in shown
    assert "Used by models" not in shown
    assert "saved, less what was spent" in shown


async def test_other_spans_are_refused_in_a_sentence(memory: Memory) -> None:
    with pytest.raises(InvalidInput, match="7, 30, 90, 365"):
        await page_at("/savings?days=31", View(memory=memory))
