"""A canvas drawn anew from what made it: its records with their moves, and the edits between them.

Guarantees: where nobody touched the rows from outside, what is rebuilt equals what is stored. A canvas from before
moves were kept begins as it stood then; where that cannot be read either, its records are strung together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime

from mcp_memory.core.errors import Damaged, InvalidInput, NotFound
from mcp_memory.core.types import CanvasRow, Record
from mcp_memory.shortterm.canvas.drawing import Drawing, drawing_of, row_of
from mcp_memory.shortterm.canvas.edits import do, stepped
from mcp_memory.shortterm.canvas.flowchart import TITLE_LIMIT, Canvas, padded
from mcp_memory.shortterm.canvas.label import clean
from mcp_memory.shortterm.canvas.place import Move, latest, loads
from mcp_memory.shortterm.canvas.wordless import without_words
from mcp_memory.store.protocol import CanvasEdit, Conflict, Store, TakenStep

__all__ = ["drawing_at", "mend", "problems", "rebuild", "replay"]

_ALL = 1_000_000


def replay(history: Iterable[TakenStep | CanvasEdit], *, number: int, label: str = "") -> Drawing | None:
    """Return the drawing that a history comes to, without what was undone; None where it is empty."""
    drawing: Drawing | None = None
    told: dict[str, str] = {}
    steps = list[TakenStep]()
    for each in history:
        if isinstance(each, TakenStep):
            drawing = _taken(drawing, each, number=number, label=label)
            told[each.record.node_id] = each.record.summary
            steps.append(each)
        elif each.kind == "forgotten":
            drawing = without_words(drawing, steps) if drawing and each.undone is None else drawing
        elif each.undone is None:
            try:
                drawing = do(drawing, each, number=number) or drawing
                drawing = _retold(drawing, told) if drawing and each.kind == "drawn" else drawing
            except (ValueError, KeyError, TypeError, InvalidInput):
                continue  # it cannot be read, or leans on what was undone
    return drawing


def _retold(drawing: Drawing, told: Mapping[str, str]) -> Drawing:
    """A canvas as it stood has the summaries of that time; its records may have better ones by now."""
    nodes = tuple(replace(node, summary=told.get(node.id, node.summary)) for node in drawing.canvas.nodes)
    return replace(drawing, canvas=replace(drawing.canvas, nodes=nodes))


def _taken(drawing: Drawing | None, step: TakenStep, *, number: int, label: str) -> Drawing:
    record = step.record
    if drawing is None:
        empty = Canvas(number, label or record.tool_call, "doing", record.timestamp, record.timestamp)
        drawing = Drawing(canvas=empty)
    try:
        how = loads(step.move) if step.move else _guessed(drawing, record)
    except (ValueError, TypeError):
        how = _guessed(drawing, record)
    return stepped(drawing, record.node_id, how, summary=record.summary, now=record.timestamp)


def _guessed(drawing: Drawing, record: Record) -> Move:
    """It follows the step before it."""
    last = latest(drawing.canvas)
    known = any(node.id == record.node_id for node in drawing.canvas.nodes)
    if known or last is None:
        return Move(status="doing", title="" if known else clean(record.tool_call, TITLE_LIMIT))
    return Move(status="doing", title=clean(record.tool_call, TITLE_LIMIT), after={last.id: ""}, finished=(last.id,))


# --- on the store -----------------------------------------------------------------------------------


def rebuild(store: Store, space: str, number: int) -> Drawing:
    """Return a canvas drawn from its records and edits alone. Raises NotFound where it has none."""
    label = store.canvas(space, number).label
    drawing = replay(store.canvas_history(space, number), number=number, label=label)
    if drawing is None:
        raise NotFound(f"Canvas {padded(number)} has no records and no edits to be drawn from.")
    return drawing


def drawing_at(store: Store, space: str, row: CanvasRow) -> Drawing:
    """Return what a row keeps; where its text is torn, what its history comes to."""
    try:
        return drawing_of(row)
    except Damaged:
        try:
            return rebuild(store, space, row.number)
        except NotFound:
            pass
        raise


def problems(store: Store, space: str) -> Iterator[str]:
    """Yield a sentence for each canvas that is not what its history comes to."""
    for row in store.canvases(space, limit=_ALL):
        try:
            well = drawing_of(row) == rebuild(store, space, row.number)
        except Damaged:
            well = False
        if not well:
            name = f"{padded(row.number)}-{row.label}"
            yield f"Canvas {name} is not what its records come to; `mcp-memory show canvas {name} --rebuild` mends it."


def mend(store: Store, space: str, number: int, *, now: datetime) -> tuple[CanvasRow, bool]:
    """Write the canvas as its history has it, its file too. Returns it, and whether its row was another."""
    while True:
        row = store.canvas(space, number)
        fresh = row_of(rebuild(store, space, number), row)
        try:
            store.save_canvas(space, fresh, expected=row.version, now=now)
        except Conflict:
            continue
        return store.canvas(space, number), fresh != row
