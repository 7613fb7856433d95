"""Values of structured formats as tables: rows of one kind, with a column for each field.

Every object at `products[].variants[]` is a row of one table, nested objects are columns of their row (`owner.name`),
and an object whose keys are names rather than fields is a list of rows with labels. The value itself is the only row of
the first table. Rows of CSV and other tables of text are one table too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from mcp_memory.shortterm.synopsis.page import Focus, PageLine, clean, clip, one_line
from mcp_memory.shortterm.synopsis.parsed import Json
from mcp_memory.shortterm.synopsis.rare import NUMBER

MAP_KEYS = 4
"""An object with at least so many objects in it, all with common keys, and nothing else is a list with labels."""
CELL = 200
NAMES = (
    re.compile(r"(?:full|display|file|test)?_?name|title|label|subject", re.I),
    re.compile(r"id|key|path|file|slug|code|rule\w*|\w*(?:_id|Id|Name|_name)", re.I),
    re.compile(r"\w*(?:message|text|description|summary|reason)", re.I),
)
"""Names of fields that name their object, the best first."""


@dataclass(slots=True)
class Table:
    """Rows of one kind. `columns` maps the name of a field to its values, by the number of the row."""

    path: str
    rows: int = 0
    labels: dict[int, str] = field(default_factory=dict[int, str])
    columns: dict[str, dict[int, str]] = field(default_factory=dict[str, "dict[int, str]"])
    lists: dict[str, list[str]] = field(default_factory=dict[str, "list[str]"])
    """Values of lists of plain values, of all rows together."""
    outer: Table | None = None
    inside: dict[int, int] = field(default_factory=dict[int, int])
    """The row of the outer table that each row is inside of."""
    objects: dict[str, list[str]] = field(default_factory=dict[str, "list[str]"])
    """The keys of the objects in its rows."""

    @property
    def depth(self) -> int:
        return self.path.count("[]") + self.path.count(".")

    def name_column(self) -> str:
        """Return the column that names a row best, "" if none does.

        A column called `name` is better than one called `id`, and values that differ are better than equal values.
        Without such a column it is the first with texts that nearly every row has its own of.
        """
        worths: dict[str, float] = {}
        for name, cells in self.columns.items():
            different = len(set(cells.values())) / self.rows
            rank = next((at for at, pattern in enumerate(NAMES) if pattern.fullmatch(last_part(name))), len(NAMES))
            if rank < len(NAMES) and len(cells) >= 0.5 * self.rows:
                worths[name] = (4 - rank) * different / (1 + 0.2 * name.count("."))
            elif different > 0.9 and not all(map(NUMBER.match, list(cells.values())[:20])):
                worths.setdefault("", 0.0)
                worths[name] = 0.1 / (1 + len(worths))
        return max(worths, key=worths.__getitem__, default="")


def tables_of(value: Json) -> list[Table]:
    """Return the tables of a value, the one of the value itself first."""
    tables: dict[str, Table] = {"": Table("")}
    waiting: list[tuple[Any, Table, int, str]] = [(value, tables[""], 0, "")]
    tables[""].rows = 1
    while waiting:
        node, table, row, name = waiting.pop()
        match node:
            case dict():
                fields = cast("dict[Any, Any]", node)
                if _is_map(fields):
                    inner, first = _add_rows(tables, table, row, name, len(fields))
                    inner.labels.update((first + at, one_line(str(key))[:CELL]) for at, key in enumerate(fields))
                    waiting.extend(
                        (node, inner, first + at, "") for at, node in reversed(list(enumerate(fields.values())))
                    )
                    continue
                if name or table.path == "":
                    table.objects.setdefault(name, []).extend(map(str, fields))
                for key, child in reversed(list(fields.items())):
                    waiting.append((child, table, row, f"{name}.{key}" if name else str(key)))
            case list():
                items = cast("list[Any]", node)
                if any(isinstance(item, (dict, list)) for item in items):
                    inner, first = _add_rows(tables, table, row, name, len(items))
                    if table.path:
                        table.columns.setdefault(f"number of {name}", {})[row] = str(len(items))
                    waiting.extend((item, inner, first + at, "") for at, item in reversed(list(enumerate(items))))
                else:
                    texts = [_text(item) for item in items]
                    table.lists.setdefault(name, []).extend(texts)
                    if not name:
                        table.columns.setdefault("", {})[row] = " ".join(texts)[:CELL]
            case _:
                table.columns.setdefault(name, {})[row] = _text(node)
    return list(tables.values())


def _add_rows(tables: dict[str, Table], outer: Table, row: int, name: str, count: int) -> tuple[Table, int]:
    """Add rows to the table of a field of the outer table's row; return that table and the number of the first row."""
    path = f"{outer.path}.{name}[]".lstrip(".") if name else f"{outer.path}[]"
    inner = tables.setdefault(path, Table(path))
    first = inner.rows
    inner.rows += count
    inner.outer = outer
    inner.inside.update(dict.fromkeys(range(first, inner.rows), row))
    return inner, first


