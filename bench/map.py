"""Measures the map of a memory: `python -m bench.map [--names N] [--home DIR] [--rounds N] [--json FILE]`

Fills a home with statements about N invented names (2,000 by default) over three years, in groups of different sizes,
unless DIR holds one already. Figures, each as median and 95th percentile, with the median of the processor's time,
which other work on the machine changes less:

* `read`: the verb `entity_map`; floor: `mentioned_entities`, which reads the same rows and counts them in SQL.
* `page`, `data`: the page and its data as the server makes them, with the positions computed anew each time;
  floor: the page of people.
* `moved`: how far one more statement about two names moves the others, in per cent of the width: median and largest;
  floor: a map that is computed from other angles at the start, as one with random positions would be.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

import anyio
import anyio.to_thread

from bench.stats import timings_ms
from mcp_memory.core.config import Settings
from mcp_memory.core.types import MapLink, MapNode, MemoryMap
from mcp_memory.service.memory import Memory, open_memory
from mcp_memory.store.sql import atom_rows
from mcp_memory.store.sql.transaction import Transaction
from mcp_memory.store.values import NewAtom
from mcp_memory.ui.components import View
from mcp_memory.ui.elements import html
from mcp_memory.ui.pages import page_at
from mcp_memory.ui.pages.map import MOST, map_data
from mcp_memory.ui.pictures.map import Map, laid_out
from mcp_memory.ui.pictures.placing import place

NAMES = 2_000
ROUNDS = 7
_DAYS = 3 * 365
_GROUP = 35  # names
_ALONE = 0.2  # of the statements name one only
_FIRST = (
    "Ada",
    "Bo",
    "Cem",
    "Dag",
    "Eli",
    "Fia",
    "Gus",
    "Hal",
    "Ida",
    "Jon",
    "Kai",
    "Lea",
    "Mio",
    "Ravi",
    "Siv",
    "Zoe",
)
_LAST = ("Aas", "Berg", "Dahl", "Eide", "Foss", "Holm", "Juul", "Lund", "Moen", "Oss", "Prytz", "Sand", "Tveit", "Vik")
_DOES = ("works with", "wrote to", "is at", "moved to", "runs", "asked about", "pays for", "teaches")


def statements(names: int, *, seed: int = 1) -> Iterator[NewAtom]:
    """Yield statements about so many names, oldest first; names of a group are more often in one statement."""
    rng = random.Random(seed)
    start, known = datetime(2023, 12, 1, 9, tzinfo=UTC), list[tuple[str, int]]()
    groups: dict[int, list[str]] = {}
    while len(known) < names:
        group = min(rng.randrange(max(1, names // _GROUP)), rng.randrange(max(1, names // _GROUP)))
        name = f"{rng.choice(_FIRST)} {rng.choice(_LAST)} {len(known) + 1}"
        known.append((name, group))
        inside = groups.setdefault(group, [])
        at = start + timedelta(days=_DAYS * len(known) / names)
        for _ in range(rng.choice((1, 1, 2, 3))):
            beside = inside if rng.random() < 0.93 else [other for other, _ in known[:-1]]
            other = beside[min(int(rng.expovariate(0.4)), len(beside) - 1)] if beside else None
            told = [name] if other is None or rng.random() < _ALONE else [name, other]
            ended = at + timedelta(days=rng.randrange(20, 400)) if rng.random() < 0.1 else None
            yield NewAtom(kind="episodic", text=f"{name} {rng.choice(_DOES)} {told[-1]} ({rng.random():.9f}).",
                          priority=50, confidence=1.0, session="s", valid_from=at, entities=tuple(told),
                          valid_to=ended if ended and ended < datetime.now(UTC) else None)  # fmt: skip
        inside.append(name)


async def fill(home: Path, names: int) -> None:
    async with open_memory(Settings(home=home, distil=False, llm="none", embedder="none")) as memory:
        if (await memory.entity_map(limit=1)).total < names:
            await anyio.to_thread.run_sync(partial(_write, memory, list(statements(names))))


def _write(memory: Memory, new: Sequence[NewAtom]) -> None:
    def add_all(tx: Transaction) -> None:
        for atom in new:
            atom_rows.add(tx, atom, now=datetime.now(UTC))

    store = memory._parts.store  # pyright: ignore[reportPrivateUsage]
    store.write(memory.space, add_all)


async def measure(home: Path, *, rounds: int) -> dict[str, Any]:
    async with open_memory(Settings(home=home, distil=False, llm="none", embedder="none")) as memory:
        view = View(memory=memory, form_token="t")
        given = await memory.entity_map(limit=MOST)
        page = await page_at("/map", view)
        return {
            "names": given.total,
            "links": len(given.links),
            "read": {
                "ours": await _timed(memory.entity_map, rounds),
                "floor": await _timed(partial(memory.mentioned_entities, limit=1_000), rounds),
            },
            "page": await _timed(partial(page_at, "/map", view), rounds),
            "data": await _timed(partial(map_data, memory, {}), rounds),
            "people": await _timed(partial(page_at, "/people", view), rounds),
            "bytes": {
                "page": sum(len(html(node).encode()) for node in page.body),
                "data": len(json.dumps(await map_data(memory, {}), ensure_ascii=False).encode()),
            },
            "moved": {"ours": _moved(given, _with_one_more(given)), "floor": _moved(given, _renamed(given))},
        }


async def _timed(verb: Callable[[], Awaitable[object]], rounds: int) -> dict[str, float]:
    seconds, busy = list[float](), list[float]()
    for _ in range(rounds + 1):
        place.cache_clear()
        start, began = perf_counter(), process_time()
        await verb()
        seconds.append(perf_counter() - start)
        busy.append(process_time() - began)
    return {**timings_ms(seconds[1:]), "cpu": round(1000 * median(busy[1:]), 1)}


def _with_one_more(given: MemoryMap) -> MemoryMap:
    """Return the map after one more statement, about an old name and a new one."""
    now = datetime.now(UTC)
    new = MapNode(name="New Name", statements=1, past=0, first=now, last=now, until=None)
    ends = (len(given.nodes) // 3, len(given.nodes))
    return replace(
        given,
        nodes=[*given.nodes, new],
        links=[*given.links, MapLink(ends=ends, statements=1, first=now, until=None)],
    )


def _renamed(given: MemoryMap) -> MemoryMap:
    return replace(given, nodes=[replace(node, name=f"{node.name}.") for node in given.nodes])


def _moved(before: MemoryMap, after: MemoryMap) -> dict[str, float]:
    one, other = laid_out(before), laid_out(after)
    distances = list(_distances(one, other))
    return {"median": round(median(distances), 2), "largest": round(max(distances), 1)}


def _distances(one: Map, other: Map) -> Iterator[float]:
    for a, b in zip(one.spots, other.spots, strict=False):
        yield 100 * ((a.x - b.x) ** 2 + (a.y - b.y) ** 2) ** 0.5 / one.box[2]


def table(found: dict[str, Any]) -> Iterator[str]:
    """Yield the lines that are printed."""
    read, moved, size = found["read"], found["moved"], found["bytes"]
    yield f"{found['names']:,} names, {found['links']:,} links; times as median, 95th percentile and processor time"
    yield f"read      {_ms(read['ours'])}    floor {_ms(read['floor'])}"
    yield f"page      {_ms(found['page'])}    data {_ms(found['data'])}    floor {_ms(found['people'])}"
    yield f"bytes     page {size['page'] / 1000:.1f} kB    data {size['data'] / 1000:.1f} kB"
    yield (
        f"moved     {moved['ours']['median']} % / {moved['ours']['largest']} % of the width"
        f"    floor {moved['floor']['median']} % / {moved['floor']['largest']} %"
    )


def _ms(figure: dict[str, float]) -> str:
    return f"{figure['p50']:g} / {figure['p95']:g} / {figure['cpu']:g} ms"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.map", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--names", type=int, default=NAMES)
    parser.add_argument("--home", type=Path, help="where the home is kept, and used again")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    with TemporaryDirectory() as scratch:
        home = given.home or Path(scratch)
        anyio.run(fill, home, given.names)
        found = anyio.run(partial(measure, home, rounds=given.rounds))
    print("\n".join(table(found)))
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
