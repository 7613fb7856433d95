"""Search of offloaded results: `python -m bench.result_search FILE... [--each N] [--elsewhere DIR...] [--json FILE]`

FILE contains agent runs as `bench.trajectories` reads them. All results of at least 1,000 characters from all files are
stored in one home, each through `Memory.offload_tool_result` in its run's session, as an agent would have offloaded
them. `bench.output_questions` defines the questions. Systems, each over the same runs of lines:

* ours     `Memory.conversation_search(role="tool")`
* lines    the same, but right only if the five lines that it shows contain the answer
* bm25     one FTS5 table with the porter stemmer, stop words removed, OR of the words
* dense    the cosine by the bundled static model
* fused    reciprocal rank fusion (k = 60) of ours and, at a fifth of the weight, dense: what vectors would add

A hit is right if its run of some 30 lines contains the answer and is among the first five. `elsewhere`: the share of
questions of retrieval sets (`bench.sets`), which nothing in these results answers, for which any line is returned, in
per cent; and the share of their `recall` results that include a tool result.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import anyio
import anyio.to_thread
import apsw
import numpy as np
from tqdm import tqdm

from bench.floors import or_query
from bench.output_questions import KINDS, Output, Question, mine, outputs
from bench.sets import read_set
from bench.stats import Floats, shown, timings_ms
from bench.trajectories import read_runs
from mcp_memory.cli.evaluation.report import mean_interval
from mcp_memory.core.config import Settings
from mcp_memory.core.errors import McpMemoryError
from mcp_memory.core.types import ResultHit
from mcp_memory.models.embed.factory import make_embedder
from mcp_memory.service.memory import Memory, open_memory
from mcp_memory.shortterm.chunks import runs

AT_LEAST = 1_000
FIRST = 5
ELSEWHERE = 100
SYSTEMS = ("ours", "lines", "bm25", "dense", "fused")
_LONG_LINE = 1_500
_DEEP, _K, _VECTORS = 50, 60, 0.2


@dataclass(frozen=True, slots=True)
class Shown:
    """Characters of a result that a system shows; for one long line, the shown text determines which."""

    text: str
    start: int
    end: int
    excerpt: str | None = None

    def holds(self, question: Question) -> bool:
        return any(
            text == self.text
            and self.start <= at < self.end
            and (self.excerpt is None or text[at : at + 20] in self.excerpt)
            for text, at in question.places
        )


Ask = Callable[[str, int], Awaitable[list[Shown]]]


@dataclass(frozen=True, kw_only=True)
class Bed:
    """A home that contains the results, and the floors over the same runs of lines."""

    memory: Memory
    texts: dict[str, str]
    runs: list[Shown]
    con: apsw.Connection
    embedder: Any
    vectors: Floats


async def measure(found: Sequence[Output], questions: Sequence[Question], elsewhere: Sequence[str]) -> dict[str, Any]:
    """Return the figures in the format of `--json`: shares in per cent, with 95 % bootstrap intervals."""
    async with _bed(found) as bed:
        right: dict[str, list[bool]] = {name: [] for name in SYSTEMS}
        seconds: list[float] = []
        for question in tqdm(questions, desc="questions", unit="q", leave=False):
            start = perf_counter()
            await bed.memory.conversation_search(question.text, role="tool", limit=FIRST)
            seconds.append(perf_counter() - start)
            for name in SYSTEMS:
                shown = await _asked(name, bed, question.text)
                right[name].append(any(one.holds(question) for one in shown[:FIRST]))
        kinds = np.array([question.kind for question in questions])
        return {
            "results": len(bed.texts),
            "runs_of_lines": len(bed.runs),
            "questions": {kind: int((kinds == kind).sum()) for kind in KINDS},
            "hit5": {name: _figures(np.array(hits, np.float64) * 100, kinds) for name, hits in right.items()},
            "latency_ms": timings_ms(seconds) if seconds else None,
            "elsewhere": await _elsewhere(bed, elsewhere),
        }


def _figures(hits: Floats, kinds: Any) -> dict[str, Any]:
    """Return the share of right hits, for all kinds together and for each."""
    parts = {"all": hits, **{kind: hits[kinds == kind] for kind in KINDS}}
    return {
        name: {"percent": round(float(part.mean()), 1), "ci95": [round(end, 1) for end in mean_interval(part)]}
        for name, part in parts.items()
        if len(part)
    }


async def _elsewhere(bed: Bed, questions: Sequence[str]) -> dict[str, Any] | None:
    if not questions:
        return None
    found = [(await bed.memory.conversation_search(one, limit=FIRST)).results for one in questions]
    told = ["· output of " in (await bed.memory.recall(one)).dynamic for one in questions]
    return {
        "questions": len(questions),
        "search": round(100 * float(np.mean([bool(hits) for hits in found])), 1),
        "recall": round(100 * float(np.mean(told)), 1),
    }


# --- systems ----------------------------------------------------------------------------------------


@asynccontextmanager
async def _bed(found: Sequence[Output]) -> AsyncGenerator[Bed]:
    texts: dict[str, str] = {}
    with TemporaryDirectory(prefix="bench-") as folder:
        async with open_memory(Settings(home=Path(folder))) as memory:
            for one in tqdm(found, desc="offload", unit="result", leave=False):
                done = await memory.offload_tool_result(
                    one.tool, one.text, arguments=one.arguments, session=one.run.replace("/", "-")
                )
                texts[done.ref] = one.text
            parts = [Shown(text, run.start, run.end) for text in texts.values() for run in runs(text)]
            con = apsw.Connection(":memory:")
            con.execute("CREATE VIRTUAL TABLE run USING fts5(text, tokenize = 'porter unicode61')")
            con.executemany("INSERT INTO run (text) VALUES (?)", [(_text(part),) for part in parts])
            embedder = await anyio.to_thread.run_sync(make_embedder, Settings())
            assert embedder is not None
            vectors = await anyio.to_thread.run_sync(embedder.embed, [_text(part) for part in parts])
            yield Bed(
                memory=memory, texts=texts, runs=parts, con=con, embedder=embedder, vectors=vectors.astype(np.float64)
            )
            con.close()


def _text(part: Shown) -> str:
    return part.text[part.start : part.end]


async def _asked(name: str, bed: Bed, question: str) -> list[Shown]:
    match name:
        case "lines":
            return await _lines(bed, question)
        case "ours":
            return await _ours(bed, question, FIRST)
        case "bm25":
            return _bm25(bed, question)
        case "dense":
            return await anyio.to_thread.run_sync(_dense, bed, question)
        case _:
            return _fused(await _ours(bed, question, _DEEP), await anyio.to_thread.run_sync(_dense, bed, question))


async def _lines(bed: Bed, question: str, limit: int = FIRST) -> list[Shown]:
    found = await bed.memory.conversation_search(question, role="tool", limit=limit)
    return [_shown(hit, bed.texts[hit.ref]) for hit in found.results]


async def _ours(bed: Bed, question: str, limit: int) -> list[Shown]:
    """Return the runs that contain the lines; for a line in several runs, the one that contains its excerpt."""
    found: dict[Shown, None] = {}
    for lines in await _lines(bed, question, limit):
        at = lines.start
        if lines.excerpt is not None:
            at = max(at, lines.text.find(lines.excerpt.strip("…")[:200], at))
        found[next(run for run in bed.runs if run.text is lines.text and run.start <= at < run.end)] = None
    return list(found)


def _shown(hit: ResultHit, text: str) -> Shown:
    start = 0
    for _ in range(hit.lines[0] - 1):
        start = text.index("\n", start) + 1
    end = start
    for _ in range(hit.lines[1] - hit.lines[0] + 1):
        end = (text.find("\n", end) + 1) or len(text)
    return Shown(text, start, end, hit.text if end - start > _LONG_LINE else None)


def _bm25(bed: Bed, question: str) -> list[Shown]:
    query = or_query(question)
    rows: Any = bed.con.execute(
        "SELECT rowid FROM run WHERE run MATCH ? ORDER BY bm25(run), rowid LIMIT ?", (query, FIRST)
    )
    return [bed.runs[row - 1] for (row,) in rows] if query else []


def _dense(bed: Bed, question: str) -> list[Shown]:
    scores = bed.vectors @ bed.embedder.embed_query(question)
    return [bed.runs[place] for place in np.argsort(-scores, kind="stable")[:_DEEP].tolist()]


def _fused(ours: Sequence[Shown], dense: Sequence[Shown]) -> list[Shown]:
    scores: dict[Shown, float] = {}
    for ranking, weight in ((ours, 1.0), (dense, _VECTORS)):
        for place, run in enumerate(ranking, start=1):
            scores[run] = scores.get(run, 0.0) + weight / (_K + place)
    return sorted(scores, key=lambda run: -scores[run])


# --- for people -------------------------------------------------------------------------------------


def table(found: dict[str, Any]) -> Iterator[str]:
    """Yield the figures as lines of text, intervals in brackets."""
    yield f"{found['results']} results, {found['runs_of_lines']:,} runs of lines; right among the first {FIRST}, %"
    yield _row("", SYSTEMS)
    for kind in ("all", *KINDS):
        many = sum(found["questions"].values()) if kind == "all" else found["questions"][kind]
        if many:
            yield _row(f"{kind} ({many})", [shown(found["hit5"][name][kind]) for name in SYSTEMS])
    if found["latency_ms"]:
        yield _row("ours p50 / p95, ms", ["{p50:.1f} / {p95:.1f}".format(**found["latency_ms"])])
    if found["elsewhere"]:
        yield "elsewhere ({questions}): search {search} %, recall {recall} %".format(**found["elsewhere"])


def _row(label: str, cells: Sequence[str]) -> str:
    return f"{label:<22}" + "".join(f"{cell:<22}" for cell in cells).rstrip()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="bench.result_search", description="Search of offloaded results.")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--each", type=int, default=100, metavar="N", help="questions of each kind")
    parser.add_argument("--elsewhere", nargs="*", type=Path, default=[], metavar="DIR", help="sets about other things")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    options = parser.parse_args(arguments)
    try:
        found = outputs([run for file in options.files for run in read_runs(file)], at_least=AT_LEAST)
        sets = [read_set(folder, limit=ELSEWHERE) for folder in options.elsewhere]
    except McpMemoryError as error:
        sys.exit(f"bench.result_search: {error}")
    elsewhere = [question.text for data in sets for question in data.questions]
    figures = anyio.run(measure, found, mine(found, each=options.each), elsewhere)
    print("\n".join(table(figures)))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
