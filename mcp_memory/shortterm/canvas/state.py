"""The state of a canvas (flowchart and folding), its edits, and its versions.

A patch is applied completely or not at all. It removes no node and changes no id; a node belongs to at most one group,
and no group contains itself; texts keep to the limits of `flowchart`. To merge two nodes, group them with a title: the
ids that are already in somebody's context remain valid, and `ungroup` separates them again.

`amend` commits the next version, and `undo_patch` reverts the last patch. Guarantees: two concurrent writers of one
canvas both succeed; undoing a patch commits a version without its effect, and keeps every later step, fold and text. A
canvas whose text is damaged continues from its versions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from mcp_memory.core.errors import Damaged, InvalidInput, NotFound, StoreUnavailable
from mcp_memory.core.types import CanvasRow, Group, StepStatus
from mcp_memory.shortterm.canvas import folding
from mcp_memory.shortterm.canvas.flowchart import (
    GOAL_LIMIT,
    LABEL_LIMIT,
    SUMMARY_LIMIT,
    TITLE_LIMIT,
    Canvas,
    Edge,
    clean,
    padded,
    read,
    render,
)
from mcp_memory.shortterm.canvas.folding import dissolve, members, new_group_id, outermost
from mcp_memory.shortterm.canvas.placement import latest, styled
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import canvas_rows, record_rows
from mcp_memory.store.values import Conflict


@dataclass(frozen=True, slots=True, kw_only=True)
class CanvasState:
    """A canvas and its groups. If `folded`, the context shows only the metadata."""

    canvas: Canvas
    groups: Mapping[str, Group] = field(default_factory=dict[str, Group])
    folded: bool = False


def state_of(row: CanvasRow) -> CanvasState:
    """Parse the state of a row. Raises Damaged if its text is invalid."""
    return CanvasState(canvas=read(row), groups=row.groups, folded=row.folded)


def row_of(state: CanvasState, row: CanvasRow) -> CanvasRow:
    """Return the row with this state; number, label, session and version are unchanged."""
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
    """Nodes and existing groups to fold into one group. Without a summary, it shows the summary of its newest step."""

    title: str
    nodes: tuple[str, ...]
    summary: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeLabel:
    """The label of the edge from source to target, which is added if missing."""

    source: str
    target: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """Changes to a canvas, in this order: groups to dissolve, groups to create, then texts, statuses and edges.

    `titles` and `summaries` may name nodes and groups, `statuses` only nodes. New groups get the next free ids.
    """

    goal: str = ""
    ungroup: tuple[str, ...] = ()
    groups: tuple[NewGroup, ...] = ()
    titles: Mapping[str, str] = field(default_factory=dict[str, str])
    summaries: Mapping[str, str] = field(default_factory=dict[str, str])
    statuses: Mapping[str, StepStatus] = field(default_factory=dict[str, StepStatus])
    edges: tuple[EdgeLabel, ...] = ()


def apply_patch(state: CanvasState, patch: Patch) -> CanvasState:
    """Return the state with a patch applied. Raises InvalidInput, with all faults, for an invalid patch."""
    groups, faults = _regroup(state, patch)
    faults += [*_unknown_ids(state.canvas, patch, groups), *_invalid_texts(patch)]
    faults += [f"{id_!r} in ungroup is not a group here." for id_ in patch.ungroup if id_ not in state.groups]
    if faults:
        raise InvalidInput(f"Nothing was changed. {' '.join(faults)}")
    for id_, group in groups.items():
        groups[id_] = replace(
            group,
            title=clean(patch.titles.get(id_, group.title), TITLE_LIMIT),
            summary=clean(patch.summaries.get(id_, group.summary), SUMMARY_LIMIT),
        )
    canvas = state.canvas
    nodes = {
        node.id: replace(
            node,
            title=patch.titles.get(node.id, node.title),
            summary=patch.summaries.get(node.id, node.summary),
            status=patch.statuses.get(node.id, node.status),
        )
        for node in canvas.nodes
    }
    labels = {(edge.source, edge.target): edge.label for edge in (*canvas.edges, *patch.edges)}
    edges = [styled(Edge(source, target, label), nodes[target]) for (source, target), label in labels.items()]
    goal = patch.goal or canvas.task_goal
    changed = replace(canvas, task_goal=goal, nodes=tuple(nodes.values()), edges=tuple(edges))
    return replace(state, canvas=changed, groups=groups)


# --- faults of a patch ------------------------------------------------------------------------------


def _unknown_ids(canvas: Canvas, patch: Patch, groups: Mapping[str, Group]) -> Iterator[str]:
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


def _invalid_texts(patch: Patch) -> Iterator[str]:
    titles = [*patch.titles.values(), *(group.title for group in patch.groups)]
    summaries = [*patch.summaries.values(), *(group.summary for group in patch.groups)]
    labels = [edge.label for edge in patch.edges]
    for what, texts, limit in (
        ("goal", [patch.goal], GOAL_LIMIT),
        ("title", titles, TITLE_LIMIT),
        ("summary", summaries, SUMMARY_LIMIT),
        ("label", labels, LABEL_LIMIT),
    ):
        for text in texts:
            if len(text) > limit:
                yield f"The {what} {clean(text, 40)!r} has {len(text)} characters; {limit} are allowed."
    if not all(clean(title, TITLE_LIMIT) for title in titles):
        yield "A title is empty."
    for edge in patch.edges:
        if edge.source == edge.target:
            yield f"An edge joins {clean(edge.source, 40)} to itself."


def _regroup(state: CanvasState, patch: Patch) -> tuple[dict[str, Group], list[str]]:
    """Return the groups after a patch, and its faults."""
    groups, faults = dissolve(state.groups, patch.ungroup), list[str]()
    last = latest(state.canvas)
    for new in patch.groups:
        name = f"The group {clean(new.title, 40)!r}"
        try:
            children = outermost(state.canvas, groups, new.nodes)
        except InvalidInput as error:
            faults.append(f"{name}: {error}")
            continue
        nodes = [node for id_ in children for node in members(groups, id_)]
        if len(nodes) < 2:
            faults.append(f"{name} has fewer than two nodes.")
        if last and last.id in nodes and last.status == "doing":
            faults.append(f"{name} contains {last.id}, which is in progress.")
        groups[new_group_id(state.canvas.number, groups)] = Group(
            children, clean(new.title, TITLE_LIMIT), clean(new.summary, SUMMARY_LIMIT)
        )
    return groups, faults


# --- other changes ----------------------------------------------------------------------------------


def complete(state: CanvasState, now: datetime, *, nodes: Collection[str] = ()) -> CanvasState:
    """Return the state with `nodes` done; without `nodes`, with the whole task done and folded."""
    canvas = state.canvas
    done = tuple(
        replace(node, status="done") if node.id in nodes or (not nodes and node.status == "doing") else node
        for node in canvas.nodes
    )
    changed = replace(canvas, nodes=done, status=canvas.status if nodes else "done", updated=max(now, canvas.updated))
    return replace(state, canvas=changed, folded=state.folded or not nodes)


def undo_change(state: CanvasState, before: CanvasState, after: CanvasState) -> CanvasState:
    """Return the state without the change from `before` to `after`; values changed again since are kept."""
    nodes_before, nodes_after = ({node.id: node for node in old.canvas.nodes} for old in (before, after))
    nodes = {
        node.id: _undo_fields(node, nodes_before.get(node.id), nodes_after.get(node.id), "title", "summary", "status")
        for node in state.canvas.nodes
    }
    edges_before, edges_after = ({(e.source, e.target): e for e in old.canvas.edges} for old in (before, after))
    edges = (
        styled(_undo_fields(edge, edges_before.get(key), edges_after.get(key), "label"), nodes[edge.target])
        for edge in state.canvas.edges
        if (key := (edge.source, edge.target)) in edges_before or edge != edges_after.get(key)
    )
    canvas = _undo_fields(state.canvas, before.canvas, after.canvas, "task_goal")
    canvas = replace(canvas, nodes=tuple(nodes.values()), edges=tuple(edges))
    return replace(state, canvas=canvas, groups=_undo_groups(state, before, after))


def _undo_fields(now: Any, before: Any, after: Any, *names: str) -> Any:
    """Return `now` with the values of `before` in the fields that still have the values of `after`."""
    if before is None or after is None:
        return now
    return replace(now, **{name: getattr(before, name) for name in names if getattr(now, name) == getattr(after, name)})


def _undo_groups(state: CanvasState, before: CanvasState, after: CanvasState) -> dict[str, Group]:
    """Restore the groups of `before`, except groups that changed since, or whose nodes got new steps."""
    new = [id_ for id_, group in after.groups.items() if id_ not in before.groups and state.groups.get(id_) == group]
    groups = dissolve(state.groups, new)
    timestamps = {node.id: node.timestamp for node in after.canvas.nodes}
    continued = {node.id for node in state.canvas.nodes if timestamps.get(node.id) != node.timestamp}
    restored = dict(groups)
    for id_, group in before.groups.items():
        may_return = id_ in after.groups or continued.isdisjoint(members(before.groups, id_))
        if state.groups.get(id_) == after.groups.get(id_) and may_return:
            restored[id_] = group
    children = [child for group in restored.values() for child in group.nodes]
    ids = {*restored, *(node.id for node in state.canvas.nodes)}
    is_valid = len(children) == len(set(children)) and ids.issuperset(children)
    return restored if is_valid else groups


ATTEMPTS = 50
_ALL = 1_000_000


def current_state(store: Store, space: str, row: CanvasRow) -> CanvasState:
    """Return the state of a row, or of its stored version if its text is damaged. Raises Damaged if both are."""
    try:
        return state_of(row)
    except Damaged:
        with suppress(NotFound, Damaged):
            return state_of(store.read(space, canvas_rows.canvas, row.number, version=row.version))
        raise


def canvas_problems(store: Store, space: str) -> Iterator[str]:
    """Yield a sentence for each canvas that differs from its versions."""
    for row in store.read(space, canvas_rows.list_canvases, limit=_ALL):
        try:
            version = store.read(space, canvas_rows.canvas, row.number, version=row.version)
            is_intact = replace(version, label=row.label, session=row.session) == row
        except NotFound:
            is_intact = False
        if not is_intact:
            name = f"{padded(row.number)}-{row.label}"
            yield f"Canvas {name} differs from its records; `mcp-memory show canvas {name} --rebuild` repairs it."


def amend(
    store: Store, space: str, row: CanvasRow, change: Callable[[CanvasState], CanvasState | None], *, kind: str
) -> CanvasRow:
    """Commit the result of `change` as the next version of a canvas and return its row; None commits nothing.

    The active canvas stays active. If `change` raises an error, nothing is written. Raises StoreUnavailable after too
    many conflicts with other writers.
    """
    for _ in range(ATTEMPTS):
        after = change(current_state(store, space, row))
        if after is None:
            return row
        changed = row_of(after, row)
        try:
            store.write(space, canvas_rows.save, changed, expected=row.version, kind=kind)
        except Conflict:
            row = store.read(space, canvas_rows.canvas, row.number)
            continue
        return replace(changed, version=row.version + 1)
    raise _too_busy(row.number)


def undo_patch(store: Store, space: str, number: int) -> CanvasRow:
    """Undo the last patch not undone yet; later steps and folds stay. Raises NotFound if there is no such patch."""
    for _ in range(ATTEMPTS):
        row = store.read(space, canvas_rows.canvas, number)
        before, after = _last_patch(store, space, number)
        state = undo_change(current_state(store, space, row), state_of(before), state_of(after))
        # Texts of results forgotten since are not restored.
        forgotten = {
            step.record.node_id for step in store.read(space, record_rows.canvas_steps, number) if step.record.forgotten
        }
        changed = row_of(replace(state, groups=folding.without_texts(state.groups, forgotten)), row)
        try:
            store.write(
                space, canvas_rows.save, changed, expected=row.version, kind="undone", detail=str(after.version)
            )
        except Conflict:
            continue
        return replace(changed, version=row.version + 1)
    raise _too_busy(number)


def _last_patch(store: Store, space: str, number: int) -> tuple[CanvasRow, CanvasRow]:
    """Return the canvas before and after the last patch not undone yet. Raises NotFound if there is no such patch."""
    versions = store.read(space, canvas_rows.versions, number)
    undone = {int(version.detail) for version in versions if version.kind == "undone"}
    patches = [version.number for version in versions if version.kind == "patched"]
    last = max((number for number in patches if number not in undone), default=0)
    try:
        return store.read(space, canvas_rows.canvas, number, version=last - 1), store.read(
            space, canvas_rows.canvas, number, version=last
        )
    except NotFound:  # there is none, or a purge erased it
        raise NotFound(f"Canvas {padded(number)} has no patch to undo.") from None


def _too_busy(number: int) -> StoreUnavailable:
    return StoreUnavailable(f"Canvas {padded(number)} is being written to by many others at once. Call again.")
