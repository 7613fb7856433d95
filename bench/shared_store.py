"""Measures a memory in PostgreSQL: `python -m bench.load --store postgresql [--turns N] [--largest N] [--home DIR]`

Starts a PostgreSQL server of its own, with default settings except its memory (or `--store postgresql://…`: an empty
database), and fills 1,000 spaces through the store, 50 turns per call: one with a third of N turns (at most 100,000) or
`--largest`, some with 1,000 to 20,000, and many small ones that share the rest. All of them have the same invented
conversation from its start, so that each text is embedded once; DIR keeps the vectors. A turn after the 100,000th gets
the vector of an earlier one, changed slightly (cosine 0.9). The index of the largest space is built when it is full, as
by `pg_restore`. Then, each with its floor from the same run:

* `conversation_search` through the verb, one question at a time, in spaces of each size;
* the 100 nearest vectors, and how many of them the exact scan finds too;
* capture by eight clients, an exchange of two turns per call, into eight spaces and into one: as threads of one
  process, and of three, like three servers. Their vectors exist before: the bundled model embeds some 200 turns/s,
  whatever the store;
* resident memory of a process that has searched every space.
"""

from __future__ import annotations

import itertools
import os
import secrets
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, sleep, time
from typing import Any

import anyio
import numpy as np
import psycopg
from numpy.typing import NDArray
from psycopg import sql
from psycopg.conninfo import make_conninfo
from tqdm import tqdm

from bench.corpus import BATCH, batches, queries, session_of
from bench.servers import memory_of
from bench.stats import percentile, timings_ms
from bench.vectors import recall_in_postgres
from mcp_memory.core.config import Settings
from mcp_memory.core.types import NewTurn
from mcp_memory.models.embed.bundled import IDENTITY
from mcp_memory.models.embed.factory import make_embedder
from mcp_memory.service.memory import open_memory
from mcp_memory.store.postgres.access import enter_as_owner
from mcp_memory.store.postgres.store import PostgresStore, open_store
from mcp_memory.store.postgres.vectors import OWN
from mcp_memory.store.sql import home_rows, turn_rows, word_index
from mcp_memory.store.values import Filters, Vectors
from tests.postgres_server import running

_SERVER = {"shared_buffers": "1GB", "max_wal_size": "4GB"}
_SPACES = 1_000
_EMBEDDED = 100_000  # turns of the conversation
_NOISE = 0.03  # of a number of a vector that is used again
_SIZES = {20_000: 1, 10_000: 1, 5_000: 1, 2_000: 2, 1_000: 4}
_CLIENTS = 8
_SECONDS = 10.0
_QUERIES, _WARM = 48, 8
_NEAREST = 100


def measured(url: str | None, folder: Path | None, turns: int, *, largest: int | None = None) -> dict[str, Any]:
    """Fill a database and measure it; without a `url`, a temporary one.

    Without a folder, the vectors are computed again.
    """
    with TemporaryDirectory(prefix="bench-") as other, _database(url) as database:
        kept = folder or Path(other)
        kept.mkdir(parents=True, exist_ok=True)
        spaces = _spaces(turns, largest)
        vectors = _vectors(kept / "vectors.npy", min(_EMBEDDED, max(spaces.values())))
        owner = database if url else make_conninfo(database, user="owner")
        with closing(open_store(database)) as store:
            filled = _filled(store, spaces, vectors)
            start = perf_counter()
            _index(owner)
            while store.maintain_indexes(limit=256):
                pass
            settled = perf_counter() - start
            _vacuum(owner)
            return {
                "spaces": len(spaces),
                "turns": sum(spaces.values()),
                "filled_turns_per_s": round(filled),
                "settled_s": round(settled),
                "select_ms": _select(database),
                "search": anyio.run(_searched, database, spaces, Path(other)),
                "recall": {turns: _recall(store, space, turns) for space, turns in list(spaces.items())[:2]},
                "capture": _captures(database, kept / "vectors.npy"),
                "resident_mb": _resident(database),
                "database_mb": _size(database),
            }


@contextmanager
def _database(url: str | None) -> Generator[str]:
    if url is not None:
        yield url
    else:
        with running(_SERVER) as server:
            server.make_template()
            yield server.create_memory()


# --- filling ----------------------------------------------------------------------------------------


