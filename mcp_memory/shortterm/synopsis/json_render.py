"""A JSON value in few characters: keys without quotes, rows of equal objects as a table, long parts counted.

`render` at several `LIMITS` gives the same value in several lengths; each raises TooLong beyond its room, so the
work is bounded by the length of the answer.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, cast

from mcp_memory.shortterm.synopsis.focus import Focus
from mcp_memory.shortterm.synopsis.page import clip, one_line

__all__ = ["LIMITS", "Limits", "TooLong", "label_of", "render"]

BARE = re.compile(r"[\w.:/@+-]{1,80}\Z")
ADDRESS = re.compile(r"\w+://\S{1,200}\Z|/[\w./-]{1,200}\Z")
LABELS = ("id", "name", "title", "key", "path", "url", "file", "slug", "code", "message")
ROOM = 6_000


class TooLong(Exception):
    """The value does not fit at these limits."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of each part is written out."""

    chars: int
    """Of a string."""
    items: int
    """Of an object or an array."""
    depth: int


LIMITS = tuple(
    Limits(chars, items, depth)
    for chars, items, depth in (
        *((600, 200, 8), (240, 60, 8), (120, 40, 8), (120, 30, 8), (80, 24, 8), (80, 20, 8), (60, 16, 8), (60, 13, 7)),
        *((60, 10, 7), (40, 8, 6), (40, 6, 6), (30, 5, 5), (24, 4, 4), (16, 3, 3), (12, 2, 2), (12, 2, 1)),
    )
)
"""Longest first; items go down in small steps, so that little of a budget is left unused."""


