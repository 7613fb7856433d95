"""A JSON value complete, in fewer characters: keys without quotes, rows of equal objects as a table."""

from __future__ import annotations

import json
import re

from mcp_memory.shortterm.synopsis.fields import Json
from mcp_memory.shortterm.synopsis.page import one_line

BARE = re.compile(r"[\w.:/@+-]{1,80}\Z")
FULL_ADDRESS = re.compile(r"\w+://\S{1,200}\Z|/[\w./-]{1,200}\Z")
ROOM = 4_000
RENDERED_DEPTH = 12


class _TooLong(Exception):
    """The value does not fit."""


def render(value: Json) -> str:
    """Return the value on few lines, at most `ROOM` characters; "" if it does not fit."""
    try:
        return _Pen().write(value, RENDERED_DEPTH)
    except _TooLong:
        return ""


class _Pen:
    """Renders a value and counts characters, so that rendering stops when the room is used up."""

    def __init__(self) -> None:
        self.room = ROOM

    def spend(self, text: str) -> str:
        self.room -= len(text)
        if self.room < 0:
            raise _TooLong
        return text

    def write(self, value: Json, depth: int) -> str:
        if depth <= 0:
            raise _TooLong
        match value:
            case dict():
                return self.write_object(value, depth)
            case list():
                return self.write_array(value, depth)
            case str():
                return self.spend(_string(value))
            case int() if abs(value) >= 10**30:
                return self.spend("a very large number")
            case _:
                return self.spend(json.dumps(value))

    def write_object(self, value: dict[str, Json], depth: int) -> str:
        text = ""
        for key, child in value.items():
            part = f"{self.spend(one_line(str(key)))}: {self.write(child, depth - 1)}"
            text += (",\n" if "\n" in text[-200:] + part else ", ") + part if text else part
        return "{" + text + "}"

    def write_array(self, value: list[Json], depth: int) -> str:
        rows = [(f"[{at}]", item) for at, item in enumerate(value) if isinstance(item, dict)]
        if len(rows) == len(value) > 1:
            return self.write_table(rows, depth, f"{len(rows):,}")
        if rows := _rows_of_groups(value):
            return self.write_table(rows, depth, f"{len(value):,} arrays, {len(rows):,}")
        return "[" + ", ".join(self.write(item, depth - 1) for item in value) + "]"

    def write_table(self, labelled: list[tuple[str, dict[str, Json]]], depth: int, many: str) -> str:
        """Return the columns, the cells shared by all rows, then a line for each row."""
        rows = [row for _, row in labelled]
        columns = list(dict.fromkeys(key for row in rows for key in row))
        shared = [column for column in columns if _scalar_in_all(rows, column)]
        varying = [column for column in columns if column not in shared]
        lines = [f"{many} × {{{', '.join(self.column(rows, column) for column in varying)}}}"]
        if shared:
            lines[0] += ", in all: " + ", ".join(f"{c} {self.write(rows[0][c], 1)}" for c in shared)
        for label, row in labelled if varying else ():
            cells = [self.cell(rows, column, row[column], depth - 1) if column in row else "" for column in varying]
            lines.append(f"{label} {', '.join(cells)}")
        return "\n".join(lines)

    def column(self, rows: list[dict[str, Json]], name: str) -> str:
        """Return a column's name; for a column of equal small objects also their keys, which the cells then omit."""
        inner = _inner_keys(rows, name)
        return self.spend(f"{name} ({'/'.join(inner)})" if inner else name)

    def cell(self, rows: list[dict[str, Json]], column: str, value: Json, depth: int) -> str:
        if isinstance(value, dict) and _inner_keys(rows, column):
            inner = (_string(child) if isinstance(child, str) else json.dumps(child) for child in value.values())
            return self.spend("/".join(inner))
        return self.write(value, depth)


def _string(value: str) -> str:
    return one_line(value) if BARE.match(value) or FULL_ADDRESS.match(value) else f'"{one_line(value)}"'


def _rows_of_groups(value: list[Json]) -> list[tuple[str, dict[str, Json]]]:
    """Return the rows of an array of arrays of objects, labelled `[1][0]`; empty for other values."""
    groups = [item for item in value if isinstance(item, list) and item]
    if len(groups) < 2 or len(groups) < len(value):
        return []
    rows = [
        (f"[{at}][{n}]", row) for at, group in enumerate(groups) for n, row in enumerate(group) if isinstance(row, dict)
    ]
    return rows if len(rows) == sum(map(len, groups)) else []


def _scalar_in_all(rows: list[dict[str, Json]], column: str) -> bool:
    first = rows[0].get(column)
    if isinstance(first, (dict, list)) or first is None:
        return False
    return all(column in row and row[column] == first for row in rows)


def _inner_keys(rows: list[dict[str, Json]], column: str) -> list[str]:
    """Return the keys of a column of small objects; empty unless all have the same keys and no nested values."""
    cells = [row.get(column) for row in rows]
    keys = list(cells[0]) if isinstance(cells[0], dict) else []
    for cell in cells:
        if not isinstance(cell, dict) or list(cell) != keys:
            return []
        if any(isinstance(inner, (dict, list)) for inner in cell.values()):
            return []
    return keys if len(keys) <= 6 else []
