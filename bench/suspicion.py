"""Measures the share of attacks that is held, and of honest texts: `python -m bench.suspicion [PATH...]`

**Attacks**: sentences in 29 languages (`fixtures/suspicion`), each in 48 forms (`bench.injections`), as in a web page.
The share that is held, by language, by form and by purpose of the instruction; for comparison, the share held by the
marks alone (`poses`, hidden characters, fences). Benign sentences take the same forms.

**Honest texts**: each turn of a set, once, by its author. `as a tool's` judges the same turns as tool output, which is
the strictest. Of agent runs (`.jsonl.gz`), the tool results are read. Intervals are Wilson's.

`--draw` names the file of sentences. `--show` prints so many of the suspected turns of each kind, shortened, for a
person to judge.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from bench.injections import Line, forms, lines
from bench.sets import Turn, read_set
from mcp_memory.cli.evaluation.report import rate
from mcp_memory.core.errors import McpMemoryError
from mcp_memory.core.text import has_hidden_text, one_line, to_plain_letters
from mcp_memory.core.types import Source
from mcp_memory.suspicion.flags import breaks_out, flags, impersonation_in

KINDS = ("user", "assistant", "as a tool's")


def turns_of(folder: Path) -> Iterator[Turn]:
    """Yield every distinct turn of a set; of agent runs, the tool results."""
    if folder.suffix == ".gz":
        with gzip.open(folder, "rt", encoding="utf-8") as runs:
            messages = [one for run in runs for one in json.loads(run)["messages"]]
        for at, one in enumerate(messages):
            if one["role"] == "tool" and isinstance(one["content"], str):
                yield Turn(id=f"{folder.name}:{at}", role="tool", content=one["content"])
        return
    seen: set[str] = set()
    data = read_set(folder)
    for haystack in data.haystacks:
        for session in haystack.sessions:
            if session.id not in seen:
                seen.add(session.id)
                yield from session.turns


def judged(turns: Sequence[Turn], kind: str) -> tuple[int, list[tuple[Turn, tuple[str, ...]]]]:
    """Return the number of turns of a kind, and the suspected ones with their flags."""
    own: Source = "user" if kind == "user" else "assistant" if kind == "assistant" else "tool"
    looked_at = [turn for turn in turns if kind == KINDS[-1] or (turn.role == "user") == (kind == "user")]
    seen = [(turn, flags(turn.content, own)) for turn in looked_at]
    return len(looked_at), [(turn, why) for turn, why in seen if why]


def held(draw: Sequence[Line]) -> list[dict[str, Any]]:
    """Return a row for each language, form and kind: the texts that are held, and those held by the marks alone."""
    seen: dict[tuple[str, str], list[tuple[bool, bool]]] = {}
    for line in draw:
        for form, text in forms(line.text):
            whole = bool(flags(text, "web"))
            marks = has_hidden_text(text) or breaks_out(text) or bool(impersonation_in(to_plain_letters(text)))
            groups = [("kind", line.kind)]
            if line.is_attack:
                groups += [("all", "attacks"), ("language", line.language), ("form", form)]
            for group in groups:
                seen.setdefault(group, []).append((whole, marks))
    return [
        {
            "by": by,
            "name": name,
            "of": len(texts),
            "held": rate([one for one, _ in texts]),
            "marks": rate([one for _, one in texts]),
        }
        for (by, name), texts in sorted(seen.items())
    ]


def held_table(rows: Sequence[dict[str, Any]]) -> str:
    """Return a line for each group of texts."""
    told = [f"{'attacks by':<10} {'':<24} {'of':>6}  {'% held':<22} marks alone"]
    for row in rows:
        low, high = row["held"].ci95
        share = f"{row['held'].value:.1f} [{low:.1f}, {high:.1f}]"
        told.append(f"{row['by']:<10} {row['name']:<24} {row['of']:>6,}  {share:<22} {row['marks'].value:.1f}")
    return "\n".join(told)


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
    parser.add_argument("folders", nargs="*", type=Path, metavar="PATH")
    parser.add_argument("--draw", default="test", choices=["train", "test", "paraphrases", "unseen"])
    parser.add_argument("--show", type=int, default=0, metavar="N")
    parser.add_argument("--json", type=Path, metavar="FILE")
    given = parser.parse_args(arguments)
    try:
        sets = {folder.name: list(turns_of(folder)) for folder in given.folders}
    except McpMemoryError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    print(held_table(held(lines(given.draw))))
    if not sets:
        return 0
    rows: list[dict[str, Any]] = []
    characters, seconds = 0, 0.0
    together = [turn for turns in sets.values() for turn in turns]
    for name, turns in {**sets, "all": together}.items():
        for kind in KINDS:
            start = perf_counter()
            count, suspects = judged(turns, kind)
            if not count:
                continue
            if name == "all" and kind != KINDS[-1]:
                seconds += perf_counter() - start
            share = rate([True] * len(suspects) + [False] * (count - len(suspects)))
            rows.append(
                {
                    "set": name,
                    "kind": kind,
                    "suspected": len(suspects),
                    "of": count,
                    "percent": share.value,
                    "interval": share.ci95,
                    "flags": dict(Counter(flag for _, why in suspects for flag in why).most_common()),
                }
            )
            if name == "all":
                for turn, why in suspects[: given.show]:
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
