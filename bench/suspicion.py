"""How often an honest turn is suspected: `python -m bench.suspicion DIR... [--show N] [--json FILE]`

Each turn of the sets, once, is judged as it would be when it is stored: `mcp_memory.suspicion.flags`, by whose word it
is. `as a tool's` judges the same turns as if a tool had put them out, which is the strictest there is: what people and
assistants say would then be suspected by its words, too. Intervals are Wilson's.

`--show` prints that many of the suspected turns of each kind, shortened, for a person to judge.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from bench.sets import Turn, read_set
from mcp_memory.errors import McpMemoryError
from mcp_memory.evaluation.figures import rate
from mcp_memory.suspicion import flags
from mcp_memory.text import one_line
from mcp_memory.types import Source

__all__ = ["judged", "table"]

KINDS = ("user", "assistant", "as a tool's")


def turns_of(folder: Path) -> Iterator[Turn]:
    """Yield every turn of a set once, whatever haystacks it is in."""
    seen: set[str] = set()
    data = read_set(folder)
    for haystack in data.haystacks:
        for session in haystack.sessions:
            if session.id not in seen:
                seen.add(session.id)
                yield from session.turns


def judged(turns: Sequence[Turn], kind: str) -> tuple[int, list[tuple[Turn, tuple[str, ...]]]]:
    """Return how many turns of a kind there are, and those that are suspected with their flags."""
    own: Source = "user" if kind == "user" else "assistant" if kind == "assistant" else "tool"
    looked_at = [turn for turn in turns if kind == KINDS[-1] or (turn.role == "user") == (kind == "user")]
    found = [(turn, flags(turn.content, own)) for turn in looked_at]
    return len(looked_at), [(turn, why) for turn, why in found if why]


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Return a line for each set and kind."""
    lines = [f"{'set':<16} {'turns':<12} {'suspected':>10} {'of':>8}  {'%':<22} flags"]
    for row in rows:
        why = ", ".join(f"{name} {many}" for name, many in row["flags"].items())
        low, high = row["interval"]
        share = f"{row['percent']:.3f} [{low:.3f}, {high:.3f}]"
        lines.append(f"{row['set']:<16} {row['kind']:<12} {row['suspected']:>10,} {row['of']:>8,}  {share:<22} {why}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.suspicion", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR")
    parser.add_argument("--show", type=int, default=0, metavar="N")
    parser.add_argument("--json", type=Path, metavar="FILE")
    given = parser.parse_args(arguments)
    try:
        sets = {folder.name: list(turns_of(folder)) for folder in given.folders}
    except McpMemoryError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    rows: list[dict[str, Any]] = []
    characters, seconds = 0, 0.0
    together = [turn for turns in sets.values() for turn in turns]
    for name, turns in {**sets, "all": together}.items():
        for kind in KINDS:
            start = perf_counter()
            count, found = judged(turns, kind)
            if name == "all" and kind != KINDS[-1]:
                seconds += perf_counter() - start
            share = rate([True] * len(found) + [False] * (count - len(found)))
            rows.append(
                {
                    "set": name,
                    "kind": kind,
                    "suspected": len(found),
                    "of": count,
                    "percent": share.value,
                    "interval": share.ci95,
                    "flags": dict(Counter(flag for _, why in found for flag in why).most_common()),
                }
            )
            if name == "all":
                for turn, why in found[: given.show]:
                    print(f"{kind} · {', '.join(why)} · {turn.id} · {one_line(turn.content, 300)}\n")
    characters = sum(len(turn.content) for turn in together)
    print(table(rows))
    print(
        f"{1e6 * seconds / max(1, len(together)):.0f} µs a turn, of {characters // max(1, len(together)):,} characters"
    )
    if given.json:
        given.json.write_text(json.dumps(rows, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
