"""The canvas for people: the same flowchart with colours by status, the current step marked, and a legend.

The text is for drawing only: the `.mmd` file and the context have the plain form of `flowchart`, because colours cost
tokens and add nothing to `status:` for an agent.

A short task is drawn from top to bottom with all its edges. A long one has a column for each phase, read from left to
right, so that it fits a screen: old phases are one box each, and an edge that does not lead to the next step becomes
words in the box that it leads to, because Mermaid gives up the columns for edges between them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from mcp_memory.core.types import StepStatus
from mcp_memory.shortterm.canvas.flowchart import Canvas, Edge, Node, clean, edge_line, encode
from mcp_memory.shortterm.canvas.folding import Groups, fold_groups, in_phases, title_of
from mcp_memory.shortterm.canvas.placement import latest

CONFIG: dict[str, Any] = {
    "maxTextSize": 10_000_000,
    "maxEdges": 10_000,
    "flowchart": {"wrappingWidth": 300, "nodeSpacing": 24, "rankSpacing": 34, "padding": 8},
    "themeVariables": {"fontSize": "15px"},
}
"""Settings of Mermaid for long canvases: by default it stops at 50,000 characters and 500 edges."""

PLAIN = {"⏸": "‖"}
"""Signs that the fonts of a bitmap may lack, and their replacements."""

SHORT = 14
"""Boxes that are drawn from top to bottom; more stand in columns."""
BOXES = 60
"""Boxes at most, as far as finished phases can be folded."""

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
        return _finished(canvas, folded, ["flowchart TD", *_upright(folded)])
    folded, phases = in_phases(canvas, groups, most=boxes)
    return _finished(canvas, folded, ["flowchart LR", *_columns(folded, phases)])


def _finished(canvas: Canvas, folded: Canvas, lines: list[str]) -> str:
    active = latest(folded)
    lines += _legend(canvas)
    lines += [f"    classDef {status} {style}" for status, (_, style) in _LOOKS.items()]
    lines += [f"    classDef active {_ACTIVE}", f"    classDef column {_COLUMN}"]
    lines += [f"    class {active.id} active"] if active else []
    return "\n".join(lines) + "\n"


def _upright(canvas: Canvas) -> Iterator[str]:
    active = latest(canvas)
    yield from (f"    {_box(node, active=node == active, words=200)}" for node in canvas.nodes)
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
        called = " · ".join(filter(None, [str(at + 1), _called([nodes[id_] for id_ in ids])]))
        yield f'    subgraph column-{at}["{encode(called)}"]'
        yield "        direction TB"
        for id_ in ids:
            place = ids.index(id_)
            inside = [edge for edge in into.get(id_, ()) if edge.source in ids[:place]]
            told = _elsewhere(into.get(id_, ()), inside, before=phases[at - 1][-1] if at and not place else "")
            words = 200 if nodes[id_] == active else 90
            yield f"        {_box(nodes[id_], active=nodes[id_] == active, words=words, told=told)}"
            if place and not inside:  # it keeps its place in the column all the same
                yield f"        {ids[place - 1]} ~~~ {id_}"
                drawn.append(Edge(ids[place - 1], id_))
            for edge in inside:
                yield f"        {edge_line(edge)}"
                drawn.append(edge)
        yield "    end"
    yield from (f"    column-{at} --> column-{at + 1}" for at in range(len(phases) - 1))
    yield from (f"    linkStyle {at} stroke:#c94a4a" for at, edge in enumerate(drawn) if edge.dashed)
    yield f"    class {','.join(f'column-{at}' for at in range(len(phases)))} column"


def _called(nodes: Sequence[Node]) -> str:
    if any(node.id.count("-") > 1 for node in nodes):  # stretches
        return "earlier"
    return title_of(nodes, room=60) if len(nodes) > 1 else ""


def _elsewhere(edges: Sequence[Edge], inside: Sequence[Edge], *, before: str) -> str:
    """Name the sources of a box that are in other columns, unless it is just the box before."""
    left = [edge for edge in edges if edge not in inside and edge.source != before]
    return ", ".join(f"{edge.source} {edge.label}".strip() for edge in left[:3])


def _box(node: Node, *, active: bool, words: int, told: str = "") -> str:
    symbol = _LOOKS[node.status][0]
    parts = [node.id, f"{node.timestamp:%Y-%m-%d %H:%M}"]
    parts += [f"after {encode(told)}"] if told else []
    parts += ["<b>NOW</b>"] if active else []
    lines = [f"<b>{symbol} {encode(node.title)}</b>", encode(clean(node.summary, words))]
    text = '"' + "<br/>".join([*filter(None, lines), f"<small>{' · '.join(parts)}</small>"]) + '"'
    return f"{node.id}{f'[[{text}]]' if '-F' in node.id else f'[{text}]'}:::{node.status}"


def _legend(canvas: Canvas) -> list[str]:
    """The task, and the statuses that occur with how many steps have each."""
    counts: Mapping[StepStatus, int] = {
        status: sum(node.status == status for node in canvas.nodes) for status in get_args(StepStatus)
    }
    held = [
        f'        legend-{status}["{_LOOKS[status][0]} {status}: {count}"]:::{status}'
        for status, count in counts.items()
        if count
    ]
    if not held:
        return []
    active = latest(canvas)
    head = f"{clean(canvas.task_goal, 60)} ({canvas.status})"
    now = [f'        legend-now["NOW: {encode(active.title)}"]:::active'] if active else []
    return [
        f'    subgraph legend["{encode(head)}"]',
        "        direction LR",
        *held,
        *now,
        "    end",
        "    class legend column",
    ]
