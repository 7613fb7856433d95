"""A canvas as it stands in the context: Mermaid within a budget, or its four metadata fields.

Guarantees: never more tokens than the budget; the same canvas, groups and budget give the same text, so a prompt
cache keeps it; the newest step and what is unfinished are folded last. The `.mmd` file keeps the whole canvas.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.text import iso
from mcp_memory.core.types import CanvasRow, CanvasView
from mcp_memory.shortterm.canvas.fit import fitting
from mcp_memory.shortterm.canvas.flowchart import Canvas, padded
from mcp_memory.shortterm.canvas.label import clean
from mcp_memory.shortterm.canvas.tasks import mmd_path

if TYPE_CHECKING:
    from mcp_memory.core.tokens import TokenCounter

__all__ = ["DEFAULT_BUDGET", "view"]

DEFAULT_BUDGET = 1000


def view(row: CanvasRow, canvas: Canvas, *, counter: TokenCounter, budget_tokens: int | None = None) -> CanvasView:
    """Return the canvas for the context. Where the budget is too small, the oldest finished steps fold first.

    Raises InvalidInput when not even the metadata fits.
    """
    budget = DEFAULT_BUDGET if budget_tokens is None else budget_tokens
    text = None if row.folded else fitting(canvas, row.groups, counter=counter, budget=budget)
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
