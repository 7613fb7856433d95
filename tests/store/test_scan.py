"""The scan of vectors against the definition: every row scored in full, sorted, the first ones taken."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from mcp_memory.core.types import NewTurn
from mcp_memory.store.sql import tombstone_rows, turn_rows
from mcp_memory.store.sqlite.store import open_store
from mcp_memory.store.stored_vectors import quantise
from mcp_memory.store.values import Filters, Scored, Vectors

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def crowded(count: int, dimensions: int, seed: int) -> np.ndarray:
    """Vectors as models give them: all leaning one way, some of them the same, one of a text with no known word."""
    rng = np.random.default_rng(seed)
    data = rng.normal(size=(count, dimensions)) + 3 * rng.normal(size=dimensions)
    data[count // 2] = data[count // 3]
    data[count // 5] = 0
    return data.astype(np.float32)


def by_definition(data: np.ndarray, query: np.ndarray, rows: list[int], limit: int) -> list[int]:
    stored = quantise(data).astype(np.float64)
    scores = stored @ query.astype(np.float64)
    return sorted(rows, key=lambda row: (-round(scores[row - 1], 6), -row))[:limit]


@pytest.mark.parametrize(("count", "dimensions"), [(40, 3), (2_500, 256), (700, 1536)])
def test_the_scan_finds_what_scoring_every_row_finds(home: Path, count: int, dimensions: int) -> None:
    data = crowded(count, dimensions, seed=dimensions)
    store = open_store(home)
    turns = [NewTurn(role=("user", "assistant")[i % 2], content=f"n{i}") for i in range(count)]
    store.write(
        "me", turn_rows.append, "s", turn_rows.prepare(turns), now=NOW, vectors=Vectors(identity="m", data=data)
    )
    store.write(
        "you",
        turn_rows.append,
        "s",
        turn_rows.prepare(turns[:30]),
        now=NOW,
        vectors=Vectors(identity="m", data=data[:30]),
    )
    store.write("me", tombstone_rows.forget, [f"t{count // 4}", f"t{count}"], reason="", now=NOW)
    live = [row for row in range(1, count) if row != count // 4]
    for number, limit in ((count // 3, 1), (0, 10), (count - 1, 300)):
        query = data[number] + 0.3 * data[7]
        asked = Vectors(identity="m", data=query[None, :])
        found = store.nearest("me", "turn", asked, filters=Filters(), limit=limit)
        assert [hit.id for hit in found] == [f"t{row}" for row in by_definition(data, query, live, limit)]
        even = [row for row in live if row % 2 == 0]
        found = store.nearest("me", "turn", asked, filters=Filters(role="assistant"), limit=limit)
        assert [hit.id for hit in found] == [f"t{row}" for row in by_definition(data, query, even, limit)]
    store.close()


def test_scores_are_cosines_and_equal_rows_score_the_same_wherever_they_stand(home: Path) -> None:
    data = crowded(3_000, 64, seed=1)
    data[[5, 1_029, 2_999]] = data[5]
    store = open_store(home)
    turns = [NewTurn(role="user", content=f"n{i}") for i in range(len(data))]
    store.write(
        "me", turn_rows.append, "s", turn_rows.prepare(turns), now=NOW, vectors=Vectors(identity="m", data=data)
    )
    hits = store.nearest("me", "turn", Vectors(identity="m", data=data[5:6]), filters=Filters(), limit=3)
    assert hits == [Scored(id=id, score=hits[0].score) for id in ("t3000", "t1030", "t6")]
    assert hits[0].score == pytest.approx(1, abs=2e-3)  # what rounding to int8 costs
    store.close()


def test_no_rows_no_hits(home: Path) -> None:
    store = open_store(home)
    asked = Vectors(identity="m", data=np.ones((1, 8), np.float32))
    store.write("me", turn_rows.append, "s", turn_rows.prepare([NewTurn(role="user", content="a")]), now=NOW)
    assert store.nearest("me", "turn", asked, filters=Filters(), limit=3) == []
    store.write(
        "you", turn_rows.append, "s", turn_rows.prepare([NewTurn(role="user", content="a")]), now=NOW, vectors=asked
    )
    assert store.nearest("me", "turn", asked, filters=Filters(), limit=3) == []
    assert [hit.id for hit in store.nearest("you", "turn", asked, filters=Filters(role="user"), limit=3)] == ["t1"]
    assert store.nearest("you", "turn", asked, filters=Filters(role="system"), limit=3) == []
    store.close()
