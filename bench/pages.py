"""Measures the page about the user and the start of a session without a model: `python -m bench.pages [GOLD …]`

GOLD is a folder with lists of what a page should contain (default: `../shared/data/pages`): any `*.jsonl` of items,
with `*_not.jsonl` (what it must not contain) and `*_sentences.jsonl` (labels). `--conversations` is the folder of the
sets they were written from (default: `../shared/data/week_one`). Each memory gets a separate home with default
settings; once the background has read it, the page and the start of the next session are made an hour after the last
turn.

`found`: items of a weight of which all regular expressions of `must` match within three consecutive lines. `replaced`:
old values of changed items that a line gives as current. `not`: sentences that seem lasting and must not be there. Both
are also given as a share of the lines. `floor` is the newest sentences of the user, up to as many characters. Macro F1
is over the labels of sentences except "none".
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

import anyio
from anyio import sleep, to_thread

from bench.ours import Clock, record
from bench.sets import Haystack, RetrievalSet, read_sets
from mcp_memory.core.config import Settings
from mcp_memory.core.errors import McpMemoryError
from mcp_memory.core.types import Atom
from mcp_memory.language.sentences import sentences
from mcp_memory.longterm.persona import without_sections
from mcp_memory.service.memory import Memory, open_memory
from mcp_memory.store.sql import atom_rows, sentence_rows
from mcp_memory.store.values import Filters

_DATA = Path("../shared/data")
_WINDOW = 3  # lines
_WAIT_S = 120.0
_WEIGHTS = (3, 2, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gold:
    """The lists about one memory, as read from their files."""

    items: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    unwanted: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    labels: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The page of one memory, compared with its lists. Counts are `(found, of)`."""

    memory: str
    page: str
    start: str
    found: dict[int, tuple[int, int]]
    floor: dict[int, tuple[int, int]]
    missing: list[str]
    replaced: tuple[int, int]
    unwanted: tuple[int, int]
    lines: int
    page_tokens: int
    start_tokens: int
    labels: list[tuple[str, str]]
    """The label of the list and of the memory for each labelled sentence."""


# --- gold -------------------------------------------------------------------------------------------


def read_gold(folders: Iterable[Path]) -> dict[str, Gold]:
    """Return the lists of all folders, by memory."""
    gold: dict[str, Gold] = {}
    for folder in folders:
        for path in sorted(folder.glob("*.jsonl")):
            for row in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
                lists = gold.setdefault(row["memory"], Gold())
                kind = path.stem.rpartition("_")[2]
                {"not": lists.unwanted, "sentences": lists.labels}.get(kind, lists.items).append(row)
    return gold


def states(lines: Sequence[str], patterns: Iterable[str]) -> bool:
    """Return whether three consecutive lines match all patterns."""
    wanted = [re.compile(pattern, re.IGNORECASE) for pattern in patterns]
    windows = ("\n".join(lines[start : start + _WINDOW]) for start in range(max(1, len(lines) - _WINDOW + 1)))
    return any(all(pattern.search(window) for pattern in wanted) for window in windows)


def gives(lines: Sequence[str], patterns: Sequence[str], unless: Sequence[str]) -> bool:
    """Return whether one line matches all of some patterns and none of the others."""
    return any(
        all(re.search(pattern, line, re.IGNORECASE) for pattern in patterns)
        and not any(re.search(pattern, line, re.IGNORECASE) for pattern in unless)
        for line in lines
    )


def found(lines: Sequence[str], gold: Gold) -> dict[int, tuple[int, int]]:
    """Return (items that the lines state, all items) of each weight."""
    by_weight = {weight: [item for item in gold.items if item["weight"] == weight] for weight in _WEIGHTS}
    return {weight: (sum(states(lines, item["must"]) for item in of), len(of)) for weight, of in by_weight.items()}


# --- one memory -------------------------------------------------------------------------------------


async def measure(data: RetrievalSet, gold: Gold) -> Outcome:
    """Fill a memory with the conversations of a set, wait for the background, and compare the result with the lists."""
    (haystack,) = data.haystacks
    clock = Clock(haystack)
    with TemporaryDirectory(prefix="bench-") as folder:
        async with open_memory(Settings(home=Path(folder)), now=clock) as memory:
            ids, _ = await record(memory, haystack)
            await until_read(memory)
            page = without_sections((await memory.read_persona()).text, {"Scenes"})  # the list of scenes is below it
            start = (await memory.recall_stable(session="next")).stable
            atoms = await to_thread.run_sync(lambda: _atoms(memory))
            counter = memory._parts.counter  # pyright: ignore[reportPrivateUsage]  the one that budgets are counted in
    lines = [line for line in f"{page}\n{start}".splitlines() if line.strip()]
    told = [line for line in lines if line.startswith("- ")]
    changed = [item for item in gold.items if "old" in item]
    return Outcome(
        memory=data.name,
        page=page,
        start=start,
        found=found(lines, gold),
        floor=found(newest_sentences(haystack, sum(map(len, (page, start)))), gold),
        missing=[item["item"] for item in gold.items if item["weight"] == 3 and not states(lines, item["must"])],
        replaced=(sum(gives(told, item["old"], item.get("unless", [])) for item in changed), len(changed)),
        unwanted=(
            sum(gives(told, item["must"], item.get("unless", [])) for item in gold.unwanted),
            len(gold.unwanted),
        ),
        lines=len(told),
        page_tokens=counter.count(page),
        start_tokens=counter.count(start),
        labels=[(row["label"], _label(row, atoms, ids)) for row in gold.labels],
    )


