"""Folding: a finished task, or some steps of one, made small in the context; and back.

Guarantees: nothing is removed, the `.mmd` file keeps every node; `unfold` gives back what `fold` took; two
writers of one canvas both have their way.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Literal, assert_never, get_args

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.types import CanvasRow, CanvasView
from mcp_memory.shortterm.canvas.amend import amend
from mcp_memory.shortterm.canvas.drawing import Drawing
from mcp_memory.shortterm.canvas.edits import completed, folded, unfolded
from mcp_memory.shortterm.canvas.groups import new_group_id, outermost, require, top_level
from mcp_memory.shortterm.canvas.label import clean
from mcp_memory.shortterm.canvas.rebuild import drawing_at
from mcp_memory.shortterm.canvas.tasks import find_canvas
from mcp_memory.shortterm.canvas.view import view
from mcp_memory.store.protocol import CanvasEdit, Store

if TYPE_CHECKING:
    from mcp_memory.core.tokens import TokenCounter

__all__ = ["Action", "fold_canvas"]

Action = Literal["show", "fold", "unfold", "complete", "switch"]

_ACTIONS: tuple[Action, ...] = get_args(Action)


def fold_canvas(
    store: Store,
    space: str,
    *,
    task: str | None = None,
    nodes: Sequence[str] = (),
    action: str = "show",
    budget_tokens: int | None = None,
    session: str | None = None,
    counter: TokenCounter,
    now: datetime,
) -> CanvasView:
    """Do `action` to a task's canvas and return it as it then stands in the context.

    `task` is a label, a number or a goal; without it the session's active canvas is meant, or its newest.
    `nodes` are ids of nodes or groups; without them the whole canvas is meant.
    Raises NotFound for a task, InvalidInput for an action, a node or a budget that cannot be.
    """
    wanted = _action(action)
    if wanted == "switch" and task is None:
        raise InvalidInput("action 'switch' needs `task`: the label, number or goal of the task to go on with.")
    if nodes and wanted in ("show", "switch"):
        raise InvalidInput(f"action {action!r} takes no `nodes`; fold, unfold and complete do.")
    row = find_canvas(store, space, task=task, session=session)
    match wanted:
        case "show":
            pass
        case "fold":
            row = amend(store, space, row, lambda held: _fold(held, nodes, now))
        case "unfold":
            row = amend(store, space, row, lambda held: _unfold(held, nodes, now))
        case "complete":
            row = amend(store, space, row, lambda held: _complete(held, nodes, now))
            if not nodes:
                _leave(store, space, row, session, now)
        case "switch":
            row = _switch(store, space, row, session, now)
        case _:
            assert_never(wanted)
    return view(row, drawing_at(store, space, row).canvas, counter=counter, budget_tokens=budget_tokens)


def _action(action: str) -> Action:
    for allowed in _ACTIONS:
        if action == allowed:
            return allowed
    raise InvalidInput(f"action {clean(action, 40)!r} is unknown. Allowed: {', '.join(_ACTIONS)}.")


# --- the actions, as edits of what stands -----------------------------------------------------------


def _fold(drawing: Drawing, nodes: Sequence[str], now: datetime) -> list[CanvasEdit]:
    if not nodes:
        return [] if drawing.folded else [folded(now)]
    inside = outermost(drawing.canvas, drawing.groups, nodes)
    return [folded(now, group=new_group_id(drawing.canvas.number, drawing.groups), nodes=inside)]


def _unfold(drawing: Drawing, nodes: Sequence[str], now: datetime) -> list[CanvasEdit]:
    """The whole canvas opens first; once it is open, its groups do. A group inside another stays as it is."""
    groups = drawing.groups
    if not nodes:
        return [unfolded(now, groups=() if drawing.folded else tuple(groups))] if drawing.folded or groups else []
    gone: list[str] = []
    for id_ in nodes:
        require(drawing.canvas, groups, id_)
        group = id_ if id_ in groups else top_level(groups, id_)
        if group not in groups:
            raise InvalidInput(
                f"{id_} is not folded by anybody: it may stand inside a group that was made to fit budget_tokens. "
                "Ask for a larger budget_tokens, or expand_node it."
            )
        gone.append(group)
    return [unfolded(now, groups=tuple(dict.fromkeys(gone)))]


def _complete(drawing: Drawing, nodes: Sequence[str], now: datetime) -> list[CanvasEdit]:
    canvas = drawing.canvas
    named = dict.fromkeys(node for id_ in nodes for node in require(canvas, drawing.groups, id_))
    if nodes:
        left = tuple(node.id for node in canvas.nodes if node.id in named and node.status != "done")
        return [completed(now, nodes=left)] if left else []
    if canvas.status == "done" and all(node.status != "doing" for node in canvas.nodes):
        return [] if drawing.folded else [folded(now)]
    return [completed(now)]


# --- which canvas is active -------------------------------------------------------------------------


def _leave(store: Store, space: str, row: CanvasRow, session: str | None, now: datetime) -> None:
    """A task that is complete is nobody's active one: the next call starts a new task."""
    for each in dict.fromkeys((row.session, session or row.session)):
        active = store.active_canvas(space, each)
        if active and active.number == row.number:
            store.activate(space, each, None, now=now)


def _switch(store: Store, space: str, row: CanvasRow, session: str | None, now: datetime) -> CanvasRow:
    """Fold the canvas that is left, open the one that is taken up, make it the session's active one."""
    session = session or row.session
    left = store.active_canvas(space, session)
    if left and left.number != row.number:
        amend(store, space, left, lambda held: _fold(held, (), now))
    row = amend(store, space, row, lambda held: [unfolded(now)] if held.folded else [])
    store.activate(space, session, row.number, now=now)
    return store.canvas(space, row.number)
