"""What sketches lose: `python -m bench.vectors SET [--set-of-queries SET] [--json FILE]`

The distinct turns of a retrieval set are stored with their vectors, and its questions (or those of another set)
are asked twice: of the search as it is, and of the exact scan of all vectors. Recall at k is the share of the
k nearest rows that the search finds. Where the set has fewer rows than sketches begin at, the two are the same,
and the command says so. Times are medians of the vector search alone, beside each other.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
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
from mcp_memory.models.embed import make_embedder
from mcp_memory.store.sqlite import open_store
from mcp_memory.store.sqlite.database import Database
from mcp_memory.store.sqlite.index import nearest_rows
from mcp_memory.store.values import Vectors

__all__ = ["AT", "recall", "settle"]

AT = (10, 50, 100, 300)
_BATCH = 500


def settle(home: Path) -> float:
    """Do what the background has yet to do for the vectors of a home, and return the seconds it took."""
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
    sketched = database.read(lambda con: con.table_exists("main", "turn_plan_1"))

    def exact(con: apsw.Connection) -> list[tuple[int, float]]:
        best = nearest_rows.Best(query, max(AT))
        for numbers, rows in nearest_rows.blocks(con, "turn_vec_1", number, len(query)):
            best.add(numbers, rows)
        return best.found()

    def ours(con: apsw.Connection) -> list[tuple[int, float]]:
        return nearest_rows.nearest(con, "turn", 1, number, query, allowed=None, limit=max(AT))

    found: dict[int, list[float]] = {k: [] for k in AT}
    seconds: tuple[list[float], list[float]] = ([], [])
    for query in tqdm([asked for asked in queries if asked.any()], desc="recall", unit="q", leave=False):  # noqa: B007 the closures read it
        start = perf_counter()
        hits = database.read(ours)
        between = perf_counter()
        nearest = database.read(exact)
        seconds[0].append(between - start)
        seconds[1].append(perf_counter() - between)
        for k in AT:
            found[k].append(len(set(hits[:k]) & set(nearest[:k])) / max(1, len(nearest[:k])))
    database.close()
    return {
        "sketched": sketched,
        "lost_percent": {k: round(100 * (1 - float(np.mean(found[k]))), 2) for k in AT},
        "ours_ms": timings_ms(seconds[0]),
        "exact_ms": timings_ms(seconds[1]),
    }


def _measure(folder: Path, asked: Path) -> dict[str, Any]:
    embedder = make_embedder(Settings())
    assert embedder is not None
    texts = list(dict.fromkeys(turn.content for stack in read_set(folder).haystacks for _, turn in stack.turns()))
    with TemporaryDirectory(prefix="bench-") as place:
        store = open_store(Path(place))
        for start in tqdm(range(0, len(texts), _BATCH), desc="store", leave=False):
            part = texts[start : start + _BATCH]
            store.append_turns(
                "default",
                f"part-{start}",
                [NewTurn(role="user", content=text) for text in part],
                now=datetime.now(UTC),
                vectors=Vectors(identity=embedder.identity, data=embedder.embed(part)),
            )
        store.close()
        settle(Path(place))
        queries = [embedder.embed_query(question.text) for question in read_set(asked).questions]
        return {"rows": len(texts), "queries": len(queries), **recall(Path(place), queries)}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="bench.vectors", description="What sketches of vectors lose.")
    parser.add_argument("folder", type=Path, metavar="SET", help="whose turns are stored")
    parser.add_argument("--set-of-queries", type=Path, metavar="SET", help="whose questions are asked [default: its]")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    options = parser.parse_args(arguments)
    try:
        found = _measure(options.folder, options.set_of_queries or options.folder)
    except McpMemoryError as error:
        sys.exit(f"bench.vectors: {error}")
    print(f"{found['rows']:,} rows, {found['queries']} queries")
    if not found["sketched"]:
        print("too few rows for sketches: every search is exact")
    print("lost, %   " + "   ".join(f"@{k} {lost:.2f}" for k, lost in found["lost_percent"].items()))
    print(f"p50 ms    {found['ours_ms']['p50']:.1f}, exact scan {found['exact_ms']['p50']:.1f}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
