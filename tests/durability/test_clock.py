"""A clock that goes back, by minutes or years: order, ids, leases and budgets do not depend on it."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.reader import Reader
from mcp_memory.core.config import Settings
from mcp_memory.core.types import NewTurn, Spend
from mcp_memory.longterm.search.search import Search
from mcp_memory.models.embed.factory import make_embedder
from mcp_memory.models.metered import MeteredModel
from mcp_memory.service.indexing import Indexing
from mcp_memory.service.memory import open_memory
from mcp_memory.service.scheduler import Scheduler
from mcp_memory.store.sql import atom_rows, home_rows, stage_outputs, turn_rows
from mcp_memory.store.sqlite.store import open_store
from mcp_memory.store.usage_ledger import StoreLedger
from mcp_memory.store.values import Filters, NewAtom
from mcp_memory.testing import FixedClock, ScriptedLLM
from tests.durability.filling import NOON, capture, said
from tests.leases import pass_time

YEAR = timedelta(days=365)


@pytest.mark.anyio
@pytest.mark.parametrize("moment", ["1970-01-01T00:00:00", "5000-06-01T00:00:00", "9999-12-31T23:59:59"])
async def test_every_verb_works_at_the_ends_of_the_calendar(moment: str, home: Path, tmp_path: Path) -> None:
    at = datetime.fromisoformat(moment).replace(tzinfo=UTC)
    said = "I live in Oslo. I met Anna yesterday. Remind me in two weeks to call her."
    async with open_memory(home=home, embedder="none", now=lambda: at) as memory:
        (turn,) = (await memory.record_turns([NewTurn(role="user", content=said)], session="s")).stored
        assert turn in (await memory.recall("where did I live last week, in Oslo?")).dynamic
        assert [hit.turn.id for hit in (await memory.conversation_search("Anna yesterday")).hits] == [turn]
        told = await memory.remember("I live in Oslo since last year", entity="user", relation="lives_in", value="Oslo")
        await memory.offload_tool_result("scan", "ERROR 12:00 tomorrow\n" * 500)
        await memory.fold_canvas()
        await memory.read_persona()
        await memory.distill()
        await memory.status()
        await memory.export(tmp_path / "export.zip")
        await memory.back_up()
        await memory.forget([told.atom.id], reason="private")


def test_a_clock_that_python_cannot_represent_is_refused_in_a_sentence() -> None:
    code = "import time\ndef late(): raise OverflowError\ntime.time = late\nimport mcp_memory.cli.main"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr == (
        "The clock of this computer is past the year 2262, which Python cannot represent. Set it and start again.\n"
    )


@settings(max_examples=20)
@given(jumps=st.lists(st.integers(-900_000, 900_000), min_size=2, max_size=12))
def test_turns_keep_the_order_in_which_they_came_and_every_journal_its_day(
    jumps: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    store = open_store(tmp_path_factory.mktemp("clock") / "home")
    now, days = NOON, list[str]()
    for number, jump in enumerate(jumps):
        now += timedelta(seconds=jump)
        assert capture(store, f"Word {number}.", at=now) == f"t{number + 1}"
        days.append(now.date().isoformat())
    assert said(store) == [f"Word {number}." for number in range(len(jumps))]
    changes = store.read("default", home_rows.last_change)
    capture(store, "Last.", at=NOON - YEAR)
    assert store.read("default", home_rows.last_change) > changes
    journals = {path.stem: path.read_text(encoding="utf-8") for path in store.folder("default").glob("conversations/*")}
    for number, day in enumerate(days):
        assert f'"Word {number}."' in journals[day]
    assert store.problems() == []
    store.close()


def test_a_journal_that_is_written_anew_after_the_clock_went_back_has_its_lines_and_no_others(home: Path) -> None:
    store = open_store(home)
    for number in range(4):
        capture(store, f"Word {number}.", at=NOON - timedelta(days=number % 2))
    journal = store.folder("default") / "conversations" / f"{NOON.date()}.jsonl"
    whole = journal.read_bytes()
    journal.unlink()
    capture(store, "Word 4.", at=NOON)
    assert journal.read_bytes().startswith(whole)
    assert journal.read_bytes().count(b"\n") == 3
    store.close()


def test_turns_that_a_killed_process_was_reading_a_year_ahead_are_read_now(home: Path) -> None:
    clock = FixedClock(NOON + YEAR)
    store = open_store(home)
    settings = Settings(home=home, embedder="none", distil=False)
    search = Search(store, clock)
    pipeline = Scheduler(store, search, Indexing(store, make_embedder(settings), settings), settings, now=clock)
    store.write(
        "default",
        turn_rows.append,
        "s",
        turn_rows.prepare([NewTurn(role="user", content="I keep bees in Porto.")]),
        now=clock(),
    )
    assert pipeline.lease_for_agent() is not None
    clock.moment = NOON
    pass_time(store, -YEAR)
    assert pipeline.step(MeteredModel(Reader(), StoreLedger(store), settings, now=clock))
    assert store.read("default", stage_outputs.drafts) or store.read(
        "default", atom_rows.list_atoms, filters=Filters(), limit=9
    )
    store.close()


def test_tokens_that_were_spent_in_a_future_that_never_came_use_up_no_budget_of_today(home: Path) -> None:
    store = open_store(home)
    settings = Settings(home=home, llm_daily_tokens=1_000, llm_hourly_tokens=1_000)
    ahead = Spend(
        at=NOON + YEAR, purpose="extract", model="m", prompt_tokens=9_999, completion_tokens=9, cost=None, error=None
    )
    store.write_home(home_rows.add_spend, ahead)
    model = MeteredModel(ScriptedLLM(), StoreLedger(store), settings, now=FixedClock(NOON))
    model._check_caps(10)  # pyright: ignore[reportPrivateUsage]
    store.close()


def test_a_statement_that_replaces_one_of_the_future_holds_and_the_other_is_closed(home: Path) -> None:
    store = open_store(home)

    def lives_in(city: str, now: datetime) -> str:
        atom = NewAtom(
            text=f"The user lives in {city}.", kind="persona", session="s", priority=80, confidence=1.0,
            valid_from=now, entity="user", relation="lives_in", value=city, single_valued=True,
        )  # fmt: skip
        return store.write("default", atom_rows.add, atom, now=now).atom.id

    first = lives_in("Porto", NOON + YEAR)
    second = lives_in("Lisbon", NOON)
    held = {atom.id: atom for atom in store.read("default", atom_rows.by_ids, [first, second])}
    assert [fact.value for fact in store.read("default", atom_rows.facts, filters=Filters(), limit=9)] == ["Lisbon"]
    assert (held[second].valid_to, held[first].valid_to is None) == (None, False)
    assert held[first].learned_at == datetime(2027, 11, 20, 12, 0, tzinfo=UTC)
    store.close()
