"""The words of a forgotten turn in the goal, the label and the file name of a task.

If the agent names no task, its goal is copied from the user's request (`tasks.goals_in`), so it is forgotten with that
turn: goal and label become FORGOTTEN, in a version of the kind `forgotten` with the ids in its detail, and undoing the
forgetting restores them (`state.with_words`). A goal that the agent wrote stays until its task is named (`003`).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from mcp_memory.core.errors import Damaged
from mcp_memory.core.types import FORGOTTEN, CanvasRow
from mcp_memory.shortterm.canvas.flowchart import Canvas, goal_of, padded
from mcp_memory.shortterm.canvas.state import CanvasState, current_state, row_of
from mcp_memory.shortterm.canvas.tasks import goals_in, label_of
from mcp_memory.store.protocol import Store
from mcp_memory.store.values import CanvasChange

__all__ = ["is_task_id", "other_goals", "without_goals"]

_ALL = 1_000_000


def is_task_id(id: str) -> bool:
    """Tell whether an id is that of a task: `003`."""
    return 3 <= len(id) <= 9 and id.isascii() and id.isdecimal()


def without_goals(
    store: Store,
    space: str,
    *,
    said: Mapping[str, str],
    tasks: Iterable[str] = (),
    redrawn: Sequence[CanvasChange] = (),
    now: datetime,
) -> list[CanvasChange]:
    """Return the changes of canvases whose goals are forgotten: named `tasks`, and those of the turns in `said`.

    `said` maps the ids of turns to their texts. `redrawn` are other changes of canvases, which are returned too, joined
    with those of their goals.
    """
    changes = {change.row.number: change for change in redrawn}
    for row, ids in _named(store, space, said, tasks):
        before = changes.get(row.number, CanvasChange(row=row, kind="forgotten", detail="[]"))
        detail = json.dumps(sorted({*json.loads(before.detail), *ids}))
        changes[row.number] = replace(before, row=_without_goal(store, space, before.row, now), detail=detail)
    return list(changes.values())


def other_goals(store: Store, space: str, changes: Iterable[CanvasChange]) -> dict[str, str]:
    """Return the goals of the tasks that these changes leave as they are, by the ids of the tasks."""
    going = {change.row.number for change in changes if change.row.label == FORGOTTEN}
    rows = store.canvases(space, limit=_ALL)
    return {padded(row.number): goal for row in rows if row.number not in going and (goal := goal_of(row.text))}


def _named(
    store: Store, space: str, said: Mapping[str, str], tasks: Iterable[str]
) -> Iterable[tuple[CanvasRow, Sequence[str]]]:
    """Yield the canvases whose goals are forgotten, each with the ids of what is forgotten."""
    wanted = {int(task): task for task in tasks}
    rows = store.canvases(space, limit=_ALL)
    if not rows or not (said or wanted):
        return
    sources = defaultdict[str, set[str]](set)
    for id, text in said.items():
        for goal in goals_in(text):
            sources[goal].add(id)
            sources[label_of(goal)].add(id)
    for row in rows:
        label = row.label if row.label != FORGOTTEN else _earlier_label(store, space, row)
        ids = sources.get(goal_of(row.text) or "", set()) | sources.get(label, set())
        ids |= {wanted[row.number]} if row.number in wanted else set()
        if ids:
            yield row, sorted(ids)


def _earlier_label(store: Store, space: str, row: CanvasRow) -> str:
    """Return the label that a canvas had before it was forgotten."""
    labels = [version.label for version in store.canvas_versions(space, row.number) if version.label != FORGOTTEN]
    return labels[-1] if labels else FORGOTTEN


def _without_goal(store: Store, space: str, row: CanvasRow, now: datetime) -> CanvasRow:
    try:
        state = current_state(store, space, row)
    except Damaged:  # a torn text has no words to keep
        state = CanvasState(canvas=Canvas(row.number, FORGOTTEN, row.status, now, now))
    bare = replace(state, canvas=replace(state.canvas, task_goal=FORGOTTEN))
    return row_of(bare, replace(row, label=FORGOTTEN))
