"""The state of a canvas (its flowchart and its folding), its edits, and its versions.

A patch is applied whole or not at all; no node is lost, none changes its id; groups hold each node once and never
themselves; words keep to the limits of `flowchart`. Two nodes become one by a group with a title, which keeps the ids
that are in somebody's context already; `ungroup` parts them again.

`amend` commits the next version, and `undo_patch` takes the last patch back. Guarantees: two writers of one canvas both
succeed; undoing a patch commits a version without its effect, and keeps every step, fold and word that came since. A
canvas whose text is torn goes on from what its versions tell.

Where tool results are forgotten (`without_words`), nodes and edges stay, and the words that came from the results go.
The title of a node is then one that another step gave it, its summary that of its newest step; nodes without any other
step say FORGOTTEN, as does the goal without any step left. Forgetting commits a version of the kind `forgotten`, and
undoing it (`with_words`) one without its effect.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from mcp_memory.core.errors import Damaged, InvalidInput, NotFound, StoreUnavailable
from mcp_memory.core.types import FORGOTTEN, CanvasRow, Group, StepStatus
from mcp_memory.shortterm.canvas import folding
from mcp_memory.shortterm.canvas.flowchart import (
    GOAL_LIMIT,
    LABEL_LIMIT,
    SUMMARY_LIMIT,
    TITLE_LIMIT,
    Canvas,
    Edge,
    Node,
    clean,
    goal_of,
    number_of,
    padded,
    read,
    render,
)
from mcp_memory.shortterm.canvas.folding import members, new_group_id, outermost, without
from mcp_memory.shortterm.canvas.placement import DEAD_END, StepNote, latest, styled
from mcp_memory.store.protocol import Store
from mcp_memory.store.values import CanvasChange, CanvasVersion, Conflict, TakenStep


@dataclass(frozen=True, slots=True, kw_only=True)
class CanvasState:
    """`folded`: the context shows only the metadata of the canvas."""

    canvas: Canvas
    groups: Mapping[str, Group] = field(default_factory=dict[str, Group])
    folded: bool = False


def state_of(row: CanvasRow) -> CanvasState:
    """Return the state that a row stores. Raises Damaged when its text is not a canvas."""
    return CanvasState(canvas=read(row), groups=row.groups, folded=row.folded)


def row_of(state: CanvasState, row: CanvasRow) -> CanvasRow:
    """Return the row with this state; number, label, session and version stay."""
    canvas = state.canvas
    return replace(
        row,
        text=render(canvas),
        status=canvas.status,
        folded=state.folded,
        groups=dict(state.groups),
        updated=canvas.updated,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NewGroup:
    """Nodes and existing groups that become one group. Without a summary it shows that of its newest step."""

    title: str
    nodes: tuple[str, ...]
    summary: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeLabel:
    """Words for the edge from source to target, which is added where it is missing."""

    source: str
    target: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """What to change, in this order: groups to open, groups to make, then words and statuses by id.

    `titles` and `summaries` may name nodes and groups, `statuses` nodes alone. New groups get the next free ids, in
    order. An empty patch changes nothing.
    """

    goal: str = ""
    ungroup: tuple[str, ...] = ()
    groups: tuple[NewGroup, ...] = ()
    titles: Mapping[str, str] = field(default_factory=dict[str, str])
    summaries: Mapping[str, str] = field(default_factory=dict[str, str])
    statuses: Mapping[str, StepStatus] = field(default_factory=dict[str, StepStatus])
    edges: tuple[EdgeLabel, ...] = ()


def apply_patch(state: CanvasState, patch: Patch) -> CanvasState:
    """Apply a patch. Raises InvalidInput, which names everything that is wrong with it."""
    groups, faults = _grouped(state, patch)
    faults += [*_unknown(state.canvas, patch, groups), *_unfit(patch)]
    faults += [f"{id_!r} in ungroup is no group there." for id_ in patch.ungroup if id_ not in state.groups]
    if faults:
        raise InvalidInput(f"Nothing was changed. {' '.join(faults)}")
    for id_, group in groups.items():
        groups[id_] = replace(
            group,
            title=clean(patch.titles.get(id_, group.title), TITLE_LIMIT),
            summary=clean(patch.summaries.get(id_, group.summary), SUMMARY_LIMIT),
        )
    canvas = state.canvas
    nodes = {node.id: _patched(node, patch) for node in canvas.nodes}
    edges = tuple(_labelled(canvas, patch, nodes))
    changed = replace(canvas, task_goal=patch.goal or canvas.task_goal, nodes=tuple(nodes.values()), edges=edges)
    return replace(state, canvas=changed, groups=groups)


def _patched(node: Node, patch: Patch) -> Node:
    return replace(
        node,
        title=patch.titles.get(node.id, node.title),
        summary=patch.summaries.get(node.id, node.summary),
        status=patch.statuses.get(node.id, node.status),
    )


def _labelled(canvas: Canvas, patch: Patch, nodes: Mapping[str, Node]) -> Iterator[Edge]:
    """Yield the edges with their words; one into a dead end is dashed and says at least that."""
    words = {(edge.source, edge.target): edge.label for edge in (*canvas.edges, *patch.edges)}
    for (source, target), label in words.items():
        yield styled(Edge(source, target, label), nodes[target])


# --- faults of a patch ------------------------------------------------------------------------------


def _unknown(canvas: Canvas, patch: Patch, groups: Mapping[str, Group]) -> Iterator[str]:
    nodes = {node.id for node in canvas.nodes}
    for what, ids, allowed in (
        ("titles", patch.titles, {*nodes, *groups}),
        ("summaries", patch.summaries, {*nodes, *groups}),
        ("statuses", patch.statuses, nodes),
        ("edges", [id_ for edge in patch.edges for id_ in (edge.source, edge.target)], nodes),
    ):
        missing = [clean(id_, 40) for id_ in dict.fromkeys(ids) if id_ not in allowed]
        if missing:
            yield f"{', '.join(missing)} in {what} {'is' if len(missing) == 1 else 'are'} not on this canvas."


def _unfit(patch: Patch) -> Iterator[str]:
    titles = [*patch.titles.values(), *(group.title for group in patch.groups)]
    summaries = [*patch.summaries.values(), *(group.summary for group in patch.groups)]
    labels = [edge.label for edge in patch.edges]
    for what, words, limit in (
        ("goal", [patch.goal], GOAL_LIMIT),
        ("title", titles, TITLE_LIMIT),
        ("summary", summaries, SUMMARY_LIMIT),
        ("label", labels, LABEL_LIMIT),
    ):
        for text in words:
            if len(text) > limit:
                yield f"The {what} {clean(text, 40)!r} has {len(text)} characters; {limit} are allowed."
    if not all(clean(title, TITLE_LIMIT) for title in titles):
        yield "A title is empty."
    for edge in patch.edges:
        if edge.source == edge.target:
            yield f"An edge joins {clean(edge.source, 40)} to itself."


def _grouped(state: CanvasState, patch: Patch) -> tuple[dict[str, Group], list[str]]:
    """Return the new groups, and the faults of those that cannot be made."""
    groups, faults = without(state.groups, patch.ungroup), list[str]()
    last = latest(state.canvas)
    for new in patch.groups:
        named = f"The group {clean(new.title, 40)!r}"
        try:
            inside = outermost(state.canvas, groups, new.nodes)
        except InvalidInput as error:
            faults.append(f"{named}: {error}")
            continue
        held = [node for id_ in inside for node in members(groups, id_)]
        if len(held) < 2:
            faults.append(f"{named} holds fewer than two nodes.")
        if last and last.id in held and last.status == "doing":
            faults.append(f"{named} holds {last.id}, which is being worked on.")
        groups[new_group_id(state.canvas.number, groups)] = Group(
            inside, clean(new.title, TITLE_LIMIT), clean(new.summary, SUMMARY_LIMIT)
        )
    return groups, faults


# --- other changes ----------------------------------------------------------------------------------


def complete(state: CanvasState, now: datetime, *, nodes: Collection[str] = ()) -> CanvasState:
    """Return the state with these nodes done; without any the task is, with everything that was `doing`, and folded."""
    canvas = state.canvas
    done = tuple(
        replace(node, status="done") if node.id in nodes or (not nodes and node.status == "doing") else node
        for node in canvas.nodes
    )
    changed = replace(canvas, nodes=done, status=canvas.status if nodes else "done", updated=max(now, canvas.updated))
    return replace(state, canvas=changed, folded=state.folded or not nodes)


def take_back(state: CanvasState, before: CanvasState, after: CanvasState) -> CanvasState:
    """Return the state without the change from `before` to `after`; values that were changed again since are kept."""
    old, new = before.canvas, after.canvas
    nodes = {
        node.id: _merged(node, _by_id(old).get(node.id), _by_id(new).get(node.id), "title", "summary", "status")
        for node in state.canvas.nodes
    }
    joined_before, joined_after = ({(e.source, e.target): e for e in canvas.edges} for canvas in (old, new))
    edges = (
        styled(_merged(edge, joined_before.get(key), joined_after.get(key), "label"), nodes[edge.target])
        for edge in state.canvas.edges
        if (key := (edge.source, edge.target)) in joined_before or edge != joined_after.get(key)
    )
    canvas = _merged(state.canvas, old, new, "task_goal")
    canvas = replace(canvas, nodes=tuple(nodes.values()), edges=tuple(edges))
    return replace(state, canvas=canvas, groups=_groups_back(state, before, after))


def _by_id(canvas: Canvas) -> dict[str, Node]:
    return {node.id: node for node in canvas.nodes}


def _merged(now: Any, before: Any, after: Any, *names: str) -> Any:
    """Return `now` with the fields of `before` where `after` gave them the values that they have."""
    if before is None or after is None:
        return now
    return replace(now, **{name: getattr(before, name) for name in names if getattr(now, name) == getattr(after, name)})


def _groups_back(state: CanvasState, before: CanvasState, after: CanvasState) -> dict[str, Group]:
    """Return the groups with those of `before`, but for those that are other now, or hold a step that went on."""
    made = [id_ for id_, group in after.groups.items() if id_ not in before.groups and state.groups.get(id_) == group]
    groups = without(state.groups, made)
    then = {node.id: node.timestamp for node in after.canvas.nodes}
    went_on = {node.id for node in state.canvas.nodes if then.get(node.id) != node.timestamp}
    back = dict(groups)
    for id_, group in before.groups.items():
        is_gone = id_ not in after.groups and went_on.isdisjoint(members(before.groups, id_))
        if state.groups.get(id_) == after.groups.get(id_) and (is_gone or id_ in after.groups):
            back[id_] = group
    inside = [each for group in back.values() for each in group.nodes]
    known = {*back, *(node.id for node in state.canvas.nodes)}
    return back if len(inside) == len(set(inside)) and known.issuperset(inside) else groups


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


def canvas_problems(store: Store, space: str) -> Iterator[str]:
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
    """Commit the result of `change` as the next version of a canvas and return its row; None commits nothing.

    The active canvas stays the same. Errors of `change` are passed on, with nothing written.
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
    steps = _steps(store, space, row.number, refs, forgotten=True)
    all_gone = all(step.record.forgotten for step in steps)
    try:
        state = _bare(current_state(store, space, row), steps, all_gone=all_gone)
    except Damaged:  # a torn text has no words to keep
        state = CanvasState(canvas=Canvas(row.number, FORGOTTEN, row.status, now, now))
    changed = row_of(state, replace(row, label=FORGOTTEN if all_gone else row.label))
    return CanvasChange(row=changed, kind="forgotten", detail=json.dumps(sorted(set(refs))))


