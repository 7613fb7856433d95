"""Views of a canvas: for the context, within a budget; and for people, as a picture. Folding and switching tasks.

In the context a canvas is Mermaid text, or its four metadata fields. It never has more tokens than the budget; the same
canvas, groups and budget give the same text, so a prompt cache keeps it; unfinished steps and the newest fold last.
Folding removes nothing: the `.mmd` file has every node, and `unfold` reverts `fold`. Two concurrent writers of one
canvas both succeed.

`history` lists tasks, one line each, the most recent first; the text is the same until one of these tasks changes. The
line of a damaged canvas has only its label, status and time.

`illustrate` is for people: the same flowchart with colours by status, the current step marked, and a legend. An agent
never sees it, because colours cost tokens and add nothing to `status:`. A short task is drawn from top to bottom with
all its edges. A long task has a column for each phase, read from left to right, so that it fits a screen. In it,
old phases are one box each, and an edge that does not lead to the next step becomes a note in its target's box, because
Mermaid gives up the columns if edges cross them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, get_args

from mcp_memory.core.errors import Damaged, InvalidInput
from mcp_memory.core.text import iso
from mcp_memory.core.types import CanvasRow, CanvasView, Group, StepStatus
from mcp_memory.shortterm.canvas.flowchart import Canvas, Edge, Node, clean, edge_line, encode, padded, read
from mcp_memory.shortterm.canvas.folding import (
    Groups,
    dissolve,
    fit,
    fold_groups,
    in_phases,
    new_group_id,
    outermost,
    require,
    title_of,
    top_level,
)
from mcp_memory.shortterm.canvas.placement import latest
from mcp_memory.shortterm.canvas.state import CanvasState, amend, complete, current_state
from mcp_memory.shortterm.canvas.tasks import canvas_address, find_canvas
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import canvas_rows

if TYPE_CHECKING:
    from mcp_memory.core.token_counts import TokenCounter

DEFAULT_BUDGET = 1000


def view(
    row: CanvasRow, canvas: Canvas, *, address: str, counter: TokenCounter, budget_tokens: int | None = None
) -> CanvasView:
    """Return the canvas for the context. If the budget is too small, the oldest finished steps fold first.

    Raises InvalidInput if not even the metadata fits.
    """
    budget = DEFAULT_BUDGET if budget_tokens is None else budget_tokens
    text = None if row.folded else fit(canvas, row.groups, counter=counter, budget=budget)
    folded = text is None
    text = text or _metadata(address, canvas, counter=counter, budget=budget)
    return CanvasView(
        canvas=padded(row.number),
        task_goal=canvas.task_goal,
        status=canvas.status,
        updated_time=iso(canvas.updated),
        mmd_file_path=address,
        folded=folded,
        text=text,
        tokens=counter.count(text),
        nodes=len(canvas.nodes),
    )


def _metadata(address: str, canvas: Canvas, *, counter: TokenCounter, budget: int) -> str:
    """Return the four metadata fields, with the goal cut to fit the budget. Raises InvalidInput if they do not fit."""
    for limit in (200, 80, 40, 20, 8):
        fields = {
            "taskGoal": clean(canvas.task_goal, limit),
            "status": canvas.status,
            "updatedTime": iso(canvas.updated),
            "mmdFilePath": address,
        }
        text = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
        if counter.fits(text, budget):
            return text
    raise InvalidInput(
        f"budget_tokens is {budget}; the metadata of this canvas alone takes {counter.count(text)}. "
        f"Ask for at least that, or leave it out for {DEFAULT_BUDGET}."
    )


MAX_LISTED = 40
LENGTHS = (110, 60, 0)
"""Characters of a task's newest summary; the largest that fits is used."""


