"""The canvas for people: the same flowchart with colours by status, the step being worked on marked, and a legend.

Its text is Mermaid to be drawn, not to be kept: the `.mmd` file and the context hold the plain form of `canvas`,
because colours cost tokens and tell an agent nothing that `status:` does not.
"""

from __future__ import annotations

from typing import Any, get_args

from mcp_memory.shortterm.canvas import Canvas, Node, edge_line
from mcp_memory.shortterm.label import clean, encode
from mcp_memory.shortterm.place import latest
from mcp_memory.types import StepStatus

__all__ = ["CONFIG", "illustrate"]

CONFIG: dict[str, Any] = {"maxTextSize": 10_000_000, "maxEdges": 10_000, "flowchart": {"wrappingWidth": 380}}
"""What Mermaid has to be told to draw long canvases: it stops at 50,000 characters and 500 edges by itself."""

_LOOKS: dict[StepStatus, tuple[str, str]] = {
    "doing": ("▶", "fill:#e3f0ff,stroke:#1a66cc,color:#0b2a55"),
    "done": ("✓", "fill:#e6f5ea,stroke:#3a9d5d,color:#173f26"),
    "paused": ("⏸", "fill:#fff6db,stroke:#c99700,color:#4d3a00"),
    "blocked": ("✗", "fill:#fdeaea,stroke:#c94a4a,color:#5c1b1b,stroke-dasharray:5 4"),
}


def illustrate(canvas: Canvas) -> str:
    """Return Mermaid text to draw with `CONFIG`; nodes keep their ids. A folded group has a double border."""
    active = latest(canvas)
    lines = ["flowchart TD"]
    lines += [f"    {_node(node, active=node == active)}" for node in canvas.nodes]
    lines += [f"    {edge_line(edge)}" for edge in canvas.edges]
    lines += [f"    linkStyle {at} stroke:#c94a4a" for at, edge in enumerate(canvas.edges) if edge.dashed]
    lines += _legend(canvas)
    lines += [f"    classDef {status} {style}" for status, (_, style) in _LOOKS.items()]
    lines += ["    classDef active stroke-width:4px"]
    lines += [f"    class {active.id} active"] if active else []
    return "\n".join(lines) + "\n"


def _node(node: Node, *, active: bool) -> str:
    symbol = _LOOKS[node.status][0]
    at = node.timestamp.strftime("%Y-%m-%d %H:%M")
    here = " · now" if active else ""
    words = [f"<b>{symbol} {encode(node.title)}</b>", encode(node.summary), f"<small>{node.id} · {at}{here}</small>"]
    text = '"' + "<br/>".join(word for word in words if word) + '"'
    return f"{node.id}{f'[[{text}]]' if '-F' in node.id else f'[{text}]'}:::{node.status}"


def _legend(canvas: Canvas) -> list[str]:
    """The statuses that occur, with how many steps have each."""
    counts = {status: sum(node.status == status for node in canvas.nodes) for status in get_args(StepStatus)}
    held = [
        f'        legend-{status}["{_LOOKS[status][0]} {status}: {count}"]:::{status}'
        for status, count in counts.items()
        if count
    ]
    return [f'    subgraph legend["{encode(clean(canvas.task_goal, 60))}"]', *held, "    end"] if held else []
