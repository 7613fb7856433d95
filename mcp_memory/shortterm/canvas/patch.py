"""Changes to a canvas in words and in order: what a model, or an agent, may do to it beside taking steps.

Guarantees: a patch is done whole or not at all; no node is lost, none changes its id; groups hold each node once
and never themselves; words keep to the limits of `canvas`. Two nodes become one by a group with a title, which keeps
the ids that are in somebody's context already; `ungroup` parts them again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.types import Group, StepStatus
from mcp_memory.shortterm.canvas.drawing import Drawing
from mcp_memory.shortterm.canvas.flowchart import (
    GOAL_LIMIT,
    LABEL_LIMIT,
    SUMMARY_LIMIT,
    TITLE_LIMIT,
    Canvas,
    Edge,
    Node,
)
from mcp_memory.shortterm.canvas.groups import members, new_group_id, outermost, without
from mcp_memory.shortterm.canvas.label import clean
from mcp_memory.shortterm.canvas.place import DEAD_END, latest

if TYPE_CHECKING:
    from pydantic import TypeAdapter

__all__ = ["EdgeLabel", "NewGroup", "Patch", "apply_patch", "patch_of", "patch_text"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewGroup:
    """Nodes, and groups that are there, which become one. Without a summary it has that of its newest step."""

    title: str
    nodes: tuple[str, ...]
    summary: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeLabel:
    """Words for the edge from source to target; an edge that is not there yet is drawn."""

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


@cache
def _adapter() -> TypeAdapter[Patch]:
    from pydantic import TypeAdapter

    return TypeAdapter(Patch)


def patch_text(patch: Patch) -> str:
    """Return the JSON of a patch; what it leaves alone is left out."""
    return _adapter().dump_json(patch, exclude_defaults=True).decode()


def patch_of(text: str) -> Patch:
    """Return the patch of a JSON text. Raises pydantic's ValidationError, a ValueError."""
    return _adapter().validate_json(text)


def apply_patch(drawing: Drawing, patch: Patch) -> Drawing:
    """Return the drawing with the patch done. Raises InvalidInput, which names all that is wrong with it."""
    groups, faults = _grouped(drawing, patch)
    faults += [*_unknown(drawing.canvas, patch, groups), *_unfit(patch)]
    faults += [f"{id_!r} in ungroup is no group there." for id_ in patch.ungroup if id_ not in drawing.groups]
    if faults:
        raise InvalidInput(f"Nothing was changed. {' '.join(faults)}")
    for id_, group in groups.items():
        groups[id_] = replace(
            group,
            title=clean(patch.titles.get(id_, group.title), TITLE_LIMIT),
            summary=clean(patch.summaries.get(id_, group.summary), SUMMARY_LIMIT),
        )
    canvas = drawing.canvas
    nodes = {node.id: _patched(node, patch) for node in canvas.nodes}
    edges = tuple(_labelled(canvas, patch, nodes))
    changed = replace(canvas, task_goal=patch.goal or canvas.task_goal, nodes=tuple(nodes.values()), edges=edges)
    return replace(drawing, canvas=changed, groups=groups)


def _patched(node: Node, patch: Patch) -> Node:
    return replace(
        node,
        title=patch.titles.get(node.id, node.title),
        summary=patch.summaries.get(node.id, node.summary),
        status=patch.statuses.get(node.id, node.status),
    )


def _labelled(canvas: Canvas, patch: Patch, nodes: Mapping[str, Node]) -> Iterator[Edge]:
    """The edges with their words; one into a dead end is dashed and says at least that."""
    words = {(each.source, each.target): each.label for each in patch.edges}
    held = {(edge.source, edge.target): edge.label for edge in canvas.edges}
    for (source, target), label in {**held, **words}.items():
        dead = nodes[target].status == "blocked"
        label = DEAD_END if dead and not label else "" if not dead and label == DEAD_END else label
        yield Edge(source, target, label, dead)


# --- what may be wrong ------------------------------------------------------------------------------


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


def _grouped(drawing: Drawing, patch: Patch) -> tuple[dict[str, Group], list[str]]:
    """Return the groups as they will be, and what stands against those that cannot be made."""
    groups, faults = without(drawing.groups, patch.ungroup), list[str]()
    last = latest(drawing.canvas)
    for new in patch.groups:
        named = f"The group {clean(new.title, 40)!r}"
        try:
            inside = outermost(drawing.canvas, groups, new.nodes)
        except InvalidInput as error:
            faults.append(f"{named}: {error}")
            continue
        held = [node for id_ in inside for node in members(groups, id_)]
        if len(held) < 2:
            faults.append(f"{named} holds fewer than two nodes.")
        if last and last.id in held and last.status == "doing":
            faults.append(f"{named} holds {last.id}, which is being worked on.")
        groups[new_group_id(drawing.canvas.number, groups)] = Group(
            inside, clean(new.title, TITLE_LIMIT), clean(new.summary, SUMMARY_LIMIT)
        )
    return groups, faults
