"""Homes with something of everything in them, made by the verbs that people use."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcp_memory.core.types import NewTurn
from mcp_memory.service.memory import Memory, open_memory
from mcp_memory.service.upkeep.backup import Backup, back_up
from mcp_memory.shortterm.canvas.state import canvas_problems
from mcp_memory.store.sql import home_rows
from mcp_memory.store.sqlite.store import open_store
from mcp_memory.testing import FixedClock

Lived = Callable[[Path], Path]
"""Give a home a day in each of two spaces; return it."""
START = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
NOW = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
"""When a home is looked after: the day after."""
LOG = "\n".join(f"2026-03-01 step {n}: compiled part_{n}.c in {n * 7} ms" for n in range(120))


@pytest.fixture(autouse=True)
def _private_umask() -> Iterator[None]:
    """Files that a test writes into a home are for their owner alone, as ours are: else doctor reports them."""
    before = os.umask(0o077)
    yield
    os.umask(before)


async def live(memory: Memory, clock: FixedClock) -> None:
    """A day of somebody's life: said, told and told anew, offloaded, folded, forgotten and brought back."""
    await memory.record_turns(
        [
            NewTurn(role="user", content="I moved to Lisbon, the build is still in Porto.", client_id="m1"),
            NewTurn(role="assistant", content="Noted: Lisbon.", said_at=START - timedelta(days=2)),
        ],
        session="trip",
    )
    clock.advance(minutes=3)
    lisbon = await memory.remember(
        "The user lives in Lisbon", entity="user", relation="lives in", value="Lisbon", session="trip", typed=True
    )
    tea = await memory.remember(
        "Ana drinks green tea", entity="Ana", relation="drinks", value="tea", session="trip", typed=True
    )
    kept = await memory.offload_tool_result(
        "shell", LOG, arguments={"command": "make"}, tool_call_id="c1", session="trip", task="Fix the build"
    )
    clock.advance(minutes=3)
    await memory.offload_tool_result("read_file", "port = 7\n" * 90, session="trip", step="Read the settings")
    await memory.offload_tool_result("shell", LOG + "\nall done", session="trip", task="Write the report")
    await memory.record_turns([NewTurn(role="user", content=f"The log {kept.ref} says it.")], session="work")
    await memory.remember(
        "The user lives in Porto",
        entity="user",
        relation="lives in",
        value="Porto",
        supersedes=[lisbon.atom.id],
        typed=True,
    )
    await memory.fold_canvas(task="Fix the build", action="complete", session="trip")
    gone = await memory.forget([tea.atom.id], reason="a guest's")
    await memory.remember(
        "The night boat sails at 02:30", kind="episodic", session="work", cites=[kept.ref], typed=True
    )
    assert gone.tombstone
    await memory.forget([(await memory.session_turns("trip"))[1].id])
    await memory.forget(undo=gone.tombstone)


@pytest.fixture(scope="session")
def one_that_lived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a day in each of two spaces."""
    home, clock = tmp_path_factory.mktemp("lived") / "home", FixedClock(START)

    async def run() -> None:
        for space in ("default", "work"):
            async with open_memory(home=home, space=space, now=clock, embedder="none") as memory:
                await live(memory, clock)

    anyio.run(run)
    return home


@pytest.fixture
def lived(one_that_lived: Path) -> Lived:
    """Return a function that gives a home these days: a copy of them, which a test can spoil."""

    def fill(home: Path) -> Path:
        return Path(shutil.copytree(one_that_lived, home, dirs_exist_ok=True))

    return fill


def problems(home: Path) -> list[str]:
    """Return what doctor reports of the rows and files of a home."""
    with closing(open_store(home)) as store:
        found = store.problems()
        return found or [
            problem for space in store.read_home(home_rows.spaces) for problem in canvas_problems(store, space)
        ]


def backed_up(home: Path, *, now: datetime = NOW, **options: Any) -> Backup:
    with closing(open_store(home)) as store:
        return back_up(store, home, now=now, **options)