def without_patches(store: Store, space: str, state: CanvasState, *, refs: Collection[str]) -> CanvasState:
    """Return the state with only the words of its steps, without those of `refs`, which are about to be forgotten."""
    canvas = state.canvas
    steps = _steps(store, space, canvas.number, refs, forgotten=True)
    nodes = tuple(_retold(node, steps) for node in canvas.nodes)
    edges = tuple(replace(edge, label=DEAD_END if edge.dashed else "") for edge in canvas.edges)
    groups = {id_: Group(group.nodes) for id_, group in state.groups.items()}
    return replace(state, canvas=replace(canvas, nodes=nodes, edges=edges), groups=groups)


def with_words(store: Store, space: str, ids: Collection[str]) -> list[CanvasChange]:
    """Return the canvases of rows whose forgetting is undone, with their words; `ids` are those of the tombstone."""
    changes = (_with_words(store, space, row, ids) for row in _forgotten(store, space, ids))
    return [change for change in changes if change is not None]


def _with_words(store: Store, space: str, row: CanvasRow, ids: Collection[str]) -> CanvasChange | None:
    versions = store.canvas_versions(space, row.number)
    taken_back = {number for one in versions if one.kind == "restored" for number in json.loads(one.detail)}
    gone = [one for one in versions if one.kind == "forgotten" and one.number not in taken_back]
    wanted = [one.number for one in gone if not set(ids).isdisjoint(_ids_in([one]))]
    if not wanted:
        return None
    state = current_state(store, space, row)
    for number in reversed(wanted):
        state = _taken_back(store, space, row.number, number, state)
    steps = _steps(store, space, row.number, ids, forgotten=False)
    others = _ids_in(one for one in versions if one.number not in wanted)
    again = {step.record.node_id for step in steps if step.record.ref in others}
    nodes = tuple(_retold(node, steps) if _is_bare(node) or node.id in again else node for node in state.canvas.nodes)
    # The goal stays forgotten with another turn that it was taken from, its task, or all results of its steps.
    goes = any(not id.startswith("r-") for id in _ids_in(one for one in gone if one.number not in wanted))
    goes = goes or (bool(steps) and all(step.record.forgotten for step in steps))
    goal = FORGOTTEN if goes else _goal_before(store, space, row.number, versions, state.canvas.task_goal)
    state = replace(state, canvas=replace(state.canvas, task_goal=goal, nodes=nodes))
    labels = [one.label for one in versions if one.label != FORGOTTEN] or [row.label]
    changed = row_of(state, replace(row, label=FORGOTTEN if goes else labels[-1]))
    return CanvasChange(row=changed, kind="restored", detail=json.dumps(wanted))


