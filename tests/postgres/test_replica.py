"""A standby that answers reads: a client reads its own writes, through whichever server, and when the standby is away."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from mcp_memory.store.postgres import replica
from mcp_memory.store.postgres.store import PostgresStore
from tests.postgres.notes import make_table, note, opened, sql
from tests.postgres_server import PostgresServer, running

pytestmark = pytest.mark.postgres

FROM_STANDBY = "SELECT pg_is_in_recovery()"


@pytest.fixture(scope="module")
def primary() -> Iterator[PostgresServer]:
    with running() as server:
        server.make_template()
        make_table(server.url("memory"))
        sql(server.url("memory"), "INSERT INTO space (name) VALUES ('me')")
        yield server


@pytest.fixture
def standby(primary: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[PostgresServer]:
    monkeypatch.setattr(replica, "_BEHIND", 0.05)
    monkeypatch.setattr(replica, "_AWAY", 0.05)
    with primary.standby() as server:
        sql(primary.url(), "ALTER SYSTEM RESET synchronous_standby_names")  # it may fall behind
        sql(primary.url(), "SELECT pg_reload_conf()")
        yield server


def read(store: PostgresStore) -> tuple[int, bool]:
    """Return how many notes a snapshot sees, and whether it is one of the standby."""
    count, is_standby = store.in_snapshot(
        store.read, "me", lambda tx: tx.all(f"SELECT (SELECT count(*) FROM note), ({FROM_STANDBY})")[0]
    )
    return count, is_standby


def until_read_from_the_standby(store: PostgresStore, count: int) -> None:
    until = time.monotonic() + 30
    while read(store) != (count, True):
        assert time.monotonic() < until
        time.sleep(0.02)


def test_every_server_reads_what_any_server_has_written(primary: PostgresServer, standby: PostgresServer) -> None:
    sql(primary.url("memory"), "DELETE FROM note")
    url, reads = primary.url("memory", "memory"), standby.url("memory", "memory")
    with opened(url, reads=reads) as one, opened(url, reads=reads) as other:
        seen = list[tuple[int, bool]]()
        for number in range(60):
            writer, reader = (one, other) if number % 2 else (other, one)
            note(writer, str(number))
            seen += [read(reader), read(writer)]
        assert [count for count, _ in seen] == [number // 2 + 1 for number in range(120)]
        until_read_from_the_standby(one, 60)
        assert "Reads go to the primary" not in "\n".join(one.problems())


def test_reads_go_to_the_primary_while_the_standby_does_not_replay(
    primary: PostgresServer, standby: PostgresServer
) -> None:
    sql(primary.url("memory"), "DELETE FROM note")
    with opened(primary.url("memory", "memory"), reads=standby.url("memory", "memory")) as store:
        note(store, "before")
        until_read_from_the_standby(store, 1)
        sql(standby.url(), "SELECT pg_wal_replay_pause()")
        note(store, "after")
        assert [read(store) for _ in range(5)] == [(2, False)] * 5
        problems = "\n".join(store.problems())
        assert "and not to the standby of MCP_MEMORY_STORE_READS: it has not replayed the newest writes." in problems
        sql(standby.url(), "SELECT pg_wal_replay_resume()")
        until_read_from_the_standby(store, 2)
        assert "MCP_MEMORY_STORE_READS" not in "\n".join(store.problems())


def test_reads_go_on_while_the_standby_is_away(primary: PostgresServer, standby: PostgresServer) -> None:
    sql(primary.url("memory"), "DELETE FROM note")
    with opened(primary.url("memory", "memory"), reads=standby.url("memory", "memory")) as store:
        note(store, "before")
        until_read_from_the_standby(store, 1)
        standby.control("-m", "immediate", "stop")
        note(store, "meanwhile")
        assert [read(store) for _ in range(3)] == [(2, False)] * 3
        assert "Reads go to the primary" in "\n".join(store.problems())
        standby.start()
        until_read_from_the_standby(store, 2)


def test_a_standby_of_another_primary_answers_nothing(primary: PostgresServer, standby: PostgresServer) -> None:
    """After a failover, a standby that was not told of it has the writes of a server that is no longer the primary."""
    sql(primary.url("memory"), "DELETE FROM note")
    with running() as stranger:
        stranger.make_template()
        make_table(stranger.url("memory"))
        with (
            stranger.standby() as other,
            opened(primary.url("memory", "memory"), reads=other.url("memory", "memory")) as store,
        ):
            note(store, "one")
            assert read(store) == (1, False)


def test_writes_and_single_reads_use_the_primary(primary: PostgresServer, standby: PostgresServer) -> None:
    with opened(primary.url("memory", "memory"), reads=standby.url("memory", "memory")) as store:
        assert store.read("me", lambda tx: tx.get(FROM_STANDBY)) is False
