"""The state of a canvas (its flowchart and its folding), and the changes to it that are no step.

A patch is applied whole or not at all; no node is lost, none changes its id; groups hold each node once and never
themselves; words keep to the limits of `flowchart`. Two nodes become one by a group with a title, which keeps the ids
that are in somebody's context already; `ungroup` parts them again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.types import CanvasRow, Group, StepStatus
from mcp_memory.shortterm.canvas.flowchart import (
    GOAL_LIMIT,
    LABEL_LIMIT,
    SUMMARY_LIMIT,
    TITLE_LIMIT,
    Canvas,
    Edge,
    Node,
    clean,
    read,
    render,
)
from mcp_memory.shortterm.canvas.folding import members, new_group_id, outermost, without
from mcp_memory.shortterm.canvas.placement import latest, styled


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
    """Return the state without the change from `before` to `after`; what was changed again since stays as it is."""
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
