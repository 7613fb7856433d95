"""Statements about tables: counts of values, ranges, rows that differ from the others.

All values are read, once each; only the comparison of rows with each other is limited, to the first `MOST_ROWS`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile

from mcp_memory.shortterm.synopsis.diagnostics import PART
from mcp_memory.shortterm.synopsis.page import Focus, clip, clip_start, counted, one_line
from mcp_memory.shortterm.synopsis.rare import NUMBER, describe_row, number_in, rare_rows
from mcp_memory.shortterm.synopsis.signals import TOTAL, TROUBLE
from mcp_memory.shortterm.synopsis.statements import Statement
from mcp_memory.shortterm.synopsis.tables import CELL, NAMES, Table, last_part

MOST_ROWS = 5_000
FEW_ROWS, LONG_START = 4, 12
"""Tables of at most this many rows are described row by row."""
LINE, SHAPE, COUNTS = 200, 110, 120
"""Characters of the longest statement, of the names of a table's columns, and of counts of values."""
LABEL = re.compile(
    r"(?:^|[._-])(?:id|name|title|key|path|file|slug|code|rule\w*|message|label|subject|reason|kind)$", re.I
)
"""Fields that name something, or say what happened."""
STATE = re.compile(
    r"(?:message|text|reason|status|state|conclusion|level|severity|phase|error|output|result|details?)$", re.I
)
"""Fields in which words of trouble are what they say."""
MEASURE = re.compile(r"(?:time|stamp|date|created|updated|_at|uid|hash|etag|version)\b|At$", re.I)
"""Fields that differ from row to row without telling much."""


def statements_about(tables: Sequence[Table], focus: Focus) -> Iterator[Statement]:
    """Yield what can be said about the tables."""
    place = 0.0
    for table in tables:
        about = _of_one(table, focus) if table.rows <= 1 else _of_rows(table, focus)
        for statement in about:
            place += 1
            yield Statement(statement.text, statement.worth, place, statement.group)


def leaves_of(tables: Sequence[Table]) -> int:
    """Return the number of plain values in the tables."""
    cells = sum(len(cells) for table in tables for cells in table.columns.values())
    return cells + sum(len(values) for table in tables for values in table.lists.values())


def _of_one(table: Table, focus: Focus) -> Iterator[Statement]:
    """Yield the values of a single object: for each object in it a line with its fields, and single fields."""
    title = f"{table.path}." if table.path else ""
    siblings = Counter(name.rpartition(".")[0] for name in table.columns)
    for name, keys in table.objects.items():
        if len(keys) < 2 or name.count(".") > 2:
            continue
        inside = f"{name}." if name else ""
        values = [(key, table.columns.get(inside + key, {}).get(0)) for key in keys]
        pairs = [key if value is None else f"{key} {clip(one_line(value), 32) or 'empty'}" for key, value in values]
        numbers = sum(1 for _, value in values if value is not None and NUMBER.match(value))
        yield Statement(
            clip(f"{title}{name}: {', '.join(pairs)}".removeprefix(": "), LINE),
            (2.6 if numbers >= 3 else 1.8 if not name else 1.3) / (1 + 0.4 * name.count(".")) * _asked(focus, name),
            group=("keys", ""),
        )
        if len(keys) > 12:
            yield Statement(f"{title}{name or 'object'}: {len(keys):,} keys", 1.6 if not name else 1.0)
    for name, cells in table.columns.items():
        value, outer = next(iter(cells.values()), ""), name.rpartition(".")[0]
        if value and (siblings[outer] > 8 or len(value) > 32):  # else the line of its object shows it
            shown = clip(one_line(value), 150)
            yield Statement(
                f"{title}{name}: {shown}" if name else shown,
                _worth_of_value(name, value, siblings[outer]) * _asked(focus, f"{name} {value}"),
                group=("values", outer),
            )
    yield from _of_lists(table, focus)


def _worth_of_value(name: str, value: str, siblings: int) -> float:
    worth = 1.6 / (1 + 0.5 * name.count(".")) * min(1.0, (8 / siblings) ** 0.5)
    if TROUBLE.search(value) or TROUBLE.search(name):
        worth *= 1.5
    if TOTAL.search(name):
        worth *= 1.5
    if value.startswith("http") or (len(value) > 30 and " " not in value) or MEASURE.search(name):
        worth *= 0.5
    return worth * (0.6 if value in ("true", "false", "null") else 1.0)


