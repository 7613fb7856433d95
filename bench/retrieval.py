"""Retrieval on public sets: `python -m bench.retrieval DIR... [--systems NAMES] [--limit N] [--json FILE]`

NAMES are separated by commas (default: `ours,bm25,dense`). DIR contains a set as `bench.sets` reads it; `bench.metrics`
defines the figures, `bench.ours` and `bench.floors` the systems. All systems answer the same questions in the same run,
one after the other.

The JSON is one object for one DIR and a list of them for several. Its figures are in per cent; `ci95` has 95 %
bootstrap intervals over questions, `difference` our lead over each floor, paired by question, with its interval,
`index_s` the seconds of indexing all haystacks. Figures without questions are null.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import anyio
import numpy as np
from tqdm import tqdm

from bench.asking import Answer, System
from bench.floors import bm25, dense, encoder
from bench.floors import table as word_table
from bench.metrics import METRICS, difference, figures, intervals, means
from bench.ours import ours
from bench.sets import Question, RetrievalSet, read_set
from bench.stats import Floats, timings_ms
from mcp_memory.core.errors import McpMemoryError

SYSTEMS: dict[str, System] = {"ours": ours, "bm25": bm25, "dense": dense}
HALVES: dict[str, System] = {"table": word_table, "encoder": encoder}
"""The halves of the bundled model, used only if they are named."""
LABELS = ("turn R@10", "turn R@20", "session any@5", "session all@5", "session R@10")


@dataclass(frozen=True, kw_only=True)
class Run:
    """The answers of one system to every question of a set, in the set's order, and the seconds of indexing."""

    answers: list[Answer]
    index_s: float


async def measure(data: RetrievalSet, systems: Sequence[str]) -> dict[str, Run]:
    """Ask every system every question, each over its haystack alone."""
    answers: dict[str, list[Answer]] = {name: [] for name in systems}
    index_s = dict.fromkeys(systems, 0.0)
    with tqdm(total=len(data.questions) * len(systems), desc=data.name, unit="q", leave=False) as bar:
        for haystack in data.haystacks:
            for name in systems:
                start = perf_counter()
                async with (SYSTEMS | HALVES)[name](haystack) as ask:
                    index_s[name] += perf_counter() - start
                    for question in haystack.questions:
                        answers[name].append(await ask(question))
                        bar.update()
    return {name: Run(answers=answers[name], index_s=index_s[name]) for name in systems}


def report(data: RetrievalSet, runs: dict[str, Run]) -> dict[str, Any]:
    """Return the figures of a set in the format of `--json`."""
    questions = data.questions
    scores = {name: _scores(questions, run.answers) for name, run in runs.items()}
    found: dict[str, Any] = {
        "set": data.name,
        "questions": len(questions),
        "stores": len(data.haystacks),
        "turns": sum(1 for haystack in data.haystacks for _ in haystack.turns()),
        "systems": {name: _system(questions, runs[name], scores[name]) for name in runs},
    }
    if "ours" in scores:
        found["difference"] = {
            f"ours-{name}": difference(scores["ours"], floor) for name, floor in scores.items() if name != "ours"
        }
    return found


def _scores(questions: Sequence[Question], answers: Sequence[Answer]) -> Floats:
    return np.array(
        [figures(question, answer.turns, answer.sessions) for question, answer in zip(questions, answers, strict=True)]
    ).reshape(-1, len(METRICS))


def _system(questions: Sequence[Question], run: Run, scores: Floats) -> dict[str, Any]:
    types = np.array([question.type for question in questions])
    tokens = [answer.tokens for answer in run.answers if answer.tokens is not None]
    return {
        **means(scores),
        "ci95": intervals(scores),
        "by_type": {
            kind: {"questions": int((types == kind).sum()), **means(scores[types == kind])}
            for kind in sorted(set(types.tolist()))
        },
        "latency_ms": timings_ms([answer.seconds for answer in run.answers]),
        "tokens_returned": round(sum(tokens) / len(tokens)) if tokens else None,
        "index_s": round(run.index_s, 2),
        "without": _ablations(questions, run.answers),
    }


