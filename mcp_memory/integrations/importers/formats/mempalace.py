"""MemPalace: Markdown, a file for each room of each wing, plain or as a snapshot with indexes
(github.com/MemPalace/mempalace, mempalace/exporter.py, `_write_room_markdown`).

    # <wing> / <room>
    ## <drawer id>
    > text, each line quoted
    | Source | <file> |    | Filed | <time> |    | Added by | <who> |
    ---

A drawer holds verbatim words of files and conversations, without their speakers. So it is a turn of role `tool` in a
session of its room, identified by the drawer's id.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcp_memory.integrations.importers.format import Format
from mcp_memory.integrations.importers.records import (
    OTHER_TEXTS,
    ImportProblem,
    SkippedParts,
    SourceValue,
    parse_time,
)
from mcp_memory.integrations.importers.statements import MemoryRecord, as_turn, short_id

_ROOM = re.compile(r"\A# ([^\n]+?) / ([^\n]+)\n\s*## \S")
_INDEX = re.compile(r"\A# (?:Palace Export|Snapshot Index|Wing Export|Palace Snapshot)\b")
_DRAWER = re.compile(
    r"^## (?P<id>[^\n]+)\n\n(?P<text>> ?[^\n]*(?:\n> ?[^\n]*)*)\n\n\| Field \| Value \|\n\|[-| ]+\|\n"
    r"(?P<table>(?:\|[^\n]*\|\n)*)\n---[ \t]*(?:\n|\Z)",
    re.MULTILINE,
)
_CELL = re.compile(r"^\| ([^|\n]+?) \| (.*?) \|$", re.MULTILINE)
_HEAD = re.compile(r"^## ", re.MULTILINE)
_UNREADABLE = "a drawer that cannot be read. Export the palace again."


def mempalace_records(source: SourceValue, skipped: SkippedParts) -> Iterator[MemoryRecord]:
    """Yield the drawers of a room."""
    text, name = str(source.value), source.where
    room = _ROOM.match(text)
    if room is None:
        skipped.left_out["indexes" if _INDEX.match(text) else OTHER_TEXTS] += 1
        return
    session = f"mempalace {room[1].strip()} - {room[2].strip()}"
    at = 0

    def place(start: int) -> str:
        return f"{name}, line {text.count(chr(10), 0, start) + 1}"

    for drawer in _DRAWER.finditer(text):
        where = place(drawer.start())
        if _HEAD.search(text, at, drawer.start()):
            yield ImportProblem(where=where, what=f"comes after {_UNREADABLE}")
        at = drawer.end()
        words = "\n".join(line[2:] if line.startswith("> ") else line[1:] for line in drawer["text"].split("\n"))
        id = short_id(f"mempalace-{drawer['id'].strip()}")
        said_at = parse_time(dict(_CELL.findall(drawer["table"])), ("Filed",), skipped)
        yield as_turn(where, words, skipped, program="mempalace", said_at=said_at, id=id, session=session)
    if _HEAD.search(text, at):
        yield ImportProblem(where=place(at), what=f"has {_UNREADABLE}")


FORMAT = Format(
    title="a room of MemPalace",
    location="the folder that it exports",
    unit="text",
    matches=lambda text: bool(_ROOM.match(text) or _INDEX.match(text)),
    before=("basic-memory",),
    records=mempalace_records,
)
