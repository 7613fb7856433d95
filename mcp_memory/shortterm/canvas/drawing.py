"""A canvas with how it is folded: the whole state of a task's drawing, as a value, and the row that keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from mcp_memory.core.types import CanvasRow, Group
from mcp_memory.shortterm.canvas.flowchart import Canvas, read, render

__all__ = ["Drawing", "drawing_of", "row_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """What steps and edits change. `folded`: only its metadata stands in the context."""

    canvas: Canvas
    groups: Mapping[str, Group] = field(default_factory=dict[str, Group])
    folded: bool = False


def drawing_of(row: CanvasRow) -> Drawing:
    """Return what a row keeps. Raises Damaged when its text is no canvas."""
    return Drawing(canvas=read(row), groups=row.groups, folded=row.folded)


def row_of(drawing: Drawing, row: CanvasRow) -> CanvasRow:
    """Return the row with the drawing in it; number, label, session and version stay."""
    canvas = drawing.canvas
    return replace(
        row,
        text=render(canvas),
        status=canvas.status,
        folded=drawing.folded,
        groups=dict(drawing.groups),
        updated=canvas.updated,
    )
