"""Measures a move to PostgreSQL and back: `python -m bench.move [--turns 20000] [--json FILE]`

A home of invented turns with vectors is moved to a real PostgreSQL (`tests.postgres_server`, fsync on) and back into a
new home, each time with verification. The floor of each direction, from the same run: the rows of the turns alone, read
from one database and inserted into a bare table of the other. Turns are given per second and per second of this
program's own processor time, since PostgreSQL and other programs run on the same machine.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from sqlite3 import connect
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

import numpy as np
import psycopg

from bench.corpus import batches, session_of
from mcp_memory.service.upkeep.move import move
from mcp_memory.store.postgres.access import enter_as_owner
from mcp_memory.store.sql import turn_rows
from mcp_memory.store.sqlite.store import open_store
from mcp_memory.store.values import Vectors
from tests.postgres_server import running

_DIMENSIONS = 256
_COLUMNS = "space, id, session, position, role, name, content, said_at, learned_at, sha256"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="bench.move", description="How fast a memory moves between the engines.")
    parser.add_argument("--turns", type=int, default=20_000)
    parser.add_argument("--json", type=Path, help="write the figures there too")
    asked = parser.parse_args(arguments)
    with TemporaryDirectory(prefix="bench-move-") as folder, running({}) as server:
        server.make_template()
        found = _measured(Path(folder), server.create_memory().replace("memory@", "owner@"), asked.turns)
    for way, one in found["ways"].items():
        print(
            f"{way}: {one['turns_s']:,} turns/s with the proof, floor {one['floor_turns_s']:,};"
            f" {one['turns_cpu_s']:,} turns a second of processor time"
        )
    if asked.json:
        asked.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


def _measured(folder: Path, url: str, turns: int) -> dict[str, Any]:
    _fill(folder / "home", turns)
    there, here = f"sqlite:{folder / 'home'}", f"sqlite:{folder / 'back'}"
    ways = {
        "to PostgreSQL": (*_timed(there, url), _floor_there(folder / "home", url)),
        "to SQLite": (*_timed(url, here), _floor_here(url, folder / "floor.db")),
    }
    names = ("turns_s", "turns_cpu_s", "floor_turns_s")
    return {
        "turns": turns,
        "ways": {
            way: {name: round(turns / seconds) for name, seconds in zip(names, taken, strict=True)}
            for way, taken in ways.items()
        },
    }


def _timed(source: str, target: str) -> tuple[float, float]:
    """Return the seconds of a move, and the processor seconds of this program."""
    start = process_time()
    return move(source, target).seconds, process_time() - start


def _fill(home: Path, turns: int) -> None:
    drawn = np.random.default_rng(0)
    with closing(open_store(home)) as store:
        for number, batch in enumerate(batches(turns)):
            data = drawn.standard_normal((len(batch), _DIMENSIONS), dtype=np.float32)
            vectors = Vectors(identity="random", data=data / np.linalg.norm(data, axis=1, keepdims=True))
            store.write(
                "default",
                turn_rows.append,
                session_of(number),
                turn_rows.prepare(batch),
                now=datetime.now(UTC),
                vectors=vectors,
            )


def _floor_there(home: Path, url: str) -> float:
    start = perf_counter()
    with closing(connect(home / "memory.db")) as source, psycopg.connect(url) as target:
        target.execute("CREATE TEMPORARY TABLE bare AS SELECT * FROM turn LIMIT 0")
        rows = source.execute(f"SELECT {_COLUMNS} FROM turn ORDER BY space, id").fetchall()
        marks = ", ".join(["%s"] * len(rows[0]))
        target.cursor().executemany(f"INSERT INTO bare ({_COLUMNS}) VALUES ({marks})".encode(), rows)
    return perf_counter() - start


def _floor_here(url: str, to: Path) -> float:
    start = perf_counter()
    with psycopg.connect(url) as source, closing(connect(to)) as target, target:
        enter_as_owner(source)
        target.execute(f"CREATE TABLE bare ({_COLUMNS})")
        rows = source.execute(f"SELECT {_COLUMNS} FROM turn ORDER BY space, id".encode()).fetchall()
        target.executemany(f"INSERT INTO bare VALUES ({', '.join('?' * len(rows[0]))})", rows)
    return perf_counter() - start


if __name__ == "__main__":
    main()
