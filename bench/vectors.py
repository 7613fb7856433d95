"""Measures vector search, its recall and its time: `python -m bench.vectors SET [--store postgresql] [--json FILE]`

The distinct turns of a retrieval set are stored with their vectors, and its questions (or, with `--set-of-queries`,
those of another set) are asked twice: of the normal search, and of the exact scan of all vectors. Recall at k is the
share of the k nearest rows that the search finds. In SQLite, and in PostgreSQL below 50,000 rows, the search is exact,
and the command says so. Times are medians of the vector search alone; the exact scan of SQLite's vectors is one product
with all of them in memory. `--store postgresql` starts a PostgreSQL server of its own.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import apsw
import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from bench.sets import read_set
from bench.stats import timings_ms
from mcp_memory.core.config import Settings
from mcp_memory.core.errors import McpMemoryError
from mcp_memory.core.types import NewTurn
from mcp_memory.models.embed.factory import make_embedder
from mcp_memory.models.embed.protocol import Embedder
from mcp_memory.store.postgres.store import PostgresStore
from mcp_memory.store.postgres.store import open_store as open_shared_store
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import turn_rows
from mcp_memory.store.sqlite.database import Database
from mcp_memory.store.sqlite.index import nearest_rows, vector_blocks
from mcp_memory.store.sqlite.store import open_store
from mcp_memory.store.stored_vectors import cosines, unit
from mcp_memory.store.values import Filters, Vectors
from tests.postgres_server import running

AT = (10, 50, 100, 300)
TABLE = "turn_vec_1"
_BATCH = 500
_INDEXED_FROM = 50_000  # rows of a space in PostgreSQL
_ALL = Filters(upto=2**62)  # a filter that every row passes, with which PostgreSQL scans


def settle(home: Path) -> float:
    """Complete the background work on the indexes of a home; return the seconds."""
    start = perf_counter()
    store = open_store(home)
    while store.maintain_indexes(limit=_BATCH):
        pass
    store.close()
    return perf_counter() - start


def recall(home: Path, queries: Sequence[NDArray[np.float32]], *, space: str = "default") -> dict[str, Any]:
    """Return recall at each of AT against the exact scan of the first model's turns, and the times of both."""
    database = Database(home)
    number: int = database.read(lambda con: con.execute("SELECT id FROM space WHERE name = ?", (space,)).get)

    def read_all(con: apsw.Connection) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
        blocks = [
            (ids[ids > 0], rows[ids > 0]) for ids, rows in vector_blocks.scan(con, TABLE, number, len(queries[0]))
        ]
        return np.concatenate([ids for ids, _ in blocks]), np.concatenate([rows for _, rows in blocks])

    ids, stored = database.read(read_all)

    def exact(query: NDArray[np.float32]) -> list[Any]:
        scores = cosines(stored, unit(query))
        best = np.lexsort((-ids, -scores))[: max(AT)]
        return list(zip(ids[best].tolist(), scores[best].tolist(), strict=True))

    def ours(query: NDArray[np.float32]) -> list[Any]:
        best = nearest_rows.Best(query, max(AT))
        database.read(lambda con: nearest_rows.find(con, TABLE, number, [best]))
        return best.results()

    compared = _compared(queries, ours, exact)
    database.close()
    return {"indexed": False, **compared}


def recall_in_postgres(
    store: PostgresStore, identity: str, queries: Sequence[NDArray[np.float32]], *, space: str = "default"
) -> dict[str, Any]:
    """Return the same as `recall`, for PostgreSQL."""

    def search(query: NDArray[np.float32], filters: Filters) -> list[Any]:
        asked = Vectors(identity=identity, data=query[None, :])
        return [hit.id for hit in store.nearest(space, "turn", asked, filters=filters, limit=max(AT))]

    compared = _compared(queries, lambda query: search(query, Filters()), lambda query: search(query, _ALL))
    return {"indexed": store.totals(space, "turn").rows >= _INDEXED_FROM, **compared}


def _compared(
    queries: Sequence[NDArray[np.float32]],
    ours: Callable[[NDArray[np.float32]], list[Any]],
    exact: Callable[[NDArray[np.float32]], list[Any]],
) -> dict[str, Any]:
    found: dict[int, list[float]] = {k: [] for k in AT}
    seconds: tuple[list[float], list[float]] = ([], [])
    for query in tqdm([asked for asked in queries if asked.any()], desc="recall", unit="q", leave=False):
        start = perf_counter()
        hits = ours(query)
        between = perf_counter()
        nearest = exact(query)
        seconds[0].append(between - start)
        seconds[1].append(perf_counter() - between)
        for k in AT:
            found[k].append(len(set(hits[:k]) & set(nearest[:k])) / max(1, len(nearest[:k])))
    return {
        "lost_percent": {k: round(100 * (1 - float(np.mean(found[k]))), 2) for k in AT},
        "ours_ms": timings_ms(seconds[0]),
        "exact_ms": timings_ms(seconds[1]),
    }


def _measure(folder: Path, asked: Path, *, in_postgres: bool) -> dict[str, Any]:
    embedder = make_embedder(Settings())
    assert embedder is not None
    texts = list(dict.fromkeys(turn.content for stack in read_set(folder).haystacks for _, turn in stack.turns()))
    queries = [embedder.embed_query(question.text) for question in read_set(asked).questions]
    counted = {"rows": len(texts), "queries": len(queries)}
    if in_postgres:
        with running({"shared_buffers": "1GB", "maintenance_work_mem": "1GB"}) as server:
            server.make_template()
            with closing(open_shared_store(server.create_memory())) as store:
                _fill(store, embedder, texts)
                return {**counted, **recall_in_postgres(store, embedder.identity, queries)}
    with TemporaryDirectory(prefix="bench-") as place:
        with closing(open_store(Path(place))) as store:
            _fill(store, embedder, texts)
        return {**counted, **recall(Path(place), queries)}


def _fill(store: Store, embedder: Embedder, texts: Sequence[str]) -> None:
    """Store the texts with their vectors, and complete the background work."""
    for start in tqdm(range(0, len(texts), _BATCH), desc="store", leave=False):
        part = texts[start : start + _BATCH]
        store.write(
            "default",
            turn_rows.append,
            f"part-{start}",
            turn_rows.prepare([NewTurn(role="user", content=text) for text in part]),
            now=datetime.now(UTC),
            vectors=Vectors(identity=embedder.identity, data=embedder.embed(part)),
        )
    while store.maintain_indexes(limit=_BATCH):
        pass


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="bench.vectors", description="What indexes of vectors lose.")
    parser.add_argument("folder", type=Path, metavar="SET", help="whose turns are stored")
    parser.add_argument("--set-of-queries", type=Path, metavar="SET", help="whose questions are asked [default: its]")
    parser.add_argument("--store", choices=("sqlite", "postgresql"), default="sqlite", help="[default: %(default)s]")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    options = parser.parse_args(arguments)
    try:
        asked = options.set_of_queries or options.folder
        found = _measure(options.folder, asked, in_postgres=options.store == "postgresql")
    except McpMemoryError as error:
        sys.exit(f"bench.vectors: {error}")
    print(f"{found['rows']:,} rows, {found['queries']} queries")
    if not found["indexed"]:
        print("no index: every search is exact")
    print("lost, %   " + "   ".join(f"@{k} {lost:.2f}" for k, lost in found["lost_percent"].items()))
    print(f"p50 ms    {found['ours_ms']['p50']:.1f}, exact scan {found['exact_ms']['p50']:.1f}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
