"""Forget tool results on canvases: nodes and edges stay, the words that came from the results go.

The title of a node is then one that another step gave it, its summary that of its newest step; nodes without any other
step say FORGOTTEN, as does the goal without any step left. Forgetting commits a version of the kind `forgotten`, and
undoing it one without its effect.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from mcp_memory.core.errors import Damaged, NotFound
from mcp_memory.core.types import FORGOTTEN, CanvasRow
from mcp_memory.shortterm.canvas import folding
from mcp_memory.shortterm.canvas.edits import CanvasState, row_of, state_of, take_back
from mcp_memory.shortterm.canvas.flowchart import Canvas, Edge, Node, number_of
from mcp_memory.shortterm.canvas.placement import DEAD_END, StepNote
from mcp_memory.shortterm.canvas.versions import current_state
from mcp_memory.store.protocol import Store
from mcp_memory.store.values import CanvasChange, CanvasVersion, TakenStep

_ALL = 1_000_000


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
