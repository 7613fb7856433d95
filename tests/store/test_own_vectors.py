"""A space with many vectors on PostgreSQL: they move to a table of their own with an index, and are found all the while."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Barrier

import numpy as np
import psycopg
import pytest

from mcp_memory.core.types import NewTurn
from mcp_memory.store.postgres import vectors
from mcp_memory.store.postgres.access import enter_as_owner
from mcp_memory.store.postgres.store import PostgresStore, open_store
from mcp_memory.store.postgres.transaction import home_transaction
from mcp_memory.store.sql import tombstone_rows, turn_rows
from mcp_memory.store.values import Filters, Scored, Vectors
from tests.store.test_contract import NOW

pytestmark = pytest.mark.postgres

COUNT, DIMENSIONS = 300, 64
RECENT = 20


def made(count: int, seed: int) -> Vectors:
    return Vectors(identity="m", data=np.random.default_rng(seed).normal(size=(count, DIMENSIONS)).astype("f4"))


@pytest.fixture(autouse=True)
def _early(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table of its own from 200 vectors on, as if those were 50,000."""
    monkeypatch.setattr(vectors, "OWN", 200)
    monkeypatch.setattr(vectors, "_RECENT", RECENT)


@pytest.fixture
def store(url: str) -> Iterator[PostgresStore]:
    opened = open_store(url)
    for space, count, seed in (("few", 100, 1), ("many", COUNT, 2)):
        turns = [NewTurn(role="user", content=f"n{number}") for number in range(count)]
        opened.write(space, turn_rows.append, "s", turn_rows.prepare(turns), now=NOW, vectors=made(count, seed))
    yield opened
    opened.close()


def move(store: PostgresStore) -> None:
    while store.maintain_indexes(limit=90):
        pass


def found(
    store: PostgresStore, space: str = "many", *, limit: int = 50, filters: Filters | None = None
) -> list[Scored]:
    return store.nearest(space, "turn", made(1, 3), filters=filters or Filters(), limit=limit)


def tables(url: str) -> dict[str, int]:
    """Return the tables of the turns' vectors with the number of their own rows."""
    with psycopg.connect(url) as con:
        enter_as_owner(con)
        names = con.execute("SELECT relname FROM pg_class WHERE relkind = 'r' AND relname LIKE 'turn_vec_%'").fetchall()
        return {
            name: count
            for (name,) in sorted(names)
            for (count,) in con.execute(f"SELECT count(*) FROM ONLY {name}".encode())
        }


def test_a_space_with_many_vectors_gets_a_table_of_its_own_and_finds_the_same(store: PostgresStore, url: str) -> None:
    before = found(store), found(store, limit=1_000), found(store, filters=Filters(upto=150)), found(store, "few")
    move(store)
    assert tables(url) == {"turn_vec_1": 100, "turn_vec_1_of_2": COUNT}
    assert (
        found(store),
        found(store, limit=1_000),
        found(store, filters=Filters(upto=150)),
        found(store, "few"),
    ) == before
    ids = ["t1", f"t{COUNT}"]
    assert sorted(store.vectors_of("many", "turn", ids, "m")) == sorted(ids)
    assert store.index_progress().vectors[0].embedded == 100 + COUNT
    assert store.unembedded("many", "m", limit=9) == []


def test_new_vectors_are_found_before_and_after_they_are_moved(store: PostgresStore, url: str) -> None:
    move(store)
    for number in range(3):
        turns = [NewTurn(role="user", content=f"new {number} {place}") for place in range(9)]
        store.write("many", turn_rows.append, "t", turn_rows.prepare(turns), now=NOW, vectors=made(9, 4 + number))
    assert tables(url) == {"turn_vec_1": 127, "turn_vec_1_of_2": COUNT}
    before = found(store)
    move(store)
    assert tables(url) == {"turn_vec_1": 100, "turn_vec_1_of_2": COUNT + 27}
    assert found(store) == before
    assert any(int(hit.id[1:]) > COUNT for hit in before)


def test_a_move_that_is_killed_leaves_every_vector_where_it_was(store: PostgresStore, url: str) -> None:
    before = found(store)
    for _ in range(2):
        with psycopg.connect(url, autocommit=True) as con:
            con.execute("BEGIN")
            enter_as_owner(con)
            assert vectors.move(home_transaction(con), limit=90)
        assert found(store) == before
        store.maintain_indexes(limit=90)
    move(store)
    assert tables(url) == {"turn_vec_1": 100, "turn_vec_1_of_2": COUNT}
    assert found(store) == before


def test_two_servers_that_move_at_once_move_every_vector_once(store: PostgresStore, url: str) -> None:
    before = found(store)
    with closing(open_store(url)) as other, ThreadPoolExecutor(2) as threads:
        together = Barrier(2)

        def moving(one: PostgresStore) -> None:
            together.wait()
            while one.maintain_indexes(limit=RECENT):
                pass

        for done in [threads.submit(moving, one) for one in (store, other)]:
            done.result()
    left, moved = tables(url).values()
    assert left + moved == 100 + COUNT
    assert left < 100 + RECENT  # each skips what the other is moving, so fewer than RECENT can be left
    assert found(store) == before


def test_a_moved_vector_goes_with_its_turn_and_comes_back_with_it(store: PostgresStore) -> None:
    move(store)
    first, *others = found(store)
    gone = store.write("many", tombstone_rows.forget, [first.id], reason="", now=NOW)
    assert found(store)[:49] == others
    store.write("many", tombstone_rows.undo, gone.id, now=NOW)
    store.put_vectors([("many", first.id)], Vectors(identity="m", data=made(COUNT, 2).data[[int(first.id[1:]) - 1]]))
    assert found(store) == [first, *others]


def test_a_turn_that_is_embedded_again_after_its_vector_was_moved_is_found_once(store: PostgresStore, url: str) -> None:
    move(store)
    before = found(store)
    store.put_vectors([("many", hit.id) for hit in before], made(50, 5))
    assert tables(url) == {"turn_vec_1": 100, "turn_vec_1_of_2": COUNT}
    assert found(store) == before


def test_a_vector_table_of_a_space_shows_nothing_to_another_space(store: PostgresStore, url: str) -> None:
    move(store)
    with psycopg.connect(url) as con:
        enter_as_owner(con, "few")
        assert con.execute("SELECT count(*) FROM turn_vec_1_of_2").fetchone() == (0,)
        assert con.execute("SELECT count(*) FROM turn_vec_1").fetchone() == (100,)


def test_the_index_gives_the_order_of_a_search(store: PostgresStore, url: str) -> None:
    move(store)
    with psycopg.connect(url) as con:
        con.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off")
        enter_as_owner(con, "many")
        plan = con.execute(
            "EXPLAIN SELECT v.id FROM turn_vec_1_of_2 v WHERE v.space = 2 ORDER BY v.embedding <#> %s::halfvec LIMIT 9",
            (str([1] * DIMENSIONS),),
        ).fetchall()
    assert any("Index Scan using turn_vec_1_of_2_embedding_idx" in line for (line,) in plan), plan


def test_a_model_is_dropped_with_the_tables_of_spaces(store: PostgresStore, url: str) -> None:
    move(store)
    store.drop_vector_index("m")
    assert tables(url) == {}
    assert found(store) == []