def _goal_before(store: Store, space: str, number: int, versions: Sequence[CanvasVersion], goal: str) -> str:
    """Return the goal, or the last one that was not forgotten yet."""
    for version in reversed(versions if goal == FORGOTTEN else ()):
        with suppress(NotFound):  # a purge erased it
            earlier = goal_of(store.canvas(space, number, version=version.number).text)
            if earlier and earlier != FORGOTTEN:
                return earlier
    return goal


def _forgotten(store: Store, space: str, ids: Collection[str]) -> list[CanvasRow]:
    """Return the canvases that have records of these results, or a forgotten goal."""
    rows = {row.number: row for row in _touched(store, space, [id for id in ids if id.startswith("r-")])}
    rows |= {row.number: row for row in store.canvases(space, limit=_ALL) if row.label == FORGOTTEN}
    return [rows[number] for number in sorted(rows)]


def _ids_in(versions: Iterable[CanvasVersion]) -> set[str]:
    """Return the ids of the rows that were forgotten in these versions."""
    return {id for one in versions if one.kind == "forgotten" for id in json.loads(one.detail)}


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


def _steps(store: Store, space: str, number: int, refs: Collection[str], *, forgotten: bool) -> list[TakenStep]:
    """Return the steps of a canvas, those of some refs as they are about to be."""
    return [
        replace(step, record=replace(step.record, forgotten=forgotten)) if step.record.ref in refs else step
        for step in store.canvas_steps(space, number)
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