def _is_map(fields: Mapping[Any, Any]) -> bool:
    """Return whether the keys of an object are names: at least a few values, all of them objects with equal keys."""
    if len(fields) < MAP_KEYS:
        return False
    keys: set[Any] | None = None
    for child in fields.values():
        if not isinstance(child, dict) or not child:
            return False
        inner = set(cast("dict[Any, Any]", child))
        keys = inner if keys is None else keys & inner
        if not keys:
            return False
    return True


def _text(value: Any) -> str:
    match value:
        case str():
            return value
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case int() if abs(value) >= 10**30:
            return "a very large number"
        case _:
            return str(value)


def last_part(name: str) -> str:
    """Return the last part of a field's path: `name` of `owner.name`."""
    return name.rsplit(".", 1)[-1]


# --- parts, for key words --------------------------------------------------------------------------

MOST_PARTS, PART_CHARS = 5_000, 6_000
PROSE_CHARS = 1_500
ADDRESSES, LONGEST_ADDRESS = 2, 110
ADDRESS = re.compile(r"https?://[^\s\"'<>]+")
DIGITS = re.compile(r"\d\d")
WORD = re.compile(r"[^\W\d_]{2,}")


def parts_of(value: Json) -> Iterator[PageLine]:
    """Yield the rows of arrays of objects, and every other value of an object."""
    whole = value if isinstance(value, dict) else {"": value}
    at = 0
    for key, child in list(whole.items())[:MOST_PARTS]:
        items = child if isinstance(child, list) else []
        if items and isinstance(items[0], (dict, list)):
            for index, item in enumerate(items[: MOST_PARTS - at]):
                yield PageLine(at, " ".join(_leaves(item)), f"{key}[{index}]")
                at += 1
        else:
            yield PageLine(at, " ".join(_leaves(child)), clip(one_line(key), 60) or "$")
            at += 1


def _leaves(value: Json) -> Iterator[str]:
    """Yield strings and numbers at any depth, in order, up to `PART_CHARS` characters."""
    waiting: list[Json] = [value]
    room = PART_CHARS
    while waiting and room > 0:
        node = waiting.pop()
        if isinstance(node, dict):
            for key, child in reversed(node.items()):
                waiting.append(child)
                if DIGITS.search(str(key)):  # an id instead of a field name
                    waiting.append(str(key))
        elif isinstance(node, list):
            waiting.extend(reversed(node))
        elif isinstance(node, str) or (isinstance(node, (int, float)) and not isinstance(node, bool)):
            text = node[:room] if isinstance(node, str) else str(node)
            room -= len(text) + 1
            yield clean(text)


def are_prose(parts: Sequence[PageLine]) -> bool:
    """Return whether the parts have more running text than values, as search hits do."""
    text_chars = sum(len(part.text) for part in parts)
    return (
        text_chars > PROSE_CHARS
        and sum(len(word) for part in parts for word in WORD.findall(part.text)) > 0.6 * text_chars
    )


def with_addresses(parts: Sequence[PageLine], focus: Focus) -> Iterator[PageLine]:
    """Yield the parts without web addresses in their text; the two most relevant parts have theirs in their name."""
    near = {part.number for part in focus.ranked(parts, lambda part: part.text)[:ADDRESSES]}
    for part in parts:
        address = ADDRESS.search(part.text)
        shown = address[0] if address and part.number in near and len(address[0]) <= LONGEST_ADDRESS else ""
        yield PageLine(part.number, ADDRESS.sub(" ", part.text), f"{part.name} {shown}".rstrip())
