"""Stand-ins of real tool outputs: `python -m bench.outputs FILE [--chars N] [--kinds] [--json FILE]`

FILE (.jsonl or .jsonl.gz) has an output on each line: `{"id", "kind", "tool", "arguments", "text", "facts": [{"any":
[pattern, …]}], "misleading": [pattern, …]}`. The facts are what an agent needs next, chosen by somebody who had
not seen any stand-in; a fact is kept if one of its patterns is found. Patterns are Python's, ignoring case; terminal
escapes are removed, and runs of blanks are one. A misleading pattern must not be found.

Systems: ours (the summary and the preview that a hook gives), and two floors of the same length for each output: head
and tail, and head, lines that match error, fail, warn and the like, and tail. With `--chars`, all have at most that
length. `hard` counts only facts that neither the first nor the last 500 characters of the output hold.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

from tqdm import tqdm

from mcp_memory.core.token_counts import token_counter
from mcp_memory.shortterm.synopsis.synopsis import synopsise

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07")
BLANKS = re.compile(r"[ \t\u00a0]+")
KEY = re.compile(r"error|fail|warn|fatal|exception|success|total", re.I)
EDGE = 500
WIDTH = 200
FLAGS = re.IGNORECASE | re.MULTILINE


@dataclass(frozen=True, slots=True)
class Output:
    """A tool output. `facts` are lists of patterns, of which one has to match."""

    id: str
    kind: str
    tool: str
    arguments: Any
    text: str
    facts: Sequence[Sequence[str]]
    misleading: Sequence[str]

    @property
    def hard(self) -> list[bool]:
        """Whether each fact is outside the first and the last characters."""
        edges = f"{self.text[:EDGE]}\n{self.text[-EDGE:]}"
        return [not kept for kept in kept_facts(self, edges)]


@dataclass(frozen=True, slots=True)
class Score:
    """Facts kept of all facts, of the hard ones, misleading statements, and the length of a stand-in."""

    kept: Sequence[bool]
    misleading: Sequence[str]
    chars: int
    tokens: int


def read(path: Path) -> list[Output]:
    """Return the outputs of a file. Raises OSError, ValueError or KeyError if it is not one."""
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        return [
            Output(
                item["id"],
                item["kind"],
                item["tool"],
                item["arguments"],
                item["text"],
                [fact["any"] for fact in item["facts"]],
                item["misleading"],
            )
            for item in map(json.loads, lines)
        ]


def kept_facts(output: Output, shown: str) -> list[bool]:
    """Return for each fact whether the shown text has it."""
    text = normalised(shown)
    return [any(re.search(pattern, text, FLAGS) for pattern in patterns) for patterns in output.facts]


def normalised(text: str) -> str:
    return BLANKS.sub(" ", ESCAPES.sub("", text).replace("\r\n", "\n").replace("\r", "\n"))


def ours(output: Output, chars: int | None) -> str:
    """Return the stand-in: the summary, then the preview."""
    made = synopsise(output.text, tool=output.tool, arguments=output.arguments)
    if chars is not None:
        room = chars - len(made.summary) - 1
        made = synopsise(output.text, tool=output.tool, arguments=output.arguments, budget_chars=room)
    return f"{made.summary}\n{made.preview}"


def head_and_tail(text: str, chars: int) -> str:
    return text if len(text) <= chars else f"{text[: chars - chars // 2 - 5]}\n...\n{text[-(chars // 2) :]}"


def head_matching_and_tail(text: str, chars: int) -> str:
    """Return a quarter of the room from the beginning, a quarter from the end, and between them lines that match."""
    if len(text) <= chars:
        return text
    quarter = chars // 4
    head, tail = text[:quarter], text[-quarter:]
    matching = dict.fromkeys(_around(line.strip()) for line in re.split(r"[\r\n]+", text[quarter:-quarter]))
    room = chars - 2 * quarter - 10
    chosen: list[str] = []
    for line in filter(None, matching):
        if len(line) + 1 > room:
            break
        chosen.append(line)
        room -= len(line) + 1
    if room > 40:
        head, tail = text[: quarter + room // 2], text[-(quarter + room // 2) :]
    return "\n...\n".join([head, "\n".join(chosen), tail])


def _around(line: str) -> str:
    """Return at most `WIDTH` characters of a line around its key word, "" for a line without one."""
    match = KEY.search(line)
    if not match:
        return ""
    start = max(0, min(match.start() - WIDTH // 2, len(line) - WIDTH))
    return line[start : start + WIDTH]


def score(output: Output, shown: str) -> Score:
    wrong = [pattern for pattern in output.misleading if re.search(pattern, normalised(shown), FLAGS)]
    return Score(kept_facts(output, shown), wrong, len(shown), token_counter("o200k_base").count(shown))


def measure(outputs: Sequence[Output], chars: int | None) -> dict[str, dict[str, Score]]:
    """Return the scores of each system by the outputs' ids."""
    floors: dict[str, Callable[[str, int], str]] = {
        "head and tail": head_and_tail,
        "head, matching lines, tail": head_matching_and_tail,
    }
    scores: dict[str, dict[str, Score]] = {name: {} for name in ("ours", *floors)}
    for output in tqdm(outputs, desc="outputs", leave=False):
        shown = ours(output, chars)
        scores["ours"][output.id] = score(output, shown)
        for name, cut in floors.items():
            scores[name][output.id] = score(output, cut(output.text, chars or len(shown)))
    return scores


