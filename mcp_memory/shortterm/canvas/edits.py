"""What is done to a canvas beside its steps, as values that are kept, and doing them, once or again.

Every edit says what it did, not what was asked: which nodes, which group. So a canvas is drawn anew by doing its
moves and edits in order (`rebuild`), whatever later versions of the rules would have decided. An edit whose nodes or
groups are not there, because an earlier one was undone, does what is left of it.

`begun` gives a new canvas its goal. `drawn` is a canvas as it stood, from before its steps were kept.
`folded` is the whole canvas or makes a group, `unfolded` opens it, or groups. `completed` is the task, or nodes.
`paused` is the task, until its next step. `patched` is a `Patch`. `forgotten` takes words off: `canvas.wordless`.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from typing import Any, Literal

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.types import Group
from mcp_memory.shortterm.canvas.drawing import Drawing
from mcp_memory.shortterm.canvas.flowchart import Canvas, parse
from mcp_memory.shortterm.canvas.groups import opened, top_level, without
from mcp_memory.shortterm.canvas.patch import Patch, apply_patch, patch_of, patch_text
from mcp_memory.shortterm.canvas.place import Move, move
from mcp_memory.store.protocol import CanvasEdit

__all__ = ["begun", "completed", "do", "edit", "folded", "patched", "paused", "stepped", "unfolded"]

Kind = Literal["begun", "drawn", "folded", "unfolded", "completed", "paused", "patched", "forgotten"]


def edit(kind: Kind, now: datetime, **body: object) -> CanvasEdit:
    """Return an edit to be kept. What of the body is empty is left out."""
    kept = {key: value for key, value in body.items() if value}
    return CanvasEdit(kind=kind, body=json.dumps(kept, ensure_ascii=False, separators=(",", ":")), at=now)


def begun(goal: str, now: datetime) -> CanvasEdit:
    return edit("begun", now, goal=goal)


def folded(now: datetime, *, group: str = "", nodes: tuple[str, ...] = ()) -> CanvasEdit:
    """The whole canvas, or these nodes and groups as a new group."""
    return edit("folded", now, group=group, nodes=nodes)


def unfolded(now: datetime, *, groups: tuple[str, ...] = ()) -> CanvasEdit:
    """These groups; without any, the whole canvas."""
    return edit("unfolded", now, groups=groups)


def completed(now: datetime, *, nodes: tuple[str, ...] = ()) -> CanvasEdit:
    """These nodes; without any, the task with what was still `doing`, which folds it."""
    return edit("completed", now, nodes=nodes)


def paused(now: datetime) -> CanvasEdit:
    """The session went on to another task; the next step of this one takes it up again."""
    return edit("paused", now)


def patched(patch: Patch, now: datetime, *, work: str | None = None) -> CanvasEdit:
    return CanvasEdit(kind="patched", body=patch_text(patch), at=now, work=work)


# --- doing ------------------------------------------------------------------------------------------


def stepped(drawing: Drawing, node: str, how: Move, *, summary: str, now: datetime) -> Drawing:
    """Return the drawing with a step taken: its node stands free, and the canvas is open."""
    canvas = move(drawing.canvas, node, how, summary=summary, now=now)
    return Drawing(canvas=canvas, groups=opened(drawing.groups, node), folded=False)


def do(drawing: Drawing | None, done: CanvasEdit, *, number: int) -> Drawing | None:
    """Return the drawing with an edit done; None where there is none that it could be done to.

    Raises ValueError (InvalidInput is one) for a body that is not of its kind, or a patch that does not fit.
    """
    body: dict[str, Any] = {} if done.kind == "patched" else json.loads(done.body)
    match done.kind, drawing:
        case "begun", _:
            return Drawing(canvas=Canvas(number, str(body.get("goal", "")), "doing", done.at, done.at))
        case "drawn", _:
            return _as_it_stood(body)
        case "folded", Drawing():
            return _fold(drawing, str(body.get("group", "")), tuple(body.get("nodes", ())))
        case "unfolded", Drawing():
            return replace(drawing, folded=False, groups=without(drawing.groups, body.get("groups", ())))
        case "completed", Drawing():
            return _complete(drawing, frozenset(body.get("nodes", ())), done.at)
        case "paused", Drawing():
            return replace(drawing, canvas=replace(drawing.canvas, status="paused"))
        case "patched", Drawing():
            return apply_patch(drawing, patch_of(done.body))
        case _, None:
            return None
        case _:
            raise InvalidInput(f"A canvas edit of kind {done.kind!r} is not known here.")


def _as_it_stood(body: dict[str, Any]) -> Drawing:
    groups = {id_: Group(tuple(nodes)) for id_, nodes in body["groups"].items()}
    return Drawing(canvas=parse(body["text"]), groups=groups, folded=bool(body["folded"]))


def _fold(drawing: Drawing, group: str, nodes: tuple[str, ...]) -> Drawing:
    if not group:
        return replace(drawing, folded=True)
    groups = without(drawing.groups, (group,))
    known = {*groups, *(node.id for node in drawing.canvas.nodes)}
    inside = tuple(id_ for id_ in nodes if id_ in known and top_level(groups, id_) == id_)
    return replace(drawing, groups={**groups, group: Group(inside)}) if inside else drawing


def _complete(drawing: Drawing, nodes: frozenset[str], now: datetime) -> Drawing:
    canvas = drawing.canvas
    done = tuple(
        replace(node, status="done") if node.id in nodes or (not nodes and node.status == "doing") else node
        for node in canvas.nodes
    )
    grown = replace(canvas, nodes=done, status=canvas.status if nodes else "done", updated=max(now, canvas.updated))
    return replace(drawing, canvas=grown, folded=drawing.folded or not nodes)