def history(
    store: Store,
    space: str,
    *,
    session: str | None = None,
    but: Collection[int] = (),
    budget_tokens: int,
    counter: TokenCounter,
) -> str:
    """Return the tasks of a session (or space) except `but`, one line each; "" if none fits.

    `003 fix-login: Fix the login test (done, 34 steps, 2 dead ends, 2026-04-16 22:19); last: leeway of 30 s …`
    """
    rows = store.read(space, canvas_rows.list_canvases, session=session, limit=MAX_LISTED + len(but))
    text = ""
    for row in rows:
        if row.number in but:
            continue
        line = next((line for line in _history_lines(row) if counter.fits(f"{text}{line}\n", budget_tokens)), None)
        if line is None:
            break
        text += f"{line}\n"
    return text.rstrip("\n")


def _history_lines(row: CanvasRow) -> Iterator[str]:
    """Yield the line of a task in several lengths, the longest first."""
    head = f"{padded(row.number)} {row.label}"
    try:
        canvas = read(row)
    except Damaged:
        yield f"{head} ({row.status}, {row.updated:%Y-%m-%d %H:%M})"
        return
    facts = [canvas.status, f"{len(canvas.nodes)} step{'s' * (len(canvas.nodes) != 1)}"]
    if dead := sum(node.status == "blocked" for node in canvas.nodes):
        facts.append(f"{dead} dead end{'s' * (dead != 1)}")
    line = f"{head}: {clean(canvas.task_goal, 100)} ({', '.join(facts)}, {canvas.updated:%Y-%m-%d %H:%M})"
    last = latest(canvas)
    summary = (last.summary or last.title) if last else ""
    for length in LENGTHS:
        yield f"{line}; last: {clean(summary, length)}" if length and summary else line


_ACTIONS = ("show", "fold", "unfold", "complete", "switch")


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
    """Apply `action` to a task's canvas and return its new view for the context.

    `task` is a label, a number or a goal; the default is the session's active or newest canvas.
    `nodes` are ids of nodes or groups; without them the action applies to the whole canvas.
    Raises NotFound for an unknown task, InvalidInput for an unknown action or node, for arguments that the
    action does not take, and for too small a budget.
    """
    if action == "switch" and task is None:
        raise InvalidInput("action 'switch' needs `task`: the label, number or goal of the task to go on with.")
    if nodes and action in ("show", "switch"):
        raise InvalidInput(f"action {action!r} takes no `nodes`; fold, unfold and complete do.")
    if action not in _ACTIONS:
        raise InvalidInput(f"action {clean(action, 40)!r} is unknown. Allowed: {', '.join(_ACTIONS)}.")
    row = find_canvas(store, space, task=task, session=session)
    match action:
        case "fold":
            row = amend(store, space, row, lambda state: _fold(state, nodes), kind="folded")
        case "unfold":
            row = amend(store, space, row, lambda state: _unfold(state, nodes), kind="unfolded")
        case "complete":
            row = amend(store, space, row, lambda state: _complete(state, nodes, now), kind="completed")
            if not nodes:
                _deactivate(store, space, row, session, now)
        case "switch":
            row = _switch(store, space, row, session, now)
        case _:  # show
            pass
    canvas, address = current_state(store, space, row).canvas, canvas_address(store, row.number, row.label)
    return view(row, canvas, address=address, counter=counter, budget_tokens=budget_tokens)


# --- the actions: return the next state, None if nothing changes ------------------------------------


def _fold(state: CanvasState, nodes: Sequence[str]) -> CanvasState | None:
    if not nodes:
        return None if state.folded else replace(state, folded=True)
    children = outermost(state.canvas, state.groups, nodes)
    id_ = new_group_id(state.canvas.number, state.groups)
    return replace(state, groups={**state.groups, id_: Group(children)})


def _unfold(state: CanvasState, nodes: Sequence[str]) -> CanvasState | None:
    """Unfold the whole canvas, or all its groups if it is unfolded already; None if nothing is folded.

    With `nodes`, dissolve only the outermost groups that contain them. Raises InvalidInput for an unknown node, and
    for a node in no group.
    """
    groups = state.groups
    if not nodes:
        if not state.folded and not groups:
            return None
        return replace(state, folded=False, groups=groups if state.folded else {})
    gone: list[str] = []
    for id_ in nodes:
        require(state.canvas, groups, id_)
        group = id_ if id_ in groups else top_level(groups, id_)
        if group not in groups:
            raise InvalidInput(
                f"{id_} is not in a group. It may be folded to fit budget_tokens: "
                "ask for a larger budget_tokens, or expand_node it."
            )
        gone.append(group)
    return replace(state, folded=False, groups=dissolve(groups, gone))


