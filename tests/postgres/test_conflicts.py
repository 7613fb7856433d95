"""Writes that meet other writes, limits of the operator or a full disk: tried again, or a clear error and no row."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from mcp_memory.core.errors import NoRoom, StoreUnavailable
from mcp_memory.core.types import NewTurn
from mcp_memory.store.sql import turn_rows
from tests.postgres.notes import as_administrator, note, noted, opened, sql
from tests.store.test_contract import NOW

pytestmark = pytest.mark.postgres


@contextmanager
def transaction(url: str) -> Iterator[psycopg.Connection[Any]]:
    """A transaction of somebody else, who does not notice deadlocks and rolls back at the end of the block."""
    with psycopg.connect(as_administrator(url)) as con:
        con.execute("SET deadlock_timeout = '60s'")
        yield con
        con.rollback()


def failing(url: str, code: str, *, times: int, at_commit: bool = False) -> None:
    """Let the next writes to `note` fail with an error of PostgreSQL, each once and so many in all."""
    sql(url, f"CREATE SEQUENCE failures; SELECT setval('failures', {times}, false)")
    sql(url, "ALTER SEQUENCE failures INCREMENT -1 MINVALUE -100")
    sql(
        url,
        "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN"
        f" IF nextval('failures') > 0 THEN RAISE 'made by a test' USING ERRCODE = '{code}'; END IF;"
        " RETURN NEW; END $$",
    )
    deferred = "DEFERRABLE INITIALLY DEFERRED" if at_commit else ""
    sql(
        url,
        f"CREATE CONSTRAINT TRIGGER failing AFTER INSERT ON note {deferred} FOR EACH ROW EXECUTE FUNCTION fail()",
    )


def test_a_write_that_was_chosen_to_end_a_deadlock_is_tried_again(url: str) -> None:
    sql(url, "INSERT INTO note VALUES ('in the way')")
    with (
        opened(f"{as_administrator(url)}?options=-c%20deadlock_timeout%3D50ms") as store,
        ThreadPoolExecutor(1) as threads,
    ):
        with transaction(url) as other:
            other.execute("SELECT * FROM note FOR UPDATE")

            def write() -> None:
                store.write("me", lambda tx: tx.run("UPDATE note SET text = 'done'"))

            writing = threads.submit(write)
            while not sql(url, "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"):
                pass
            other.execute("SELECT id FROM space WHERE name = 'me' FOR UPDATE")  # returns as the write gives way
        writing.result()
    assert noted(url) == ["done"]


@pytest.mark.parametrize("code", ["40001", "40P01"])
@pytest.mark.parametrize("at_commit", [False, True])
def test_a_conflict_is_tried_again(url: str, code: str, at_commit: bool) -> None:
    failing(url, code, times=3, at_commit=at_commit)
    with opened(url) as store:
        note(store, "the fourth time")
    assert noted(url) == ["the fourth time"]


def test_a_conflict_at_every_try_is_an_error(url: str) -> None:
    failing(url, "40001", times=7)
    with opened(url) as store:
        with pytest.raises(StoreUnavailable, match=r"were in the way at every try.*Nothing was written. Try again"):
            note(store, "never")
        note(store, "later")
    assert noted(url) == ["later"]


@pytest.mark.parametrize("at_commit", [False, True])
def test_a_full_disk_is_an_error_and_the_store_works_when_there_is_room(url: str, at_commit: bool) -> None:
    failing(url, "53100", times=1, at_commit=at_commit)
    with opened(url) as store:
        with pytest.raises(NoRoom, match=r"The disk of .* is full.*Nothing was written. Free space"):
            note(store, "too much")
        note(store, "enough")
    assert noted(url) == ["enough"]


def test_statement_timeout_of_the_database_is_an_error_and_nothing_is_written(url: str) -> None:
    sql(url, f"ALTER DATABASE {url.rpartition('/')[2]} SET statement_timeout = '100ms'")
    with opened(url) as store:
        with pytest.raises(StoreUnavailable, match=r"than its settings allow.*statement timeout.*Nothing was"):
            store.write("me", lambda tx: tx.run("INSERT INTO note SELECT pg_sleep(10)::text"))
        note(store, "a short one")
    assert noted(url) == ["a short one"]


def test_lock_timeout_of_the_database_is_an_error_and_nothing_is_written(url: str) -> None:
    sql(url, f"ALTER DATABASE {url.rpartition('/')[2]} SET lock_timeout = '100ms'")
    with opened(url) as store:
        with transaction(url) as other:
            other.execute("SELECT id FROM space FOR UPDATE")
            with pytest.raises(StoreUnavailable, match=r"Another write.*lock_timeout.*Nothing was written"):
                note(store, "behind another")
        note(store, "alone")
    assert noted(url) == ["alone"]


def test_transaction_timeout_of_the_database_is_an_error_and_nothing_is_written(url: str) -> None:
    sql(url, f"ALTER DATABASE {url.rpartition('/')[2]} SET transaction_timeout = '200ms'")
    with opened(url) as store:
        with pytest.raises(StoreUnavailable, match=r"than its settings allow.*Nothing was written"):
            note(store, "too long", first=lambda: sql(url, "SELECT pg_sleep(0.3)"))
        note(store, "a short one")
    assert noted(url) == ["a short one"]


def test_a_reader_with_an_old_snapshot_and_writers_do_not_wait_for_each_other(url: str) -> None:
    with opened(url) as store, opened(url) as other:
        note(store, "old")

        def look(tx: Any) -> list[str]:
            before = tx.column("SELECT text FROM note")
            for number in range(3):
                note(other, f"new {number}")
            assert tx.column("SELECT text FROM note") == before
            return before

        assert store.read("me", look) == ["old"]
    assert noted(url) == ["new 0", "new 1", "new 2", "old"]


def test_a_reader_that_stays_too_long_is_ended_by_the_database_and_holds_nothing_up(url: str) -> None:
    with opened(f"{url}?options=-c%20idle_in_transaction_session_timeout%3D100ms") as store:
        note(store, "found")
        store.write(
            "me", turn_rows.append, "s", turn_rows.prepare([NewTurn(role="user", content="Tea, please.")]), now=NOW
        )
        with pytest.raises(StoreUnavailable, match=r"than its settings allow|cannot be used"):
            store.export_rows(["me"], lambda kind, row: time.sleep(0.3))
        note(store, "written after it")
    assert noted(url) == ["found", "written after it"]


def test_a_write_of_a_server_that_was_stopped_meanwhile_is_ended_and_done_again(url: str) -> None:
    stops = iter([0.3])
    with (
        opened(f"{url}?options=-c%20idle_in_transaction_session_timeout%3D100ms") as store,
        ThreadPoolExecutor(1) as threads,
    ):
        stopped = threads.submit(note, store, "of the stopped one", first=lambda: time.sleep(next(stops, 0)))
        while not sql(url, "SELECT 1 FROM pg_locks WHERE mode = 'RowShareLock'"):
            pass
        with opened(url) as other:
            note(other, "of another")
        stopped.result()
    assert noted(url) == ["of another", "of the stopped one"]


def test_writers_of_different_spaces_do_not_wait_for_each_other(url: str) -> None:
    sql(url, "INSERT INTO space (name) VALUES ('other')")
    with opened(url) as store:

        def meanwhile() -> None:
            with ThreadPoolExecutor(1) as threads:
                threads.submit(
                    store.write, "other", lambda tx: tx.run("INSERT INTO note (text) VALUES ('of another')")
                ).result(10)

        note(store, "of mine", first=meanwhile)
    assert noted(url) == ["of another", "of mine"]


def test_a_write_to_a_server_that_became_read_only_asks_for_the_primary(url: str) -> None:
    with opened(url) as store:
        with pytest.raises(StoreUnavailable, match="promote a standby, or name the primary"):
            store.write("me", lambda tx: (tx.run("SET TRANSACTION READ ONLY"), tx.run("INSERT INTO note VALUES ('x')")))
        note(store, "to the primary")
    assert noted(url) == ["to the primary"]
