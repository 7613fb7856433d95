"""Commit the next version of a canvas, and take an earlier one back.

Guarantees: two writers of one canvas both succeed; undoing the last patch commits a version without its effect, and
keeps every step, fold and word that came since. A canvas whose text is torn goes on from what its versions tell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from mcp_memory.core.errors import Damaged, NotFound, StoreUnavailable
from mcp_memory.core.types import CanvasRow
from mcp_memory.shortterm.canvas.edits import CanvasState, row_of, state_of, take_back
from mcp_memory.shortterm.canvas.flowchart import padded
from mcp_memory.shortterm.canvas.folding import without_words
from mcp_memory.store.protocol import Store
from mcp_memory.store.values import Conflict

ATTEMPTS = 50
_ALL = 1_000_000


def current_state(store: Store, space: str, row: CanvasRow) -> CanvasState:
    """Return the state that a row stores; where its text is torn, the one that its versions tell."""
    try:
        return state_of(row)
    except Damaged:
        try:
            return state_of(store.canvas(space, row.number, version=row.version))
        except (NotFound, Damaged):
            pass
        raise


def problems(store: Store, space: str) -> Iterator[str]:
    """Yield a sentence for each canvas that differs from its versions."""
    for row in store.canvases(space, limit=_ALL):
        try:
            due = store.canvas(space, row.number, version=row.version)
            is_well = replace(due, label=row.label, session=row.session) == row
        except NotFound:
            is_well = False
        if not is_well:
            name = f"{padded(row.number)}-{row.label}"
            yield f"Canvas {name} is not what its records come to; `mcp-memory show canvas {name} --rebuild` mends it."


def amend(
    store: Store, space: str, row: CanvasRow, change: Callable[[CanvasState], CanvasState | None], *, kind: str
) -> CanvasRow:
    """Commit what `change` makes of the current canvas as its next version, and return its row; None leaves it.

    The active canvas stays the same. Raises what `change` raises, with nothing written.
    """
    for _ in range(ATTEMPTS):
        after = change(current_state(store, space, row))
        if after is None:
            return row
        changed = row_of(after, row)
        try:
            store.save_canvas(space, changed, expected=row.version, kind=kind)
        except Conflict:
            row = store.canvas(space, row.number)
            continue
        return replace(changed, version=row.version + 1)
    raise _too_busy(row.number)


def undo_patch(store: Store, space: str, number: int) -> CanvasRow:
    """Undo the last patch that counts; later steps and folds stay. Raises NotFound without a patch to undo."""
    for _ in range(ATTEMPTS):
        row = store.canvas(space, number)
        before, after = _last_patch(store, space, number)
        state = take_back(current_state(store, space, row), state_of(before), state_of(after))
        # What is forgotten by now gets no words back.
        forgotten = {step.record.node_id for step in store.canvas_steps(space, number) if step.record.forgotten}
        changed = row_of(replace(state, groups=without_words(state.groups, forgotten)), row)
        try:
            store.save_canvas(space, changed, expected=row.version, kind="undone", detail=str(after.version))
        except Conflict:
            continue
        return replace(changed, version=row.version + 1)
    raise _too_busy(number)


def _last_patch(store: Store, space: str, number: int) -> tuple[CanvasRow, CanvasRow]:
    """Return the canvas before and after the last patch that was not undone."""
    versions = store.canvas_versions(space, number)
    undone = {int(one.detail) for one in versions if one.kind == "undone"}
    last = max((one.number for one in versions if one.kind == "patched" and one.number not in undone), default=0)
    try:
        return store.canvas(space, number, version=last - 1), store.canvas(space, number, version=last)
    except NotFound:  # there is none, or a purge erased it
        raise NotFound(f"Canvas {padded(number)} has no patch to undo.") from None


def _too_busy(number: int) -> StoreUnavailable:
    return StoreUnavailable(f"Canvas {padded(number)} is being written to by many others at once. Call again.")
