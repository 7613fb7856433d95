"""Connections of both engines: no call needs a second one, and none waits for ever."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier, Event

import apsw
import pytest

from mcp_memory.core.errors import StoreUnavailable
from mcp_memory.core.types import Role
from mcp_memory.service.portable.writing import export
from mcp_memory.store.nesting import NestedCall
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import home_rows, ref_rows, turn_rows
from mcp_memory.store.sqlite.database import Database
from mcp_memory.store.sqlite.store import SQLiteStore, open_store
from mcp_memory.store.values import Filters
from tests.store.test_concurrency import at_once
from tests.store.test_contract import NOW, append, new_ref, user

CALLS: list[Callable[[Store], object]] = [
    lambda store: store.read_home(home_rows.spaces),
    lambda store: store.read("me", turn_rows.session_turns, "s"),
    lambda store: store.totals("me", "turn"),
    lambda store: store.write("me", turn_rows.append, "s", turn_rows.prepare([user("again")]), now=NOW),
    lambda store: store.export_rows(["me"], lambda space, row: None),
]


@pytest.mark.parametrize("number", range(len(CALLS)))
def test_a_call_inside_a_call_is_refused_at_once(store: Store, number: int) -> None:
    append(store, user("Hello."))

    def call_again(space: str, row: object) -> None:
        CALLS[number](store)

    with pytest.raises(NestedCall, match="inside a call of the store"):
        store.export_rows(["me"], call_again)
    assert len(store.read("me", turn_rows.session_turns, "s")) == 1  # and the thread can go on


def test_more_exports_at_once_than_connections_end(store: Store, tmp_path: Path) -> None:
    append(store, user("Hello."))
    for number in range(3):
        store.write("me", ref_rows.put, new_ref(f"result {number}\n".encode()))
    made = at_once(lambda number: export(store, tmp_path / f"{number}.zip"), 12)
    assert len({one.sha256 for one in made}) == 1
    assert made[0].rows["me"]["refs"] == 3


def test_a_read_waits_a_limited_time_for_a_connection_and_says_so(home: Path) -> None:
    database, all_read, done = Database(home, pool_wait=0), Barrier(5), Event()

    def hold(con: apsw.Connection) -> None:
        all_read.wait(20)
        done.wait(20)

    with closing(SQLiteStore(database)) as store, ThreadPoolExecutor(4) as pool:
        reading = [pool.submit(database.read, hold) for _ in range(4)]
        all_read.wait(20)
        with pytest.raises(StoreUnavailable, match="have been in use for 0 s"):
            store.read_home(home_rows.spaces)
        done.set()
        for one in reading:
            one.result(20)
        assert store.read_home(home_rows.spaces) == []


def test_reads_at_once_say_what_they_say_one_by_one(store: Store) -> None:
    roles: tuple[Role, ...] = ("user", "assistant")
    for number in range(40):
        store.write(
            f"space {number % 8}".replace(" ", "-"),
            turn_rows.append,
            "s",
            turn_rows.prepare([user(f"word{number} {roles[number % 2]}")]),
            now=NOW,
        )

    def look(number: int) -> object:
        space = f"space-{number % 8}"
        found = store.postings(space, "turn", [f"word{number}"], filters=Filters())
        return store.totals(space, "turn"), [(one.term, one.rows.tolist()) for one in found]

    expected = [look(number) for number in range(40)]
    assert at_once(look, 40) == expected


@pytest.mark.slow
def test_caches_of_spaces_stay_bounded(home: Path) -> None:
    with closing(open_store(home)) as store:
        for number in range(300):
            store.write(f"s{number}", turn_rows.append, "s", turn_rows.prepare([user(f"word{number}")]), now=NOW)
            assert store.totals(f"s{number}", "turn").rows == 1
            assert store.totals(f"s{number}", "atom").rows == 0
        for cache, most in ((store._outlines._known, 250), (store._counts._known, 1_000)):  # pyright: ignore[reportPrivateUsage]
            assert len(cache) <= most
        assert store.totals("s0", "turn").rows == 1  # read again