async def until_read(memory: Memory) -> None:
    """Wait until the background has extracted the statements of all turns."""
    parts = memory._parts  # pyright: ignore[reportPrivateUsage]  no user waits for it
    end = monotonic() + _WAIT_S
    while await to_thread.run_sync(lambda: parts.store.read(memory.space, sentence_rows.unread_turns, limit=1)):
        if monotonic() > end:
            sys.exit("bench.pages: the background does not read the turns; is the setting on?")
        await sleep(0.05)


def _atoms(memory: Memory) -> list[Atom]:
    store = memory._parts.store  # pyright: ignore[reportPrivateUsage]  the ended ones count too
    return store.read(memory.space, atom_rows.list_atoms, filters=Filters(ended=True), limit=10_000)


def _label(row: Mapping[str, Any], atoms: Sequence[Atom], ids: Mapping[str, str]) -> str:
    """Return the label of the statement that shares most words with a sentence of the same turn."""
    wanted = set(re.findall(r"\w+", row["sentence"].lower()))
    best, label = 0.0, "none"
    for atom in atoms:
        if ids.get(atom.evidence) == row["turn"] and atom.label:
            words = set(re.findall(r"\w+", atom.text.lower()))
            shared = len(wanted & words) / max(1, min(len(wanted), len(words)))
            if shared > max(best, 0.5):
                best, label = shared, atom.label
    return label


def newest_sentences(haystack: Haystack, most: int) -> list[str]:
    """Return the last sentences of the user, with at most `most` characters."""
    said = [
        f"- {turn.content[start:end].strip()}"
        for session in haystack.sessions
        for turn in session.turns
        if turn.role == "user"
        for start, end in sentences(turn.content)
    ]
    kept: list[str] = []
    for sentence in reversed(said):
        if sum(map(len, kept)) + len(sentence) > most:
            break
        kept.append(sentence)
    return kept[::-1]


# --- figures ----------------------------------------------------------------------------------------


def macro_f1(pairs: Sequence[tuple[str, str]]) -> float:
    """Return the mean F1 over the labels of the list except `none`."""
    labels = sorted({wanted for wanted, _ in pairs} - {"none"})
    hits = Counter(wanted for wanted, given in pairs if wanted == given)
    size = Counter(label for pair in pairs for label in pair)
    return sum(2 * hits[label] / size[label] for label in labels) / len(labels) if labels else 0.0


def table(outcomes: Sequence[Outcome]) -> list[str]:
    """Return the figures as lines of text: a row per memory, and the total."""
    head = ("memory", "w3", "floor", "w2", "w1", "replaced", "not", "lines", "F1", "chars", "tokens", "start")
    rows = [head, *(_row(outcome.memory, [outcome]) for outcome in outcomes), _row("all", outcomes)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _row(name: str, outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    lines = sum(outcome.lines for outcome in outcomes)
    count = len(outcomes)
    return (
        name,
        _of(outcome.found[3] for outcome in outcomes),
        _of(outcome.floor[3] for outcome in outcomes),
        _of(outcome.found[2] for outcome in outcomes),
        _of(outcome.found[1] for outcome in outcomes),
        _of(((outcome.replaced[0], outcome.replaced[1]) for outcome in outcomes), lines),
        _of(((outcome.unwanted[0], outcome.unwanted[1]) for outcome in outcomes), lines),
        str(lines),
        f"{macro_f1([pair for outcome in outcomes for pair in outcome.labels]):.2f}",
        f"{sum(len(outcome.page) for outcome in outcomes) / count:,.0f}",
        f"{sum(outcome.page_tokens for outcome in outcomes) / count:.0f}",
        f"{sum(outcome.start_tokens for outcome in outcomes) / count:.0f}",
    )


def _of(counts: Iterable[tuple[int, int]], lines: int = 0) -> str:
    """Return `12/14 86 %`; with `lines`, the percentage is of these."""
    pairs = list(counts)
    hits, total = sum(hit for hit, _ in pairs), sum(of for _, of in pairs)
    base = lines or total
    return f"{hits}/{total} {100 * hits / base:.0f} %" if base else "–"


# --- the command ------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="bench.pages", description="Measure pages that are made without a model.")
    parser.add_argument(
        "gold", type=Path, nargs="*", default=[_DATA / "pages"], metavar="GOLD", help="folders of lists"
    )
    parser.add_argument("--conversations", type=Path, nargs="*", default=[_DATA / "week_one"], metavar="DIR")
    parser.add_argument("--pages", action="store_true", help="print each page, and the items that it misses")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures and the pages there")
    options = parser.parse_args(arguments)
    gold = read_gold(options.gold)
    try:
        sets = [data for folder in options.conversations for data in read_sets(folder) if data.name in gold]
    except McpMemoryError as error:
        sys.exit(f"bench.pages: {error}")
    if not sets:
        parser.error("no conversations have the names of the memories in the lists")
    outcomes = [anyio.run(measure, data, gold[data.name]) for data in sets]
    for outcome in outcomes if options.pages else ():
        print(f"=== {outcome.memory}\n{outcome.page}\n{outcome.start}\n")
        print("\n".join(f"missing: {item}" for item in outcome.missing), end="\n\n")
    print("\n".join(table(outcomes)), flush=True)
    if options.json:
        options.json.write_text(
            json.dumps([asdict(outcome) for outcome in outcomes], indent=1) + "\n", encoding="utf-8"
        )


if __name__ == "__main__":
    main()
