"""JSON and JSON lines: the shape, and as many of the values as fit.

Bounds: up to `PARSED` characters are parsed completely; of longer, broken or deeply nested text, `SKIMMED` characters
are read by a loop that closes every open bracket, and the summary says so. At most `ROWS` parts of at most `LEAF_CHARS`
characters each are searched for key words, and named by their JSON paths.

A short value is rendered completely in fewer characters: keys without quotes, rows of equal objects as a table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, TypeAlias

from mcp_memory.shortterm.synopsis.listings import describe_columns, describe_tree
from mcp_memory.shortterm.synopsis.page import Focus, PageLine, ResultPage, clean, clip, one_line, size
from mcp_memory.shortterm.synopsis.preview import SynopsisDraft
from mcp_memory.shortterm.synopsis.rare import SHOWN, describe_row, rare_rows

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
BARE = re.compile(r"[\w.:/@+-]{1,80}\Z")
FULL_ADDRESS = re.compile(r"\w+://\S{1,200}\Z|/[\w./-]{1,200}\Z")
LABELS = ("id", "name", "title", "key", "path", "url", "file", "slug", "code", "message")
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


def label_of(row: dict[str, Json]) -> str:
    """Return a label of an object, such as its id or name, or its first string or integer; "" if it has none."""
    keys = {str(key).lower(): key for key in row}
    labels = [k for name in LABELS for k in keys if k == name]
    labels += [k for k in keys if k.endswith(("_id", "_number", "_name", "id", "name"))]
    for key in [*(keys[k] for k in labels), *row]:
        if isinstance(row[key], (str, int)) and not isinstance(row[key], bool) and str(row[key]).strip():
            return one_line(str(row[key])[:200])
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


ROWS, MANY_ROWS = 5_000, 25
LEAF_CHARS = 6_000
COLUMNS, CELL_CHARS = 40, 200
PROSE_CHARS = 1_500
ADDRESSES, LONGEST_ADDRESS = 2, 110
ADDRESS = re.compile(r"https?://[^\s\"'<>]+")
DIGIT = re.compile(r"\d\d")
WORD = re.compile(r"[^\W\d_]{2,}")


def parts_of(value: Json) -> Iterator[PageLine]:
    """Yield the rows of arrays of objects, and every other value of an object."""
    whole = value if isinstance(value, dict) else {"": value}
    at = 0
    for key, child in list(whole.items())[:ROWS]:
        items = child if isinstance(child, list) else []
        if items and isinstance(items[0], (dict, list)):
            for index, item in enumerate(items[: ROWS - at]):
                yield PageLine(at, " ".join(_leaves(item)), f"{key}[{index}]")
                at += 1
        else:
            yield PageLine(at, " ".join(_leaves(child)), clip(one_line(key), 60) or "$")
            at += 1


def is_prose(parts: Sequence[PageLine]) -> bool:
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


def columns_of(value: Json, focus: Focus) -> list[str]:
    """Return a line for each column of the first array of at least `MANY_ROWS` objects; empty if there is none."""
    for _, rows in _tables(value):
        if len(rows) >= MANY_ROWS:
            columns = list(dict.fromkeys(key for _, row in rows[:200] for key in row))
            return describe_columns(columns, [[_cell(row.get(column)) for column in columns] for _, row in rows], focus)
    return []


def rare_in(value: Json, *, torn: bool) -> Iterator[str]:
    """Yield the rows that differ from most rows of their array, each with its place and its rare values.

    If `torn`, the text is incomplete, so the last row may lack cells and is left out.
    """
    for key, labelled in _tables(value):
        flat = [dict(_flat(row)) for _, row in labelled]
        names = list(dict.fromkeys(name for row in flat[:200] for name in row))[:COLUMNS]
        cells = [[row.get(name, "") for name in names] for row in flat]
        for row in rare_rows(names, cells)[:SHOWN]:
            place, item = labelled[row.at]
            if not torn or row.at < len(cells) - 1:
                yield f"{key}{place} {describe_row(row, names, cells[row.at], label=label_of(item))}"


def _tables(value: Json) -> Iterator[tuple[str, list[tuple[str, dict[str, Json]]]]]:
    """Yield arrays (and objects) of objects with their key, each object with its place."""
    candidates = [("", value), *(value.items() if isinstance(value, dict) else ())]
    for key, child in candidates:
        if isinstance(child, dict):
            labelled = [(f".{one_line(at)}"[not key :], row) for at, row in islice(child.items(), ROWS)]
        elif isinstance(child, list):
            labelled = [(f"[{at}]", row) for at, row in enumerate(child[:ROWS])]
        else:
            continue
        rows = [(place, row) for place, row in labelled if isinstance(row, dict)]
        if rows and len(rows) == len(labelled):
            yield one_line(key), rows


def _flat(value: dict[str, Json], path: str = "", depth: int = 3) -> Iterator[tuple[str, str]]:
    """Yield the scalars of an object with their paths; deeper values and lists as text."""
    for key, child in value.items():
        if isinstance(child, dict) and depth > 1:
            yield from _flat(child, f"{path}{one_line(key)}.", depth - 1)
        elif isinstance(child, (dict, list)):
            yield f"{path}{one_line(key)}", " ".join(_leaves(child))[:CELL_CHARS]
        else:
            yield (
                f"{path}{one_line(key)}",
                one_line(_cell(child)) if not isinstance(child, bool) else str(child).lower(),
            )


def _cell(value: Json) -> str:
    """Return a scalar as a table cell, a larger value as its size."""
    if isinstance(value, (dict, list)):
        return f"{len(value)} items"
    return "" if value is None else value[:200] if isinstance(value, str) else _number(value)


def _leaves(value: Json) -> Iterator[str]:
    """Yield strings and numbers at any depth, in order, up to `LEAF_CHARS` characters."""
    waiting: list[Json] = [value]
    room = LEAF_CHARS
    while waiting and room > 0:
        node = waiting.pop()
        if isinstance(node, dict):
            for key, child in reversed(node.items()):
                waiting.append(child)
                if DIGIT.search(str(key)):  # an id instead of a field name
                    waiting.append(str(key))
        elif isinstance(node, list):
            waiting.extend(reversed(node))
        elif isinstance(node, str) or (isinstance(node, (int, float)) and not isinstance(node, bool)):
            text = node[:room] if isinstance(node, str) else _number(node)
            room -= len(text) + 1
            yield clean(text)


def _number(value: float) -> str:
    """Return the digits of a number, or a phrase for a huge number, whose digits would take too long."""
    return f"{value!r:.40}" if not isinstance(value, int) or abs(value) < 10**30 else "a very large number"


PARSED = 4_000_000
SKIMMED = 200_000
DEEPEST = 60
START = re.compile(r'\s*(?:[{\[]\s*(?:["{\[\]}\d-]|true|false|null)|"[^"\n]*"\s*$)')
TOKEN = re.compile(r'[ \t\r\n]*(?:([{}\[\],:])|"((?:[^"\\\n]|\\.)*)"|(-?\d[\d.eE+-]*|true|false|null))')
FAILED_KEYS = ("error", "errors", "message", "detail", "exception")


def describe_json(page: ResultPage, focus: Focus) -> SynopsisDraft | None:
    """Describe JSON, complete or truncated, or JSON lines; None for anything else."""
    if not START.match(page.text[:400]):
        return None
    kind, problem = "json", ""
    if (value := _load(page.text)) is _NOTHING:
        rows = _load_lines(page.text)
        if rows:
            kind, value = "jsonl", rows
            problem = "" if len(page.text) <= PARSED else f"the first {len(rows):,} lines were read"
        else:
            value, problem = _skim(page.text, page)
            if value is _NOTHING:
                return None
    if (tree := describe_tree(value, focus)) and not problem:
        return replace(tree, content_type="application/json")
    parts = tuple(parts_of(value))
    prose = is_prose(parts)
    rare = [] if prose else list(rare_in(value, torn=bool(problem)))
    facts_first = [f"not whole: {problem}"] if problem else []
    facts_first += rare
    facts_first += ["\n".join(columns)] if not prose and (columns := columns_of(value, focus)) else []
    summary = _summary(value, focus, kind, f"JSON ({problem})" if problem else "JSON", by_label=prose)
    return SynopsisDraft(
        kind=kind,
        content_type="application/json" if kind == "json" else "application/jsonl",
        summary="; unlike the rest: ".join([summary, *rare[:1]]),
        use="text" if prose else "data",
        score=3 if problem else 5 if page.chars > 4_000 else 6,
        facts=tuple(facts_first),
        form=render(value),
        pieces=tuple(with_addresses(parts, focus)) if prose else parts,
        parts=True,
    )


_NOTHING: Any = object()


def _load(text: str) -> Json:
    if len(text) > PARSED:
        return _NOTHING
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _NOTHING


def _load_lines(text: str) -> list[Json]:
    """Return the values of JSON lines; empty unless there are at least two and all, or all but the last, parse."""
    rows: list[Json] = []
    pieces = text[:PARSED].split("\n")
    for at, piece in enumerate(pieces[:ROWS]):
        if not piece.strip():
            continue
        row = _load(piece) if piece.lstrip()[:1] in "{[" else _NOTHING
        if row is _NOTHING:
            if at < len(pieces) - 1:
                return []
            break  # a torn last line
        rows.append(row)
    return rows if len(rows) > 1 else []


def _skim(text: str, page: ResultPage) -> tuple[Json, str]:
    """Read tokens until an error, then close all open brackets.

    Return the value, `_NOTHING` if too little was read, and the problem.
    """
    holder: list[Json] = []
    stack: list[dict[str, Json] | list[Json]] = [holder]
    key: str | None = None
    read = at = 0
    end = min(len(text), SKIMMED)
    problem = "" if end == len(text) else f"only the first {size(end)} of {size(len(text))} read"
    while stack and (token := TOKEN.match(text, at, end)):
        at, read = token.end(), read + 1
        mark, string, other = token.groups()
        if mark in ("}", "]"):
            stack.pop()
            if len(stack) == 1:
                break
            continue
        if mark in (",", ":"):
            continue
        value: Json = {} if mark == "{" else [] if mark == "[" else string if other is None else _scalar(other)
        top = stack[-1]
        if isinstance(top, dict):
            if key is None and string is not None:
                key = string
                continue
            top[key or ""] = value
            key = None
        else:
            top.append(value)
        if isinstance(value, (dict, list)):
            stack.append(value)
            if len(stack) > DEEPEST:
                problem = f"nested deeper than {DEEPEST} levels"
                break
    rest = text[at:end].strip()
    if len(stack) == 1 and rest:
        problem = "text follows the JSON"
    elif not problem:
        where = text.count("\n", 0, at) + (page.lines[0].number if page.lines else 1)
        problem = f"{'cut off' if len(rest) < 2_000 and text.endswith(rest) else 'not valid'} after line {where}"
    too_deep = len(stack) > DEEPEST
    if read < 6 or not holder or (rest and len(stack) > 1 and at < end // 4 and not too_deep):
        return _NOTHING, problem
    return holder[0], problem


def _scalar(text: str) -> Json:
    named = {"true": True, "false": False, "null": None}
    return named.get(text, text)


def _summary(value: Json, focus: Focus, kind: str, title: str, *, by_label: bool) -> str:
    if isinstance(value, list):
        items = value
        noun = "lines" if kind == "jsonl" else "items"
        inner = [child for item in items[:200] if isinstance(item, list) for child in item[:20]]
        rows = [child for child in items + inner if isinstance(child, dict)]
        if not rows:
            return f"{title}: {len(items):,} {noun}: {clip(', '.join(_short(item) for item in items[:12]), 120)}"
        labels = [label for row in rows[:200] if (label := label_of(row))]
        shown = focus.best(dict.fromkeys(labels), 6)
        if not shown or not by_label:
            return f"{title}: {len(items):,} {noun} with {clip(', '.join(str(key) for key in rows[0]), 80)}"
        return f"{title}: {len(items):,} {noun}: {clip(', '.join(clip(label, 60) for label in shown), 120)}"
    if isinstance(value, dict):
        return clip(f"{title}: " + ", ".join(_parts(value, focus)), 190)
    return f"{title}: {_short(value)}"


def _parts(value: dict[str, Json], focus: Focus) -> Iterator[str]:
    """Yield up to nine keys with short values, errors first; keys that match the call are preferred."""
    keys = list(value)
    ranked = sorted(keys[:200], key=lambda k: (str(k).lower() not in FAILED_KEYS, -focus.of(f"{k}"), keys.index(k)))
    for key in sorted(ranked[:9], key=lambda k: (str(k).lower() not in FAILED_KEYS, keys.index(k))):
        child = value[key]
        if isinstance(child, (dict, list)):
            sized = child
            strings = (
                ", ".join(_short(v) for v in sized.values() if isinstance(v, str)) if isinstance(sized, dict) else ""
            )
            if str(key).lower() in FAILED_KEYS and strings:
                yield f"{key} {clip(strings, 120)}"
            else:
                yield f"{len(sized):,} {key}" if isinstance(child, list) else key
        else:
            yield f"{key} {_short(child)}"


def _short(value: Json) -> str:
    if isinstance(value, (dict, list)):
        return "{…}" if isinstance(value, dict) else "[…]"
    return clip(one_line(value if isinstance(value, str) else json.dumps(value)), 40)
