"""The parts of a JSON value under the names that a JSON path gives them, each with all that it says.

Bounds: `ROWS` parts, of each `LEAF_CHARS` characters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, cast

from mcp_memory.shortterm.synopsis.focus import Focus
from mcp_memory.shortterm.synopsis.gist import Piece
from mcp_memory.shortterm.synopsis.page import clean, clip, one_line
from mcp_memory.shortterm.synopsis.tables import columns_told

__all__ = ["ROWS", "columns_of", "is_prose", "parts_of", "with_addresses"]

ROWS, MANY_ROWS = 5_000, 25
LEAF_CHARS = 6_000
PROSE_CHARS = 1_500
ADDRESSES, LONGEST_ADDRESS = 2, 110
ADDRESS = re.compile(r"https?://[^\s\"'<>]+")
DIGIT = re.compile(r"\d\d")
WORD = re.compile(r"[^\W\d_]{2,}")


def parts_of(value: Any) -> Iterator[Piece]:
    """Yield the rows of arrays, and of an object each value that is no array of them."""
    whole = cast("dict[str, Any]", value) if isinstance(value, dict) else {"": value}
    at = 0
    for key, one in list(whole.items())[:ROWS]:
        items = cast("list[Any]", one) if isinstance(one, list) else []
        if items and isinstance(items[0], (dict, list)):
            for index, item in enumerate(items[: ROWS - at]):
                yield Piece(at, " ".join(_leaves(item)), f"{key}[{index}]")
                at += 1
        else:
            yield Piece(at, " ".join(_leaves(one)), clip(one_line(key), 60) or "$")
            at += 1


def is_prose(parts: Sequence[Piece]) -> bool:
    """Tell whether they hold more running text than values, as the hits of a search do."""
    told = sum(len(part.text) for part in parts)
    return told > PROSE_CHARS and sum(len(word) for part in parts for word in WORD.findall(part.text)) > 0.6 * told


def with_addresses(parts: Sequence[Piece], focus: Focus) -> Iterator[Piece]:
    """Yield the parts; the few that are nearest to what was asked with the address where they can be read."""
    ranked = sorted(parts, key=lambda part: (-focus.of(part.text), part.at))
    near = {part.at for part in ranked[:ADDRESSES]}
    for part in parts:
        found = ADDRESS.search(part.text)
        shown = found[0] if found and part.at in near and len(found[0]) <= LONGEST_ADDRESS else ""
        yield Piece(part.at, ADDRESS.sub(" ", part.text), f"{part.name} {shown}".rstrip())


def columns_of(value: Any, focus: Focus) -> list[str]:
    """Of more rows than can be shown, a line for each column; nothing for fewer."""
    held = cast("list[Any]", [value] if isinstance(value, list) else [])
    held += list(cast("dict[str, Any]", value).values()) if isinstance(value, dict) else []
    arrays = [cast("list[Any]", one)[:ROWS] for one in held if isinstance(one, list)]
    for array in arrays:
        rows = [cast("dict[str, Any]", row) for row in array if isinstance(row, dict)]
        if len(rows) == len(array) >= MANY_ROWS:
            columns = list(dict.fromkeys(key for row in rows[:200] for key in row))
            return columns_told(columns, [[_cell(row.get(column)) for column in columns] for row in rows], focus)
    return []


def _cell(value: Any) -> str:
    """A scalar as a cell of a table has it; of what is larger, how large it is."""
    if isinstance(value, (dict, list)):
        return f"{len(cast('list[Any]', value))} items"
    return "" if value is None else value[:200] if isinstance(value, str) else _number(value)


def _leaves(value: Any) -> Iterator[str]:
    """Strings and numbers at any depth, in order, up to `LEAF_CHARS` characters."""
    waiting: list[Any] = [value]
    room = LEAF_CHARS
    while waiting and room > 0:
        one = waiting.pop()
        if isinstance(one, dict):
            for key, held in reversed(cast("dict[str, Any]", one).items()):
                waiting.append(held)
                if DIGIT.search(str(key)):  # an id, not the name of a field
                    waiting.append(str(key))
        elif isinstance(one, list):
            waiting.extend(reversed(cast("list[Any]", one)))
        elif isinstance(one, str) or (isinstance(one, (int, float)) and not isinstance(one, bool)):
            text = one[:room] if isinstance(one, str) else _number(one)
            room -= len(text) + 1
            yield clean(text)


def _number(value: float) -> str:
    """Its digits; those of a very large one take too long to write."""
    return f"{value!r:.40}" if not isinstance(value, int) or abs(value) < 10**30 else "a very large number"