def render(value: Any, limits: Limits, focus: Focus) -> str:
    """The value on few lines, at most `ROOM` characters, or TooLong."""
    return _Pen(limits, focus).write(value, limits.depth)


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

    def __init__(self, limits: Limits, focus: Focus) -> None:
        self.limits, self.focus, self.room = limits, focus, ROOM

    def spend(self, text: str) -> str:
        self.room -= len(text)
        if self.room < 0:
            raise TooLong
        return text

    def write(self, value: Any, depth: int) -> str:
        match value:
            case dict():
                return self.write_object(cast("dict[str, Any]", value), depth)
            case list():
                return self.write_array(cast("list[Any]", value), depth)
            case str():
                return self.spend(self.write_string(value))
            case int() if abs(value) >= 10**30:
                return self.spend("a very large number")
            case _:
                return self.spend(json.dumps(value))

    def write_string(self, value: str) -> str:
        if BARE.match(value) or ADDRESS.match(value):
            return one_line(value)
        if len(value) <= 2 * self.limits.chars:  # to say how much was cut costs as much as a short rest
            return f'"{one_line(value)}"'
        shown = clip(one_line(value[: 2 * self.limits.chars]), self.limits.chars)
        return f'"{shown}" (+{len(value) - self.limits.chars:,})'

    def write_object(self, value: dict[str, Any], depth: int) -> str:
        if depth <= 0:
            return self.spend(f"{{{len(value):,} keys}}" if value else "{}")
        keys = self.focus.best((str(key) for key in value), self.limits.items)
        parts = [f"{self.spend(clip(one_line(key), 80))}: {self.write(value[key], depth - 1)}" for key in keys]
        if (more := len(value) - len(keys)) > 0:
            parts.append(f"… +{more:,} keys")
        text = ""
        for part in parts:
            text += (",\n" if "\n" in text[-200:] + part else ", ") + part if text else part
        self.spend("  " * len(parts))
        return "{" + text + "}"

    def write_array(self, value: list[Any], depth: int) -> str:
        if depth <= 0:
            return self.spend(f"[{len(value):,} items]" if value else "[]")
        if len(value) > 1 and all(isinstance(item, dict) for item in value[:50]):
            rows = [(f"[{at}]", cast("dict[str, Any]", i)) for at, i in enumerate(value) if isinstance(i, dict)]
            return self.write_table(rows, depth, f"{len(rows):,}")
        if rows := _rows_of_groups(value):
            return self.write_table(rows, depth, f"{len(value):,} arrays, {len(rows):,}")
        shown = [self.write(item, depth - 1) for item in value[: self.limits.items]]
        if (more := len(value) - len(shown)) > 0:
            shown.append(f"… +{more:,}")
        return "[" + ", ".join(shown) + "]"

    def write_table(self, labelled: list[tuple[str, dict[str, Any]]], depth: int, many: str) -> str:
        """Columns once, what all rows share once, then a line for each row that is shown."""
        rows = [row for _, row in labelled]
        columns = list(dict.fromkeys(key for row in rows[:200] for key in row))[:40]
        shared = [column for column in columns if _scalar_in_all(rows, column)]
        told = [column for column in columns if column not in shared]
        lines = [f"{many} × {{{', '.join(self.column(rows, column) for column in told)}}}"]
        if shared:
            lines[0] += ", in all: " + ", ".join(f"{c} {self.write(rows[0][c], 1)}" for c in shared)
        chosen = self.choose(rows) if told else []
        for at in chosen:
            cells = [self.cell(rows[at][c], depth - 1) if c in rows[at] else "" for c in told]
            lines.append(f"{labelled[at][0]} {', '.join(cells)}")
        if told and len(chosen) < len(rows):
            lines.append(f"… {len(rows) - len(chosen):,} more")
        return "\n".join(lines)

    def choose(self, rows: list[dict[str, Any]]) -> list[int]:
        """All, or the first, the last and those nearest to what was asked."""
        if len(rows) <= self.limits.items:
            return list(range(len(rows)))
        scores = [self.focus.of(" ".join(str(v)[:300] for v in row.values())) for row in rows[:2_000]]
        ranked = sorted(range(len(scores)), key=lambda i: (i not in (0, len(rows) - 1), -scores[i], i))
        return sorted(ranked[: self.limits.items])

    def column(self, rows: list[dict[str, Any]], name: str) -> str:
        """A column's name; of equal small objects also the names inside, which the cells then leave out."""
        inner = _inner_keys(rows, name)
        return self.spend(f"{name} ({'/'.join(inner)})" if inner else name)

    def cell(self, value: Any, depth: int) -> str:
        if isinstance(value, dict) and (inner := cast("dict[str, Any]", value)) and _small(inner):
            return self.spend(
                "/".join(self.write_string(v) if isinstance(v, str) else json.dumps(v) for v in inner.values())
            )
        return self.write(value, depth)


def _rows_of_groups(value: list[Any]) -> list[tuple[str, dict[str, Any]]]:
    """The rows of an array of arrays of objects, labelled `[1][0]`; empty where it is something else."""
    groups = [cast("list[Any]", item) for item in value if isinstance(item, list) and item]
    if len(groups) < 2 or len(groups) < len(value):
        return []
    if not all(isinstance(one, dict) for group in groups[:50] for one in group[:50]):
        return []
    return [
        (f"[{at}][{n}]", cast("dict[str, Any]", one))
        for at, group in enumerate(groups)
        for n, one in enumerate(group)
        if isinstance(one, dict)
    ]


def _scalar_in_all(rows: list[dict[str, Any]], column: str) -> bool:
    first = rows[0].get(column)
    if isinstance(first, (dict, list)) or first is None:
        return False
    return all(column in row and row[column] == first for row in rows)


def _small(value: dict[str, Any]) -> bool:
    return len(value) <= 6 and not any(isinstance(v, (dict, list)) for v in value.values())


def _inner_keys(rows: list[dict[str, Any]], column: str) -> list[str]:
    first = rows[0].get(column)
    if not isinstance(first, dict):
        return []
    keys = list(cast("dict[str, Any]", first))
    return keys if len(keys) <= 6 else []