def _of_lists(table: Table, focus: Focus) -> Iterator[Statement]:
    for name, values in table.lists.items():
        title = f"{table.path}.{name}".strip(".") or "list"
        if not values:
            yield Statement(f"{title}: empty", 0.6)
            continue
        worth = 1.4 / (1 + 0.5 * title.count("."))
        yield Statement(f"{title}: {len(values):,} values: {_values(values, focus)}", worth * _asked(focus, title))


def _values(values: Sequence[str], focus: Focus) -> str:
    """Return values with their counts, or the first and last of values that do not repeat."""
    counts = Counter(values)
    if len(counts) <= 0.6 * len(values):
        return counted(counts, 6, lambda value: clip(one_line(value), 50) or "empty")
    common = _common_start(values)
    texts = [(clip_start if "/" in value else clip)(one_line(value[common:]), 40) for value in values]
    if len(texts) <= 6:
        return ", ".join(texts)
    near = focus.nearest(dict.fromkeys(texts[4:-1]))[:2]
    return ", ".join([*texts[:4], *near]) + f" … {texts[-1]}"


def _common_start(values: Sequence[str]) -> int:
    """Return the length of the folders that all values begin with, if it is long."""
    first, last = min(values), max(values)
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False)))
    length = max(first.rfind("/", 0, shared), first.rfind("\\", 0, shared)) + 1
    return length if length > LONG_START else 0


def _asked(focus: Focus, text: str) -> float:
    return 1.0 + min(1.0, focus.of(text) / 3)


def _of_rows(table: Table, focus: Focus) -> Iterator[Statement]:
    """Yield what the rows have in common, the ranges and counts of their values, and the rows that differ."""
    many, title = table.rows, table.path.removesuffix("[]") or "rows"
    depth = 1.0 / (1 + 0.35 * max(0, table.depth - 1))
    own = list(dict.fromkeys(name.split(".")[0] for name in [*table.columns, *table.lists] if name))
    yield Statement(clip(f"{title}: {many:,} rows with {', '.join(own)}", SHAPE), 2.2 * depth)
    if len(table.labels) == many:
        table.columns = {"key": table.labels, **table.columns}
    label = table.name_column()
    labels = _labels(table, label)
    if many <= FEW_ROWS:
        for at in range(many):
            cells = [
                f"{name} {clip(one_line(c[at]), 60)}"
                for name, c in table.columns.items()
                if c.get(at) and not MEASURE.search(name)
            ]
            yield Statement(clip(f"{title}[{at}]: {', '.join(cells)}", LINE), 1.8 * depth, group=("rows", title))
    for name, cells in table.columns.items():
        yield from _of_column(table, name, cells, {} if name == label else labels, focus, depth)
    yield from _of_lists(table, focus)
    names = [name for name in table.columns if not MEASURE.search(name)][:40]
    rows = [[one_line(table.columns[name].get(at, "")[:CELL]) for name in names] for at in range(min(many, MOST_ROWS))]
    for row in rare_rows(names, rows)[:6]:
        shown = describe_row(row, names, rows[row.at], label=labels.get(row.at, ""))
        yield Statement(f"{title}[{row.at}] {shown}", 1.9 * depth, group=("rare", title))


def _labels(table: Table, label: str) -> dict[int, str]:
    """Return what the rows are called, after the row that they are inside of if they have no name of their own."""
    labels = {at: clip(one_line(text), 60) for at, text in table.columns.get(label, {}).items()}
    if table.outer is None or (label and NAMES[0].fullmatch(last_part(label))):
        return labels
    outer, name = table.outer, table.outer.name_column()
    if not name or not NAMES[0].fullmatch(last_part(name)):
        return labels
    inside = {at: clip(one_line(outer.columns[name].get(row, "")), 50) for at, row in table.inside.items()}
    return {at: f"{inside.get(at, '')} {labels.get(at, '')}".strip() for at in range(table.rows)}


