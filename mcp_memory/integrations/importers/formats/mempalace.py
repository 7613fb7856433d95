"""What MemPalace exports: Markdown, a file for each room of each wing. No I/O, no state.

    # <wing> / <room>
    ## <drawer id>
    > text, each line quoted
    | Source | <file> |    | Filed | <time> |    | Added by | <who> |
    ---

As its exporter writes them, plain or as a snapshot with indexes: github.com/MemPalace/mempalace, mempalace/exporter.py
(`_write_room_markdown`). A drawer holds words of files and of conversations, verbatim, without who said them. So it is
told as a text, a turn of role `tool` in a session of its room, known again by the drawer's id.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mcp_memory.integrations.importers.formats.statements import as_turn
from mcp_memory.integrations.importers.formats.told import LONGEST_ID, Passed, Told, Unfit, Wrong, moment

__all__ = ["is_index", "is_room", "told"]

_ROOM = re.compile(r"\A# ([^\n]+?) / ([^\n]+)\n\s*## \S")
_INDEX = re.compile(r"\A# (?:Palace Export|Snapshot Index|Wing Export|Palace Snapshot)\b")
_DRAWER = re.compile(
    r"^## (?P<id>[^\n]+)\n\n(?P<text>> ?[^\n]*(?:\n> ?[^\n]*)*)\n\n\| Field \| Value \|\n\|[-| ]+\|\n"
    r"(?P<table>(?:\|[^\n]*\|\n)*)\n---[ \t]*(?:\n|\Z)",
    re.MULTILINE,
)
_CELL = re.compile(r"^\| ([^|\n]+?) \| (.*?) \|$", re.MULTILINE)
_HEAD = re.compile(r"^## ", re.MULTILINE)


def is_room(text: str) -> bool:
    return _ROOM.match(text) is not None


def is_index(text: str) -> bool:
    """Tell whether a file only lists the others."""
    return _INDEX.match(text) is not None


def told(text: str, name: str, passed: Passed) -> Iterator[Told | Wrong]:
    """Yield the drawers of a room; `name` is its path, for people."""
    room = _ROOM.match(text)
    session = f"mempalace {room[1].strip()} - {room[2].strip()}" if room else None
    at = 0
    for found in _DRAWER.finditer(text):
        place = f"{name}, line {text.count(chr(10), 0, found.start()) + 1}"
        if _HEAD.search(text, at, found.start()):
            yield Wrong(where=place, what="comes after a drawer that cannot be read. Export the palace again.")
        at = found.end()
        fields = dict(_CELL.findall(found["table"]))
        id = f"mempalace-{found['id'].strip()}"
        try:
            yield as_turn(
                place,
                "\n".join(line[2:] if line.startswith("> ") else line[1:] for line in found["text"].split("\n")),
                passed,
                program="mempalace",
                said_at=moment(fields, ("Filed",), passed),
                id=id if len(id) <= LONGEST_ID else None,
                session=session,
            )
        except Unfit as unfit:
            yield Wrong(where=place, what=str(unfit))
    if _HEAD.search(text, at):
        line = text.count("\n", 0, at) + 1
        yield Wrong(where=f"{name}, line {line}", what="has a drawer that cannot be read. Export the palace again.")
