"""Output for terminals: aligned columns, the steps of a canvas, JSON. The functions are pure and return text.

Stored text may contain anything, including escape sequences that repaint the terminal, so everything shown to people
goes through `escape_controls` first. JSON is ASCII: it survives every code page, pipe and lone surrogate.
"""

from __future__ import annotations

import dataclasses
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from mcp_memory.core.types import Scene, Turn
    from mcp_memory.shortterm.canvas.flowchart import Canvas

WIDTH = 80
COLOURS = {"done": "green", "doing": "cyan", "paused": "yellow", "blocked": "red"}
# C0 and C1 controls but tab and newline, bidi overrides, lone surrogates.
_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
# The units between which a line may be broken: a wide character, a word, white space.
_WIDE = (
    "\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\uffe0-\uffe6\U00020000-\U0003fffd"
)
_PIECE = re.compile(rf"[{_WIDE}]|[^\s{_WIDE}]+|\s+")
_LEAST_ROOM = 30  # columns that the last cell of a row gets at least


def escape_controls(text: str) -> str:
    """Return the text with control characters written as escapes."""
    return _HIDDEN.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def one_line(text: str, limit: int) -> str:
    """Return the text on one line of at most `limit` columns, with an ellipsis if it was cut."""
    line = escape_controls(" ".join(text.split()))
    if _width(line) <= limit:
        return line
    line = line[:limit]
    while _width(line) > limit - 1:
        line = line[:-1]
    return line.rstrip() + "…"


def wrap(text: str, margin: str) -> str:
    """Escape controls in the text and wrap it to the width, every line after the margin; long words are broken."""
    room = WIDTH - len(margin)
    return "\n".join(
        (margin + row).rstrip()
        for line in escape_controls(text).split("\n")
        for row in _break_line(line, room, breaks_words=True)
    )


def fit_width(text: str) -> str:
    """Break lines beyond the width between words; continuations are indented by two more.

    Words are not broken, so that a path can be copied.
    """
    return "\n".join(row for line in text.split("\n") for row in _fit_line(line))


def _fit_line(line: str) -> list[str]:
    if _width(line) <= WIDTH:
        return [line]
    plain = click.unstyle(line)
    indent = plain[: len(plain) - len(plain.lstrip())]
    first, *more = _break_line(line.replace(indent, "", 1), WIDTH - len(indent) - 2)
    return [(indent + first).rstrip(), *((f"{indent}  {row}").rstrip() for row in more)]


def _break_line(line: str, room: int, *, breaks_words: bool = False) -> list[str]:
    """Break a line into rows of at most `room` columns, wider only for a longer word."""
    rows: list[str] = []
    row, taken = "", 0
    for word in _PIECE.findall(line):
        for piece in _break_word(word, room) if breaks_words else [word]:
            more = _width(piece)
            if row and taken + more > room and not piece.isspace():
                rows.append(row)
                row, taken = "", 0
            row, taken = row + piece, taken + more
    return [*rows, row]


def _break_word(word: str, room: int) -> list[str]:
    size = room if word.isascii() else room // 2  # a character takes two columns at most
    return [word] if word.isspace() else [word[at : at + size] for at in range(0, len(word), size)]


def columns(rows: Iterable[Sequence[str]], *, gap: int = 2, indent: int = 0) -> str:
    """Return rows of cells as aligned lines; the last cell of a row is not padded, and wrapped to the width."""
    cells = [list(row) for row in rows]
    widths = [max(_width(row[at]) for row in cells if at < len(row)) for at in range(max(map(len, cells), default=0))]
    return "\n".join(line for row in cells for line in _align_row(row, widths, gap, " " * indent))


def _align_row(row: Sequence[str], widths: Sequence[int], gap: int, head: str) -> Iterator[str]:
    for cell, width in zip(row[:-1], widths, strict=False):
        head += cell + " " * (width + gap - _width(cell))
    last, *more = _break_line(row[-1], max(_LEAST_ROOM, WIDTH - _width(head))) if row else [""]
    yield (head + last).rstrip()
    yield from ((" " * _width(head) + line).rstrip() for line in more)


def _width(text: str) -> int:
    """Return the number of terminal columns: two for wide characters, none for colours and combining marks."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in click.unstyle(text)
    )


def model_name(identity: str) -> str:
    """Return the identity of an embedding model, with spaces at which it can be broken."""
    return identity.replace("+", " + ")


def suggest_names(names: Mapping[str, str | None]) -> str:
    """Return unknown names in a line, each with the closest known name, if any."""
    return ", ".join(f"{name} (perhaps {nearest})" if nearest else name for name, nearest in names.items())


def canvas_steps(canvas: Canvas) -> list[str]:
    """Return one line per step: status, id, title, and the predecessors, unless the step above is the only one."""
    before: dict[str, list[str]] = {node.id: [] for node in canvas.nodes}
    for edge in canvas.edges:
        before[edge.target].append(edge.source)
    rows: list[tuple[str, str, str]] = []
    above: list[str] = []
    for node in canvas.nodes:
        came_from = "" if before[node.id] == above else f"  <- {', '.join(map(_short, before[node.id])) or 'start'}"
        title = one_line(node.title, 64)
        status = click.style(f"{node.status:<7}", fg=COLOURS[node.status])
        rows.append((status, f"{_short(node.id):<4}", title + came_from))
        above = [node.id]
    return columns(rows).split("\n") if rows else []


def turn_block(turn: Turn, *, marked: bool = False, newer: Turn | None = None) -> str:
    """Return a turn as a header line with its text below; `newer` is the turn that replaced a value in it."""
    who = f"{turn.role} {turn.name}" if turn.name else turn.role
    head = f"{'*' if marked else ' '} {turn.id}  {format_minute(turn.said_at)}  {who}  {turn.session}"
    head += f"  changed {format_day(newer.said_at)}, see {newer.id}" if newer else ""
    return f"{click.style(escape_controls(head), dim=True)}\n{wrap(turn.content, '    ')}"


def scene_block(scene: Scene) -> str:
    """Return a scene as a header line with its summary below."""
    head = f"  {scene.slug}  {format_day(scene.updated)}  {one_line(scene.title, 60)}"
    return f"{click.style(escape_controls(head), dim=True)}\n{wrap(scene.summary, '    ')}"


def output_block(at: str, call: str, text: str, *, taken: datetime, node: str | None, note: str = "") -> str:
    """Return lines of a tool's output below a header line with their address and call."""
    head = "  ".join(part for part in (f"  {at}", node, format_minute(taken), one_line(call, 60), note) if part)
    return f"{click.style(escape_controls(head), dim=True)}\n{wrap(text, '    | ')}"


def _short(node: str) -> str:
    return node.partition("-")[2]


def format_minute(moment: datetime) -> str:
    """Format a moment in local time: `2026-10-25 02:30`."""
    return f"{moment.astimezone():%Y-%m-%d %H:%M}"


def format_day(moment: datetime) -> str:
    """Format the local date of a moment: `2026-10-25`."""
    return f"{moment.astimezone():%Y-%m-%d}"


def json_text(value: Any) -> str:
    """Return an answer as JSON: dataclasses as objects, moments as ISO 8601, paths as text."""
    return json.dumps(value, default=_to_json, indent=2)


def _to_json(value: object) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no place in an answer")
