"""Folding: a finished task, or some steps of one, made small in the context; and back.

Guarantees: nothing is removed, the `.mmd` file keeps every node; `unfold` gives back what `fold` took; two
writers of one canvas both have their way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Literal, assert_never, get_args

from mcp_memory.errors import InvalidInput, StoreUnavailable
from mcp_memory.shortterm.canvas import Canvas, padded, read, render
from mcp_memory.shortterm.groups import Groups, members, new_group_id, nodes_of, top_level
from mcp_memory.shortterm.label import clean
from mcp_memory.shortterm.tasks import find_canvas
from mcp_memory.shortterm.view import view
from mcp_memory.store.protocol import Conflict, Store
from mcp_memory.types import CanvasRow, CanvasView

if TYPE_CHECKING:
    from mcp_memory.tokens import TokenCounter

__all__ = ["Action", "fold_canvas"]

Action = Literal["show", "fold", "unfold", "complete", "switch"]

_ACTIONS: tuple[Action, ...] = get_args(Action)
_ATTEMPTS = 50

_Change = Callable[[CanvasRow], CanvasRow]


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
            row = _update(store, space, row, lambda held: _folded(held, nodes))
        case "unfold":
            row = _update(store, space, row, lambda held: _unfolded(held, nodes))
        case "complete":
            row = _update(store, space, row, lambda held: _completed(held, nodes, now))
            if not nodes:
                _leave(store, space, row, session, now)
        case "switch":
            row = _switch(store, space, row, session, now)
        case _:
            assert_never(wanted)
    return view(row, read(row), counter=counter, budget_tokens=budget_tokens)


def _action(action: str) -> Action:
    for allowed in _ACTIONS:
        if action == allowed:
            return allowed
    raise InvalidInput(f"action {clean(action, 40)!r} is unknown. Allowed: {', '.join(_ACTIONS)}.")


def _update(store: Store, space: str, row: CanvasRow, change: _Change) -> CanvasRow:
    """Write the changed row, and again on what another writer left; which canvas is active stays as it was."""
    for _ in range(_ATTEMPTS):
        changed = change(row)
        if changed == row:
            return row
        try:
            store.save_canvas(space, changed, expected=row.version)
        except Conflict:
            row = store.canvas(space, row.number)
            continue
        return store.canvas(space, row.number)
    raise StoreUnavailable(f"Canvas {padded(row.number)} is being written to by many others at once. Call again.")


# --- the actions, as changes of a row ---------------------------------------------------------------


def _folded(row: CanvasRow, nodes: Sequence[str]) -> CanvasRow:
    if not nodes:
        return replace(row, folded=True)
    canvas = read(row)
    inside = _outermost(canvas, row.groups, nodes)
    return replace(row, groups={**row.groups, new_group_id(row.number, row.groups): inside})


def _outermost(canvas: Canvas, groups: Groups, nodes: Sequence[str]) -> list[str]:
    """What the new group holds: nodes, and whole groups; a part of a group is refused."""
    chosen = [node for id_ in nodes for node in _require(canvas, groups, id_)]
    inside = list(dict.fromkeys(top_level(groups, node) for node in chosen))
    for id_ in inside:
        missing = [node for node in members(groups, id_) if node not in chosen]
        if missing:
            raise InvalidInput(
                f"{id_} is folded already and holds {', '.join(missing)} too. Name {id_} itself, or unfold it first."
            )
    return inside


def _unfolded(row: CanvasRow, nodes: Sequence[str]) -> CanvasRow:
    """The whole canvas opens first; once it is open, its groups do."""
    if not nodes:
        return replace(row, folded=False) if row.folded else replace(row, groups={})
    canvas = read(row)
    gone: set[str] = set()
    for id_ in nodes:
        _require(canvas, row.groups, id_)
        group = id_ if id_ in row.groups else top_level(row.groups, id_)
        if group not in row.groups:
            raise InvalidInput(
                f"{id_} is not folded by anybody: it may stand inside a group that was made to fit budget_tokens. "
                "Ask for a larger budget_tokens, or expand_node it."
            )
        gone.add(group)

    def kept(id_: str) -> list[str]:
        return [each for inside in row.groups[id_] for each in kept(inside)] if id_ in gone else [id_]

    # A group inside another stays folded, and one around it stays too: only what was asked for opens.
    groups = {
        id_: [each for held in inside for each in kept(held)] for id_, inside in row.groups.items() if id_ not in gone
    }
    return replace(row, folded=False, groups=groups)


def _completed(row: CanvasRow, nodes: Sequence[str], now: datetime) -> CanvasRow:
    """Nodes become done; without nodes the task does, with what was still `doing`, and the canvas folds."""
    canvas = read(row)
    named = {node for id_ in nodes for node in _require(canvas, row.groups, id_)}
    done = tuple(
        replace(node, status="done") if node.id in named or (not nodes and node.status == "doing") else node
        for node in canvas.nodes
    )
    status = canvas.status if nodes else "done"
    if (done, status) == (canvas.nodes, canvas.status):
        return row if nodes else replace(row, folded=True)
    grown = replace(canvas, nodes=done, status=status, updated=max(now, canvas.updated))
    return replace(row, text=render(grown), status=status, folded=row.folded or not nodes, updated=grown.updated)


def _require(canvas: Canvas, groups: Groups, id_: str) -> tuple[str, ...]:
    if found := nodes_of(canvas, groups, id_.strip()):
        return found
    known = ", ".join([*groups, *(node.id for node in canvas.nodes[-12:])])
    raise InvalidInput(f"{clean(id_, 40)!r} is no node or group of canvas {padded(canvas.number)}. It has: {known}.")


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
        _update(store, space, left, lambda held: _folded(held, ()))
    row = _update(store, space, row, lambda held: replace(held, folded=False))
    store.activate(space, session, row.number, now=now)
    return store.canvas(space, row.number)
