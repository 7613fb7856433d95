"""Measures a memory of a few days: `python -m bench.week_one DIR [--systems ...] [--json FILE]`

DIR is a set in the format of `bench.sets`, or a folder of such sets. Each memory has a separate home, filled as by
`bench.ours`, with turns alone. A question is asked at its `asked_at`, and a prompt of `nothing.jsonl.gz` when the last
question of its set is asked.

`found` is the share of questions for which a system's text names (`t12`) all turns of one sufficient set, `empty` the
share for which it returned nothing, `tokens` the mean length of the text, including empty ones. `injected` is the share
of the nothing prompts for which it returned anything. `bench.answers.systems` defines the systems. Questions without
evidence are left out. Turns that contain such an id in their own words are not recognized.

Intervals are Wilson's, over questions; those of one memory are not independent.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
from tqdm import tqdm

from bench.answers.systems import Brought, bring, needs_pyramid, systems_named
from bench.ours import Clock, record
from bench.sets import RetrievalSet, read_sets
from bench.stats import share, shown
from mcp_memory.core.config import Settings
from mcp_memory.core.errors import McpMemoryError
from mcp_memory.service.memory import open_memory

MEASURED = "recall,search,hook"
ALL, NOTHING = "all", "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of one system for one question, or for a nothing prompt, whose type is `nothing`."""

    system: str
    id: str
    type: str
    found: bool
    empty: bool
    tokens: int


async def measure(data: RetrievalSet, systems: Sequence[str]) -> list[Outcome]:
    """Ask each system every question and every nothing prompt of a set."""
    outcomes: list[Outcome] = []
    for haystack in data.haystacks:
        clock = Clock(haystack)
        with TemporaryDirectory(prefix="bench-") as folder:
            async with open_memory(Settings(home=Path(folder)), now=clock) as memory:
                ids, _ = await record(memory, haystack)
                questions = [one for one in haystack.questions if one.alternatives]
                for question in tqdm(questions, desc=data.name, unit="q", leave=False):
                    clock.moment = question.asked_at or clock.after
                    for system in systems:
                        brought = await bring(system, memory, question.text)
                        found = question.is_covered_by(_named(brought, ids))
                        outcomes.append(_outcome(system, question.id, question.type, brought, found=found))
                clock.moment = max([clock.after, *(one.asked_at for one in questions if one.asked_at)])
                for prompt in data.nothing:
                    for system in systems:
                        brought = await bring(system, memory, prompt.text)
                        outcomes.append(_outcome(system, prompt.id, NOTHING, brought, found=False))
    return outcomes


def _named(brought: Brought, ids: dict[str, str]) -> frozenset[str]:
    """Return the set's ids of the turns whose ids a text contains."""
    return frozenset(ids[id] for id in re.findall(r"\bt\d+\b", brought.text) if id in ids)


def _outcome(system: str, id: str, kind: str, brought: Brought, *, found: bool) -> Outcome:
    return Outcome(system=system, id=id, type=kind, found=found, empty=not brought.text, tokens=brought.tokens)


# --- figures ----------------------------------------------------------------------------------------


def report(name: str, outcomes: Sequence[Outcome], systems: Sequence[str]) -> dict[str, Any]:
    """Return the figures in the format of `--json`: shares in per cent, each with its interval."""
    asked = [one for one in outcomes if one.type != NOTHING]
    prompts = [one for one in outcomes if one.type == NOTHING]
    types = list(dict.fromkeys(one.type for one in asked))
    return {
        "set": name,
        "systems": {
            system: {
                ALL: _figures([one for one in asked if one.system == system]),
                "by_type": {
                    kind: _figures([one for one in asked if one.system == system and one.type == kind])
                    for kind in types
                },
                "injected": share([not one.empty for one in prompts if one.system == system]),
            }
            for system in systems
        },
        "questions": [
            {"id": one.id, "type": one.type, "system": one.system, "found": one.found, "tokens": one.tokens}
            for one in outcomes
        ],
    }


def _figures(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    return {
        "found": share([one.found for one in outcomes]),
        "empty": share([one.empty for one in outcomes]),
        "tokens": round(sum(one.tokens for one in outcomes) / len(outcomes)) if outcomes else None,
    }


def table(figures: dict[str, Any]) -> Iterator[str]:
    """Yield the figures as lines of text."""
    systems: dict[str, Any] = figures["systems"]
    yield _row(figures["set"], list(systems))
    yield _row("found, %", [_of(one[ALL]["found"]) for one in systems.values()])
    for kind in next(iter(systems.values()))["by_type"]:
        yield _row(f"  {kind}", [_of(one["by_type"][kind]["found"]) for one in systems.values()])
    yield _row("empty, %", [_of(one[ALL]["empty"]) for one in systems.values()])
    yield _row("tokens", [str(one[ALL]["tokens"]) for one in systems.values()])
    yield _row("injected, nothing prompts, %", [_of(one["injected"]) for one in systems.values()])


def _of(one: dict[str, Any] | None) -> str:
    return shown(one) + (f" of {one['n']}" if one else "")


def _row(label: str, cells: Sequence[str]) -> str:
    return f"{label:<30}" + "".join(f"{cell:<28}" for cell in cells).rstrip()


# --- the command ------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="bench.week_one", description="Measure what is found in small memories.")
    parser.add_argument("folder", type=Path, metavar="DIR", help="a set, or a folder of sets")
    parser.add_argument("--systems", type=systems_named, default=MEASURED, help="default: %(default)s")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures and every outcome there")
    options = parser.parse_args(arguments)
    if any(map(needs_pyramid, options.systems)):
        parser.error("these memories hold turns alone; bench.answers asks a pyramid")
    try:
        sets = read_sets(options.folder)
    except McpMemoryError as error:
        sys.exit(f"bench.week_one: {error}")
    outcomes = [outcome for data in sets for outcome in anyio.run(measure, data, options.systems)]
    figures = report(options.folder.resolve().name, outcomes, options.systems)
    print("\n".join(table(figures)), flush=True)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
