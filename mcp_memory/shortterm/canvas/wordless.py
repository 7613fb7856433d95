"""The words of a canvas that told of forgotten results, taken off; nodes and edges stay. Pure.

The title of a node is then one that another step gave it, and its summary that of its newest step; nodes without any
other step say FORGOTTEN, as does the goal where no step is left.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from mcp_memory.core.types import FORGOTTEN, Group
from mcp_memory.shortterm.canvas.drawing import Drawing
from mcp_memory.shortterm.canvas.flowchart import Edge, Node
from mcp_memory.shortterm.canvas.place import DEAD_END, loads
from mcp_memory.store.protocol import TakenStep

__all__ = ["without_label", "without_words"]


def without_words(drawing: Drawing, steps: Sequence[TakenStep]) -> Drawing:
    """Return the drawing without what told of steps whose result is forgotten; `steps` are all that made it."""
    by_node = _by_node(steps)
    touched = {node for node, own in by_node.items() if any(step.record.forgotten for step in own)}
    if not touched:
        return drawing
    bare = {node for node in touched if all(step.record.forgotten for step in by_node[node])}
    canvas = drawing.canvas
    return replace(
        drawing,
        canvas=replace(
            canvas,
            task_goal=FORGOTTEN if all(step.record.forgotten for step in steps) else canvas.task_goal,
            nodes=tuple(_node(node, by_node[node.id]) if node.id in touched else node for node in canvas.nodes),
            edges=tuple(without_label(edge) if {edge.source, edge.target} & bare else edge for edge in canvas.edges),
        ),
        groups={
            id: Group(group.nodes) if _holds(drawing.groups, id, touched) else group
            for id, group in drawing.groups.items()
        },
    )


def _by_node(steps: Sequence[TakenStep]) -> dict[str, list[TakenStep]]:
    found: dict[str, list[TakenStep]] = {}
    for step in steps:
        found.setdefault(step.record.node_id, []).append(step)
    return found


def _node(node: Node, steps: Sequence[TakenStep]) -> Node:
    left = [step for step in steps if not step.record.forgotten]
    titles = [title for step in left if (title := _title(step.move))]
    return replace(
        node,
        title=titles[-1] if titles else FORGOTTEN,
        summary=left[-1].record.summary if left else FORGOTTEN,
    )


def _title(move: str | None) -> str:
    try:
        return loads(move).title if move else ""
    except (ValueError, TypeError):
        return ""


def without_label(edge: Edge) -> Edge:
    """Return the edge with no words but those that every dead end has."""
    return replace(edge, label=DEAD_END if edge.dashed else "")


def _holds(groups: Mapping[str, Group], id: str, nodes: Collection[str]) -> bool:
    return any(one in nodes or (one in groups and _holds(groups, one, nodes)) for one in groups[id].nodes)
