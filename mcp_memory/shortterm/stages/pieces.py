"""What a model says of a canvas, and what of it becomes a patch.

Each wish is tried by itself on what the ones before it made of the canvas: one that does not fit is refused with its
reason, the others stand. What holds beside the rules of `patch`: words name nothing that was not shown; a step that
somebody named keeps its name, by which it is gone on with; a group is a stretch of the way, so that no path leaves it
and comes back; words stand only on edges that are there; a task that somebody named keeps its goal.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.secrets import mask
from mcp_memory.core.types import Group
from mcp_memory.shortterm.canvas.drawing import Drawing
from mcp_memory.shortterm.canvas.flowchart import Canvas
from mcp_memory.shortterm.canvas.groups import fold_groups, members, outermost
from mcp_memory.shortterm.canvas.patch import EdgeLabel, NewGroup, Patch, apply_patch
from mcp_memory.shortterm.stages.invented import invented

__all__ = ["Checked", "Reply", "checked"]


def _text(value: Any) -> Any:
    return "" if value is None else value


def _list(value: Any) -> Any:
    return [] if value is None else value


Text = Annotated[str, BeforeValidator(_text)]


class GroupOf(BaseModel):
    title: Text = Field(description="What these steps were for, in a few words")
    nodes: Annotated[list[str], BeforeValidator(_list)] = Field(
        description="Ids of steps, and of groups, that follow each other"
    )
    summary: Text = Field("", description="What came of them, at most 120 characters")


class Titled(BaseModel):
    id: str
    title: Text = Field(description="What the step was for, at most 60 characters")


class Labelled(BaseModel):
    model_config = ConfigDict(populate_by_name=True)

    from_: str = Field(alias="from")
    to: str
    label: Text = Field(description="Why the way went on here, one to five words")


class Reply(BaseModel):
    """How the canvas should read. Lists may be empty."""

    groups: Annotated[list[GroupOf], BeforeValidator(_list)] = Field(default_factory=list[GroupOf])
    titles: Annotated[list[Titled], BeforeValidator(_list)] = Field(default_factory=list[Titled])
    edges: Annotated[list[Labelled], BeforeValidator(_list)] = Field(default_factory=list[Labelled])
    ungroup: Annotated[list[str], BeforeValidator(_list)] = Field(
        default_factory=list[str], description="Groups that should be steps again"
    )
    goal: Text = Field("", description="What is being done, where <task> does not say it; otherwise empty")
    finished: Text = Field("", description="Why the task is surely over; otherwise empty")


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """`patch` can be applied to the drawing that it was checked against."""

    patch: Patch
    kept: list[str]
    refused: list[str]


def checked(reply: Reply, drawing: Drawing, *, shown: str, named: Collection[str], has_goal: bool) -> Checked:
    """Return what of the reply holds. `named`: nodes that somebody gave their titles; `shown`: all that was asked."""
    kept, refused = list[str](), list[str]()
    whole = Patch()
    for piece in _pieces(reply):
        fault = _fault(piece, drawing, shown=shown, named=named, has_goal=has_goal)
        if fault is None:
            try:
                drawing = apply_patch(drawing, piece.patch)
            except InvalidInput as error:
                fault = str(error).removeprefix("Nothing was changed. ")
        if fault is None:
            whole = _joined(whole, piece.patch)
            kept.append(piece.told)
        else:
            refused.append(f"{piece.told}: {fault}")
    return Checked(patch=whole, kept=kept, refused=refused)


@dataclass(frozen=True, slots=True)
class _Piece:
    """One wish: in words, as a patch, and the words that it brings."""

    told: str
    patch: Patch
    words: str


def _pieces(reply: Reply) -> Iterator[_Piece]:
    """In the order in which a patch does them."""
    if goal := _clean(reply.goal):
        yield _Piece(f"goal {goal!r}", Patch(goal=goal), goal)
    for id_ in reply.ungroup:
        yield _Piece(f"ungroup {id_}", Patch(ungroup=(id_.strip(),)), "")
    for group in reply.groups:
        title, summary = _clean(group.title), _clean(group.summary)
        new = NewGroup(title=title, nodes=tuple(each.strip() for each in group.nodes), summary=summary)
        yield _Piece(f"group {title!r} of {', '.join(new.nodes)}", Patch(groups=(new,)), f"{title} {summary}")
    for each in reply.titles:
        if title := _clean(each.title):
            yield _Piece(f"{each.id} is {title!r}", Patch(titles={each.id.strip(): title}), title)
    for edge in reply.edges:
        if label := _clean(edge.label):
            patch = Patch(edges=(EdgeLabel(source=edge.from_.strip(), target=edge.to.strip(), label=label),))
            yield _Piece(f"{edge.from_} to {edge.to} {label!r}", patch, label)


def _clean(text: str) -> str:
    return mask(" ".join(text.split()))


def _joined(one: Patch, other: Patch) -> Patch:
    return Patch(
        goal=other.goal or one.goal,
        ungroup=(*one.ungroup, *other.ungroup),
        groups=(*one.groups, *other.groups),
        titles={**one.titles, **other.titles},
        edges=(*one.edges, *other.edges),
    )


# --- what does not hold -----------------------------------------------------------------------------


def _fault(piece: _Piece, drawing: Drawing, *, shown: str, named: Collection[str], has_goal: bool) -> str | None:
    patch = piece.patch
    if strange := invented(piece.words, shown):
        return f"{', '.join(strange[:3])} stands nowhere in the question."
    if patch.goal and has_goal:
        return "the task has its goal from whoever asked for it."
    if kept := [id_ for id_ in patch.titles if id_ in named]:
        return f"{kept[0]} keeps its name, by which the agent goes on with it."
    joined = {(edge.source, edge.target) for edge in drawing.canvas.edges}
    if any((edge.source, edge.target) not in joined for edge in patch.edges):
        return "no edge joins them."
    return next((fault for new in patch.groups if (fault := _detour(drawing, new))), None)


def _detour(drawing: Drawing, new: NewGroup) -> str | None:
    """Return why a group is no stretch of the way: a step outside comes after one of its steps and before another."""
    try:
        inside = outermost(drawing.canvas, drawing.groups, new.nodes)
    except InvalidInput:
        return None  # the patch says so itself
    groups: Mapping[str, Group] = {**drawing.groups, "new": Group(inside)}
    # With the group folded, whoever leaves it and comes back goes round in a circle.
    held = {node for id_ in inside for node in members(drawing.groups, id_)}
    drawn = fold_groups(drawing.canvas, groups)
    after = _reached(drawn, "new", lambda edge: (edge[0], edge[1]))
    before = _reached(drawn, "new", lambda edge: (edge[1], edge[0]))
    between = [node.id for node in drawn.nodes if node.id in after & before and node.id not in held]
    return (
        f"{', '.join(between[:3])} stands between its steps: take it in, or end the group before." if between else None
    )


def _reached(canvas: Canvas, start: str, way: Callable[[tuple[str, str]], tuple[str, str]]) -> set[str]:
    """Return what can be reached from a node, itself left out."""
    follow: dict[str, list[str]] = {}
    for edge in canvas.edges:
        source, target = way((edge.source, edge.target))
        follow.setdefault(source, []).append(target)
    found, left = set[str](), [start]
    while left:
        for each in follow.get(left.pop(), []):
            if each not in found and each != start:
                found.add(each)
                left.append(each)
    return found
