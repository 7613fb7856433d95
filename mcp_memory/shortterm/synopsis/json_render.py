"""A JSON value in fewer characters and nothing left out: keys without quotes, rows of equal objects as a table.

It raises TooLong beyond its room, so the work is bounded by the length of the answer.
"""

from __future__ import annotations

import json
import re
from typing import Any, cast

from mcp_memory.shortterm.synopsis.page import one_line

__all__ = ["TooLong", "label_of", "render"]

BARE = re.compile(r"[\w.:/@+-]{1,80}\Z")
ADDRESS = re.compile(r"\w+://\S{1,200}\Z|/[\w./-]{1,200}\Z")
LABELS = ("id", "name", "title", "key", "path", "url", "file", "slug", "code", "message")
ROOM = 4_000
DEEPEST = 12


class TooLong(Exception):
    """The value does not fit."""


def render(value: Any) -> str:
    """The value on few lines, at most `ROOM` characters, or TooLong."""
    return _Pen().write(value, DEEPEST)


def label_of(row: dict[str, Any]) -> str:
    """What a person would call this object: its id, name, title … or its first string."""
    keys = {str(key).lower(): key for key in row}
    wanted = [k for name in LABELS for k in keys if k == name]
    wanted += [k for k in keys if k.endswith(("_id", "_number", "_name", "id", "name"))]
    for key in [*(keys[k] for k in wanted), *row]:
        if isinstance(row[key], (str, int)) and not isinstance(row[key], bool) and str(row[key]).strip():
            return one_line(str(row[key])[:200])
    return ""


class _Pen:
    """Counts what was written, so that nothing is rendered far beyond the room."""

    def __init__(self) -> None:
        self.room = ROOM

    def spend(self, text: str) -> str:
        self.room -= len(text)
        if self.room < 0:
            raise TooLong
        return text

    def write(self, value: Any, depth: int) -> str:
        if depth <= 0:
            raise TooLong
        match value:
            case dict():
                return self.write_object(cast("dict[str, Any]", value), depth)
            case list():
                return self.write_array(cast("list[Any]", value), depth)
            case str():
                return self.spend(_string(value))
            case int() if abs(value) >= 10**30:
                return self.spend("a very large number")
            case _:
                return self.spend(json.dumps(value))

    def write_object(self, value: dict[str, Any], depth: int) -> str:
        parts = [f"{self.spend(one_line(str(key)))}: {self.write(one, depth - 1)}" for key, one in value.items()]
        text = ""
        for part in parts:
            text += (",\n" if "\n" in text[-200:] + part else ", ") + part if text else part
        return "{" + text + "}"

    def write_array(self, value: list[Any], depth: int) -> str:
        if len(value) > 1 and all(isinstance(item, dict) for item in value[:50]):
            rows = [(f"[{at}]", cast("dict[str, Any]", i)) for at, i in enumerate(value) if isinstance(i, dict)]
            if len(rows) == len(value):
                return self.write_table(rows, depth, f"{len(rows):,}")
        if rows := _rows_of_groups(value):
            return self.write_table(rows, depth, f"{len(value):,} arrays, {len(rows):,}")
        return "[" + ", ".join(self.write(item, depth - 1) for item in value) + "]"

    def write_table(self, labelled: list[tuple[str, dict[str, Any]]], depth: int, many: str) -> str:
        """Columns once, what all rows share once, then a line for each row."""
        rows = [row for _, row in labelled]
        columns = list(dict.fromkeys(key for row in rows for key in row))
        shared = [column for column in columns if _scalar_in_all(rows, column)]
        told = [column for column in columns if column not in shared]
        lines = [f"{many} × {{{', '.join(self.column(rows, column) for column in told)}}}"]
        if shared:
            lines[0] += ", in all: " + ", ".join(f"{c} {self.write(rows[0][c], 1)}" for c in shared)
        for label, row in labelled if told else ():
            cells = [self.cell(rows, column, row[column], depth - 1) if column in row else "" for column in told]
            lines.append(f"{label} {', '.join(cells)}")
        return "\n".join(lines)

    def column(self, rows: list[dict[str, Any]], name: str) -> str:
        """A column's name; of equal small objects also the names inside, which the cells then leave out."""
        inner = _inner_keys(rows, name)
        return self.spend(f"{name} ({'/'.join(inner)})" if inner else name)

    def cell(self, rows: list[dict[str, Any]], column: str, value: Any, depth: int) -> str:
        if _inner_keys(rows, column):
            inner = cast("dict[str, Any]", value).values()
            return self.spend("/".join(_string(v) if isinstance(v, str) else json.dumps(v) for v in inner))
        return self.write(value, depth)


def _string(value: str) -> str:
    return one_line(value) if BARE.match(value) or ADDRESS.match(value) else f'"{one_line(value)}"'


def _rows_of_groups(value: list[Any]) -> list[tuple[str, dict[str, Any]]]:
    """The rows of an array of arrays of objects, labelled `[1][0]`; empty where it is something else."""
    groups = [cast("list[Any]", item) for item in value if isinstance(item, list) and item]
    if len(groups) < 2 or len(groups) < len(value):
        return []
    if not all(isinstance(one, dict) for group in groups for one in group):
        return []
    return [
        (f"[{at}][{n}]", cast("dict[str, Any]", one)) for at, group in enumerate(groups) for n, one in enumerate(group)
    ]


def _scalar_in_all(rows: list[dict[str, Any]], column: str) -> bool:
    first = rows[0].get(column)
    if isinstance(first, (dict, list)) or first is None:
        return False
    return all(column in row and row[column] == first for row in rows)


def _inner_keys(rows: list[dict[str, Any]], column: str) -> list[str]:
    """The keys of a column of small objects, where all have the same and hold no others."""
    cells = [row.get(column) for row in rows]
    first = cells[0]
    if not isinstance(first, dict):
        return []
    keys = list(cast("dict[str, Any]", first))
    for cell in cells:
        if not isinstance(cell, dict) or list(cast("dict[str, Any]", cell)) != keys:
            return []
        if any(isinstance(inner, (dict, list)) for inner in cast("dict[str, Any]", cell).values()):
            return []
    return keys if 0 < len(keys) <= 6 else []
