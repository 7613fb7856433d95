"""Edits on their way into the store: read, decide, do, keep; and again where another writer was first.

Guarantees: an edit and the canvas that it makes land together; two writers of one canvas both have their way;
`rollback` gives what the canvas would be had the last patch never been, with every step that was taken since.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from mcp_memory.core.errors import NotFound, StoreUnavailable
from mcp_memory.core.types import CanvasRow
from mcp_memory.shortterm.canvas.drawing import Drawing, row_of
from mcp_memory.shortterm.canvas.edits import do, patched
from mcp_memory.shortterm.canvas.flowchart import padded
from mcp_memory.shortterm.canvas.patch import Patch
from mcp_memory.shortterm.canvas.rebuild import drawing_at, replay
from mcp_memory.store.protocol import CanvasEdit, Conflict, Store

__all__ = ["amend", "patch_canvas", "rollback", "with_edits"]

ATTEMPTS = 50


def amend(store: Store, space: str, row: CanvasRow, decide: Callable[[Drawing], Sequence[CanvasEdit]]) -> CanvasRow:
    """Do the edits that `decide` finds right for the canvas as it stands, and return it; none leave it as it is.

    Which canvas is active stays as it is. Raises what `decide` and `do` raise, with nothing written.
    """
    for _ in range(ATTEMPTS):
        drawing = drawing_at(store, space, row)
        edits = decide(drawing)
        if not edits:
            return row
        try:
            store.save_canvas(space, with_edits(row, drawing, edits), expected=row.version, edits=edits)
        except Conflict:
            row = store.canvas(space, row.number)
            continue
        return store.canvas(space, row.number)
    raise StoreUnavailable(f"Canvas {padded(row.number)} is being written to by many others at once. Call again.")


def with_edits(row: CanvasRow, drawing: Drawing, edits: Sequence[CanvasEdit]) -> CanvasRow:
    """Return the row as the edits make it, for whoever saves both together. Raises InvalidInput as `do` does."""
    for each in edits:
        drawing = do(drawing, each, number=row.number) or drawing
    return row_of(drawing, row)


def patch_canvas(
    store: Store, space: str, number: int, patch: Patch, *, work: str | None = None, now: datetime
) -> CanvasRow:
    """Check a patch against the canvas as it stands, do it and keep it. Raises InvalidInput with all its faults."""
    return amend(store, space, store.canvas(space, number), lambda _: [patched(patch, now, work=work)])


def rollback(store: Store, space: str, number: int, *, now: datetime) -> CanvasRow:
    """Undo the last patch that counts. Steps and folds made since then stay. Raises NotFound where there is none."""
    for _ in range(ATTEMPTS):
        row = store.canvas(space, number)
        history = store.canvas_history(space, number)
        counting = [
            each for each in history if isinstance(each, CanvasEdit) and each.kind == "patched" and not each.undone
        ]
        if not counting:
            raise NotFound(f"Canvas {padded(number)} has no patch to undo.")
        last = counting[-1]
        left = replay((each for each in history if each != last), number=number, label=row.label)
        assert left is not None, "what was patched was there before"
        try:
            store.save_canvas(space, row_of(left, row), expected=row.version, undo=[last.number], now=now)
        except Conflict:
            continue
        return store.canvas(space, number)
    raise StoreUnavailable(f"Canvas {padded(number)} is being written to by many others at once. Call again.")
