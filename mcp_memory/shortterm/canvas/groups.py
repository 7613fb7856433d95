"""Folded groups: nodes of a canvas that stand as one composite node. Pure; the nodes themselves never change.

Two kinds of id. `003-F1` is a group that somebody folded; it is kept in `CanvasRow.groups` and may hold other
groups, so that unfolding gives back what was there. `003-F2-9` is the stretch from node 003-N2 to 003-N9, folded
for the moment to fit a budget; it is kept nowhere, because its name says what it holds.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.types import Group, StepStatus
from mcp_memory.shortterm.canvas.flowchart import Canvas, Edge, Node, padded
from mcp_memory.shortterm.canvas.label import clean
from mcp_memory.shortterm.canvas.phases import title_of
from mcp_memory.shortterm.canvas.place import DEAD_END

__all__ = [
    "Groups",
    "composite",
    "fold_groups",
    "members",
    "new_group_id",
    "nodes_of",
    "opened",
    "outermost",
    "require",
    "stretch_id",
    "top_level",
    "without",
]

Groups = Mapping[str, Group]

DEAD_ENDS_TOLD = 60
"""Characters of the titles of dead ends that a composite tells, the newest first."""

_STRETCH = re.compile(r"(\d{3,9})-F(\d{1,9})-(\d{1,9})")


def members(groups: Groups, id_: str) -> list[str]:
    """Return the nodes that a group holds, those of groups inside it too; a node holds itself."""
    return [node for each in groups[id_].nodes for node in members(groups, each)] if id_ in groups else [id_]


def nodes_of(canvas: Canvas, groups: Groups, id_: str) -> tuple[str, ...]:
    """Return the nodes that a node's, group's or stretch's id stands for, in the canvas's order; none if unknown."""
    if found := _STRETCH.fullmatch(id_):
        number, first, last = map(int, found.groups())
        held = {f"{padded(number)}-N{at}" for at in range(first, min(last, first + 100_000) + 1)}
    else:
        held = set(members(groups, id_))
    return tuple(node.id for node in canvas.nodes if node.id in held)


def opened(groups: Groups, node: str) -> dict[str, Group]:
    """Return the groups without those that hold the node: it is being worked on again."""
    return {id_: group for id_, group in groups.items() if node not in members(groups, id_)}


def without(groups: Groups, gone: Collection[str]) -> dict[str, Group]:
    """Return the groups without some; what held one of those holds what was in it."""

    def kept(id_: str) -> list[str]:
        if id_ not in gone or id_ not in groups:
            return [id_]
        return [each for inside in groups[id_].nodes for each in kept(inside)]

    return {
        id_: replace(group, nodes=tuple(each for inside in group.nodes for each in kept(inside)))
        for id_, group in groups.items()
        if id_ not in gone
    }


def top_level(groups: Groups, id_: str) -> str:
    """Return the outermost group that holds a node or group, or itself."""
    holder = next((each for each, group in groups.items() if id_ in group.nodes), None)
    return id_ if holder is None else top_level(groups, holder)


def require(canvas: Canvas, groups: Groups, id_: str) -> tuple[str, ...]:
    """Return the nodes that an id stands for. Raises InvalidInput with the ids there are."""
    if found := nodes_of(canvas, groups, id_.strip()):
        return found
    known = ", ".join([*groups, *(node.id for node in canvas.nodes[-12:])])
    raise InvalidInput(f"{clean(id_, 40)!r} is no node or group of canvas {padded(canvas.number)}. It has: {known}.")


def outermost(canvas: Canvas, groups: Groups, ids: Iterable[str]) -> tuple[str, ...]:
    """Return what a group of these holds: nodes, and whole groups. Raises InvalidInput for a part of a group."""
    chosen = list(dict.fromkeys(node for id_ in ids for node in require(canvas, groups, id_)))
    inside = tuple(dict.fromkeys(top_level(groups, node) for node in chosen))
    for id_ in inside:
        missing = [node for node in members(groups, id_) if node not in chosen]
        if missing:
            raise InvalidInput(
                f"{id_} is folded already and holds {', '.join(missing)} too. Name {id_} itself, or unfold it first."
            )
    return inside


def new_group_id(number: int, groups: Groups) -> str:
    """Return the id of the next group of a canvas."""
    highest = max((int(id_.rpartition("F")[2]) for id_ in groups), default=0)
    return f"{padded(number)}-F{highest + 1}"


def stretch_id(first: str, last: str) -> str:
    """Return the id of the stretch between two nodes, both in it."""
    number, _, start = first.partition("-N")
    return f"{number}-F{start}-{last.rpartition('N')[2]}"


def fold_groups(canvas: Canvas, groups: Groups) -> Canvas:
    """Return the canvas with one composite node for each outermost group, where its first node stood.

    Edges go to the composite; those inside it, and doubles, are gone. An edge stays dashed only where all that it
    leads to is a dead end.
    """
    holder = {node: id_ for id_ in groups if top_level(groups, id_) == id_ for node in members(groups, id_)}
    shown: dict[str, list[Node]] = {}
    for node in canvas.nodes:
        shown.setdefault(holder.get(node.id, node.id), []).append(node)
    nodes = {id_: composite(id_, groups[id_], held) if id_ in groups else held[0] for id_, held in shown.items()}
    edges: dict[tuple[str, str], Edge] = {}
    for edge in canvas.edges:
        source, target = holder.get(edge.source, edge.source), holder.get(edge.target, edge.target)
        if source != target:
            drawn = _rewired(edge, source, target, into_group=target in groups, status=nodes[target].status)
            edges.setdefault((source, target), drawn)
    return replace(canvas, nodes=tuple(nodes.values()), edges=tuple(edges.values()))


def _rewired(edge: Edge, source: str, target: str, *, into_group: bool, status: StepStatus) -> Edge:
    if not into_group:
        return replace(edge, source=source, target=target)
    dead = status == "blocked"
    return Edge(source, target, DEAD_END if dead else "", dead)


def composite(id_: str, group: Group, nodes: Sequence[Node]) -> Node:
    """`3 steps: Explore · Fix`, with what the newest that is no dead end came to; or the group's own words."""
    live = [node for node in nodes if node.status != "blocked"]
    dead = len(nodes) - len(live)
    count = f"{len(nodes)} step{'s' * (len(nodes) != 1)}"
    if live and dead:
        count += f", {dead} dead end{'s' * (dead != 1)}"
    newest = max(live or nodes, key=lambda node: (not node.summary.startswith("no output"), node.timestamp))
    titles = group.title or title_of(live or nodes, room=78 - len(count))
    return Node(
        id_,
        f"{count}: {titles}",
        _status(live),
        group.summary or _summary(newest, [node.title for node in nodes if live and node.status == "blocked"]),
        max(node.timestamp for node in nodes),
    )


def _summary(newest: Node, dead: Sequence[str]) -> str:
    """What came of the steps; first, as nobody should walk them again, the dead ends that they hold."""
    if not dead:
        return newest.summary
    told = clean(", ".join(reversed(dead)), DEAD_ENDS_TOLD)
    return f"dead end{'s' * (len(dead) > 1)}: {told}; {newest.summary}"


def _status(live: Iterable[Node]) -> StepStatus:
    statuses = {node.status for node in live}
    for status in ("doing", "paused", "done"):
        if status in statuses:
            return status
    return "blocked"
