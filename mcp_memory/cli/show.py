"""`show`: the persona, scenes, sessions, canvases and raw results, one at a time or listed."""

from __future__ import annotations

import base64
import importlib.util
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mcp_memory.cli.base import as_json, ask, memory_options, print_answer, wants_json
from mcp_memory.cli.terminal import (
    canvas_steps,
    columns,
    escape_controls,
    format_minute,
    json_text,
    one_line,
    turn_block,
)
from mcp_memory.core.distribution import install_hint
from mcp_memory.core.errors import McpMemoryError, NotFound, Refused
from mcp_memory.core.text import format_bytes, plural

if TYPE_CHECKING:
    from mcp_memory.core.types import CanvasRow, Ref, Turn
    from mcp_memory.service.memory import Memory


def canvas_outline(row: CanvasRow, refs: Mapping[str, Sequence[str]]) -> str:
    """Return the canvas as a headline and two lines for each step: title and result."""
    from mcp_memory.shortterm.canvas.flowchart import read

    canvas = read(row)
    state = f"{row.status}, folded" if row.folded else row.status
    head = f"{row.number:03d}-{row.label}  {state}  {format_minute(row.updated)}  {plural(len(canvas.nodes), 'step')}"
    lines = [click.style(escape_controls(head), bold=True), escape_controls(canvas.task_goal), ""]
    for node, line in zip(canvas.nodes, canvas_steps(canvas), strict=True):
        lines += [line, f"         {one_line(node.summary, 71)}"]
        lines += [f"         {name}" for name in refs.get(node.id, ())]
    return "\n".join(lines)


_OF_NODE = ("id", "title", "status", "summary", "timestamp")


