"""Forgets the texts that agents write on canvases and in records: goals, steps, summaries and labels.

If the agent names no task, its goal is copied from the user's request (`tasks.goals_in`), so it is forgotten with that
turn. All other texts are the agent's. `agent_texts` lists them, each with the id to forget: for a call, a step or a
summary the result, for everything else the task (`003`).

Forgetting a task replaces its goal and label by FORGOTTEN, resets nodes to the titles and summaries of their steps, and
clears groups and edge labels. This adds a version of the kind `forgotten` with the ids in its detail, and undoing the
forgetting restores the texts (`state.with_words`).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from mcp_memory.core.errors import Damaged, NotFound
from mcp_memory.core.types import FORGOTTEN, CanvasRow
from mcp_memory.shortterm.canvas.flowchart import SUMMARY_LIMIT, TITLE_LIMIT, Canvas, clean, goal_of, padded
from mcp_memory.shortterm.canvas.placement import StepNote
from mcp_memory.shortterm.canvas.state import CanvasState, current_state, row_of, state_of, without_patches
from mcp_memory.shortterm.canvas.tasks import goals_in, label_of
from mcp_memory.store.protocol import Store
from mcp_memory.store.values import CanvasChange

_ALL = 1_000_000


def is_task_id(id: str) -> bool:
    """Return whether an id is that of a task: `003`."""
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

    A named task also loses titles, summaries and labels that came from no step.

    `said` maps the ids of turns to their texts. `redrawn` are other changes of canvases, which are returned too, joined
    with those of their goals.
    """
    changes = {change.row.number: change for change in redrawn}
    for row, ids in _named(store, space, said, tasks):
        before = changes.get(row.number, CanvasChange(row=row, kind="forgotten", detail="[]"))
        detail = json.dumps(sorted({*json.loads(before.detail), *ids}))
        bare = _without_goal(store, space, before, now, is_named=padded(row.number) in ids)
        changes[row.number] = replace(before, row=bare, detail=detail)
    return list(changes.values())


def agent_texts(store: Store, space: str, changes: Iterable[CanvasChange] = ()) -> Iterator[tuple[str, str]]:
    """Yield the ids of results and tasks, each with a text by an agent; `changes` count as made."""
    changed = {change.row.number: change.row for change in changes}
    for stored in store.canvases(space, limit=_ALL):
        steps = store.canvas_steps(space, stored.number)
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
        yield from _words_of(current_state(store, space, row), from_steps)
    if row.label == FORGOTTEN:  # the purge of the forgotten rows erases its earlier versions
        return
    patched = {one.number for one in store.canvas_versions(space, row.number) if one.kind == "patched"}
    for number in sorted(patched | {number - 1 for number in patched}):
        with suppress(Damaged, NotFound):
            yield from _words_of(state_of(store.canvas(space, row.number, version=number)), from_steps)


def _words_of(state: CanvasState, from_steps: Collection[str]) -> Iterator[str]:
    yield state.canvas.task_goal
    for part in (*state.canvas.nodes, *state.groups.values()):
        yield from (text for text in (part.title, part.summary) if text not in from_steps)
    yield from (edge.label for edge in state.canvas.edges)


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


def _without_goal(store: Store, space: str, change: CanvasChange, now: datetime, *, is_named: bool) -> CanvasRow:
    """Return the row without its goal; if its task is named, also without texts that came from no step."""
    row = change.row
    try:
        state = current_state(store, space, row)
    except Damaged:  # a torn text has no words to keep
        state = CanvasState(canvas=Canvas(row.number, FORGOTTEN, row.status, now, now))
    if is_named:
        state = without_patches(store, space, state, refs=json.loads(change.detail))
    bare = replace(state, canvas=replace(state.canvas, task_goal=FORGOTTEN))
    return row_of(bare, replace(row, label=FORGOTTEN))