def _spaces(turns: int, largest: int | None) -> dict[str, int]:
    """Return the number of turns of each space, the largest first."""
    sizes = {largest or min(_EMBEDDED, turns // 3 // BATCH * BATCH): 1, **_SIZES}
    sized = {f"of {size} {place}": size for size, count in sizes.items() for place in range(count)}
    left, small = turns - sum(sized.values()), _SPACES - len(sized)
    return sized | {f"small {place}": max(BATCH, left // small) for place in range(small)}


def _vectors(path: Path, count: int) -> NDArray[np.float16]:
    """Return the vectors of the first turns of the conversation, computed once."""
    if not path.exists():
        embedder = make_embedder(Settings())
        assert embedder is not None
        parts = tqdm(batches(count), desc="embed", total=count // BATCH, leave=False)
        made = [embedder.embed([turn.content for turn in part]).astype(np.float16) for part in parts]
        np.save(path, np.concatenate(made))
    return np.load(path)


def _vacuum(url: str) -> None:
    """Do the work of autovacuum at once: without statistics, a search takes twice as long."""
    with psycopg.connect(url, autocommit=True) as con:
        con.execute("VACUUM (ANALYZE)")


def _index(url: str) -> None:
    """Give each space with many vectors of turns a separate table, filled before it is indexed."""
    with psycopg.connect(url) as con:
        enter_as_owner(con)
        con.execute("SET LOCAL maintenance_work_mem = '2GB'")
        con.execute("SET LOCAL statement_timeout = 0")
        for space, index in con.execute(
            "SELECT n.space, v.id FROM number n, vector_index v WHERE n.kind = 'turn' AND n.last >= %s", (OWN,)
        ).fetchall():
            shared, own = f"turn_vec_{index}", f"turn_vec_{index}_of_{space}"
            con.execute("SELECT create_vector_table(%s, %s)", (shared, space))
            indexes = con.execute(
                "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = %s AND indexdef LIKE '%%hnsw%%'", (own,)
            ).fetchall()
            for name, _ in indexes:
                con.execute(sql.SQL("DROP INDEX {}").format(sql.Identifier(name)))
            moved = f"WITH moved AS (DELETE FROM ONLY {shared} WHERE space = %s RETURNING *)"
            con.execute(f"{moved} INSERT INTO {own} SELECT * FROM moved".encode(), (space,))
            for _, definition in indexes:
                con.execute(definition.encode())


def _given(vectors: NDArray[np.float16], start: int, count: int) -> Vectors:
    rows = np.arange(start, start + count)
    data = vectors[rows % len(vectors)].astype(np.float32)
    noise = np.random.default_rng(start).normal(scale=_NOISE, size=data.shape) * (rows >= len(vectors))[:, None]
    return Vectors(identity=IDENTITY, data=(data + noise).astype(np.float32))


def _filled(store: PostgresStore, spaces: dict[str, int], vectors: NDArray[np.float16]) -> float:
    """Write all spaces; return turns per second. The terms of a text, which many spaces share, are computed once."""
    terms_of_turn = word_index.terms_of_turn
    word_index.terms_of_turn = cache(terms_of_turn)
    start = perf_counter()
    with tqdm(total=sum(spaces.values()), desc="fill", unit="turn", leave=False) as bar:

        def fill(space: str, turns: int) -> None:
            for number, part in enumerate(batches(turns)):
                made = _given(vectors, number * BATCH, len(part))
                store.write(
                    space,
                    turn_rows.append,
                    session_of(number),
                    turn_rows.prepare(part),
                    now=datetime.now(UTC),
                    vectors=made,
                )
                bar.update(len(part))

        with ThreadPoolExecutor(_CLIENTS) as threads:
            for done in [threads.submit(fill, space, turns) for space, turns in spaces.items()]:
                done.result()
    word_index.terms_of_turn = terms_of_turn
    return sum(spaces.values()) / (perf_counter() - start)


# --- searching --------------------------------------------------------------------------------------


def _select(url: str) -> dict[str, float]:
    with psycopg.connect(url, autocommit=True) as con:
        return timings_ms([_seconds(lambda: con.execute("SELECT 1").fetchone()) for _ in range(500)])


def _seconds(work: Callable[[], object]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start


async def _searched(url: str, spaces: dict[str, int], home: Path) -> dict[int, dict[str, float]]:
    found: dict[int, dict[str, float]] = {}
    sized = [space for space in spaces if space.startswith("of")]
    for size in sorted({spaces[space] for space in sized}):
        seconds: list[float] = []
        names = [space for space in sized if spaces[space] == size]
        for name in names:
            async with open_memory(Settings(home=home, store=url, space=name)) as memory:
                for query in queries(_WARM, turns=size, seed=1):
                    await memory.conversation_search(query.text)
                for query in queries(_QUERIES // len(names), turns=size):
                    start = perf_counter()
                    await memory.conversation_search(query.text)
                    seconds.append(perf_counter() - start)
        found[size] = timings_ms(seconds)
    return found


def _recall(store: PostgresStore, space: str, turns: int) -> dict[str, Any]:
    embedder = make_embedder(Settings())
    assert embedder is not None
    asked = [embedder.embed_query(query.text) for query in queries(60, turns=turns, seed=2)]
    return recall_in_postgres(store, embedder.identity, asked, space=space)


def _resident(url: str) -> float:
    """Return the resident megabytes of a process that searched every space."""
    command = [sys.executable, "-m", "bench.shared_store", url]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def _touch(url: str) -> None:
    """Search every space as a server does, and print the resident megabytes of this process."""
    from mcp_memory.longterm.search.pages import search_turns
    from mcp_memory.longterm.search.search import Search

    embedder = make_embedder(Settings())
    assert embedder is not None

    def embed(text: str) -> list[Vectors]:
        return [Vectors(identity=embedder.identity, data=embedder.embed_query(text)[None, :])]

    with closing(open_store(url)) as store:
        search = Search(store, lambda: datetime.now(UTC))
        for space, query in zip(store.read_home(home_rows.spaces), itertools.cycle(queries(40, turns=1_000))):
            search_turns(
                *(store, search, space, query.text),
                embed=embed,
                filters=Filters(),
                neighbours=0,
                limit=10,
                cursor=None,
                at=datetime.now(UTC),
            )
        print(memory_of(os.getpid()).get("VmRSS", 0.0))


def _size(url: str) -> int:
    with psycopg.connect(url) as con:
        row = con.execute("SELECT pg_database_size(current_database())").fetchone()
    return row[0] // 2**20 if row else 0


# --- capture ----------------------------------------------------------------------------------------


def _captures(url: str, vectors: Path) -> dict[str, dict[str, float]]:
    ways: dict[str, tuple[str, list[int]]] = {
        "into 8 spaces": ("of {}", [_CLIENTS]),
        "the same, three servers": ("of {} of three", [3, 3, 2]),
        "into one space": ("hot", [_CLIENTS]),
        "bare INSERT and COMMIT": ("", [_CLIENTS]),
    }
    return {way: _by_servers(url, vectors, space, clients) for way, (space, clients) in ways.items()}


def _by_servers(url: str, vectors: Path, space: str, clients: list[int]) -> dict[str, float]:
    """Run so many clients in each of several processes at once; a call counts as two turns."""
    begin = time() + 4  # until then each process has started
    with ProcessPoolExecutor(len(clients), get_context("spawn")) as servers:
        first = [sum(clients[:place]) for place in range(len(clients))]
        parts = [
            servers.submit(_capture, url, vectors, space, range(start, start + count), begin, _SECONDS)
            for start, count in zip(first, clients, strict=True)
        ]
        took = [seconds for part in parts for seconds in part.result()]
    return {
        "turns_per_s": round(2 * len(took) / _SECONDS),
        **timings_ms(took),
        "p99": round(1_000 * percentile(took, 99), 1),
    }


def _capture(url: str, vectors: Path, space: str, clients: Sequence[int], begin: float, seconds: float) -> list[float]:
    """Let each client send a call as soon as the last is answered; return the seconds of the calls.

    Without a `space`, measure the floor.
    """
    texts = [turn for part in batches(5_000, seed=3) for turn in part]
    given = np.load(vectors, mmap_mode="r")

    def capture(store: PostgresStore, client: int, call: int) -> None:
        start = (client * 611 + call * 2) % (len(texts) - 1)
        turns = [
            NewTurn(role=turn.role, content=turn.content, client_id=f"{client} {call} {place}")
            for place, turn in enumerate(texts[start : start + 2])
        ]
        now, made = datetime.now(UTC), _given(given, start, 2)
        store.write(
            space.format(client), turn_rows.append, f"client {client}", turn_rows.prepare(turns), now=now, vectors=made
        )

    def insert(con: psycopg.Connection[Any]) -> None:
        con.execute("INSERT INTO commit_mark (token) VALUES (%s)", (secrets.randbits(63),))

    def run(call: Callable[[int], None]) -> list[float]:
        sleep(max(0.0, begin - time()))
        until = perf_counter() + seconds
        took: list[float] = []
        while perf_counter() < until:
            took.append(_seconds(partial(call, len(took))))
        return took

    with ExitStack() as stack:
        threads = stack.enter_context(ThreadPoolExecutor(len(clients)))
        if space:
            store = stack.enter_context(closing(open_store(url)))
            calls: list[Callable[[int], None]] = [partial(capture, store, client) for client in clients]
        else:
            opened = [stack.enter_context(psycopg.connect(url, autocommit=True)) for _ in clients]
            calls = [lambda _, con=con: insert(con) for con in opened]
        return [one for took in threads.map(run, calls) for one in took]


# --- for people -------------------------------------------------------------------------------------


def lines(found: dict[str, Any]) -> Iterator[str]:
    """Yield the figures as lines of text."""
    yield f"{found['spaces']:,} spaces, {found['turns']:,} turns, {found['database_mb']:,} MB in the database"
    yield f"filled, 50 turns a call    {found['filled_turns_per_s']:,} turns/s; then {found['settled_s']} s of upkeep"
    yield f"SELECT 1, p50 / p95        {found['select_ms']['p50']} / {found['select_ms']['p95']} ms"
    for size, took in found["search"].items():
        yield f"search of {size:>7,} turns    {took['p50']:.1f} / {took['p95']:.1f} ms"
    for size, one in found["recall"].items():
        found_of = 1 - one["lost_percent"][_NEAREST] / 100
        times = one["ours_ms"]["p50"], one["exact_ms"]["p50"]
        yield f"recall@100 of {size:>7,}      {found_of:.4f}, {times[0]:.1f} ms; exact {times[1]:.1f}"
    for way, took in found["capture"].items():
        yield f"{way:<26} {took['turns_per_s']:,} turns/s, {took['p50']:.1f} / {took['p95']:.1f} / {took['p99']:.1f} ms"
    yield f"resident, all searched     {found['resident_mb']:.0f} MB"


if __name__ == "__main__":
    _touch(sys.argv[1])
