"""Versions of a canvas: commit the next one, take an earlier one back, remove the words of forgotten results.

Guarantees: two writers of one canvas both succeed; undoing the last patch commits a version without its effect, and
keeps every step, fold and word that came since. A canvas whose text is torn goes on from what its versions tell.

Where tool results are forgotten, nodes and edges stay, and the words that came from the results go. The title of a node
is then one that another step gave it, its summary that of its newest step; nodes without any other step say FORGOTTEN,
as does the goal without any step left. Forgetting commits a version of the kind `forgotten`, and undoing it one without
its effect.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from mcp_memory.core.errors import Damaged, NotFound, StoreUnavailable
from mcp_memory.core.types import FORGOTTEN, CanvasRow
from mcp_memory.shortterm.canvas import folding
from mcp_memory.shortterm.canvas.edits import CanvasState, row_of, state_of, take_back
from mcp_memory.shortterm.canvas.flowchart import Canvas, Edge, Node, number_of, padded
from mcp_memory.shortterm.canvas.placement import DEAD_END, StepNote
from mcp_memory.store.protocol import Store
from mcp_memory.store.values import CanvasChange, CanvasVersion, Conflict, TakenStep

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
        changed = row_of(replace(state, groups=folding.without_words(state.groups, forgotten)), row)
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


def without_words(store: Store, space: str, refs: Collection[str], *, now: datetime) -> list[CanvasChange]:
    """Return the canvases with results that are about to be forgotten, without their words."""
    return [_without_words(store, space, row, refs, now) for row in _touched(store, space, refs)]


def _without_words(store: Store, space: str, row: CanvasRow, refs: Collection[str], now: datetime) -> CanvasChange:
    steps = _steps(store, space, row, refs, forgotten=True)
    all_gone = all(step.record.forgotten for step in steps)
    try:
        state = _bare(current_state(store, space, row), steps, all_gone=all_gone)
    except Damaged:  # a torn text has no words to keep
        state = CanvasState(canvas=Canvas(row.number, FORGOTTEN, row.status, now, now))
    changed = row_of(state, replace(row, label=FORGOTTEN if all_gone else row.label))
    return CanvasChange(row=changed, kind="forgotten", detail=json.dumps(sorted(set(refs))))


def with_words(store: Store, space: str, refs: Collection[str]) -> list[CanvasChange]:
    """Return the canvases of results whose forgetting is undone, with their words."""
    changes: list[CanvasChange] = []
    for row in _touched(store, space, refs):
        versions = store.canvas_versions(space, row.number)
        taken_back = {number for one in versions if one.kind == "restored" for number in json.loads(one.detail)}
        wanted = [
            one.number for one in versions if one.number not in taken_back and not set(refs).isdisjoint(_refs([one]))
        ]
        if wanted:
            state = current_state(store, space, row)
            for number in reversed(wanted):
                state = _taken_back(store, space, row.number, number, state)
            steps = _steps(store, space, row, refs, forgotten=False)
            others = _refs(one for one in versions if one.number not in wanted)
            again = {step.record.node_id for step in steps if step.record.ref in others}
            nodes = tuple(
                _retold(node, steps) if _is_bare(node) or node.id in again else node for node in state.canvas.nodes
            )
            state = replace(state, canvas=replace(state.canvas, nodes=nodes))
            labels = [one.label for one in versions if one.label != FORGOTTEN] or [row.label]
            changed = row_of(state, replace(row, label=labels[-1]))
            changes.append(CanvasChange(row=changed, kind="restored", detail=json.dumps(wanted)))
    return changes


def _refs(versions: Iterable[CanvasVersion]) -> set[str]:
    return {ref for one in versions if one.kind == "forgotten" for ref in json.loads(one.detail)}


def _taken_back(store: Store, space: str, number: int, version: int, state: CanvasState) -> CanvasState:
    try:
        before, after = (state_of(store.canvas(space, number, version=each)) for each in (version - 1, version))
    except (NotFound, Damaged):  # a purge erased it: its records still tell
        return state
    return take_back(state, before, after)


def _touched(store: Store, space: str, refs: Collection[str]) -> Iterator[CanvasRow]:
    """Yield the canvases that have records of these refs."""
    records = (record for ref in set(refs) for record in store.records(space, ref=ref, limit=_ALL))
    for number in sorted({number_of(record.node_id) for record in records}):
        try:
            yield store.canvas(space, number)
        except NotFound:
            continue


def _steps(store: Store, space: str, row: CanvasRow, refs: Collection[str], *, forgotten: bool) -> list[TakenStep]:
    """Return the steps of a canvas, those of some refs as they are about to be."""
    return [
        replace(step, record=replace(step.record, forgotten=forgotten)) if step.record.ref in refs else step
        for step in store.canvas_steps(space, row.number)
    ]


def _bare(state: CanvasState, steps: Sequence[TakenStep], *, all_gone: bool) -> CanvasState:
    """Remove the words of steps whose result is forgotten; `steps` are all that made the canvas."""
    touched = {step.record.node_id for step in steps if step.record.forgotten}
    bare = touched - {step.record.node_id for step in steps if not step.record.forgotten}
    canvas = replace(
        state.canvas,
        task_goal=FORGOTTEN if touched and all_gone else state.canvas.task_goal,
        nodes=tuple(_retold(node, steps) if node.id in touched else node for node in state.canvas.nodes),
        edges=tuple(_without_label(edge, bare) for edge in state.canvas.edges),
    )
    return replace(state, canvas=canvas, groups=folding.without_words(state.groups, touched))


def _is_bare(node: Node) -> bool:
    return FORGOTTEN in (node.title, node.summary)


def _retold(node: Node, steps: Sequence[TakenStep]) -> Node:
    """Return the node with the words of those of its steps that are not forgotten."""
    left = [step for step in steps if step.record.node_id == node.id and not step.record.forgotten]
    titles = [title for step in left if (title := StepNote.read(step.step).title)]
    summary = left[-1].record.summary if left else FORGOTTEN
    return replace(node, title=titles[-1] if titles else FORGOTTEN, summary=summary)


def _without_label(edge: Edge, nodes: Collection[str]) -> Edge:
    """Return an edge of one of the nodes with no words but those that every dead end has."""
    touched = edge.source in nodes or edge.target in nodes
    return replace(edge, label=DEAD_END if edge.dashed else "") if touched else edge