def _complete(state: CanvasState, nodes: Sequence[str], now: datetime) -> CanvasState | None:
    canvas = state.canvas
    if nodes:
        ids = {node for id_ in nodes for node in require(canvas, state.groups, id_)}
        open_ids = {node.id for node in canvas.nodes if node.id in ids and node.status != "done"}
        return complete(state, now, nodes=open_ids) if open_ids else None
    if canvas.status == "done" and all(node.status != "doing" for node in canvas.nodes):
        return None if state.folded else replace(state, folded=True)
    return complete(state, now)


# --- which canvas is active -------------------------------------------------------------------------


def _deactivate(store: Store, space: str, row: CanvasRow, session: str | None, now: datetime) -> None:
    """Deactivate a completed task, so that the next call starts a new task."""
    for name in dict.fromkeys((row.session, session or row.session)):
        active = store.read(space, canvas_rows.active_canvas, name)
        if active and active.number == row.number:
            store.write(space, canvas_rows.activate, name, None, now=now)


def _switch(store: Store, space: str, row: CanvasRow, session: str | None, now: datetime) -> CanvasRow:
    """Fold the session's active canvas, unfold `row` and activate it."""
    session = session or row.session
    left = store.read(space, canvas_rows.active_canvas, session)
    if left and left.number != row.number:
        amend(store, space, left, lambda state: _fold(state, ()), kind="folded")
    row = amend(
        store, space, row, lambda state: replace(state, folded=False) if state.folded else None, kind="unfolded"
    )
    store.write(space, canvas_rows.activate, session, row.number, now=now)
    return row


CONFIG: dict[str, Any] = {
    "maxTextSize": 10_000_000,
    "maxEdges": 10_000,
    "flowchart": {"wrappingWidth": 300, "nodeSpacing": 24, "rankSpacing": 34, "padding": 8},
    "themeVariables": {"fontSize": "15px"},
}
"""Settings of Mermaid for long canvases: by default it stops at 50,000 characters and 500 edges."""

PLAIN = {"⏸": "‖"}
"""Symbols that the fonts of a bitmap may lack, and their replacements."""

SHORT = 14
"""The most boxes that are drawn from top to bottom; more are drawn in columns."""
BOXES = 60
"""The most boxes in columns, if enough steps can be folded."""

_LOOKS: dict[StepStatus, tuple[str, str]] = {
    "doing": ("▶", "fill:#e3f0ff,stroke:#1a66cc,color:#0b2a55"),
    "done": ("✓", "fill:#eaf6ed,stroke:#7dbf93,color:#173f26"),
    "paused": ("⏸", "fill:#fff3cf,stroke:#c99700,color:#4d3a00"),
    "blocked": ("✗", "fill:#fde4e4,stroke:#c94a4a,color:#5c1b1b,stroke-dasharray:5 4"),
}
_ACTIVE = "fill:#1a66cc,stroke:#0b2a55,color:#ffffff,stroke-width:5px"
_COLUMN = "fill:#fafafa,stroke:#d0d0d0,color:#555555"


def illustrate(canvas: Canvas, groups: Groups | None = None, *, boxes: int = BOXES) -> str:
    """Return Mermaid text to draw with `CONFIG`; nodes keep their ids. A folded group has a double border."""
    groups = groups or {}
    folded = fold_groups(canvas, groups)
    if len(folded.nodes) <= SHORT:
        lines = ["flowchart TD", *_top_down(folded)]
    else:
        folded, phases = in_phases(canvas, groups, most=boxes)
        lines = ["flowchart LR", *_columns(folded, phases)]
    active = latest(folded)
    lines += _legend(canvas)
    lines += [f"    classDef {status} {style}" for status, (_, style) in _LOOKS.items()]
    lines += [f"    classDef active {_ACTIVE}", f"    classDef column {_COLUMN}"]
    lines += [f"    class {active.id} active"] if active else []
    return "\n".join(lines) + "\n"


