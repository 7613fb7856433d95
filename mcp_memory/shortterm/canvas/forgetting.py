"""Removes texts from canvases when results, turns or tasks are forgotten, and restores them when that is undone.

Forgetting a result (`remove_result_texts`) keeps nodes and edges and removes the texts that came from it. A node then
has the last title set by another of its steps and the summary of its newest remaining step; a node without other steps
says FORGOTTEN, as does the goal of a canvas without other steps.

Forgetting a turn removes the goals that were copied from it (`tasks.goals_in`), because a task without a name is named
after the user's request. Forgetting a task (`003`) replaces its goal and label by FORGOTTEN, resets nodes to the titles
and summaries of their steps, and clears groups and edge labels. All other texts are the agent's. `agent_texts` lists
the texts of agents, each with the id to forget: the result for a call, a step or a summary, else the task.

Forgetting commits a version of the kind `forgotten` with the ids in its detail; `restore_texts` undoes its effect in a
further version.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from mcp_memory.core.errors import Damaged, NotFound
from mcp_memory.core.types import FORGOTTEN, CanvasRow, Group
from mcp_memory.shortterm.canvas import folding
from mcp_memory.shortterm.canvas.flowchart import (
    SUMMARY_LIMIT,
    TITLE_LIMIT,
    Canvas,
    Edge,
    Node,
    clean,
    goal_of,
    number_of,
    padded,
)
from mcp_memory.shortterm.canvas.placement import DEAD_END, StepNote
from mcp_memory.shortterm.canvas.state import CanvasState, current_state, row_of, state_of, undo_change
from mcp_memory.shortterm.canvas.tasks import goals_in, label_of
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import canvas_rows, record_rows
from mcp_memory.store.values import CanvasChange, CanvasVersion, TakenStep

_ALL = 1_000_000


# --- texts from results -----------------------------------------------------------------------------


def remove_result_texts(store: Store, space: str, refs: Collection[str], *, now: datetime) -> list[CanvasChange]:
    """Return the changes of canvases with results that are about to be forgotten."""
    changes: list[CanvasChange] = []
    for row in _canvases_of(store, space, refs):
        steps = _steps(store, space, row.number, refs, forgotten=True)
        all_forgotten = all(step.record.forgotten for step in steps)
        state = _remove_step_texts(_state_or_empty(store, space, row, now), steps, all_forgotten=all_forgotten)
        changed = row_of(state, replace(row, label=FORGOTTEN if all_forgotten else row.label))
        changes.append(CanvasChange(row=changed, kind="forgotten", detail=json.dumps(sorted(set(refs)))))
    return changes


def _state_or_empty(store: Store, space: str, row: CanvasRow, now: datetime) -> CanvasState:
    """Return the state of a row; for a damaged canvas, which has no texts to keep, an empty canvas."""
    try:
        return current_state(store, space, row)
    except Damaged:
        return CanvasState(canvas=Canvas(row.number, FORGOTTEN, row.status, now, now))


def _remove_step_texts(state: CanvasState, steps: Sequence[TakenStep], *, all_forgotten: bool) -> CanvasState:
    """Remove the texts of steps whose result is forgotten; `steps` are all steps of the canvas."""
    touched = {step.record.node_id for step in steps if step.record.forgotten}
    empty = touched - {step.record.node_id for step in steps if not step.record.forgotten}
    edges = tuple(
        _without_label(edge) if edge.source in empty or edge.target in empty else edge for edge in state.canvas.edges
    )
    canvas = replace(
        state.canvas,
        task_goal=FORGOTTEN if touched and all_forgotten else state.canvas.task_goal,
        nodes=tuple(_reset_node(node, steps) if node.id in touched else node for node in state.canvas.nodes),
        edges=edges,
    )
    return replace(state, canvas=canvas, groups=folding.without_texts(state.groups, touched))


def _without_label(edge: Edge) -> Edge:
    return replace(edge, label=DEAD_END if edge.dashed else "")


def _reset_node(node: Node, steps: Sequence[TakenStep]) -> Node:
    """Return the node with the texts of its steps that are not forgotten; FORGOTTEN if there is none."""
    remaining = [step for step in steps if step.record.node_id == node.id and not step.record.forgotten]
    titles = [title for step in remaining if (title := StepNote.read(step.step).title)]
    summary = remaining[-1].record.summary if remaining else FORGOTTEN
    return replace(node, title=titles[-1] if titles else FORGOTTEN, summary=summary)


def _steps(store: Store, space: str, number: int, refs: Collection[str], *, forgotten: bool) -> list[TakenStep]:
    """Return the steps of a canvas as if the results of `refs` were forgotten, or were not."""
    return [
        replace(step, record=replace(step.record, forgotten=forgotten)) if step.record.ref in refs else step
        for step in store.read(space, record_rows.canvas_steps, number)
    ]


def _canvases_of(store: Store, space: str, refs: Collection[str]) -> Iterator[CanvasRow]:
    """Yield the canvases that have records of these refs."""
    records = (
        record for ref in set(refs) for record in store.read(space, record_rows.list_records, ref=ref, limit=_ALL)
    )
    for number in sorted({number_of(record.node_id) for record in records}):
        with suppress(NotFound):
            yield store.read(space, canvas_rows.canvas, number)


# --- undo -------------------------------------------------------------------------------------------


def restore_texts(store: Store, space: str, ids: Collection[str]) -> list[CanvasChange]:
    """Return the changes of canvases when forgetting is undone; `ids` are the ids in the tombstone."""
    rows = {row.number: row for row in _canvases_of(store, space, [id for id in ids if id.startswith("r-")])}
    rows |= {
        row.number: row for row in store.read(space, canvas_rows.list_canvases, limit=_ALL) if row.label == FORGOTTEN
    }
    changes = (_restore(store, space, rows[number], ids) for number in sorted(rows))
    return [change for change in changes if change is not None]


def _restore(store: Store, space: str, row: CanvasRow, ids: Collection[str]) -> CanvasChange | None:
    versions = store.read(space, canvas_rows.versions, row.number)
    undone = {number for version in versions if version.kind == "restored" for number in json.loads(version.detail)}
    forgotten = [version for version in versions if version.kind == "forgotten" and version.number not in undone]
    numbers = [version.number for version in forgotten if not set(ids).isdisjoint(_forgotten_ids([version]))]
    if not numbers:
        return None
    state = current_state(store, space, row)
    for number in reversed(numbers):
        with suppress(NotFound, Damaged):  # erased by a purge; the records still have the texts
            before, after = (
                state_of(store.read(space, canvas_rows.canvas, row.number, version=at)) for at in (number - 1, number)
            )
            state = undo_change(state, before, after)
    steps = _steps(store, space, row.number, ids, forgotten=False)
    other_ids = _forgotten_ids(version for version in versions if version.number not in numbers)
    again = {step.record.node_id for step in steps if step.record.ref in other_ids}
    nodes = tuple(
        _reset_node(node, steps) if FORGOTTEN in (node.title, node.summary) or node.id in again else node
        for node in state.canvas.nodes
    )
    # The goal stays forgotten with its task, with another turn that it was copied from, or with all results.
    still_forgotten = _forgotten_ids(version for version in forgotten if version.number not in numbers)
    no_goal = any(not id.startswith("r-") for id in still_forgotten)
    no_goal = no_goal or (bool(steps) and all(step.record.forgotten for step in steps))
    goal = FORGOTTEN if no_goal else _earlier_goal(store, space, row.number, versions, state.canvas.task_goal)
    state = replace(state, canvas=replace(state.canvas, task_goal=goal, nodes=nodes))
    label = FORGOTTEN if no_goal else _last_label(versions) or row.label
    return CanvasChange(row=row_of(state, replace(row, label=label)), kind="restored", detail=json.dumps(numbers))


def _earlier_goal(store: Store, space: str, number: int, versions: Sequence[CanvasVersion], goal: str) -> str:
    """Return the goal, or if it is forgotten, the last goal before that."""
    for version in reversed(versions if goal == FORGOTTEN else ()):
        with suppress(NotFound):  # erased by a purge
            earlier = goal_of(store.read(space, canvas_rows.canvas, number, version=version.number).text)
            if earlier and earlier != FORGOTTEN:
                return earlier
    return goal


def _last_label(versions: Iterable[CanvasVersion]) -> str | None:
    """Return the last label that is not FORGOTTEN, None without such a label."""
    return next((label for version in reversed([*versions]) if (label := version.label) != FORGOTTEN), None)


def _forgotten_ids(versions: Iterable[CanvasVersion]) -> set[str]:
    """Return the ids of the results, turns and tasks that were forgotten in these versions."""
    return {id for version in versions if version.kind == "forgotten" for id in json.loads(version.detail)}


# --- goals and tasks --------------------------------------------------------------------------------


def remove_goals(
    store: Store,
    space: str,
    *,
    turns: Mapping[str, str],
    tasks: Iterable[str] = (),
    redrawn: Sequence[CanvasChange] = (),
    now: datetime,
) -> list[CanvasChange]:
    """Return the changes of canvases when `turns` (id to text) and `tasks` are forgotten, merged into `redrawn`.

    A forgotten task also loses titles, summaries and labels that came from no step.
    """
    changes = {change.row.number: change for change in redrawn}
    for row, ids in _canvases_with_goals(store, space, turns, tasks):
        before = changes.get(row.number, CanvasChange(row=row, kind="forgotten", detail="[]"))
        state = _state_or_empty(store, space, before.row, now)
        if padded(row.number) in ids:
            state = _remove_patch_texts(store, space, state, refs=json.loads(before.detail))
        state = replace(state, canvas=replace(state.canvas, task_goal=FORGOTTEN))
        detail = json.dumps(sorted({*json.loads(before.detail), *ids}))
        changed = row_of(state, replace(before.row, label=FORGOTTEN))
        changes[row.number] = replace(before, row=changed, detail=detail)
    return list(changes.values())


def _canvases_with_goals(
    store: Store, space: str, turns: Mapping[str, str], tasks: Iterable[str]
) -> Iterator[tuple[CanvasRow, list[str]]]:
    """Yield the canvases whose goals are forgotten, each with the ids of the forgotten turns and task."""
    task_ids = {int(task): task for task in tasks}
    rows = store.read(space, canvas_rows.list_canvases, limit=_ALL)
    if not rows or not (turns or task_ids):
        return
    sources = defaultdict[str, set[str]](set)
    for id, text in turns.items():
        for goal in goals_in(text):
            sources[goal].add(id)
            sources[label_of(goal)].add(id)
    for row in rows:
        label = row.label
        if label == FORGOTTEN:
            label = _last_label(store.read(space, canvas_rows.versions, row.number)) or FORGOTTEN
        ids = sources.get(goal_of(row.text) or "", set()) | sources.get(label, set())
        ids |= {task_ids[row.number]} if row.number in task_ids else set()
        if ids:
            yield row, sorted(ids)


def _remove_patch_texts(store: Store, space: str, state: CanvasState, *, refs: Collection[str]) -> CanvasState:
    """Return the state with only the texts of its steps, as if the results of `refs` were forgotten."""
    canvas = state.canvas
    steps = _steps(store, space, canvas.number, refs, forgotten=True)
    nodes = tuple(_reset_node(node, steps) for node in canvas.nodes)
    groups = {id_: Group(group.nodes) for id_, group in state.groups.items()}
    edges = tuple(map(_without_label, canvas.edges))
    return replace(state, canvas=replace(canvas, nodes=nodes, edges=edges), groups=groups)


# --- texts by agents --------------------------------------------------------------------------------


def agent_texts(store: Store, space: str, changes: Iterable[CanvasChange] = ()) -> Iterator[tuple[str, str]]:
    """Yield (id of the result or task, text) for each text by an agent, as if `changes` were committed."""
    changed = {change.row.number: change.row for change in changes}
    for stored in store.read(space, canvas_rows.list_canvases, limit=_ALL):
        steps = store.read(space, record_rows.canvas_steps, stored.number)
        from_steps = set[str]()
        for step in steps:
            record, title = step.record, StepNote.read(step.step).title
            from_steps |= {clean(title, TITLE_LIMIT), clean(record.summary, SUMMARY_LIMIT)}
            if not record.forgotten:
                yield from ((record.ref, text) for text in (record.tool_call, title, record.summary) if text)
        row = changed.get(stored.number, stored)
        texts = _canvas_texts(store, space, row, from_steps)
        yield from ((padded(row.number), text) for text in dict.fromkeys(texts) if text not in ("", FORGOTTEN))


def _canvas_texts(store: Store, space: str, row: CanvasRow, from_steps: Collection[str]) -> Iterator[str]:
    """Yield the texts of a canvas that are not in `from_steps`, and of its versions before and after each patch."""
    with suppress(Damaged, NotFound):
        yield from _texts_of(current_state(store, space, row), from_steps)
    if row.label == FORGOTTEN:  # the purge of the forgotten rows erases its earlier versions
        return
    patched = {
        version.number for version in store.read(space, canvas_rows.versions, row.number) if version.kind == "patched"
    }
    for number in sorted(patched | {number - 1 for number in patched}):
        with suppress(Damaged, NotFound):
            yield from _texts_of(
                state_of(store.read(space, canvas_rows.canvas, row.number, version=number)), from_steps
            )


def _texts_of(state: CanvasState, from_steps: Collection[str]) -> Iterator[str]:
    yield state.canvas.task_goal
    for part in (*state.canvas.nodes, *state.groups.values()):
        yield from (text for text in (part.title, part.summary) if text not in from_steps)
    yield from (edge.label for edge in state.canvas.edges)