def summary(outputs: Sequence[Output], scores: dict[str, Score]) -> dict[str, Any]:
    """Return shares in per cent, and what is false; `facts` and `hard` are pairs of kept and all."""
    kept = [fact for output in outputs for fact in scores[output.id].kept]
    hard = [fact for o in outputs for fact, is_hard in zip(scores[o.id].kept, o.hard, strict=True) if is_hard]
    return {
        "facts": (sum(kept), len(kept)),
        "hard": (sum(hard), len(hard)),
        "misleading": {o.id: list(scores[o.id].misleading) for o in outputs if scores[o.id].misleading},
        "chars": median(scores[output.id].chars for output in outputs),
        "tokens": median(scores[output.id].tokens for output in outputs),
    }


def table(outputs: Sequence[Output], scores: dict[str, dict[str, Score]], *, kinds: bool) -> Iterator[str]:
    yield f"{'':28}{'facts':>18}{'hard':>18}{'false':>7}{'chars':>8}{'tokens':>8}"
    for name, found in scores.items():
        row = summary(outputs, found)
        yield (
            f"{name:28}{_share(row['facts']):>18}{_share(row['hard']):>18}{len(row['misleading']):>7}"
            f"{row['chars']:>8.0f}{row['tokens']:>8.0f}"
        )
    for output in outputs if kinds else ():
        shares = (f"{sum(found[output.id].kept):>4} of {len(output.facts)}" for found in scores.values())
        yield f"{output.kind[:34]:36}{'  '.join(shares)}  {scores['ours'][output.id].chars:>6} chars"


def _share(pair: tuple[int, int]) -> str:
    kept, count = pair
    return f"{100 * kept / max(1, count):.1f} % of {count}"


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="bench.outputs", description="Stand-ins of real tool outputs.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--chars", type=int, help="length of every stand-in; by default that of ours")
    parser.add_argument("--kinds", action="store_true", help="a row for each output")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args(argv)
    try:
        outputs = read(options.file)
    except (OSError, ValueError, KeyError) as error:
        sys.exit(f"bench.outputs: {options.file} cannot be read: {error!r}. Name a file of outputs with facts.")
    start = process_time()
    scores = measure(outputs, options.chars)
    print("\n".join(table(outputs, scores, kinds=options.kinds)))
    print(f"{len(outputs)} outputs in {process_time() - start:.1f} s of CPU")
    if options.json:
        figures = {name: summary(outputs, found) for name, found in scores.items()}
        options.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
