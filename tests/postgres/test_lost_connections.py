"""A connection that is lost at any moment: what was acknowledged is stored, and what is stored is stored once."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import pytest

from mcp_memory.core.errors import StoreUnavailable
from mcp_memory.core.types import NewTurn
from mcp_memory.store.sql import turn_rows
from tests.postgres.notes import note, noted, opened, sql
from tests.postgres.proxy import Proxy
from tests.store.test_contract import NOW

pytestmark = pytest.mark.postgres


@pytest.mark.parametrize("moment", [b"BEGIN", b"enter_space", b"INSERT INTO note", b"commit_mark", b"COMMIT"])
@pytest.mark.parametrize("passed_on", [False, True])
def test_a_write_is_stored_once_wherever_the_connection_is_cut(
    url: str, proxy: Proxy, moment: bytes, passed_on: bool
) -> None:
    with opened(proxy.url(url)) as store:
        note(store, "before")
        (proxy.cut_after if passed_on else proxy.cut_before)(moment)
        made = proxy.connections
        note(store, "the one")
        note(store, "then")
        assert proxy.connections > made
    assert noted(url) == ["before", "the one", "then"]


def test_a_write_is_stored_once_when_the_server_ends_the_connection_behind_its_commit(url: str, proxy: Proxy) -> None:
    def end_connection() -> None:
        while noted(url) != ["once"]:
            time.sleep(0.01)
        sql(url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'mcp-memory%'")

    with opened(proxy.url(url)) as store:
        proxy.hold_sync_after(b"COMMIT", end_connection)
        note(store, "once")
    assert noted(url) == ["once"]


def test_a_turn_has_the_id_that_was_told_after_the_answer_to_its_commit_was_lost(url: str, proxy: Proxy) -> None:
    with opened(proxy.url(url)) as store:
        proxy.cut_after(b"COMMIT")
        told = store.write(
            "me", turn_rows.append, "s", turn_rows.prepare([NewTurn(role="user", content="Tea, please.")]), now=NOW
        ).stored
        assert store.read("me", turn_rows.session_turns, "s") == told


def test_a_read_is_done_again_when_its_connection_was_cut(url: str, proxy: Proxy) -> None:
    with opened(proxy.url(url)) as store:
        note(store, "one")
        proxy.cut_after(b"SELECT")
        assert store.read("me", lambda tx: tx.column("SELECT text FROM note")) == ["one"]


def test_the_reads_of_a_snapshot_are_all_done_again_when_its_connection_was_cut(url: str, proxy: Proxy) -> None:
    with opened(proxy.url(url)) as store:
        note(store, "one")
        tries: list[list[str]] = []

        def look() -> list[str]:
            tries.append(store.read("me", lambda tx: tx.column("SELECT text FROM note ORDER BY text")))
            if len(tries) == 1:
                sql(url, "INSERT INTO note (text) VALUES ('two')")
                proxy.cut()
            return store.read("me", lambda tx: tx.column("SELECT text FROM note ORDER BY text"))

        assert store.in_snapshot(look) == ["one", "two"]
        assert tries == [["one"], ["one", "two"]]


def test_an_export_gives_no_row_twice_when_its_connection_is_cut(url: str, proxy: Proxy) -> None:
    taken: list[object] = []

    def take(*row: object) -> None:
        taken.append(row)

    with opened(proxy.url(url)) as store:
        store.write(
            "me", turn_rows.append, "s", turn_rows.prepare([NewTurn(role="user", content="Tea, please.")]), now=NOW
        )
        store.export_rows(["me"], take)
        whole = len(taken)
        taken.clear()
        proxy.cut_before(b"FROM atom")
        with pytest.raises(StoreUnavailable, match="cannot be used"):
            store.export_rows(["me"], take)
        assert 0 < len(taken) < whole


def test_all_connections_that_were_cut_are_replaced_at_once(url: str, proxy: Proxy) -> None:
    with opened(proxy.url(url)) as store, ThreadPoolExecutor(10) as threads:
        together = Barrier(10)
        list(threads.map(lambda _: store.read("me", lambda tx: together.wait(10)), range(10)))
        assert proxy.connections == 10
        proxy.cut()
        note(store, "after")
        assert proxy.connections == 11
    assert noted(url) == ["after"]


def test_ten_writers_whose_commits_are_not_answered_all_learn_how_they_ended(url: str, proxy: Proxy) -> None:
    with opened(proxy.url(url)) as store, ThreadPoolExecutor(10) as threads:
        for number in range(10):
            sql(url, f"INSERT INTO space (name) VALUES ('space {number}')")
        for _ in range(10):
            proxy.cut_after(b"COMMIT")

        def write(number: int) -> None:
            store.write(f"space {number}", lambda tx: tx.run("INSERT INTO note (text) VALUES (?)", f"{number}"))

        list(threads.map(write, range(10)))
    assert noted(url) == [str(number) for number in range(10)]


def test_a_write_is_called_unknown_when_nobody_says_how_it_ended(url: str, proxy: Proxy) -> None:
    with opened(proxy.url(url), timeout=2) as store:
        proxy.cut_after(b"COMMIT", proxy.refuse)
        with pytest.raises(
            StoreUnavailable, match=r"not confirmed by the server.*may or may not be stored.*Send it again"
        ):
            note(store, "perhaps")
        proxy.accept()
        note(store, "surely")
    assert noted(url) == ["perhaps", "surely"]


def test_a_commit_that_goes_on_for_too_long_is_called_unknown(url: str, proxy: Proxy) -> None:
    sql(url, "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(5); RETURN NULL; END'")
    sql(
        url,
        "CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON note DEFERRABLE INITIALLY DEFERRED"
        " FOR EACH ROW EXECUTE FUNCTION wait()",
    )

    def cut_at_commit() -> None:
        until = time.monotonic() + 10
        while not sql(url, "SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'"):
            assert time.monotonic() < until
        proxy.cut()

    with opened(proxy.url(url), timeout=2) as store, ThreadPoolExecutor(1) as threads:
        cutting = threads.submit(cut_at_commit)
        with pytest.raises(StoreUnavailable, match="may or may not be stored"):
            note(store, "slowly")
        cutting.result()


def test_a_server_that_cannot_be_reached_is_an_error_and_the_store_works_when_it_is_back(
    url: str, proxy: Proxy
) -> None:
    with opened(proxy.url(url)) as store:
        note(store, "before")
        proxy.refuse()
        proxy.cut()
        with pytest.raises(StoreUnavailable, match=r"refused.*Nothing was written. Check that the server runs"):
            note(store, "meanwhile")
        proxy.accept()
        note(store, "after")
    assert noted(url) == ["after", "before"]


def test_a_pool_with_nothing_left_is_an_error_and_works_when_something_is_given_back(url: str) -> None:
    enough = Event()
    with opened(url, connections=2) as store, ThreadPoolExecutor(2) as threads:
        both = Barrier(3)

        def read() -> None:
            store.read("me", lambda tx: (both.wait(10), enough.wait(10)))

        readers = [threads.submit(read) for _ in range(2)]
        both.wait(10)
        with pytest.raises(StoreUnavailable, match=r"All 2 connections.*in use. Nothing was written. Try again"):
            note(store, "too many")
        enough.set()
        for reader in readers:
            reader.result()
        note(store, "one of few")
    assert noted(url) == ["one of few"]


def test_a_failed_write_leaves_its_connection_as_it_was(url: str, proxy: Proxy) -> None:
    with opened(proxy.url(url)) as store:
        with pytest.raises(ZeroDivisionError):
            note(store, "never", first=lambda: 1 // 0)
        note(store, "next")
        assert proxy.connections == 1
    assert noted(url) == ["next"]


def test_marks_of_commits_are_deleted(url: str) -> None:
    with opened(url) as store:
        for number in range(450):
            note(store, f"{number}")
        assert sql(url, "SELECT count(*) FROM commit_mark") == [(50,)]
    sql(url, "UPDATE commit_mark SET at = at - interval '2 days'")
    with opened(url):
        assert sql(url, "SELECT count(*) FROM commit_mark") == [(0,)]


def test_a_store_that_was_closed_says_so(url: str) -> None:
    with opened(url) as store:
        store.close()
        with pytest.raises(StoreUnavailable, match="was closed"):
            note(store, "late")
