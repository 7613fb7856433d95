"""Servers hear of each other's commits, and go on when the connection on which they listen is lost."""

from __future__ import annotations

from threading import Event

import pytest

from mcp_memory.core.types import NewTurn
from mcp_memory.store.postgres.store import PostgresStore
from mcp_memory.store.sql import home_rows, turn_rows
from tests.postgres.notes import opened, sql
from tests.postgres.proxy import Proxy
from tests.postgres_server import PostgresServer, running
from tests.store.test_contract import NOW

pytestmark = pytest.mark.postgres

WAIT = 20


def write(store: PostgresStore, text: str = "Tea") -> None:
    store.write("me", turn_rows.append, "s", turn_rows.prepare([NewTurn(role="user", content=text)]), now=NOW)


def heard_of(store: PostgresStore) -> Event:
    """Have a store listen, and return the event of what it hears; the first is that it begins."""
    event = Event()
    store.on_change(event.set)
    assert event.wait(WAIT)
    event.clear()
    return event


def test_a_server_hears_of_the_commits_of_others_and_not_of_its_own(url: str) -> None:
    with opened(url) as one, opened(url) as other:
        ours, theirs = heard_of(one), heard_of(other)
        write(one)
        assert theirs.wait(WAIT)
        assert not ours.is_set()
        write(other, "Coffee")
        assert ours.wait(WAIT)


def test_a_server_whose_connection_was_lost_looks_at_once_and_listens_again(
    url: str, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp_memory.store.postgres.notifications._AGAIN", 0.05)
    with opened(url) as one, opened(proxy.url(url)) as other:
        heard_of(one)
        theirs = heard_of(other)
        proxy.cut()
        assert theirs.wait(WAIT)  # something may have been missed
        theirs.clear()
        write(one)
        assert theirs.wait(WAIT)


def test_a_server_that_cannot_listen_writes_all_the_same(url: str, proxy: Proxy) -> None:
    with opened(url) as other, opened(proxy.url(url)) as one:
        write(one)
        proxy.refuse()
        one.on_change(lambda: None)
        write(one, "Coffee")
        assert other.read("me", home_rows.last_change) == one.read("me", home_rows.last_change)


def test_after_a_failover_that_lost_changes_later_ones_have_higher_numbers() -> None:
    with running() as primary:
        primary.make_template()
        url = primary.create_memory()
        with primary.standby() as standby:
            with opened(url) as store:
                write(store)
            sql(primary.url(), "ALTER SYSTEM RESET synchronous_standby_names")
            sql(primary.url(), "SELECT pg_reload_conf()")
            wait_for_replay(primary, standby)
            cut_off(standby)
            with opened(url) as store:
                for number in range(5):
                    write(store, f"lost {number}")
                seen = store.read("me", home_rows.last_change)
            primary.kill()
            standby.promote()
            with opened(url.replace(f":{primary.port}/", f":{standby.port}/")) as store:
                assert store.read("me", home_rows.last_change) < seen
                write(store, "after")
                assert store.read("me", home_rows.last_change) > seen
                assert [change.topic for change in store.read("me", home_rows.changes, seen)] == ["session:s"]


def wait_for_replay(primary: PostgresServer, standby: PostgresServer) -> None:
    ((at,),) = sql(primary.url(), "SELECT pg_current_wal_lsn()::text")
    while sql(standby.url(), f"SELECT pg_last_wal_replay_lsn() >= '{at}'") != [(True,)]:
        Event().wait(0.02)


def cut_off(standby: PostgresServer) -> None:
    sql(standby.url(), "ALTER SYSTEM SET primary_conninfo = ''")
    sql(standby.url(), "SELECT pg_reload_conf()")
    while sql(standby.url(), "SELECT count(*) FROM pg_stat_wal_receiver") != [(0,)]:
        Event().wait(0.02)