def _ablations(questions: Sequence[Question], answers: Sequence[Answer]) -> dict[str, Any]:
    """Return the figures of turns without each signal, and their difference from those with it."""
    signals = list(answers[0].without) if answers else list[str]()
    whole = _scores(questions, answers)
    found: dict[str, Any] = {}
    for signal in signals:
        fewer = _scores(questions, [replace(answer, turns=answer.without[signal]) for answer in answers])
        found[signal] = {**means(fewer), "difference": difference(fewer, whole)}
    return found


# --- for people -------------------------------------------------------------------------------------


def table(found: dict[str, Any]) -> Iterator[str]:
    """Yield the figures of a set as lines of text, floors beside ours, intervals in brackets."""
    systems: dict[str, Any] = found["systems"]
    yield f"{found['set']}: {found['questions']} questions, {found['stores']} stores, {found['turns']:,} turns"
    yield _row("", *systems, *(key.replace("-", " − ") for key in found.get("difference", {})))
    for metric, label in zip(METRICS, LABELS, strict=True):
        yield _row(
            label,
            *(_with_interval(system[metric], system["ci95"][metric]) for system in systems.values()),
            *(_with_interval(**gap[metric], sign="+") for gap in found.get("difference", {}).values()),
        )
    yield _row("query p50 / p95 ms", *("{p50:.1f} / {p95:.1f}".format(**s["latency_ms"]) for s in systems.values()))
    yield _row("indexing s", *(f"{system['index_s']:.1f}" for system in systems.values()))
    yield _row("tokens of 10 hits", *(str(system["tokens_returned"] or "") for system in systems.values()))
    yield from _by_type(systems)
    yield from _without(systems)


def _by_type(systems: dict[str, Any]) -> Iterator[str]:
    kinds: dict[str, Any] = next(iter(systems.values()))["by_type"]
    yield "turn R@10 by type"
    for kind, one in kinds.items():
        yield _row(
            f"  {kind} ({one['questions']})",
            *(_with_interval(system["by_type"][kind]["turn_r10"], None) for system in systems.values()),
        )


def _without(systems: dict[str, Any]) -> Iterator[str]:
    for system in systems.values():
        if system["without"]:
            yield "turn R@10 with a signal left out"
        for signal, one in system["without"].items():
            gap = one["difference"]["turn_r10"]
            yield _row(f"  {signal}", f"{one['turn_r10']:.1f}", _with_interval(**gap, sign="+"))


def _with_interval(mean: float | None, ci95: Sequence[float] | None, *, sign: str = "") -> str:
    if mean is None:
        return "–"
    return f"{mean:{sign}.1f}" + (f" [{ci95[0]:{sign}.1f}, {ci95[1]:{sign}.1f}]" if ci95 else "")


def _row(label: str, *cells: str) -> str:
    return f"{label:<32}" + "".join(f"{cell:<22}" for cell in cells).rstrip()


# --- the command ------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="bench.retrieval", description="Retrieval on sets, beside its floors.")
    parser.add_argument("sets", nargs="+", type=Path, metavar="DIR")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    parser.add_argument("--limit", type=int, metavar="N", help="ask N questions of each set, spread evenly")
    parser.add_argument(
        "--systems",
        default=",".join(SYSTEMS),
        help="which, separated by commas: of %(default)s, and table and encoder, the halves of the bundled model",
    )
    options = parser.parse_args(arguments)
    systems: list[str] = options.systems.split(",")
    if unknown := sorted(set(systems) - {*SYSTEMS, *HALVES}):
        parser.error(f"there is no system {', '.join(unknown)}; choose from {', '.join([*SYSTEMS, *HALVES])}")
    if options.limit is not None and options.limit < 1:
        parser.error("--limit has to be 1 or more")
    try:
        found = [_measured(folder, systems, options.limit) for folder in options.sets]
    except McpMemoryError as error:
        sys.exit(f"bench.retrieval: {error}")
    if options.json:
        options.json.write_text(json.dumps(found if len(found) > 1 else found[0], indent=1) + "\n", encoding="utf-8")


def _measured(folder: Path, systems: Sequence[str], limit: int | None) -> dict[str, Any]:
    data = read_set(folder, limit=limit)
    found = report(data, anyio.run(measure, data, systems))
    print("\n".join(table(found)), end="\n\n", flush=True)
    return found


if __name__ == "__main__":
    main()
