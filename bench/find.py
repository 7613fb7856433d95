"""One list against two: `python -m bench.find DIR... [--limit N] [--json FILE]`

DIR contains a set as `bench.sets` reads it; each haystack is stored as by `bench.ours`, without a model. Every question
is asked of `find`, of `conversation_search` and of `memory_search`; printed is the mean share of its evidence turns
among the first ten hits of each, with 95 % bootstrap intervals, and the lead of `find` over both, paired by question. A
statement counts for the turns that it is based on, a page for those of the statements that its excerpt cites.

Then identifiers are looked up: words of a haystack with digits or in mixed form that exactly one turn contains, at most
five a haystack. Printed is how often the turn, or a statement based on it, is the first hit.

Last the time of `find`, and of the two searches together.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import anyio
import numpy as np
from tqdm import tqdm

from bench.ours import Clock, record
from bench.sets import Haystack, RetrievalSet, read_set
from bench.stats import timings_ms
from mcp_memory.cli.evaluation.report import mean_interval
from mcp_memory.core.config import Settings
from mcp_memory.core.errors import McpMemoryError
from mcp_memory.longterm.search.literals import literals_in
from mcp_memory.service.memory import Memory, open_memory

FIRST = 10
SEARCHES = ("find", "conversation_search", "memory_search")
LOOKED_UP = 5


async def first_hits(memory: Memory, query: str) -> tuple[dict[str, list[frozenset[str]]], dict[str, float]]:
    """Return the turns behind each of the first ten hits of each search, and the seconds of each call."""
    seconds: dict[str, float] = {}

    start = perf_counter()
    turns = await memory.conversation_search(query, limit=FIRST)
    seconds["conversation_search"] = perf_counter() - start

    start = perf_counter()
    memories = await memory.memory_search(query, limit=FIRST)
    seconds["memory_search"] = perf_counter() - start

    start = perf_counter()
    found = await memory.find(query, limit=FIRST)
    seconds["find"] = perf_counter() - start

    of_atoms = [frozenset([hit.atom.evidence, *(more.turn for more in hit.atom.also)]) for hit in memories.atoms]
    hits = {
        "find": [frozenset(hit.evidence) for hit in found.hits],
        "conversation_search": [frozenset([hit.turn.id]) for hit in turns.hits],
        "memory_search": [*of_atoms, *(frozenset([hit.turn.id]) for hit in memories.turns)],
    }
    return {name: some[:FIRST] for name, some in hits.items()}, seconds


def identifiers(haystack: Haystack) -> list[tuple[str, str]]:
    """Return identifiers that a single turn contains, each with that turn, spread evenly over the haystack."""
    rows: dict[str, str] = {}
    counts = Counter[str]()
    for _, turn in haystack.turns():
        for word in set(turn.content.split()):
            literals, is_alone = literals_in(word)
            if is_alone and len(literals) == 1 and literals_in(text := literals[0].text)[0]:
                counts[text.casefold()] += 1
                rows[text] = turn.id
    single = [(text, turn) for text, turn in rows.items() if counts[text.casefold()] == 1]
    return single[:: max(1, len(single) // LOOKED_UP)][:LOOKED_UP]


async def measure(data: RetrievalSet) -> dict[str, Any]:
    shares: dict[str, list[float]] = {name: [] for name in SEARCHES}
    first: dict[str, list[float]] = {name: [] for name in SEARCHES}
    seconds: dict[str, list[float]] = {name: [] for name in SEARCHES}
    with tqdm(total=len(data.questions), desc=data.name, unit="q", leave=False) as bar, TemporaryDirectory() as folder:
        for number, haystack in enumerate(data.haystacks):
            clock = Clock(haystack)
            async with open_memory(Settings(home=Path(folder, str(number))), now=clock) as memory:
                ids, _ = await record(memory, haystack)
                await first_hits(memory, "warm")
                for question in haystack.questions:
                    bar.update()
                    if not question.evidence_turns:
                        continue
                    clock.moment = question.asked_at or clock.after
                    hits, taken = await first_hits(memory, question.text)
                    for name in SEARCHES:
                        turns = {ids[id] for hit in hits[name] for id in hit if id in ids}
                        found = question.evidence_turns & turns
                        shares[name].append(100 * len(found) / len(question.evidence_turns))
                        seconds[name].append(taken[name])
                clock.moment = clock.after
                for text, turn in identifiers(haystack):
                    hits, _ = await first_hits(memory, text)
                    for name in SEARCHES:
                        is_first = bool(hits[name]) and turn in {ids.get(id) for id in hits[name][0]}
                        first[name].append(100.0 * is_first)
    return {
        "set": data.name,
        "questions": len(shares["find"]),
        "turn_r10": {name: _interval(shares[name]) for name in SEARCHES},
        "lead": {
            name: _interval(list(np.subtract(shares["find"], shares[name]))) for name in SEARCHES if name != "find"
        },
        "identifiers": len(first["find"]),
        "first": {name: _interval(first[name]) for name in SEARCHES},
        "ms": {
            "find": timings_ms(seconds["find"]),
            "both": timings_ms(
                [sum(pair) for pair in zip(seconds["conversation_search"], seconds["memory_search"], strict=True)]
            ),
        },
    }


def _interval(values: Sequence[float]) -> list[float]:
    """Return the mean and its interval."""
    low, high = mean_interval(np.array(values)) if values else (0.0, 0.0)
    return [round(float(np.mean(values)), 1) if values else 0.0, round(low, 1), round(high, 1)]


def table(found: Mapping[str, Any]) -> Iterator[str]:
    yield f"{found['set']}: {found['questions']} questions, {found['identifiers']} identifiers"
    for label, key in (("evidence in ten", "turn_r10"), ("lead of find", "lead"), ("identifier first", "first")):
        cells = (f"{name} {mean:.1f} [{low:.1f}, {high:.1f}]" for name, (mean, low, high) in found[key].items())
        yield f"  {label:<18}{'   '.join(cells)}"
    yield f"  {'p50 / p95 ms':<18}" + "   ".join(
        "{} {p50:.1f} / {p95:.1f}".format(name, **times) for name, times in found["ms"].items()
    )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="bench.find", description="`find` against the searches of one layer.")
    parser.add_argument("sets", nargs="+", type=Path, metavar="DIR")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    parser.add_argument("--limit", type=int, metavar="N", help="ask N questions of each set, spread evenly")
    options = parser.parse_args(arguments)
    try:
        measured: list[dict[str, Any]] = []
        for folder in options.sets:
            measured.append(anyio.run(measure, read_set(folder, limit=options.limit)))
            print("\n".join(table(measured[-1])), flush=True)
    except McpMemoryError as error:
        sys.exit(f"bench.find: {error}")
    if options.json:
        options.json.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
