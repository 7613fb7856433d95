"""The search by sketches: it finds what the exact scan finds, whatever was stored, forgotten or brought back since."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from mcp_memory.core.types import NewTurn
from mcp_memory.store.sql import tombstone_rows, turn_rows
from mcp_memory.store.sqlite.database import Database
from mcp_memory.store.sqlite.index import nearest_rows
from mcp_memory.store.sqlite.store import SQLiteStore, open_store
from mcp_memory.store.values import Filters, Scored, Vectors

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
DIMENSIONS, COUNT = 160, 2_400


def themed(count: int, seed: int) -> np.ndarray:
    """Vectors as models give them: leaning one way, and varying more in some directions than in others."""
    shape = np.random.default_rng(0)
    directions = shape.normal(size=(DIMENSIONS, DIMENSIONS)) * (1 / np.arange(1, DIMENSIONS + 1))[:, None]
    return (np.random.default_rng(seed).normal(size=(count, DIMENSIONS)) @ directions + directions[0]).astype("f4")


@pytest.fixture(autouse=True)
def _early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sketches from a thousand rows on, and few candidates, as if those were a hundred thousand."""
    monkeypatch.setattr(nearest_rows, "_FROM", 1_000)
    monkeypatch.setattr(nearest_rows, "_STEP", 500)
    monkeypatch.setattr(nearest_rows, "CANDIDATES", 300)


@pytest.fixture
def store(home: Path) -> Iterator[SQLiteStore]:
    opened = open_store(home)
    turns = [NewTurn(role=("user", "assistant")[i % 2], content=f"n{i}") for i in range(COUNT)]
    opened.write(
        "me",
        turn_rows.append,
        "s",
        turn_rows.prepare(turns),
        now=NOW,
        vectors=Vectors(identity="m", data=themed(COUNT, 1)),
    )
    few = Vectors(identity="m", data=themed(20, 2))
    opened.write("you", turn_rows.append, "s", turn_rows.prepare(turns[:20]), now=NOW, vectors=few)
    yield opened
    opened.close()


def extend(store: SQLiteStore) -> None:
    while store.maintain_indexes(limit=1_000):
        pass


def found(store: SQLiteStore, seed: int, *, filters: Filters | None = None, space: str = "me") -> list[Scored]:
    query = Vectors(identity="m", data=themed(1, seed))
    return store.nearest(space, "turn", query, filters=filters or Filters(), limit=20)


def covered(home: Path) -> int:
    database = Database(home)
    number = database.read(lambda con: con.execute("SELECT covered FROM turn_plan_1").get)
    database.close()
    return number


def test_sketches_lose_next_to_nothing_and_scores_stay_exact(store: SQLiteStore, home: Path) -> None:
    exact = [found(store, seed) for seed in range(10, 30)]
    extend(store)
    assert covered(home) == 2_000
    kept = [len(set(found(store, seed)) & set(hits)) for seed, hits in zip(range(10, 30), exact, strict=True)]
    assert sum(kept) >= 0.99 * 20 * 20


def test_what_is_stored_after_the_sketches_is_found_at_once(store: SQLiteStore) -> None:
    extend(store)
    data = themed(1, 40)
    new = store.write(
        "me",
        turn_rows.append,
        "s",
        turn_rows.prepare([NewTurn(role="user", content="new")]),
        now=NOW,
        vectors=Vectors(identity="m", data=data),
    )
    assert found(store, 40)[0].id == new.stored[0].id


def test_what_is_forgotten_is_gone_and_comes_back_with_its_vector(store: SQLiteStore) -> None:
    extend(store)
    (first, second, *_) = found(store, 50)
    gone = store.write("me", tombstone_rows.forget, [first.id], reason="", now=NOW)
    assert found(store, 50)[0] == second
    store.write("me", tombstone_rows.undo, gone.id, now=NOW)
    ((id, _),) = store.unembedded("me", "m", limit=5)
    row = int(first.id[1:]) - 1
    store.put_vectors([("me", id)], Vectors(identity="m", data=themed(COUNT, 1)[row : row + 1]))
    assert found(store, 50)[:2] == [first, second]


def test_filters_and_spaces_hold_with_sketches_as_without(store: SQLiteStore) -> None:
    role, first = Filters(role="user"), Filters(upto=150)
    before = [found(store, 60, filters=role), found(store, 60, filters=first), found(store, 60, space="you")]
    extend(store)
    after = [found(store, 60, filters=role), found(store, 60, filters=first), found(store, 60, space="you")]
    assert after == before
    assert [len(hits) for hits in after] == [20, 20, 20]


def test_of_the_first_rows_of_a_store_only_those_of_the_space_are_found(store: SQLiteStore) -> None:
    extend(store)
    store.write(
        "you",
        turn_rows.append,
        "s",
        turn_rows.prepare([NewTurn(role="user", content=f"late {i}") for i in range(600)]),
        now=NOW,
        vectors=Vectors(identity="m", data=themed(600, 3)),
    )
    extend(store)
    assert len(found(store, 7, filters=Filters(upto=200), space="you")) == 20
    assert len(found(store, 7, filters=Filters(upto=200))) == 20
    assert found(store, 7, filters=Filters(upto=10**18)) == found(store, 7)


@pytest.mark.slow
def test_sketches_go_with_their_index_and_a_store_with_them_is_sound(store: SQLiteStore, home: Path) -> None:
    extend(store)
    assert store.problems() == []
    store.drop_vector_index("m")
    database = Database(home)
    left = database.read(
        lambda con: con.execute(
            "SELECT name FROM sqlite_schema WHERE name GLOB 'turn_*_1*' OR name GLOB 'atom_*_1*'"
        ).fetchall()
    )
    database.close()
    assert left == []


def test_a_sketch_that_went_missing_is_a_problem(store: SQLiteStore, home: Path) -> None:
    extend(store)
    database = Database(home)
    database.write(lambda con: con.execute("DELETE FROM turn_row_1 WHERE id = 1 << 40 | 7").fetchall())
    database.close()
    assert store.problems() == ["1 turns have no sketch by m: drop its vectors, and they are recomputed."]


def test_few_rows_or_short_vectors_are_left_to_the_exact_scan(home: Path) -> None:
    opened = open_store(home)
    turns = [NewTurn(role="user", content=f"n{i}") for i in range(1_200)]
    short = np.random.default_rng(0).normal(size=(1_200, 32)).astype(np.float32)
    opened.write(
        "me", turn_rows.append, "s", turn_rows.prepare(turns), now=NOW, vectors=Vectors(identity="short", data=short)
    )
    opened.write(
        "me",
        turn_rows.append,
        "few",
        turn_rows.prepare(turns[:9]),
        now=NOW,
        vectors=Vectors(identity="few", data=themed(9, 1)),
    )
    assert not opened.maintain_indexes(limit=1_000)
    opened.close()
