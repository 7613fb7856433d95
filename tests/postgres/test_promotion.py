"""The steps of docs/operations.md after the loss of a primary, as they are written there, on real servers."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mcp_memory.store.sql import turn_rows
from tests.postgres.notes import make_table, opened, sql
from tests.postgres.test_crashes import DURABLE, Written, writers
from tests.postgres_server import PostgresServer, run, running

pytestmark = pytest.mark.postgres

ROOT = Path(__file__).parents[2]
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"


def steps() -> list[str]:
    """Return the commands that the page gives, without its comments."""
    page = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"### When the primary is lost\n.*?```sh\n(.*?)```", page, re.DOTALL)
    return [line.partition("  #")[0].strip() for line in block.splitlines()]


def perform(step: str, at: PostgresServer, hosts: dict[str, PostgresServer]) -> str:
    """Run a step on the machine of a server, where `hosts` have these names; return what it printed."""
    if step == "pg_ctl start":  # with the options of this server, such as its port
        at.start()
        return ""
    for name, server in hosts.items():
        step = step.replace(f"host={name}", f"host=127.0.0.1 port={server.port}")
    return run(
        *("sh", "-c", step),
        cwd=ROOT,
        PATH=f"{at.binaries}{os.pathsep}{os.environ['PATH']}",
        PGDATA=str(at.folder / "data"),
        PGHOST="127.0.0.1",
        PGPORT=str(at.port),
        PGUSER="postgres",
    )


@contextmanager
def lost(primary: PostgresServer, standby: PostgresServer, written: Written) -> Generator[None]:
    """Lose the primary while clients write, and follow the steps; the block is run before there is a standby again."""
    hosts = {"primary": primary, "standby": standby}
    promote, rebuild, start, look = steps()
    written.wait_for(20)
    primary.kill()
    perform(promote, standby, hosts)
    until = time.monotonic() + 30
    while sql(standby.url(), WAITING) != [(4,)]:
        assert time.monotonic() < until, "the writers do not wait for a standby"
        time.sleep(0.05)
    yield
    perform(rebuild, primary, hosts)
    perform(start, primary, hosts)
    written.wait_for(20)
    assert re.search(r"127\.0\.0\.1\s*\|\s*sync\n", perform(look, standby, hosts))


def test_after_two_promotions_every_acknowledged_write_is_there_once() -> None:
    with running(DURABLE) as first:
        first.make_template()
        make_table(first.url("memory"))
        sql(first.url(), "CREATE ROLE standby LOGIN REPLICATION")
        sql(first.url(), "ALTER SYSTEM SET synchronous_standby_names = '*'")  # pg_basebackup copies it
        with first.standby() as second:
            url = f"postgresql://memory@127.0.0.1:{first.port},127.0.0.1:{second.port}/memory"
            with opened(url) as store, writers(store) as written:
                sql(first.url(), "ALTER SYSTEM SET listen_addresses = '127.0.0.1,127.0.0.2'")
                with lost(first, second, written):
                    acknowledged = len(written.acknowledged)  # all four writers wait
                    assert store.read("space 0", turn_rows.sessions) != []
                    assert len(written.acknowledged) == acknowledged
                rebuilt = (first.folder / "data/postgresql.auto.conf").read_text(encoding="utf-8")
                assert rebuilt.endswith("listen_addresses = '127.0.0.1,127.0.0.2'\n")
                with lost(second, first, written):
                    pass
            written.check(first.url("memory"))


def test_a_primary_that_answers_is_not_replaced() -> None:
    with running(DURABLE) as first, first.standby() as second:
        with pytest.raises(RuntimeError, match=r"The lost primary answers\. .* Nothing was changed\."):
            perform(steps()[0], second, {"primary": first})
        assert sql(second.url(), "SELECT pg_is_in_recovery()") == [(True,)]


def test_a_primary_that_still_sends_is_replaced_only_by_force() -> None:
    def promote(connection: str) -> str:
        return perform(f"sh deploy/promote.sh {connection}", second, {})

    with running(DURABLE) as first:
        first.make_template()
        with first.standby() as second:
            with pytest.raises(RuntimeError, match=r"name of the lost primary is unknown: .* Nothing was changed\."):
                promote("'host=primary..lost'")
            with pytest.raises(RuntimeError, match=r"receives from a primary, 127\.0\.0\.1, .* Nothing was changed\."):
                promote("'host=127.0.0.1 port=1'")
            assert sql(second.url(), "SELECT pg_is_in_recovery()") == [(True,)]
            both = f"postgresql://memory@127.0.0.1:{first.port},127.0.0.1:{second.port}/memory"
            with opened(both) as store:
                assert store.problems() == []
                assert "This is the primary now" in promote("--force 'host=127.0.0.1 port=1'")
                assert [problem for problem in store.problems() if problem.startswith("2 servers")] == [
                    f"2 servers accept writes, 127.0.0.1:{first.port} and 127.0.0.1:{second.port}: what is written to"
                    " one is missing on the other. Stop the one that was the primary before, and make it a standby with"
                    " deploy/rebuild-standby.sh, which keeps its data directory."
                ]
            with pytest.raises(RuntimeError, match=r"accepts writes itself\. Nothing was changed\."):
                promote("--force 'host=127.0.0.1 port=1'")


@pytest.mark.nightly
def test_a_data_directory_in_use_is_not_rebuilt() -> None:
    with (
        running(DURABLE) as first,
        first.standby() as second,
        pytest.raises(RuntimeError, match=r"PostgreSQL runs in .* Nothing was changed\."),
    ):
        perform(steps()[1], first, {"standby": second})
