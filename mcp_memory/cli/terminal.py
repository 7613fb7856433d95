"""Output for terminals: aligned columns, the steps of a canvas, JSON. Pure functions to text.

Stored words may hold anything, including escape sequences that repaint the terminal, so everything shown to people goes
through `visible` first. JSON is ASCII: it survives every code page, pipe and lone surrogate.
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
# What a line may be broken between: one wide character, a word, white space.
_WIDE = (
    "\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\uffe0-\uffe6\U00020000-\U0003fffd"
)
_PIECE = re.compile(rf"[{_WIDE}]|[^\s{_WIDE}]+|\s+")
_LEAST_ROOM = 30  # columns that the last cell of a row gets at least


def visible(text: str) -> str:
    """Return the text with control characters written as escapes."""
    return _HIDDEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def one_line(text: str, limit: int) -> str:
    """Return the text on one line of at most `limit` columns, an ellipsis where it was cut."""
    line = visible(" ".join(text.split()))
    if _columns(line) <= limit:
        return line
    line = line[:limit]
    while _columns(line) > limit - 1:
        line = line[:-1]
    return line.rstrip() + "…"


def wrapped(text: str, margin: str) -> str:
    """Return the text within the width, every line behind the margin; words that are too long are broken."""
    room = WIDTH - len(margin)
    return "\n".join(
        (margin + row).rstrip() for line in visible(text).split("\n") for row in _rows(line, room, breaks_words=True)
    )


def fitted(text: str) -> str:
    """Return the text with lines beyond the width broken between words; what goes on is indented by two more.

    Words are left whole, so that a path can be copied.
    """
    return "\n".join(row for line in text.split("\n") for row in _fitted_rows(line))


def _fitted_rows(line: str) -> list[str]:
    if _columns(line) <= WIDTH:
        return [line]
    plain = click.unstyle(line)
    indent = plain[: len(plain) - len(plain.lstrip())]
    first, *more = _rows(line.replace(indent, "", 1), WIDTH - len(indent) - 2)
    return [(indent + first).rstrip(), *((f"{indent}  {row}").rstrip() for row in more)]


def _rows(line: str, room: int, *, breaks_words: bool = False) -> list[str]:
    """Return a line in rows of at most `room` columns, wider only where a word is."""
    rows: list[str] = []
    row, taken = "", 0
    for word in _PIECE.findall(line):
        for piece in _parts(word, room) if breaks_words else [word]:
            more = _columns(piece)
            if row and taken + more > room and not piece.isspace():
                rows.append(row)
                row, taken = "", 0
            row, taken = row + piece, taken + more
    return [*rows, row]


def _parts(word: str, room: int) -> list[str]:
    size = room if word.isascii() else room // 2  # a character takes two columns at most
    return [word] if word.isspace() else [word[at : at + size] for at in range(0, len(word), size)]


def columns(rows: Iterable[Sequence[str]], *, gap: int = 2, indent: int = 0) -> str:
    """Return rows of cells as aligned lines; the last cell of a row is never padded, and wrapped within the width."""
    cells = [list(row) for row in rows]
    widths = [max(_columns(row[at]) for row in cells if at < len(row)) for at in range(max(map(len, cells), default=0))]
    return "\n".join(line for row in cells for line in _aligned(row, widths, gap, " " * indent))


def _aligned(row: Sequence[str], widths: Sequence[int], gap: int, head: str) -> Iterator[str]:
    for cell, width in zip(row[:-1], widths, strict=False):
        head += cell + " " * (width + gap - _columns(cell))
    last, *more = _rows(row[-1], max(_LEAST_ROOM, WIDTH - _columns(head))) if row else [""]
    yield (head + last).rstrip()
    yield from ((" " * _columns(head) + line).rstrip() for line in more)


def _columns(text: str) -> int:
    """Terminal columns that a text takes: two for wide characters, none for colours and combining marks."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in click.unstyle(text)
    )


def plural(count: int, word: str) -> str:
    """Return `1 turn`, `2 turns`, `3 canvases`."""
    many = f"{word}es" if word.endswith("s") else f"{word}s"
    return f"{count:,} {word if count == 1 else many}"


def model_name(identity: str) -> str:
    """Return the identity of an embedding model as text that can be broken between its parts."""
    return identity.replace("+", " + ")


def with_nearest(names: Mapping[str, str | None]) -> str:
    """Return names that are unknown, each with the known one that was perhaps meant."""
    return ", ".join(f"{name} (perhaps {nearest})" if nearest else name for name, nearest in names.items())


def steps(canvas: Canvas) -> list[str]:
    """Return one line a step: status, id, title, and its predecessors unless that is the line above."""
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


def said(turn: Turn, *, marked: bool = False, newer: Turn | None = None) -> str:
    """Return a turn as a line of who, when and where, and its words under it; `newer` replaced the value in it."""
    who = f"{turn.role} {turn.name}" if turn.name else turn.role
    head = f"{'*' if marked else ' '} {turn.id}  {minute(turn.said_at)}  {who}  {turn.session}"
    head += f"  changed {day(newer.said_at)}, see {newer.id}" if newer else ""
    return f"{click.style(visible(head), dim=True)}\n{wrapped(turn.content, '    ')}"


def page(scene: Scene) -> str:
    """Return a scene as a line with its name and day, and its summary below."""
    head = f"  {scene.slug}  {day(scene.updated)}  {one_line(scene.title, 60)}"
    return f"{click.style(visible(head), dim=True)}\n{wrapped(scene.summary, '    ')}"


def printed(at: str, call: str, text: str, *, taken: datetime, node: str | None, note: str = "") -> str:
    """Return lines of a tool's output as a line of where they stand and what printed them, and they under it."""
    head = "  ".join(part for part in (f"  {at}", node, minute(taken), one_line(call, 60), note) if part)
    return f"{click.style(visible(head), dim=True)}\n{wrapped(text, '    | ')}"


def _short(node: str) -> str:
    return node.partition("-")[2]


def minute(moment: datetime) -> str:
    """Return a moment as the reader's clock has it: `2026-10-25 02:30`."""
    return f"{moment.astimezone():%Y-%m-%d %H:%M}"


def day(moment: datetime) -> str:
    """Return a moment's day where the reader is: `2026-10-25`."""
    return f"{moment.astimezone():%Y-%m-%d}"


def json_text(value: Any) -> str:
    """Return an answer as JSON: dataclasses as objects, moments as ISO 8601, paths as text."""
    return json.dumps(value, default=_plain, indent=2)


def _plain(value: object) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no place in an answer")
