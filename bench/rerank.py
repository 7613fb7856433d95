"""Measures reranking by a model: `python -m bench.rerank DIR... --llm MODEL [--base-url URL] [--limit N]`

Each question is asked twice of the same store, filled as by `bench.ours`: in the search's own order, and with its first
20 results ordered by the model (any litellm name, at any address). The key comes from MCP_MEMORY_LLM_API_KEY or the
provider's own variable. `--limit` picks questions spread evenly over each set.

Figures are per cent, over questions with evidence turns: the share of them among the first 5 and 10 turns, and the mean
reciprocal rank of the first one (0 beyond 20). `ceiling`: the figure of the best possible order of those 20. A question
that the model did not rank counts with the search's own order, and in `failed`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import anyio
import numpy as np

from bench.ours import record
from bench.sets import Haystack, Question, read_set
from bench.stats import Floats
from mcp_memory.cli.evaluation.report import mean_interval
from mcp_memory.core.config import Settings
from mcp_memory.core.errors import McpMemoryError
from mcp_memory.service.memory import Memory, open_memory

READ = 20
METRICS = ("turn R@5", "turn R@10", "MRR")


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """The ids of the set for one question, best first, without and with the model."""

    question: Question
    before: list[str]
    after: list[str]
    note: str | None
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The rankings of a set; `calls` is the number of model calls."""

    compared: list[Compared]
    calls: list[dict[str, Any]]


async def compare(haystacks: Sequence[Haystack], settings: Settings, *, at_once: int) -> Asked:
    """Ask all questions, in `at_once` stores concurrently. `settings` name the model; each store gets its own home."""
    found: list[tuple[int, Asked]] = []
    limiter = anyio.CapacityLimiter(at_once)

    async def one(place: int, haystack: Haystack) -> None:
        async with limiter:
            found.append((place, await _of_store(haystack, settings)))

    async with anyio.create_task_group() as tasks:
        for place, haystack in enumerate(haystacks):
            tasks.start_soon(one, place, haystack)
    parts = [asked for _, asked in sorted(found, key=lambda pair: pair[0])]
    return Asked(
        compared=[each for part in parts for each in part.compared],
        calls=[call for part in parts for call in part.calls],
    )


async def _of_store(haystack: Haystack, settings: Settings) -> Asked:
    with TemporaryDirectory(prefix="bench-") as folder:
        plain = Settings(home=Path(folder))
        reranked = settings.model_copy(update={"home": Path(folder), "rerank": True})
        async with open_memory(plain) as without, open_memory(reranked) as model:
            ids, _ = await record(without, haystack)
            compared: list[Compared] = []
            for question in haystack.questions:
                before, _, _ = await _asked(without, question, ids)
                after, note, seconds = await _asked(model, question, ids)
                compared.append(Compared(question=question, before=before, after=after, note=note, seconds=seconds))
            return Asked(compared=compared, calls=(await model.status())["model"]["ever"])


async def _asked(memory: Memory, question: Question, ids: dict[str, str]) -> tuple[list[str], str | None, float]:
    start = perf_counter()
    found = await memory.conversation_search(question.text, limit=READ)
    return [ids[hit.turn.id] for hit in found.hits], found.note, perf_counter() - start


# --- figures ----------------------------------------------------------------------------------------


def figures(evidence: frozenset[str], ranked: Sequence[str]) -> tuple[float, float, float]:
    """Return the figures of one ranking in the order of METRICS; `evidence` is not empty."""
    first = next((place for place, turn in enumerate(ranked, start=1) if turn in evidence), None)
    shares = (100.0 * len(evidence.intersection(ranked[:most])) / len(evidence) for most in (5, 10))
    r5, r10 = shares
    return r5, r10, 100.0 / first if first else 0.0


def best(evidence: frozenset[str], ranked: Sequence[str]) -> list[str]:
    return sorted(ranked, key=lambda turn: turn not in evidence)