def canvas_fields(row: CanvasRow, refs: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return the canvas for JSON: its row, its steps with their refs, and its edges."""
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
            {**{name: getattr(node, name) for name in _OF_NODE}, "refs": refs.get(node.id, ())} for node in canvas.nodes
        ],
        "edges": list(canvas.edges),
        "text": row.text,
    }


def draw_canvas(row: CanvasRow, *, svg: Path | None, png: Path | None) -> None:
    """Draw the canvas, as it is folded now, into the given files.

    Raises Refused if the extra is not installed, McpMemoryError if a file cannot be written.
    """
    if importlib.util.find_spec("mermaidx") is None:
        raise Refused(f"Drawing needs the optional extra: {install_hint('render')}.")
    import mermaidx  # pyright: ignore[reportMissingTypeStubs]

    from mcp_memory.shortterm.canvas.flowchart import read
    from mcp_memory.shortterm.canvas.view import CONFIG, PLAIN, illustrate

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


@click.group()
def show() -> None:
    """Show a persona, scene, session, canvas or raw result.

    \b
    mcp-memory show persona
    mcp-memory show canvas
    mcp-memory show session go-live
    mcp-memory show ref 003-N4 | less
    """


@show.command()
@click.argument("section", required=False)
@as_json
@memory_options
def persona(section: str | None) -> None:
    """Show the page about the user, or one SECTION of it.

    Until a model has written it, it lists the user's own sentences and statements of `remember`; nothing is inferred.

    \b
    mcp-memory show persona
    mcp-memory show persona --json
    """
    page = ask(lambda memory: memory.read_persona(section))
    print_answer(page, escape_controls(page.text))


@show.command()
@as_json
@memory_options
def scenes() -> None:
    """List the scenes, the hottest first.

    Scenes are pages that a model writes from memories: one set with MCP_MEMORY_LLM, or the connected agent with
    its tool `distill`.

    \b
    mcp-memory show scenes
    """
    scenes = ask(lambda memory: memory.scenes())
    rows = (
        (scene.slug, f"heat {scene.heat}", format_minute(scene.updated), escape_controls(scene.summary))
        for scene in scenes
    )
    _list(scenes, "scene", rows)


@show.command()
@click.argument("slug")
@as_json
@memory_options
def scene(slug: str) -> None:
    """Show one scene by its SLUG.

    \b
    mcp-memory show scene moving-to-porto
    """
    if wants_json():
        click.echo(json_text(ask(lambda memory: memory.scene(slug))))
    else:
        click.echo(escape_controls(ask(lambda memory: memory.scene_page(slug))))


@show.command()
@click.argument("name", required=False)
@click.option("--start", type=click.IntRange(min=0), default=0, metavar="N", help="Begin at the turn with position N.")
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True, metavar="N")
@as_json
@memory_options
def session(name: str | None, start: int, limit: int) -> None:
    """Show the turns of a session.

    The default is the session written to last.

    \b
    mcp-memory show session
    mcp-memory show session go-live --limit 20
    """

    async def read(memory: Memory) -> tuple[str, list[Turn]]:
        session = name or next((info.session for info in await memory.sessions(limit=1)), None)
        if session is None:
            raise NotFound("No session has turns in this space yet.")
        return session, await memory.session_turns(session, start=start, limit=limit)

    session_name, turns = ask(read)
    print_answer({"session": session_name, "turns": turns}, map(turn_block, turns))
    if len(turns) == limit and not wants_json():
        click.echo(f"There may be more: --start {turns[-1].position + 1}", err=True)


@show.command()
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True, metavar="N")
@as_json
@memory_options
def sessions(limit: int) -> None:
    """List the sessions, most recently written first.

    \b
    mcp-memory show sessions --limit 5
    """
    sessions = ask(lambda memory: memory.sessions(limit=limit))
    rows = (
        (info.session, plural(info.turns, "turn"), format_minute(info.first), f"to {format_minute(info.last)}")
        for info in sessions
    )
    _list(sessions, "session", rows)


@show.command()
@click.argument("name", required=False)
@click.option("--mermaid", is_flag=True, help="Print the .mmd file instead of an outline.")
@click.option("--svg", type=click.Path(path_type=Path, dir_okay=False), help="Draw it into this file.")
@click.option("--png", type=click.Path(path_type=Path, dir_okay=False), help="Draw it into this file.")
@click.option("--rebuild", is_flag=True, help="First redraw it from its records.")
@click.option("--undo-patch", is_flag=True, help="First undo the last change by a model.")
@as_json
@memory_options
def canvas(
    name: str | None, mermaid: bool, svg: Path | None, png: Path | None, rebuild: bool, undo_patch: bool
) -> None:
    """Show the canvas of a task.

    NAME is its number or its label; the default is the active canvas.

    \b
    mcp-memory show canvas
    mcp-memory show canvas 3 --mermaid > task.mmd
    mcp-memory show canvas fix-login --svg task.svg
    """

    async def read(memory: Memory) -> tuple[CanvasRow, dict[str, list[str]]]:
        row = await _canvas(memory, name)
        row = await memory.rebuild_canvas(row.number) if rebuild else row
        row = await memory.undo_patch(row.number) if undo_patch else row
        refs: dict[str, list[str]] = {}
        for record in await memory.records(node=f"{row.number:03d}", limit=1000):
            refs.setdefault(record.node_id, []).append(record.ref)
        return row, refs

    row, refs = ask(read)
    if svg or png:
        draw_canvas(row, svg=svg, png=png)
        for path in filter(None, (svg, png)):
            click.echo(f"Drew {path}", err=True)
    elif mermaid:
        click.echo(row.text, nl=False)
    else:
        print_answer(canvas_fields(row, refs), canvas_outline(row, refs))


async def _canvas(memory: Memory, name: str | None) -> CanvasRow:
    if name is None:
        active = await memory.active_canvas()
        recent = [active] if active else await memory.canvases(limit=1)
        if not recent:
            raise NotFound("There is no canvas in this space yet: offloading a tool result draws the first.")
        return recent[0]
    number, _, label = name.partition("-")
    if number.isdecimal() and (not label or number == number.zfill(3)):
        return await memory.canvas(int(number))
    rows = await memory.canvases(limit=1000)
    if match := next((row for row in rows if row.label == name), None):
        return match
    raise NotFound(f"There is no canvas {name!r}. `mcp-memory show canvases` lists them.")


@show.command()
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True, metavar="N")
@as_json
@memory_options
def canvases(limit: int) -> None:
    """List the canvases, most recently updated first.

    \b
    mcp-memory show canvases
    """
    canvases = ask(lambda memory: memory.canvases(limit=limit))
    rows = (
        (
            f"{row.number:03d}",
            row.status,
            format_minute(row.updated),
            "folded" if row.folded else "open",
            escape_controls(row.label),
        )
        for row in canvases
    )
    _list(canvases, "canvas", rows)


def _list(rows_found: list[Any], what: str, rows: Iterable[tuple[str, ...]]) -> None:
    print_answer(rows_found, columns(rows) if rows_found else f"There is no {what} in this space yet.")


@show.command()
@click.argument("name", metavar="REF")
@as_json
@memory_options
def ref(name: str) -> None:
    """Print a raw tool result, byte for byte. REF is its id or a node that holds one result.

    In a pipe or a file it is byte for byte as stored; on a terminal, control characters are made visible.

    \b
    mcp-memory show ref r-9f2c1a7b3d4e > result.log
    mcp-memory show ref 003-N4 | grep ERROR
    """

    async def read(memory: Memory) -> tuple[Ref, bytes]:
        return await memory.ref(await _ref_id(memory, name))

    ref, data = ask(read)
    if wants_json():
        click.echo(json_text({"ref": ref, **_encode_content(data)}))
    elif sys.stdout.isatty():
        click.echo(escape_controls(data.decode("utf-8", "backslashreplace")))
        click.echo(
            f"{ref.id}  {format_bytes(ref.bytes)}  {ref.tool}  {format_minute(ref.timestamp)}  {ref.path}", err=True
        )
    else:
        click.echo(data, nl=False)


async def _ref_id(memory: Memory, name: str) -> str:
    if "-N" not in name:
        return name
    refs = list(dict.fromkeys(record.ref for record in await memory.records(node=name)))
    if len(refs) == 1:
        return refs[0]
    if not refs:
        raise NotFound(f"There is no node {name}. `mcp-memory show canvas` lists the nodes with their refs.")
    raise NotFound(f"Node {name} holds {len(refs)} results: {', '.join(refs)}. Name one of them.")


def _encode_content(data: bytes) -> dict[str, str]:
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}
