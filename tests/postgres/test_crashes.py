"""A server that is killed: what was acknowledged is there, once, and the store works again without being reopened."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGKILL
from threading import Event

import pytest

from bench import failover
from mcp_memory.core.errors import StoreUnavailable
from mcp_memory.core.types import NewTurn
from mcp_memory.store.postgres.store import PostgresStore
from mcp_memory.store.sql import turn_rows
from tests.postgres.notes import make_table, note, noted, opened, sql
from tests.postgres.proxy import proxied
from tests.postgres_server import PostgresServer, running
from tests.store.test_contract import NOW

pytestmark = pytest.mark.postgres

DURABLE = {"wal_writer_delay": "10s"}  # so that nothing is flushed but by commits


@pytest.fixture(scope="module")
def durable() -> Iterator[PostgresServer]:
    """A server with fsync and synchronous_commit on, which tests may kill."""
    with running(DURABLE) as server:
        server.make_template()
        make_table(server.url("memory"))
        yield server


@dataclass(slots=True)
class Written:
    """What writers were told: every text was acknowledged, refused (not stored), or its end is unknown."""

    acknowledged: list[str] = field(default_factory=list[str])
    refused: list[str] = field(default_factory=list[str])
    unknown: list[str] = field(default_factory=list[str])

    def wait_for(self, more: int) -> None:
        """Wait until so many more were acknowledged."""
        enough, until = len(self.acknowledged) + more, time.monotonic() + 30
        while len(self.acknowledged) < enough:
            assert time.monotonic() < until, "the writers do not get on"
            time.sleep(0.01)

    def check(self, url: str) -> None:
        """Check that the database has every acknowledged text once, no refused one, and of the others what it may."""
        found = noted(url)
        assert len(found) == len(set(found))
        assert set(self.acknowledged) - set(found) == set()
        assert set(found) - set(self.acknowledged) - set(self.unknown) == set()
        turns = {text for (text,) in sql(url, "SELECT content FROM turn")}
        assert set(self.acknowledged) - turns == set()


@contextmanager
def writers(store: PostgresStore, number: int = 4) -> Iterator[Written]:
    """Write from so many threads until the end of the block, each to a space of its own."""
    written, enough = Written(), Event()

    def write(writer: int) -> None:
        count = 0
        while not enough.is_set():
            text = f"{writer}: {(count := count + 1)}"
            try:
                store.write(
                    f"space {writer}",
                    turn_rows.append,
                    "s",
                    turn_rows.prepare([NewTurn(role="user", content=text)]),
                    now=NOW,
                )
                note(store, text)
            except StoreUnavailable as error:
                (written.unknown if "may or may not" in str(error) else written.refused).append(text)
            else:
                written.acknowledged.append(text)

    with ThreadPoolExecutor(number) as threads:
        running_writers = [threads.submit(write, writer) for writer in range(number)]
        try:
            yield written
        finally:
            enough.set()
        for writer in running_writers:
            writer.result()


@pytest.fixture
def memory(durable: PostgresServer) -> Iterator[str]:
    made = durable.create_memory()
    yield made
    durable.drop_database(made)


def kill_a_backend(server: PostgresServer) -> None:
    """The server ends all its other processes then, and recovers."""
    ((pid,),) = sql(server.url(), "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'mcp-memory%' LIMIT 1")
    os.kill(pid, SIGKILL)


def kill_and_start(server: PostgresServer) -> None:
    server.kill()
    server.start()


@pytest.mark.parametrize("crash", [kill_and_start, kill_a_backend])
def test_what_was_acknowledged_is_there_once_after_a_crash(
    durable: PostgresServer, memory: str, crash: Callable[[PostgresServer], None]
) -> None:
    with opened(memory) as store, writers(store) as written:
        for _ in range(2):
            written.wait_for(20)
            crash(durable)
        written.wait_for(20)
    written.check(memory)


def test_a_number_that_was_given_again_after_a_crash_is_not_taken_for_the_lost_write(
    durable: PostgresServer, memory: str
) -> None:
    """`pg_xact_status` would tell how a later transaction with the same number ended."""

    def crash() -> None:
        kill_and_start(durable)
        for number in range(20):
            sql(memory, f"INSERT INTO note VALUES ('another {number:02}')")

    with proxied(durable.port) as proxy, opened(proxy.url(memory)) as store:
        note(store, "before")
        proxy.cut_before(b"COMMIT", crash)
        note(store, "lost at first")
    assert noted(memory) == [*(f"another {number:02}" for number in range(20)), "before", "lost at first"]


def test_a_commit_that_survived_the_crash_is_not_done_again(durable: PostgresServer, memory: str) -> None:
    with proxied(durable.port) as proxy, opened(proxy.url(memory)) as store:
        proxy.cut_after(b"COMMIT", lambda: kill_and_start(durable))
        note(store, "once")
    assert noted(memory) == ["once"]


def test_a_store_opens_while_nothing_but_the_primary_of_its_servers_runs(durable: PostgresServer, memory: str) -> None:
    url = memory.replace("@", "@127.0.0.1:1,")
    with opened(url) as store:
        note(store, "found")
    assert noted(memory) == ["found"]


def test_no_acknowledged_write_is_lost_by_a_failover_to_a_synchronous_standby() -> None:
    with running(DURABLE) as primary:
        primary.make_template()
        make_table(primary.url("memory"))
        with primary.standby() as standby:
            both = primary.url("memory").replace("/memory", f",127.0.0.1:{standby.port}/memory")
            with opened(both) as store, writers(store) as written:
                written.wait_for(50)
                primary.kill()
                standby.promote()
                written.wait_for(50)
            written.check(standby.url("memory"))


def test_a_standby_that_commits_do_not_wait_for_is_a_problem() -> None:
    with running(DURABLE) as primary:
        primary.make_template()
        with primary.standby():
            sql(primary.url(), "ALTER SYSTEM RESET synchronous_standby_names")
            sql(primary.url(), "SELECT pg_reload_conf()")
            with opened(primary.url("memory", "memory")) as store:
                (problem,) = store.problems()
    assert problem.startswith("No standby is synchronous: after a failover")


def test_a_number_that_the_new_primary_gave_again_is_not_taken_for_the_lost_write() -> None:
    with running(DURABLE) as primary:
        primary.make_template()
        make_table(primary.url("memory"))
        with primary.standby() as standby, proxied(primary.port) as proxy:

            def fail_over() -> None:
                primary.kill()
                standby.promote()
                for number in range(20):
                    sql(standby.url("memory"), f"INSERT INTO note VALUES ('another {number:02}')")

            both = proxy.url(primary.url("memory")).replace("/memory", f",127.0.0.1:{standby.port}/memory")
            with opened(both) as store:
                note(store, "before")
                proxy.cut_before(b"COMMIT", fail_over)
                note(store, "lost at first")
            found = noted(standby.url("memory"))
    assert found == [*(f"another {number:02}" for number in range(20)), "before", "lost at first"]


def test_the_bench_counts_what_kills_lose(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    with pytest.raises(SystemExit) as ended:
        failover.main(["--kills", "1", "--failovers", "0", "--json", str(figures)])
    assert ended.value.code == 0
    found = json.loads(figures.read_text())["kills"]
    assert (found["kills"], found["lost"], found["doubled"]) == (1, 0, 0)
    assert found["acknowledged"]