def report(name: str, asked: Asked) -> dict[str, Any]:
    """Return a set's figures in the format of `--json`."""
    known = [one for one in asked.compared if one.question.evidence_turns]
    before = _scores([(one.question.evidence_turns, one.before) for one in known])
    after = _scores([(one.question.evidence_turns, one.after) for one in known])
    ceiling = _scores([(e, best(e, one.before)) for one in known for e in [one.question.evidence_turns]])
    return {
        "set": name,
        "questions": len(known),
        "failed": sum(one.note is not None for one in known),
        "before": _means(before),
        "after": _means(after),
        "gain": _means(after - before),
        "ceiling": _means(ceiling),
        "seconds": round(float(np.median([one.seconds for one in known])), 2) if known else None,
        "calls": asked.calls,
        "each": [
            {
                "id": one.question.id,
                "type": one.question.type,
                "before": list(old),
                "after": list(new),
                "note": one.note,
            }
            for one, old, new in zip(known, before.tolist(), after.tolist(), strict=True)
        ],
    }


def _scores(rankings: Sequence[tuple[frozenset[str], list[str]]]) -> Floats:
    return np.array([figures(evidence, ranked) for evidence, ranked in rankings]).reshape(-1, len(METRICS))


def _means(scores: Floats) -> dict[str, dict[str, Any]]:
    return {
        metric: {
            "mean": round(float(column.mean()), 1) if column.size else None,
            "ci95": [round(end, 1) for end in mean_interval(column)] if column.size else None,
        }
        for metric, column in zip(METRICS, scores.T, strict=True)
    }


def table(found: dict[str, Any]) -> list[str]:
    """Return a set's figures as lines of text, intervals in brackets."""
    lines = [f"{found['set']}: {found['questions']} questions, {found['failed']} not ranked by the model"]
    lines.append(f"{'':<12}{'before':<22}{'after':<22}{'gain':<22}{'ceiling':<22}".rstrip())
    for metric in METRICS:
        cells = (_cell(found[column][metric]) for column in ("before", "after", "gain", "ceiling"))
        lines.append(f"{metric:<12}" + "".join(f"{cell:<22}" for cell in cells).rstrip())
    read, written = (sum(call[key] for call in found["calls"]) for key in ("prompt_tokens", "completion_tokens"))
    lines.append(f"{sum(call['calls'] for call in found['calls'])} calls, {read:,} + {written:,} tokens")
    return lines


def _cell(one: dict[str, Any]) -> str:
    return "–" if one["mean"] is None else "{mean:.1f} [{ci95[0]:.1f}, {ci95[1]:.1f}]".format(**one)


# --- the command ------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="bench.rerank", description="What a model's rerank is worth.")
    parser.add_argument("sets", nargs="+", type=Path, metavar="DIR")
    parser.add_argument("--llm", required=True, metavar="MODEL", help="litellm's name of the model")
    parser.add_argument("--base-url", metavar="URL", help="address of its endpoint")
    parser.add_argument("--timeout", type=float, default=60, metavar="S", help="seconds for a reply (%(default)s)")
    parser.add_argument("--limit", type=int, metavar="N", help="ask N questions of each set, spread evenly")
    parser.add_argument("--at-once", type=int, default=4, metavar="N", help="stores asked side by side (%(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    options = parser.parse_args(arguments)
    settings = Settings(
        llm=options.llm,
        distil=False,
        llm_base_url=options.base_url,
        llm_api_key=os.environ.get("MCP_MEMORY_LLM_API_KEY"),
        rerank_timeout=options.timeout,
        llm_daily_tokens=10**9,
        llm_hourly_tokens=10**9,
    )
    found: list[dict[str, Any]] = []
    try:
        for folder in options.sets:
            data = read_set(folder, limit=options.limit)
            asked = anyio.run(lambda data=data: compare(data.haystacks, settings, at_once=options.at_once))
            found.append(report(data.name, asked))
            print("\n".join(table(found[-1])), end="\n\n", flush=True)
    except McpMemoryError as error:
        sys.exit(f"bench.rerank: {error}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
