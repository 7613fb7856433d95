"""Measures speed and size: `python -m bench.latency --turns N [--home DIR] [--json FILE]`

Everything is measured on an invented conversation of N turns (`bench.corpus`), with a floor from the same run:

* `start`: from spawn to the answer of `initialize` over stdio, for the first client of a home and for a second one,
  and from there to the answer of `tools/list`; floor: a bare SDK server, started alternately with it.
* `capture`: turns per second through `Memory.record_turns` in batches of 50 and one by one, flushed to disk, until a
  search has found them by words, and until the background has embedded them; floor: the same rows into one bare FTS5
  table in WAL mode, with as many commits.
* `search`: `Memory.conversation_search` (10 hits) over 240 queries of four kinds, query embedding included;
  floors: the query's words joined by OR over that FTS5 table, and a scan of the same vectors with numpy (float32;
  without embedding the query). In addition: the ratio of common to rare words, the vector search alone beside one
  product with all vectors in memory (`bench.vectors`), and `Memory.recall` for some of these queries.
* `offload`: `Memory.offload_tool_result` of a log of 1 MiB after the previous one has been indexed; floor: its hash,
  and the file flushed and renamed.
* `answers`: tokens (o200k) per hit of the tool's concise text; floor: the words of its excerpts alone. The same for the
  users' questions in `fixtures/two_weeks`, since an invented word takes about twice the tokens of a real one. And
  tokens of all tool objects as `tools/list` sends them; floor: without their output schemas, as some clients get them.
* `server`: the real server over stdio with the SDK's client: resident memory of all its processes at rest (three
  seconds after the start, with the store open) and after 100 searches, for one client and for four; round trips, and
  the first of them, which loads the model; floor: the bare server.
* `disk`: bytes of the home by kind, and for a turn: its row, journal line, words and vector with their indexes, and
  the rest (statements and their indexes); floor: the text itself, and the bare FTS5 table.

The folder of --home is kept and used again by the next run with the same N; without it, a temporary folder is used.
Single figures are medians. Other work on the machine changes all of them: compare them with their floor.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import anyio
import apsw
import numpy as np
from tqdm import tqdm

from bench import servers, vectors
from bench.bed import Bed, filled
from bench.corpus import KINDS, Query, batches, log, queries
from bench.floors import or_query, spaced
from bench.ours import until_indexed
from bench.stats import timings_ms
from mcp_memory.core.config import Settings
from mcp_memory.core.errors import McpMemoryError
from mcp_memory.core.garbage import collect_rarely
from mcp_memory.core.token_counts import token_counter
from mcp_memory.models.embed.factory import make_embedder
from mcp_memory.server.mcp_server import DEFINITIONS_FILE as DEFINITIONS
from mcp_memory.service.memory import Memory, open_memory
from mcp_memory.service.render import render
from scripts.two_weeks import NOW, talks, two_weeks

QUERIES, WARM_QUERIES, RECALL_QUERIES = 240, 12, 60
ONE_BY_ONE = 300
SERVER_QUERIES = 100
CLIENTS = 4
HITS = 10
MIB = 2**20


async def measure(bed: Bed, *, pairs: int, offloads: int = 15) -> dict[str, Any]:
    """Return all figures; fill the bed first if it is empty."""
    capture = await filled(bed)
    collect_rarely()  # as a server does
    await anyio.to_thread.run_sync(vectors.settle, bed.home)  # what the background has yet to do would be measured
    start = await anyio.to_thread.run_sync(partial(servers.start_up, pairs=pairs))
    single = await _one_by_one(bed.folder, ONE_BY_ONE)
    asked = queries(QUERIES, turns=bed.turns)
    texts = [query.text for query in asked[:SERVER_QUERIES]]
    return {
        "turns": bed.turns,
        "machine": {"cpus": os.cpu_count(), "python": sys.version.split()[0], "sqlite": apsw.sqlite_lib_version()},
        "start": start,
        "capture": capture | single,
        "search": {
            "ours": await _search_ours(bed, asked),
            "recall_verb": await _recall_ours(bed, asked[:RECALL_QUERIES]),
            "fts5": _search_fts5(bed, asked),
            "scan": _search_vectors(bed, asked),
            "recall": await anyio.to_thread.run_sync(_recall, bed, asked[:RECALL_QUERIES]),
        },
        "offload": await _offload(bed.folder, offloads),
        "server": {
            "ours": await servers.weigh(servers.ours(bed.home), texts),
            "four": await servers.weigh(servers.ours(bed.home), texts, clients=CLIENTS),
            "bare": await servers.weigh(servers.bare(), texts),
        },
        "answers": await _answers(bed, asked[:RECALL_QUERIES]),
        "disk": _disk(bed, capture["text_bytes"]),
    }


# --- capture and answers ----------------------------------------------------------------------------


async def _one_by_one(folder: Path, count: int) -> dict[str, Any]:
    turns = list(chain.from_iterable(batches(count)))[:count]
    with TemporaryDirectory(prefix="capture-", dir=folder) as place:
        async with open_memory(Settings(home=Path(place) / "home")) as memory:
            await memory.conversation_search("warm")
            start = perf_counter()
            for number, turn in enumerate(turns):
                await memory.record_turns([turn], session=f"session-{number // 50}")
            seconds = perf_counter() - start
        con = apsw.Connection(str(Path(place) / "floor.db"))
        con.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL").fetchall()
        con.execute("CREATE VIRTUAL TABLE said USING fts5(text, tokenize = 'porter unicode61')")
        start = perf_counter()
        for turn in turns:
            con.execute("INSERT INTO said (text) VALUES (?)", (spaced(turn.content),))
        floor = perf_counter() - start
        con.close()
    return {"one_by_one_turns_per_s": round(count / seconds), "floor_one_by_one_turns_per_s": round(count / floor)}


async def _answers(bed: Bed, asked: Sequence[Query]) -> dict[str, Any]:
    async with open_memory(Settings(home=bed.home)) as memory:
        invented = await _tokens_a_hit(memory, [query.text for query in asked])
    with TemporaryDirectory(prefix="talk-", dir=bed.folder) as place:
        async with two_weeks(Path(place) / "home") as memory:
            steps = [step for talk in await anyio.to_thread.run_sync(talks, NOW) for step in talk.steps]
            said = [str(step.get("user", "")) for step in steps]
            talk = await _tokens_a_hit(memory, [text for text in said if text.endswith("?")])
    count = token_counter("o200k_base").count
    whole: list[dict[str, Any]] = json.loads(await anyio.to_thread.run_sync(DEFINITIONS.read_bytes))
    bare = [{name: value for name, value in tool.items() if name != "outputSchema"} for tool in whole]
    return {
        **invented,
        "talk": talk,
        "tool_tokens": sum(count(json.dumps(tool, separators=(",", ":"))) for tool in whole),
        "tool_tokens_without_output": sum(count(json.dumps(tool, separators=(",", ":"))) for tool in bare),
    }


async def _tokens_a_hit(memory: Memory, questions: Sequence[str]) -> dict[str, float]:
    count = token_counter("o200k_base").count
    tokens = words = hits = 0
    for question in questions:
        shown = await memory.conversation_excerpts(question, neighbours=1, limit=HITS)
        turns = [turn for passage in shown.passages for turn in passage.turns]
        hits += sum(turn.found is not None for turn in turns)
        tokens += await anyio.to_thread.run_sync(count, render(shown))
        words += await anyio.to_thread.run_sync(count, "\n".join(turn.content for turn in turns))
    return {
        "tokens_a_hit": round(tokens / max(1, hits), 1),
        "words_tokens_a_hit": round(words / max(1, hits), 1),
    }


# --- search -----------------------------------------------------------------------------------------


async def _recall_ours(bed: Bed, asked: Sequence[Query]) -> dict[str, Any]:
    seconds: list[float] = []
    async with open_memory(Settings(home=bed.home)) as memory:
        await memory.recall(asked[0].text)
        for query in tqdm(asked, desc="recall", unit="q", leave=False):
            start = perf_counter()
            await memory.recall(query.text)
            seconds.append(perf_counter() - start)
    return timings_ms(seconds)


async def _search_ours(bed: Bed, asked: Sequence[Query]) -> dict[str, Any]:
    seconds: list[float] = []
    async with open_memory(Settings(home=bed.home)) as memory:
        for query in queries(WARM_QUERIES, turns=bed.turns, seed=1):
            await memory.conversation_search(query.text, limit=HITS)
        for query in tqdm(asked, desc="search", unit="q", leave=False):
            start = perf_counter()
            await memory.conversation_search(query.text, limit=HITS)
            seconds.append(perf_counter() - start)
    return _by_kind(asked, seconds)


def _search_fts5(bed: Bed, asked: Sequence[Query]) -> dict[str, Any]:
    con = apsw.Connection(str(bed.floor), flags=apsw.SQLITE_OPEN_READONLY)
    sql = "SELECT rowid FROM said WHERE said MATCH ? ORDER BY rank LIMIT ?"
    seconds: list[float] = []
    for query in tqdm(asked, desc="bare FTS5", unit="q", leave=False):
        start = perf_counter()
        con.execute(sql, (or_query(query.text), HITS)).fetchall()
        seconds.append(perf_counter() - start)
    con.close()
    return _by_kind(asked, seconds)


def _search_vectors(bed: Bed, asked: Sequence[Query]) -> dict[str, Any]:
    embedder = make_embedder(Settings())
    assert embedder is not None
    rows = np.load(bed.vectors)
    embedding: list[float] = []
    seconds: list[float] = []
    for query in tqdm(asked, desc="numpy scan", unit="q", leave=False):
        start = perf_counter()
        vector = embedder.embed_query(query.text)
        embedded = perf_counter()
        np.argpartition(rows @ vector, -min(HITS, len(rows)))[-HITS:]
        seconds.append(perf_counter() - embedded)
        embedding.append(embedded - start)
    return {**timings_ms(seconds), "embed_query_ms": timings_ms(embedding)["p50"]}


def _recall(bed: Bed, asked: Sequence[Query]) -> dict[str, Any]:
    embedder = make_embedder(Settings())
    assert embedder is not None
    return vectors.recall(bed.home, [embedder.embed_query(query.text) for query in asked])


def _by_kind(asked: Sequence[Query], seconds: Sequence[float]) -> dict[str, Any]:
    timed = list(zip(asked, seconds, strict=True))
    return {
        **timings_ms(seconds),
        "by_kind": {kind: timings_ms([took for query, took in timed if query.kind == kind]) for kind in KINDS},
    }


# --- offload and disk -------------------------------------------------------------------------------


async def _offload(folder: Path, count: int) -> dict[str, Any]:
    ours: list[float] = []
    floor: list[float] = []
    with TemporaryDirectory(prefix="offload-", dir=folder) as place:
        async with open_memory(Settings(home=Path(place) / "home")) as memory:
            for number in tqdm(range(count + 1), desc="offload", leave=False):
                text = log(MIB, seed=number)
                await until_indexed(memory)
                start = perf_counter()
                await memory.offload_tool_result("bash", text, arguments={"command": f"cat service-{number}.log"})
                ours.append(perf_counter() - start)
                start = perf_counter()
                _write_flushed(Path(place) / f"{number}.log", text)
                floor.append(perf_counter() - start)
    return {"bytes": MIB, "ours_ms": timings_ms(ours[1:]), "file_ms": timings_ms(floor[1:])}


def _write_flushed(path: Path, text: str) -> None:
    data = text.encode()
    beside = path.with_name(hashlib.sha256(data).hexdigest())
    with beside.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


_KEY = "sqlite_autoindex_"
"""The beginning of the names of the indexes of keys."""


def _disk(bed: Bed, text_bytes: int) -> dict[str, Any]:
    kinds: dict[str, int] = {}
    for path in bed.home.rglob("*"):
        if path.is_file():
            inside = path.relative_to(bed.home).parts
            kind = inside[2] if len(inside) > 3 else path.name  # spaces/<space>/<kind>/…
            kinds[kind] = kinds.get(kind, 0) + path.stat().st_size
    con = apsw.Connection(str(bed.home / "memory.db"), flags=apsw.SQLITE_OPEN_READONLY)
    of_turns: int = con.execute("SELECT sum(pgsize) FROM dbstat WHERE replace(name, ?, '') GLOB 'turn*'", (_KEY,)).get
    turns: int = con.execute("SELECT count(*) FROM turn").get
    con.close()
    total = sum(kinds.values())
    alone = of_turns + kinds.get("conversations", 0)
    return {
        "a_turn": {"alone": round(alone / turns), "rest": round((total - alone) / turns)},
        "bytes": dict(sorted(kinds.items(), key=lambda item: -item[1])),
        "total": total,
        "text": text_bytes,
        "fts5": bed.floor.stat().st_size,
    }


# --- for people -------------------------------------------------------------------------------------


def table(found: dict[str, Any]) -> Iterator[str]:
    """Yield the figures as lines of text: name, ours, floor, ratio."""
    start, capture, search = found["start"], found["capture"], found["search"]
    offload, server, disk, answers = found["offload"], found["server"], found["disk"], found["answers"]
    yield _row(f"{found['turns']:,} turns", "ours", "floor", "")
    yield _row(
        "spawn to initialize, ms",
        f"{start['ours_ms']:.0f}",
        f"{start['bare_ms']:.0f} bare SDK server",
        f"{start['ratio']:.2f} × (median of {start['pairs']} pairs); a second client {start['next_ms']:.0f}",
    )
    yield _row(
        "initialize to tools/list, ms",
        f"{start['tools_list_ms']:.1f}",
        f"{start['bare_tools_list_ms']:.1f} bare SDK server",
        "",
    )
    yield _row("  heavy modules by then", ", ".join(start["heavy"]) or "none", "", "")
    yield _row(
        "capture, turns/s",
        f"{capture['turns_per_s']:,}",
        f"{capture['floor_turns_per_s']:,} bare FTS5",
        f"last tenth {capture['last_tenth_turns_per_s']:,}",
    )
    yield _row("  until a search finds them", f"{capture['searched_turns_per_s']:,}", "", "")
    yield _row(
        "  until they are embedded",
        f"{capture['embedded_turns_per_s']:,}",
        f"{capture['embedding_turns_per_s']:,} embedding alone",
        "",
    )
    yield _row(
        "  one turn a call",
        f"{capture['one_by_one_turns_per_s']:,}",
        f"{capture['floor_one_by_one_turns_per_s']:,} bare FTS5",
        "",
    )
    yield _row(
        "search p50 / p95, ms",
        _pair(search["ours"]),
        f"{_pair(search['fts5'])} bare FTS5",
        "",
    )
    yield _row("recall p50 / p95, ms", _pair(search["recall_verb"]), "", "of these queries, 1,200 tokens")
    yield _row("", "", f"{_pair(search['scan'])} scan", f"embedding a query {search['scan']['embed_query_ms']:.2f}")
    for kind in KINDS:
        floor = search["fts5"]["by_kind"][kind]
        yield _row(f"  {kind}", _pair(search["ours"]["by_kind"][kind]), f"{_pair(floor)} bare FTS5", "")
    kinds, recall = search["ours"]["by_kind"], search["recall"]
    yield _row("  common words against rare", f"{kinds['common']['p50'] / kinds['rare']['p50']:.2f} ×", "", "")
    yield _row("  vectors alone p50 / p95, ms", _pair(recall["ours_ms"]), f"{_pair(recall['exact_ms'])} in memory", "")
    yield _row("offload of 1 MiB p50 / p95, ms", _pair(offload["ours_ms"]), f"{_pair(offload['file_ms'])} file", "")
    yield _row(
        "server resident, MB",
        _megabytes(server["ours"]["resident_mb"]),
        f"{_megabytes(server['bare']['resident_mb'])} bare SDK server",
        f"after {SERVER_QUERIES} searches; at rest {_megabytes(server['ours']['resident_at_rest_mb'])}, bare "
        f"{_megabytes(server['bare']['resident_at_rest_mb'])}; peak {_megabytes(server['ours']['peak_mb'])}",
    )
    yield _row(
        f"  {CLIENTS} clients together",
        _megabytes(server["four"]["resident_mb"]),
        f"{_megabytes(CLIENTS * server['bare']['resident_mb'])} bare SDK servers",
        f"at rest {_megabytes(server['four']['resident_at_rest_mb'])}",
    )
    yield _row(
        "  round trip p50 / p95, ms",
        _pair(server["ours"]["round_trip_ms"]),
        f"{_pair(server['bare']['round_trip_ms'])} bare SDK server",
        f"first {server['ours']['first_ms']:.0f}: the model is loaded",
    )
    for what, sizes in (("tokens a hit", answers), ("  of real words", answers["talk"])):
        yield _row(what, f"{sizes['tokens_a_hit']:.1f}", f"{sizes['words_tokens_a_hit']:.1f} words alone", "")
    yield _row(
        "tokens of the tools",
        f"{answers['tool_tokens']:,}",
        f"{answers['tool_tokens_without_output']:,} without output",
        "",
    )
    yield _row(
        "disk, MB",
        _megabytes(disk["total"] / MIB),
        f"{_megabytes(disk['fts5'] / MIB)} bare FTS5",
        f"text alone {_megabytes(disk['text'] / MIB)}",
    )
    yield _row("  a turn, bytes", f"{disk['a_turn']['alone']:,}", "", f"and {disk['a_turn']['rest']:,} for statements")
    for kind, size in list(disk["bytes"].items())[:6]:
        yield _row(f"  {kind}", _megabytes(size / MIB), "", "")


def _pair(timings: dict[str, float]) -> str:
    return f"{timings['p50']:.1f} / {timings['p95']:.1f}"


def _megabytes(value: float | None) -> str:
    return "unknown" if value is None else f"{value:,.1f}"


def _row(what: str, ours: str, floor: str, remark: str) -> str:
    return f"{what:<34}{ours:<20}{floor:<28}{remark}".rstrip()


# --- the command ------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="bench.latency", description="Speed and size, beside their floors.")
    parser.add_argument("--turns", type=int, default=10_000, metavar="N", help="[default: %(default)s]")
    parser.add_argument("--home", type=Path, metavar="DIR", help="keep what is filled there, and use it again")
    parser.add_argument("--pairs", type=int, default=10, help="start-ups of each server [default: %(default)s]")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    options = parser.parse_args(arguments)
    if options.turns < 100 or options.pairs < 1:
        parser.error("--turns has to be 100 or more, and --pairs 1 or more")
    try:
        with _folder(options.home) as folder:
            found = anyio.run(partial(measure, pairs=options.pairs), Bed(folder=folder, turns=options.turns))
    except McpMemoryError as error:
        sys.exit(f"bench.latency: {error}")
    print("\n".join(table(found)))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


@contextmanager
def _folder(kept: Path | None) -> Generator[Path]:
    if kept is not None:
        yield kept
    else:
        with TemporaryDirectory(prefix="bench-") as folder:
            yield Path(folder)


if __name__ == "__main__":
    main()
