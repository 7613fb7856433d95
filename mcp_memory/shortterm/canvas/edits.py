"""The state of a canvas (its flowchart and its folding), and the edits that change it beside its steps.

Every edit records its effect, not the request: which nodes, which group. So `replay` rebuilds a canvas by applying its
moves and edits in order, whatever later versions of the rules would have decided. An edit whose nodes or groups are
missing, because an earlier one was undone, is applied to the others.

    begun       a new canvas has this goal
    drawn       a canvas from before its steps were stored, whole
    folded      the whole canvas, or these nodes as a group     unfolded  these groups, or the whole canvas
    completed   the task with everything still `doing`, which folds it; or these nodes
    paused      the session went on to another task; the next step takes this one up again
    patched     a `Patch`
    forgotten   removes words of forgotten results: see `replay`

A patch is applied whole or not at all; no node is lost, none changes its id; groups hold each node once and never
themselves; words keep to the limits of `flowchart`. Two nodes become one by a group with a title, which keeps the ids
that are in somebody's context already; `ungroup` parts them again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

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
    parse,
    read,
    render,
)
from mcp_memory.shortterm.canvas.folding import members, new_group_id, opened, outermost, top_level, without
from mcp_memory.shortterm.canvas.placement import DEAD_END, Move, latest, move
from mcp_memory.store.protocol import CanvasEdit

if TYPE_CHECKING:
    from pydantic import TypeAdapter


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


@cache
def _adapter() -> TypeAdapter[Patch]:
    from pydantic import TypeAdapter

    return TypeAdapter(Patch)


def patch_text(patch: Patch) -> str:
    """Return the JSON of a patch, without the fields that it leaves empty."""
    return _adapter().dump_json(patch, exclude_defaults=True).decode()


def patch_of(text: str) -> Patch:
    """Return the patch of a JSON text. Raises pydantic's ValidationError, a ValueError."""
    return _adapter().validate_json(text)


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
    words = {(each.source, each.target): each.label for each in patch.edges}
    held = {(edge.source, edge.target): edge.label for edge in canvas.edges}
    for (source, target), label in {**held, **words}.items():
        dead = nodes[target].status == "blocked"
        label = DEAD_END if dead and not label else "" if not dead and label == DEAD_END else label
        yield Edge(source, target, label, dead)


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


Kind = Literal["begun", "drawn", "folded", "unfolded", "completed", "paused", "patched", "forgotten"]


def edit(kind: Kind, now: datetime, **body: object) -> CanvasEdit:
    """Return an edit to store; empty fields of its body are left out."""
    kept = {key: value for key, value in body.items() if value}
    return CanvasEdit(kind=kind, body=json.dumps(kept, ensure_ascii=False, separators=(",", ":")), at=now)


def patched(patch: Patch, now: datetime, *, work: str | None = None) -> CanvasEdit:
    return CanvasEdit(kind="patched", body=patch_text(patch), at=now, work=work)


# --- applying ------------------------------------------------------------------------------------------


def stepped(state: CanvasState, node: str, how: Move, *, summary: str, now: datetime) -> CanvasState:
    """Apply a step: the groups that hold its node open, and so does the canvas."""
    canvas = move(state.canvas, node, how, summary=summary, now=now)
    return CanvasState(canvas=canvas, groups=opened(state.groups, node), folded=False)


def do(state: CanvasState | None, done: CanvasEdit, *, number: int) -> CanvasState | None:
    """Apply an edit; None where there is no canvas to apply it to.

    Raises ValueError (InvalidInput is one) for a body that does not fit its kind, or a patch that does not fit.
    """
    body: dict[str, Any] = {} if done.kind == "patched" else json.loads(done.body)
    match done.kind, state:
        case "begun", _:
            return CanvasState(canvas=Canvas(number, str(body.get("goal", "")), "doing", done.at, done.at))
        case "drawn", _:
            return _as_it_stood(body)
        case "folded", CanvasState():
            return _fold(state, str(body.get("group", "")), tuple(body.get("nodes", ())))
        case "unfolded", CanvasState():
            return replace(state, folded=False, groups=without(state.groups, body.get("groups", ())))
        case "completed", CanvasState():
            return _complete(state, frozenset(body.get("nodes", ())), done.at)
        case "paused", CanvasState():
            return replace(state, canvas=replace(state.canvas, status="paused"))
        case "patched", CanvasState():
            return apply_patch(state, patch_of(done.body))
        case _, None:
            return None
        case _:
            raise InvalidInput(f"A canvas edit of kind {done.kind!r} is not known here.")


def _as_it_stood(body: dict[str, Any]) -> CanvasState:
    groups = {id_: Group(tuple(nodes)) for id_, nodes in body["groups"].items()}
    return CanvasState(canvas=parse(body["text"]), groups=groups, folded=bool(body["folded"]))


def _fold(state: CanvasState, group: str, nodes: tuple[str, ...]) -> CanvasState:
    if not group:
        return replace(state, folded=True)
    groups = without(state.groups, (group,))
    known = {*groups, *(node.id for node in state.canvas.nodes)}
    inside = tuple(id_ for id_ in nodes if id_ in known and top_level(groups, id_) == id_)
    return replace(state, groups={**groups, group: Group(inside)}) if inside else state


def _complete(state: CanvasState, nodes: frozenset[str], now: datetime) -> CanvasState:
    canvas = state.canvas
    done = tuple(
        replace(node, status="done") if node.id in nodes or (not nodes and node.status == "doing") else node
        for node in canvas.nodes
    )
    grown = replace(canvas, nodes=done, status=canvas.status if nodes else "done", updated=max(now, canvas.updated))
    return replace(state, canvas=grown, folded=state.folded or not nodes)
