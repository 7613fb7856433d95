"""Upgrades: servers of two versions on one database, and who may change the tables."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner

from mcp_memory.cli.main import program
from mcp_memory.core.errors import NewerHome, Refused, StoreUnavailable
from mcp_memory.store.postgres import migrations
from mcp_memory.store.postgres.database import migrate
from mcp_memory.store.postgres.migrations import STEPS, Step
from mcp_memory.store.postgres.store import open_store
from mcp_memory.store.sql import turn_rows
from tests.postgres.notes import as_administrator, as_owner, note, noted, opened, sql
from tests.postgres_server import PostgresServer

pytestmark = pytest.mark.postgres

Connection = psycopg.Connection[Any]


def _add_mood(con: Connection) -> None:
    con.execute("ALTER TABLE note ADD mood TEXT")


def _compute_mood(con: Connection) -> bool:
    """Compute the mood of two notes; return whether notes are left."""
    sql = "UPDATE note SET mood = 'glad' WHERE text IN (SELECT text FROM note WHERE mood IS NULL LIMIT 2)"
    return con.execute(sql).rowcount > 0


def _must_have_mood(con: Connection) -> None:
    con.execute("ALTER TABLE note ALTER mood SET NOT NULL")


MOOD = Step(name=f"{STEPS[-1].number + 1:04}-mood", expand=_add_mood, backfill=_compute_mood, contract=_must_have_mood)


@pytest.fixture
def newer(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Make this program the next version; `undo()` makes it this version again."""
    monkeypatch.setattr(migrations, "STEPS", [*STEPS, MOOD])
    return monkeypatch


def moods(url: str) -> list[Any]:
    return [mood for (mood,) in sql(url, "SELECT mood FROM note ORDER BY text")]


def test_an_older_server_goes_on_beside_a_newer_one(url: str, newer: pytest.MonkeyPatch) -> None:
    with newer.context() as this:
        this.setattr(migrations, "STEPS", STEPS)
        older = open_store(url)
    migrate(as_owner(url))
    with opened(url) as store:
        note(store, "of the newer")
    note(older, "of the older")
    older.close()
    newer.undo()
    with opened(url) as store:
        note(store, "of the older, started again")
    assert noted(url) == ["of the newer", "of the older", "of the older, started again"]
    assert moods(url) == [None, None, None]


def test_old_rows_are_computed_in_batches_and_go_on_after_a_failure(url: str, newer: pytest.MonkeyPatch) -> None:
    with opened(as_owner(url)) as store:
        for number in range(5):
            note(store, f"note {number}")
    batches = iter([_compute_mood, _compute_mood])

    def fail_later(con: Connection) -> bool:
        return next(batches)(con)  # the third raises StopIteration

    newer.setattr(migrations, "STEPS", [*STEPS, Step(name=MOOD.name, expand=_add_mood, backfill=fail_later)])
    with pytest.raises(RuntimeError):
        migrate(as_owner(url))
    assert moods(url).count("glad") == 4
    newer.setattr(migrations, "STEPS", [*STEPS, MOOD])
    assert migrate(as_owner(url)) == [(MOOD.name, "backfill")]
    assert moods(url) == ["glad"] * 5
    assert migrate(as_owner(url)) == []


def test_an_upgrade_is_finished_when_no_older_server_is_connected(url: str, newer: pytest.MonkeyPatch) -> None:
    with newer.context() as this:
        this.setattr(migrations, "STEPS", STEPS)
        older = open_store(url)
    assert migrate(as_owner(url)) == [(MOOD.name, "expand"), (MOOD.name, "backfill")]
    with pytest.raises(
        Refused, match=rf"mcp-memory schema {STEPS[-1].number} as memory\). Nothing was removed. Upgrade them first"
    ):
        migrate(as_owner(url), contract=True)
    note(older, "still written")
    older.close()
    sql(url, "UPDATE note SET mood = 'glad'")
    assert migrate(as_owner(url), contract=True) == [(MOOD.name, "contract")]
    newer.undo()
    with pytest.raises(NewerHome, match=rf"upgraded by a newer mcp-memory \(schema {MOOD.name}\)"):
        open_store(url)


