"""A canvas as it stands in the context: Mermaid within a budget, or its four metadata fields.

Guarantees: never more tokens than the budget; the same canvas, groups and budget give the same text, so a prompt
cache keeps it; the newest step and what is unfinished are folded last. The `.mmd` file keeps the whole canvas.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mcp_memory.errors import InvalidInput
from mcp_memory.shortterm.canvas import Canvas, Node, padded, render
from mcp_memory.shortterm.groups import Groups, fold_groups, members, stretch_id, top_level
from mcp_memory.shortterm.label import clean
from mcp_memory.shortterm.place import latest
from mcp_memory.shortterm.tasks import mmd_path
from mcp_memory.text import iso
from mcp_memory.types import CanvasRow, CanvasView, Group

if TYPE_CHECKING:
    from mcp_memory.tokens import TokenCounter

__all__ = ["DEFAULT_BUDGET", "view"]

DEFAULT_BUDGET = 1000
STRIDE = 8
"""Folding moves on by this many steps at once, so that the text before stays the same from call to call."""


def view(row: CanvasRow, canvas: Canvas, *, counter: TokenCounter, budget_tokens: int | None = None) -> CanvasView:
    """Return the canvas for the context. Where the budget is too small, the oldest finished steps fold first.

    Raises InvalidInput when not even the metadata fits.
    """
    budget = DEFAULT_BUDGET if budget_tokens is None else budget_tokens
    text = None if row.folded else _fitting(canvas, row.groups, counter=counter, budget=budget)
    folded = text is None
    text = _metadata(row, canvas, counter=counter, budget=budget) if text is None else text
    return CanvasView(
        canvas=padded(row.number),
        task_goal=canvas.task_goal,
        status=canvas.status,
        updated_time=iso(canvas.updated),
        mmd_file_path=mmd_path(row.number, row.label),
        folded=folded,
        text=text,
        tokens=counter.count(text),
        nodes=len(canvas.nodes),
    )


def _metadata(row: CanvasRow, canvas: Canvas, *, counter: TokenCounter, budget: int) -> str:
    """The four fields; a long goal gives way to the budget."""
    for limit in (200, 80, 40, 20, 8):
        fields = {
            "taskGoal": clean(canvas.task_goal, limit),
            "status": canvas.status,
            "updatedTime": iso(canvas.updated),
            "mmdFilePath": mmd_path(row.number, row.label),
        }
        text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
        if counter.fits(text, budget):
            return text
    raise InvalidInput(
        f"budget_tokens is {budget}; the metadata of this canvas alone takes {counter.count(text)}. "
        f"Ask for at least that, or leave it out for {DEFAULT_BUDGET}."
    )


# --- fitting ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Unit:
    """Nodes that fold together: one node, or a group whose nodes stand side by side."""

    nodes: tuple[Node, ...]
    group: str | None
    finished: bool


def _fitting(canvas: Canvas, groups: Groups, *, counter: TokenCounter, budget: int) -> str | None:
    """The fullest text that fits, found by halving how far from the start finished steps are folded."""
    units = _units(canvas, groups)

    def text(upto: int) -> str:
        return render(fold_groups(canvas, _with_stretches(groups, units[:upto])))

    if counter.fits(text(0), budget):
        return text(0)
    low, high = 0, len(units)  # the text for `low` does not fit
    if not counter.fits(text(high), budget):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if counter.fits(text(middle), budget) else (middle, high)
    rounded = text(min(len(units), -(-high // STRIDE) * STRIDE))
    return rounded if counter.fits(rounded, budget) else text(high)


def _units(canvas: Canvas, groups: Groups) -> list[_Unit]:
    last = latest(canvas)
    units: list[_Unit] = []
    at = 0
    while at < len(canvas.nodes):
        node = canvas.nodes[at]
        top = top_level(groups, node.id)
        held = members(groups, top)
        nodes = canvas.nodes[at : at + len(held)]
        whole = {each.id for each in nodes} == set(held)
        nodes = nodes if whole else (node,)
        # Part of a group whose nodes lie apart cannot go into a stretch: the group holds it already.
        finished = whole and all(each.status in ("done", "blocked") and each != last for each in nodes)
        units.append(_Unit(nodes, top if top in groups else None, finished))
        at += len(nodes)
    return units


def _with_stretches(groups: Groups, units: list[_Unit]) -> Groups:
    """The groups, and one stretch for each run of finished units; what a stretch takes in is inside it."""
    folded = dict(groups)
    run: list[_Unit] = []
    for unit in [*units, None]:
        if unit is not None and unit.finished:
            run.append(unit)
            continue
        if len(run) > 1 and _in_order(run):
            first, last = run[0].nodes[0].id, run[-1].nodes[-1].id
            folded[stretch_id(first, last)] = Group(tuple(each.group or each.nodes[0].id for each in run))
        run = []
    return folded


def _in_order(run: list[_Unit]) -> bool:
    """Whether the run's ids count up one by one, so that first and last name it."""
    numbers = [int(node.id.rpartition("N")[2]) for unit in run for node in unit.nodes]
    return numbers == list(range(numbers[0], numbers[0] + len(numbers)))
