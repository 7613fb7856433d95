"""A canvas as an outline for the terminal, as JSON, and as a picture through the optional extra `render`."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mcp_memory.cli.terminal import minute, one_line, plural, steps, visible
from mcp_memory.core.errors import McpMemoryError, Refused

if TYPE_CHECKING:
    from mcp_memory.core.types import CanvasRow

__all__ = ["draw", "outline", "plain"]


def outline(row: CanvasRow, refs: Mapping[str, Sequence[str]]) -> str:
    """Return the canvas as a headline and, for each step, a line of what it was and one of what came out."""
    from mcp_memory.shortterm.canvas.flowchart import read

    canvas = read(row)
    state = f"{row.status}, folded" if row.folded else row.status
    count = plural(len(canvas.nodes), "step")
    head = f"{row.number:03d}-{row.label}  {state}  {minute(row.updated)}  {count}"
    lines = [click.style(visible(head), bold=True), visible(canvas.task_goal), ""]
    for node, line in zip(canvas.nodes, steps(canvas), strict=True):
        lines += [line, f"         {one_line(node.summary, 90)}"]
        lines += [f"         {name}" for name in refs.get(node.id, ())]
    return "\n".join(lines)


def plain(row: CanvasRow, refs: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return the canvas for JSON: its row, its steps with the refs they hold, and its edges."""
    from mcp_memory.shortterm.canvas.flowchart import read

    canvas = read(row)
    return {
        "number": row.number,
        "label": row.label,
        "task_goal": canvas.task_goal,
        "status": row.status,
        "session": row.session,
        "created": canvas.created,
        "updated": row.updated,
        "folded": row.folded,
        "groups": row.groups,
        "nodes": [
            {
                "id": node.id,
                "title": node.title,
                "status": node.status,
                "summary": node.summary,
                "timestamp": node.timestamp,
                "refs": list(refs.get(node.id, ())),
            }
            for node in canvas.nodes
        ],
        "edges": list(canvas.edges),
        "text": row.text,
    }


def draw(row: CanvasRow, *, svg: Path | None, png: Path | None) -> None:
    """Draw the canvas, as it is folded now, with the real Mermaid. Refused when the extra is not installed."""
    if importlib.util.find_spec("mermaidx") is None:
        raise Refused("Drawing needs the optional extra: pip install 'mcp-memory[render]'.")
    import mermaidx  # pyright: ignore[reportMissingTypeStubs]

    from mcp_memory.shortterm.canvas.flowchart import read
    from mcp_memory.shortterm.canvas.picture import CONFIG, PLAIN, illustrate

    text = illustrate(read(row), row.groups)
    plain = text.translate(str.maketrans(PLAIN))
    picture = mermaidx.render(text, config=CONFIG)  # pyright: ignore[reportUnknownMemberType]  not typed
    again = bool(png) and plain != text
    bitmap = mermaidx.render(plain, config=CONFIG) if again else picture  # pyright: ignore[reportUnknownMemberType]
    try:
        if svg:
            svg.write_text(picture.svg(), encoding="utf-8")
        if png:
            png.write_bytes(bitmap.png())
    except OSError as error:
        raise McpMemoryError(f"{error.filename} cannot be written: {error.strerror}.") from None
    for path in filter(None, (svg, png)):
        click.echo(f"Drew {path}", err=True)
