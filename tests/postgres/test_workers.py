"""Several servers that distil one database: every space is served, no job is committed twice, the dead are replaced."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from mcp_memory.core.types import NewTurn
from mcp_memory.store.postgres.store import PostgresStore
from mcp_memory.store.sql import atom_rows, job_rows, queues, stage_outputs, turn_rows
from mcp_memory.store.values import DISTIL, Filters
from tests.leases import pass_time
from tests.postgres.notes import opened, sql

pytestmark = pytest.mark.postgres

ROOT = Path(__file__).parents[2]
SPACES = [f"tenant-{number}" for number in range(9)]
HOUR = 60
LONG = timedelta(hours=1)


def said(space: str) -> list[str]:
    return [f"I have seen {number} whales with {space}." for number in range(6)]


def write(store: PostgresStore, space: str) -> None:
    """Have something said in a space, which was then left."""
    long_ago = datetime.now(UTC) - timedelta(days=2)
    for text in said(space):
        store.write(space, turn_rows.append, "s", turn_rows.prepare([NewTurn(role="user", content=text)]), now=long_ago)
    store.write(space, job_rows.flush, "s")


def read(store: PostgresStore, space: str) -> list[str]:
    atoms = store.read(space, atom_rows.list_atoms, filters=Filters(), limit=99)
    return sorted(atom.text for atom in atoms)


@contextmanager
def worker(url: str, home: Path, *arguments: str) -> Generator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tests.postgres.worker", url, str(home), *arguments]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_until(done: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not done():
        assert time.monotonic() < until, "it does not come"
        time.sleep(0.05)


def test_three_servers_whose_clocks_differ_read_every_turn_of_every_space_once(url: str, tmp_path: Path) -> None:
    with opened(url) as store, ExitStack() as servers:
        for space in SPACES:
            write(store, space)
        for number, fast in enumerate((0, HOUR, -HOUR)):
            servers.enter_context(worker(url, tmp_path / f"{number}", f"{fast}"))
        for space in SPACES:
            wait_until(lambda space=space: not store.read(space, job_rows.backlog))
            assert not store.read(space, job_rows.list_jobs)
        drafts_or_atoms = {
            space: sorted(
                [*read(store, space), *(draft.atom.text for draft in store.read(space, stage_outputs.drafts))]
            )
            for space in SPACES
        }
    assert drafts_or_atoms == {space: said(space) for space in SPACES}
    # each job read on from where the last one had stopped
    spans = sql(
        url,
        "SELECT s.name, array_agg((part ->> 'start')::int ORDER BY w.id), array_agg((part ->> 'stop')::int ORDER BY w.id)"
        " FROM work w JOIN space s ON s.id = w.space, json_array_elements(w.basis::json -> 'parts') part"
        " WHERE w.stage = 'extract' AND w.state = 'done' GROUP BY 1 ORDER BY 1",
    )
    assert [space for space, _, _ in spans] == SPACES
    assert all(starts == [0, *stops[:-1]] and stops[-1] == len(said(space)) for space, starts, stops in spans)


def test_the_space_of_a_killed_server_is_taken_over_after_its_lease_whatever_the_clocks_say(
    url: str, tmp_path: Path
) -> None:
    with opened(url) as store:
        write(store, "tenant")
        with worker(url, tmp_path / "killed", "0", "ask") as killed:
            assert killed.stdout is not None
            assert killed.stdout.readline() == "asked\n"
        (job,) = store.read("tenant", job_rows.list_jobs)
        assert queues.claim_space(store, DISTIL, lease=LONG, space="tenant") is None
        with worker(url, tmp_path / "fast", f"{HOUR}"):
            write(store, "other")
            wait_until(lambda: not store.read("other", job_rows.backlog))
            assert [left.id for left in store.read("tenant", job_rows.list_jobs)] == [
                job.id
            ]  # the lease is the killed one's
            pass_time(store, LONG)
            wait_until(lambda: not store.read("tenant", job_rows.backlog))
        assert store.read("tenant", job_rows.stage_totals)[0].outcome["turns"] == len(said("tenant"))
