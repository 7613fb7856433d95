"""A worker may die at any moment: what it leaves is what it would have left without dying, and no turn is lost."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_memory.longterm.verification.evidence import verify
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import atom_rows, job_rows, page_rows, stage_outputs
from mcp_memory.store.sqlite.store import open_store
from mcp_memory.store.values import Filters
from mcp_memory.testing import FixedClock
from tests.leases import pass_time
from tests.service.scheduler.rounds import EXPECTED, SESSIONS, THINGS, finish, record, working

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]


class Died(BaseException):
    """The process is gone. No code of ours may catch it."""


class Mortal:
    """A store that dies at its calls number so many: before it does what was asked, or after."""

    def __init__(self, store: Store, deaths: list[tuple[int, bool]]) -> None:
        self._store = store
        self._deaths = deaths
        self._calls = 0

    def __getattr__(self, verb: str) -> Any:
        call: Callable[..., Any] = getattr(self._store, verb)

        def live(*args: Any, **kwargs: Any) -> Any:
            self._calls += 1
            dies = next((after for number, after in self._deaths if number == self._calls), None)
            if dies is False:
                raise Died
            result = call(*args, **kwargs)
            if dies:
                raise Died
            return result

        return live


def read_once(store: Store) -> bool:
    """Return whether the works that were done cover each session's positions, each exactly once."""
    import apsw

    con = apsw.Connection(str(store.folder("x").parents[1] / "memory.db"))
    done = con.execute("SELECT basis FROM work WHERE stage = 'extract' AND state = 'done'").fetchall()
    con.close()
    parts = [part for (basis,) in done for part in json.loads(str(basis))["parts"]]
    for session in SESSIONS:
        spans = sorted((part["start"], part["stop"]) for part in parts if part["session"] == session)
        starts, stops = [start for start, _ in spans], [stop for _, stop in spans]
        if starts != [0, *stops[:-1]] or stops[-1:] != [2 * len(THINGS)]:
            return False
    return True


def told(store: Store) -> list[tuple[str, str]]:
    """Return every statement held, with the words it rests on."""
    atoms = store.read("default", atom_rows.list_atoms, filters=Filters(), limit=1_000)
    return sorted((atom.text, store.read("default", atom_rows.evidence, atom.id)[0].quote) for atom in atoms)


def whole(store: Store) -> None:
    """What holds after everything was read, whatever died on the way."""
    assert told(store) == EXPECTED
    assert read_once(store)
    assert (
        store.read("default", job_rows.backlog),
        store.read("default", stage_outputs.drafts),
        store.read("default", job_rows.list_jobs),
    ) == ([], [], [])
    cited = [id for scene in store.read("default", page_rows.scenes) for id in scene.atoms]
    assert sorted(cited) == sorted(
        atom.id for atom in store.read("default", atom_rows.list_atoms, filters=Filters(), limit=1_000)
    )
    page = store.read("default", page_rows.persona)
    assert page is not None
    assert page.by_model
    walked = verify(store, "default")
    assert (walked.problems, walked.quotes) == ([], len(EXPECTED))


@settings(max_examples=6)
@given(deaths=st.lists(st.tuples(st.integers(1, 400), st.booleans()), max_size=6, unique_by=lambda one: one[0]))
def test_whatever_call_a_worker_dies_at_the_rows_are_those_of_a_worker_that_lived(
    deaths: list[tuple[int, bool]],
) -> None:
    with TemporaryDirectory() as folder:
        home, clock = Path(folder), FixedClock()
        store = open_store(home)
        record(store, clock)
        mortal = Mortal(store, deaths)
        for _ in range(len(deaths) + 1):
            try:
                with working(mortal, clock, home) as step:
                    while step():
                        pass
            except Died:
                clock.advance(minutes=30)
                pass_time(store, timedelta(minutes=30))
        finish(store, clock, home)
        whole(store)
        store.close()


def test_killed_processes_leave_what_living_ones_would(home: Path) -> None:
    """Three processes work on one home and are killed at random moments, again and again; a last one finishes."""
    clock = FixedClock()
    store = open_store(home)
    record(store, clock)
    store.close()
    chance = random.Random(4)
    for _ in range(3):
        running = [
            subprocess.Popen(
                [sys.executable, "-m", "tests.service.scheduler.worker", str(home)], stderr=subprocess.PIPE, cwd=ROOT
            )
            for _ in range(3)
        ]
        for process in running:
            assert process.stderr is not None
            process.stderr.readline()  # it is at work
        for process in running:
            try:
                process.wait(timeout=chance.uniform(0.0, 0.4))
            except subprocess.TimeoutExpired:
                os.kill(process.pid, signal.SIGKILL)
                process.wait()
            assert process.stderr is not None
            process.stderr.close()
    store = open_store(home)
    finish(store, clock, home)
    whole(store)
    store.close()