def _of_column(
    table: Table, name: str, cells: dict[int, str], labels: Mapping[int, str], focus: Focus, depth: float
) -> Iterator[Statement]:
    filled = {at: value for at, value in cells.items() if value != ""}
    if not filled:
        return
    title = f"{table.path.removesuffix('[]')}.{name}".strip(".")
    counts = Counter(filled.values())
    ranked = counts.most_common()
    some = f" in {len(filled):,}" if len(filled) < table.rows else ""
    worth = (1.5 if LABEL.search(name) else 1.0) * depth * _asked(focus, name) / (1 + 0.15 * name.count("."))
    worth *= (len(filled) / table.rows) ** 0.5
    if MEASURE.search(name):
        worth *= 0.5
    if len(counts) == 1:
        yield Statement(f"{title}: {clip(one_line(ranked[0][0]), 90)}{some or ' in all'}", 0.7 * worth)
    elif _is_numeric(filled) and len(counts) > 6:
        if labels and not NAMES[1].fullmatch(last_part(name)):
            yield _range(title, filled, labels, 1.3 * worth, group=("range", table.path))
    elif len(counts) <= 6 or (ranked[0][1] >= 3 and len(counts) <= 0.5 * len(filled)):
        texts = [f"{clip(one_line(value), 60)} ×{n:,}" for value, n in ranked[:12]]
        many = how_many_fit(texts, COUNTS - len(title))
        values = counted(counts, many, lambda value: clip(one_line(value), 60))
        covered = sum(n for _, n in ranked[:many]) / len(filled)
        yield Statement(f"{title}{some}: {values}", 1.1 * worth * (1 + covered), group=("counts", table.path))
        rest = ranked[many:] if STATE.search(name) else []
        for value, n in [(value, n) for value, n in rest if TROUBLE.search(value[:CELL])][:8]:
            yield Statement(f"{title}: {clip(one_line(value), 140)} ×{n:,}", 1.5 * worth, group=("trouble", title))
    elif labels and sum(value.count(" ") for value in filled.values()) >= 2 * len(filled):
        yield from _of_texts(title, filled, worth)
    else:
        yield Statement(
            clip(f"{title}: {_values(list(filled.values()), focus)}", LINE),
            (0.9 if labels else 1.5) * worth,
            group=("values", table.path),
        )


def how_many_fit(texts: Sequence[str], room: int) -> int:
    """Return how many of the first texts fit into `room` characters, with commas; at least one."""
    for count in range(1, len(texts)):
        room -= len(texts[count - 1]) + 2
        if room < len(texts[count]):
            return count
    return len(texts)


def _is_numeric(filled: Mapping[int, str]) -> bool:
    values = list(filled.values())
    if not all(NUMBER.match(value) for value in values[:20]):
        return False
    units = {value.lstrip("+-$€£0123456789., ") for value in values}
    return len(units) == 1 and all(map(NUMBER.match, values))


def _range(title: str, filled: Mapping[int, str], labels: Mapping[int, str], worth: float, group: object) -> Statement:
    """Return the least and the greatest number of a column, with the names of their rows."""
    numbers = {at: number_in(value) for at, value in filled.items()}
    ordered = sorted(numbers, key=numbers.__getitem__)
    names = [f"{filled[at]} ({labels[at]})" if labels.get(at) else filled[at] for at in (ordered[0], *ordered[:-4:-1])]
    skewed = labels and numbers[ordered[-1]] > 4 * abs(numbers[ordered[len(ordered) // 2]])
    text = f"{title}: {names[0]} to {names[1]}" + (f", {', '.join(names[2:])}" if skewed else "")
    return Statement(clip(text, LINE), worth * (1.4 if labels else 1.0), group=group)


def _of_texts(title: str, filled: Mapping[int, str], worth: float) -> Iterator[Statement]:
    """Yield the patterns of texts, each with its first text and its count."""
    forms: dict[str, list[str]] = {}
    for value in filled.values():
        forms.setdefault(PART.sub("…", value[:CELL]), []).append(value)
    ranked = sorted(forms.values(), key=lambda texts: (not TROUBLE.search(texts[0][:CELL]), -len(texts)))
    for texts in ranked[:12]:
        same = all(text == texts[0] for text in texts)
        times = "" if len(texts) == 1 else f" ×{len(texts):,}" if same else f" ({len(texts):,} alike)"
        factor = 1.4 if TROUBLE.search(texts[0][:CELL]) else 0.8
        yield Statement(f"{title}: {clip(one_line(texts[0]), 130)}{times}", factor * worth, group=("texts", title))
