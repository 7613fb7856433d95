"""Vectors in SQLite: the search is exact, erased vectors leave the file, those of earlier versions are carried over."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import apsw
import numpy as np
import pytest
import sqlite_vec  # pyright: ignore[reportMissingTypeStubs]
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.core.types import NewTurn
from mcp_memory.store.sql import tombstone_rows, turn_rows
from mcp_memory.store.sqlite.database import Database
from mcp_memory.store.sqlite.index import vectors as vector_tables
from mcp_memory.store.sqlite.index.vector_blocks import ROWS
from mcp_memory.store.sqlite.migrations import SCHEMA
from mcp_memory.store.sqlite.store import SQLiteStore, open_store
from mcp_memory.store.stored_vectors import cosines, quantise, unit
from mcp_memory.store.values import Filters, Scored, Vectors

pytestmark = pytest.mark.files

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
DIMENSIONS = 24


def made(count: int, seed: int, *, dimensions: int = DIMENSIONS) -> np.ndarray:
    """Vectors of which some are equal and some are all zeros."""
    data = np.random.default_rng(seed).normal(size=(count, dimensions)).astype("f4")
    data[::7] = data[0]
    data[5::11] = 0
    return data


def fill(store: SQLiteStore, space: str, data: np.ndarray, *, embedded: bool = True) -> None:
    turns = [NewTurn(role=("user", "assistant")[i % 2], content=f"n{i}") for i in range(len(data))]
    store.write(
        space,
        turn_rows.append,
        "s",
        turn_rows.prepare(turns),
        now=NOW,
        vectors=Vectors(identity="m", data=data) if embedded else None,
    )


def found(store: SQLiteStore, query: np.ndarray, *, limit: int = 20, filters: Filters | None = None) -> list[Scored]:
    asked = Vectors(identity="m", data=query[None])
    return store.nearest("me", "turn", asked, filters=filters or Filters(), limit=limit)


def expected(data: np.ndarray, numbers: list[int], query: np.ndarray, limit: int) -> list[Scored]:
    """Return the nearest of these rows by brute force; of equal ones the newest first."""
    scores = cosines(quantise(data[[number - 1 for number in numbers]]), unit(query))
    ranked = sorted(zip(scores.tolist(), numbers, strict=True), reverse=True)
    return [Scored(id=f"t{number}", score=score) for score, number in ranked[:limit]]


@pytest.fixture
def store(home: Path) -> Iterator[SQLiteStore]:
    with closing(open_store(home)) as opened:
        yield opened


@given(st.data())
def test_the_search_finds_what_brute_force_finds(data: st.DataObject) -> None:
    count = data.draw(st.sampled_from([1, ROWS - 1, ROWS, ROWS + 1, 300]))
    vectors = made(count, data.draw(st.integers(0, 9)))
    numbers = range(1, count + 1)
    missing = data.draw(st.sets(st.sampled_from(numbers), max_size=count // 2))
    late = data.draw(st.sets(st.sampled_from(numbers), max_size=count // 2)) - missing
    forgotten = data.draw(st.sets(st.sampled_from(numbers), max_size=count // 3))
    limit = data.draw(st.integers(1, count + 2))
    filters = data.draw(st.sampled_from([Filters(), Filters(role="user"), Filters(upto=ROWS), Filters(upto=10**18)]))
    with TemporaryDirectory() as folder, closing(open_store(Path(folder) / "home")) as store:
        fill(store, "you", made(9, 1))
        fill(store, "me", vectors, embedded=False)
        for part in (set(numbers) - missing - late, late):
            rows = [("me", f"t{number}") for number in sorted(part)]
            chosen = vectors[[number - 1 for number in sorted(part)]]
            if rows:
                store.put_vectors(rows, Vectors(identity="m", data=chosen))
        if forgotten:
            store.write("me", tombstone_rows.forget, [f"t{number}" for number in forgotten], reason="", now=NOW)
        kept = [
            number
            for number in sorted(set(numbers) - missing - forgotten)
            if (filters.role is None or number % 2 == 1) and (filters.upto is None or number <= filters.upto)
        ]
        query = made(2, 77)[1]
        assert found(store, query, limit=limit, filters=filters) == (expected(vectors, kept, query, limit))
        unembedded = {int(id[1:]) for id, _ in store.unembedded("me", "m", limit=count)}
        assert unembedded == missing - forgotten
        embedded = count - len(missing | forgotten) + 9
        assert [index.embedded for index in store.index_progress().vectors] == [embedded]


def test_a_vector_that_is_there_is_not_replaced(store: SQLiteStore) -> None:
    data = made(3, 1)
    fill(store, "me", data)
    store.put_vectors([("me", "t2")], Vectors(identity="m", data=made(1, 2)))
    assert found(store, data[1]) == expected(data, [1, 2, 3], data[1], 20)


def test_a_forgotten_row_comes_back_with_its_vector(store: SQLiteStore) -> None:
    data = made(200, 1)
    fill(store, "me", data)
    before = found(store, data[150])
    gone = store.write("me", tombstone_rows.forget, ["t151", "t3"], reason="", now=NOW)
    assert "t151" not in {hit.id for hit in found(store, data[150])}
    store.write("me", tombstone_rows.undo, gone.id, now=NOW)
    assert [id for id, _ in store.unembedded("me", "m", limit=9)] == ["t3", "t151"]
    store.put_vectors([("me", "t151"), ("me", "t3")], Vectors(identity="m", data=data[[150, 2]]))
    assert found(store, data[150]) == before


def test_an_erased_vector_is_in_no_file(store: SQLiteStore, home: Path) -> None:
    data = made(200, 1)
    fill(store, "me", data)
    erased, kept = (quantise(data[[row]])[0].tobytes() for row in (150, 151))
    store.write("me", tombstone_rows.forget, ["t151"], reason="", now=NOW)
    database = Database(home)
    blocks: Any = database.read(lambda con: con.execute("SELECT vectors FROM turn_vec_1").fetchall())
    database.close()
    stored = b"".join(block for (block,) in blocks)
    assert [vector in stored for vector in (erased, kept)] == [False, True]
    assert store.secure_delete()
    content = (home / "memory.db").read_bytes()
    wal = home / "memory.db-wal"
    assert (wal.stat().st_size if wal.exists() else 0) == 0
    assert [vector[:16] in content for vector in (erased, kept)] == [False, True]


def test_a_block_of_which_all_rows_are_forgotten_is_deleted(store: SQLiteStore, home: Path) -> None:
    fill(store, "me", made(ROWS + 5, 1))
    store.write("me", tombstone_rows.forget, [f"t{number}" for number in range(ROWS, ROWS + 6)], reason="", now=NOW)
    database = Database(home)
    assert database.read(lambda con: con.execute("SELECT id & 255 FROM turn_vec_1").fetchall()) == [(0,)]
    database.close()


def test_an_index_goes_with_its_tables(store: SQLiteStore, home: Path) -> None:
    fill(store, "me", made(9, 1))
    store.drop_vector_index("m")
    database = Database(home)
    left = database.read(lambda con: con.execute("SELECT name FROM sqlite_schema WHERE name GLOB '*_vec_*'").fetchall())
    database.close()
    assert (left, store.problems()) == ([], [])


# --- tables of earlier versions ---------------------------------------------------------------------


def as_before(home: Path, data: dict[int, np.ndarray]) -> None:
    """Give a home of the schema before it the tables of sqlite-vec, with the vectors of the turns of its spaces.

    The coarse vectors that a large space had beside them are made too.
    """
    with closing(apsw.Connection(str(home / "memory.db"))) as con:
        con.enable_load_extension(True)
        con.load_extension(sqlite_vec.loadable_path())
        for index, identity in ((1, "m"), (2, "other")):
            con.execute("INSERT INTO vector_index VALUES (?, ?, ?)", (index, identity, DIMENSIONS))
            for layer in ("turn", "atom"):
                con.execute(
                    f"CREATE VIRTUAL TABLE {layer}_vec_{index} USING vec0("
                    f"space INTEGER PARTITION KEY, embedding INT8[{DIMENSIONS}] distance_metric=cosine)"
                )
        for space, vectors in data.items():
            rows = [(space << 40 | place + 1, space, row.tobytes()) for place, row in enumerate(quantise(vectors))]
            con.executemany("INSERT INTO turn_vec_1 (rowid, space, embedding) VALUES (?, ?, vec_int8(?))", rows)
        con.execute("DELETE FROM turn_vec_1 WHERE rowid = ?", (1 << 40 | 7,))
        con.execute(
            "CREATE VIRTUAL TABLE turn_sketch_1 USING vec0(space INTEGER PARTITION KEY, embedding INT8[8]);"
            "CREATE TABLE turn_row_1 (id INTEGER PRIMARY KEY, vector BLOB NOT NULL) STRICT;"
            "CREATE TABLE turn_plan_1 (space INTEGER PRIMARY KEY, covered INTEGER NOT NULL,"
            " directions BLOB NOT NULL) STRICT;"
        )


def of_earlier_version(home: Path, monkeypatch: pytest.MonkeyPatch, data: np.ndarray) -> None:
    monkeypatch.setattr("mcp_memory.store.sqlite.migrations.SCHEMA", SCHEMA[:6])
    with closing(open_store(home)) as old:
        fill(old, "me", data, embedded=False)
        fill(old, "you", data[:9], embedded=False)
    monkeypatch.undo()
    as_before(home, {1: data, 2: data[:9]})


def test_vectors_of_an_earlier_version_are_carried_over(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = made(1_100, 1)  # more than a chunk of sqlite-vec
    of_earlier_version(home, monkeypatch, data)
    numbers = [number for number in range(1, 1_101) if number != 7]
    for _ in range(2):
        with closing(open_store(home)) as store:
            assert found(store, data[1_051], limit=1_200) == expected(data, numbers, data[1_051], 1_200)
            assert [id for id, _ in store.unembedded("me", "m", limit=9)] == ["t7"]
            assert {index.identity: index.embedded for index in store.index_progress().vectors} == {
                "m": 1_108,
                "other": 0,
            }
            assert (store.schema(), store.problems()) == (SCHEMA[-1][0], [])
    with closing(apsw.Connection(str(home / "memory.db"))) as con:
        tables = con.execute("SELECT name FROM sqlite_schema WHERE name GLOB '[^s]*_[12]*' ORDER BY name").fetchall()
        assert [name for (name,) in tables] == ["atom_vec_1", "atom_vec_2", "turn_vec_1", "turn_vec_2"]
    with closing(open_store(home)) as store:
        store.put_vectors([("me", "t7")], Vectors(identity="m", data=data[[6]]))
        store.drop_vector_index("other")
        assert found(store, data[6]) == expected(data, list(range(1, 1_101)), data[6], 20)


def test_carried_over_tables_are_those_of_a_new_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of_earlier_version(home, monkeypatch, made(9, 1))
    database = Database(home)
    database.write(vector_tables.ensure, "new", DIMENSIONS)
    definitions: Any = database.read(
        lambda con: con.execute(
            "SELECT replace(sql, name, '') FROM sqlite_schema WHERE name GLOB 'turn_vec_*'"
        ).fetchall()
    )
    database.close()
    assert len({sql.replace('"', "") for (sql,) in definitions}) == 1


def test_a_damaged_index_of_an_earlier_version_is_computed_again(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = made(9, 1)
    of_earlier_version(home, monkeypatch, data)
    with closing(apsw.Connection(str(home / "memory.db"))) as con:
        con.execute("UPDATE vector_index SET dimensions = 7 WHERE id = 1")
    with closing(open_store(home)) as store:
        assert [index.identity for index in store.index_progress().vectors] == ["other"]
        assert len(store.unembedded("me", "m", limit=99)) == 9
        store.put_vectors([("me", "t1")], Vectors(identity="m", data=data[:1]))
        assert store.problems() == []