def test_a_version_that_may_only_read_says_so_and_writes_nothing(url: str, newer: pytest.MonkeyPatch) -> None:
    newer.setattr(migrations, "STEPS", [*STEPS, Step(name=MOOD.name, expand=_add_mood, min_writer=MOOD.number)])
    migrate(as_owner(url))
    newer.undo()
    with opened(url) as store:
        assert store.read_only == f"schema {MOOD.name} can be written by newer versions only"
        assert any("can only be read" in problem and "Upgrade" in problem for problem in store.problems())
        assert store.read("me", turn_rows.sessions) == []
        with pytest.raises(StoreUnavailable, match=rf"can only be read: schema {MOOD.name} .* Upgrade this mcp-memory"):
            note(store, "lost?")
    assert noted(url) == []


def test_servers_that_start_at_once_run_each_step_once(postgres: PostgresServer) -> None:
    url = postgres.create_database()
    sql(url, "CREATE EXTENSION vector")
    with ThreadPoolExecutor(4) as threads:
        for store in threads.map(open_store, [url] * 4):
            store.close()
    assert sql(url, "SELECT name, min_reader, min_writer FROM migration ORDER BY name") == [
        ("0001-baseline", 1, 1),
        ("0002-keyed-identifiers", 1, 1),
        ("0003-labels", 1, 1),
        ("0004-projects", 1, 1),
        ("0005-proofs", 5, 5),
        ("0006-quotas", 1, 1),
        ("0007-listed-atoms", 7, 7),
        ("0008-term-segments", 8, 8),
        ("0009-titles", 1, 1),
        ("0010-feedback", 1, 1),
        ("0011-smaller-rows", 11, 11),
    ]
    postgres.drop_database(url)


def test_the_owner_sets_limits_that_the_database_lacks(postgres: PostgresServer) -> None:
    url = postgres.create_database()
    sql(url, "CREATE EXTENSION vector")
    sql(url, f"ALTER DATABASE {url.rpartition('/')[2]} SET lock_timeout = '3s'")
    assert migrate(url)[0] == ("0001-baseline", "expand")
    names = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")
    assert [sql(url, f"SHOW {name}") for name in names] == [[("1min",)], [("3s",)], [("1min",)]]
    postgres.drop_database(url)


def test_the_command_says_what_it_did(url: str) -> None:
    sql(url, "CREATE ROLE reader LOGIN")
    try:
        command = ["migrate", "--store", as_owner(url), "--grant", "reader"]
        done = CliRunner().invoke(program, command)
        *lines, key = done.stdout.splitlines()
        assert (done.exit_code, lines) == (
            0,
            [
                "the tables are up to date",
                "reader may read and write the rows with its key",
                "Set this for its servers; it is not shown again:",
            ],
        )
        with closing(open_store(url.replace("memory@", "reader@"), key=key.removeprefix("MCP_MEMORY_STORE_KEY="))):
            pass
        assert CliRunner().invoke(program, command).stdout.splitlines() == lines[:2]
    finally:
        sql(url, "DROP OWNED BY reader")
        sql(url, "DROP ROLE reader")
    missing = CliRunner().invoke(program, ["migrate", "--store", as_owner(url), "--grant", "nobody"])
    assert missing.exit_code == 2
    assert "There is no user nobody in PostgreSQL. Create it with `createuser nobody`." in missing.stderr


def test_a_memory_in_files_has_no_tables_to_migrate(home: str) -> None:
    done = CliRunner().invoke(program, ["migrate", "--home", str(home)])
    assert done.exit_code == 1
    assert "This memory is in files" in done.stderr


def test_a_server_that_keeps_less_than_it_should_is_a_problem(url: str) -> None:
    with opened(url) as store:
        assert store.problems() == []
    with opened(f"{as_administrator(url)}?options=-csynchronous_commit%3Doff") as store:
        above, not_flushed = store.problems()
    assert "`mcp-memory migrate --grant USER`" in above
    assert "synchronous_commit is off" in not_flushed