def _top_down(canvas: Canvas) -> Iterator[str]:
    active = latest(canvas)
    yield from (f"    {_box(node, active=node == active, limit=200)}" for node in canvas.nodes)
    yield from (f"    {edge_line(edge)}" for edge in canvas.edges)
    yield from (f"    linkStyle {at} stroke:#c94a4a" for at, edge in enumerate(canvas.edges) if edge.dashed)


def _columns(canvas: Canvas, phases: Sequence[Sequence[str]]) -> Iterator[str]:
    nodes = {node.id: node for node in canvas.nodes}
    active = latest(canvas)
    into: dict[str, list[Edge]] = {}
    for edge in canvas.edges:
        into.setdefault(edge.target, []).append(edge)
    drawn: list[Edge] = []
    for at, ids in enumerate(phases):
        title = " · ".join(filter(None, [str(at + 1), phase_title([nodes[id_] for id_ in ids])]))
        yield f'    subgraph column-{at}["{encode(title)}"]'
        yield "        direction TB"
        for id_ in ids:
            place = ids.index(id_)
            inside = [edge for edge in into.get(id_, ()) if edge.source in ids[:place]]
            before = phases[at - 1][-1] if at and not place else ""
            outside = [edge for edge in into.get(id_, ()) if edge not in inside and edge.source != before]
            sources = ", ".join(f"{edge.source} {edge.label}".strip() for edge in outside[:3])
            is_active = nodes[id_] == active
            yield f"        {_box(nodes[id_], active=is_active, limit=200 if is_active else 90, sources=sources)}"
            if place and not inside:  # an invisible edge keeps it in its place
                yield f"        {ids[place - 1]} ~~~ {id_}"
                drawn.append(Edge(ids[place - 1], id_))
            for edge in inside:
                yield f"        {edge_line(edge)}"
                drawn.append(edge)
        yield "    end"
    yield from (f"    column-{at} --> column-{at + 1}" for at in range(len(phases) - 1))
    yield from (f"    linkStyle {at} stroke:#c94a4a" for at, edge in enumerate(drawn) if edge.dashed)
    yield f"    class {','.join(f'column-{at}' for at in range(len(phases)))} column"


def phase_title(nodes: Sequence[Node]) -> str:
    """Return the title of a column: "earlier" for folded phases, "" for a single step, which has its own title."""
    if any(node.id.count("-") > 1 for node in nodes):  # stretches
        return "earlier"
    return title_of(nodes, room=60) if len(nodes) > 1 else ""


def _box(node: Node, *, active: bool, limit: int, sources: str = "") -> str:
    symbol = _LOOKS[node.status][0]
    parts = [node.id, f"{node.timestamp:%Y-%m-%d %H:%M}"]
    parts += [f"after {encode(sources)}"] if sources else []
    parts += ["<b>NOW</b>"] if active else []
    lines = [f"<b>{symbol} {encode(node.title)}</b>", encode(clean(node.summary, limit))]
    text = '"' + "<br/>".join([*filter(None, lines), f"<small>{' · '.join(parts)}</small>"]) + '"'
    return f"{node.id}{f'[[{text}]]' if '-F' in node.id else f'[{text}]'}:::{node.status}"


def _legend(canvas: Canvas) -> list[str]:
    """Return the lines of the legend: the task, the steps by status, the current step; no line without steps."""
    active = latest(canvas)
    if active is None:
        return []
    head = f"{clean(canvas.task_goal, 60)} ({canvas.status})"
    counts = Counter(node.status for node in canvas.nodes)
    statuses: tuple[StepStatus, ...] = get_args(StepStatus)
    return [
        f'    subgraph legend["{encode(head)}"]',
        "        direction LR",
        *(
            f'        legend-{status}["{_LOOKS[status][0]} {status}: {counts[status]}"]:::{status}'
            for status in statuses
            if counts[status]
        ),
        f'        legend-now["NOW: {encode(active.title)}"]:::active',
        "    end",
        "    class legend column",
    ]
