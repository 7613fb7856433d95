"""Computes how often a reader was right with the text of each system, from marked answers.

Shares have Wilson's interval; the difference of two systems is paired by question and has a bootstrap interval. Only
`right` counts as right. Questions about one memory are not independent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from bench.answers.marks import Mark
from bench.answers.sheets import KeyRow
from mcp_memory.cli.evaluation.report import Figure, difference, rate


def table(
    key: Mapping[str, KeyRow], marks: Mapping[str, Mark], *, between: tuple[str, str], types: bool = False
) -> Iterator[str]:
    """Yield the figures of each set or type of question, and of all together, as lines of text.

    Every item of the key has a mark. `between` names two systems, whose difference is printed for questions that
    both got.
    """
    rows = list(key.values())
    names = sorted({row.type if types else row.set for row in rows})
    for name in names:
        yield from _block(name, [row for row in rows if name == (row.type if types else row.set)], marks, between)
    if len(names) > 1:
        yield from _block("all", rows, marks, between)


def _block(name: str, rows: Sequence[KeyRow], marks: Mapping[str, Mark], between: tuple[str, str]) -> Iterator[str]:
    yield _row(name, "n", "right, %", "partly, %", "empty, %", "tokens")
    for system in sorted({row.system for row in rows}):
        yield _system(system, [row for row in rows if row.system == system], marks)
    if gap := _difference(rows, marks, between):
        yield f"  {between[0]} − {between[1]}, right: {_with_interval(gap, sign='+')} points"


def _system(system: str, rows: Sequence[KeyRow], marks: Mapping[str, Mark]) -> str:
    right = rate([marks[row.id] == "right" for row in rows])
    partly = rate([marks[row.id] == "partly" for row in rows])
    empty = rate([row.tokens == 0 for row in rows])
    tokens = sum(row.tokens for row in rows) / len(rows)
    cells = (_with_interval(right), f"{partly.value:.1f}", f"{empty.value:.1f}", f"{tokens:.0f}")
    return _row(f"  {system}", str(len(rows)), *cells)


def _difference(rows: Sequence[KeyRow], marks: Mapping[str, Mark], between: tuple[str, str]) -> Figure | None:
    """Return the lead of the first system in points, over the questions that both got; None if there are none."""
    ours, theirs = (
        {(row.set, row.question_id): 100.0 * (marks[row.id] == "right") for row in rows if row.system == system}
        for system in between
    )
    both = sorted(ours.keys() & theirs.keys())
    return difference([ours[id] for id in both], [theirs[id] for id in both]) if both else None


def _with_interval(figure: Figure, *, sign: str = "") -> str:
    low, high = figure.ci95
    return f"{figure.value:{sign}.1f} [{low:{sign}.1f}, {high:{sign}.1f}]"


def _row(label: str, *cells: str) -> str:
    first, right, *others = cells
    return f"{label:<28}{first:>6}  {right:<22}" + "".join(f"{cell:>10}" for cell in others)
