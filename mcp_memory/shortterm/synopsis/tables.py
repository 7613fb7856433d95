"""Tabular text: CSV, TSV, pipe tables (Markdown, psql) and columns aligned by spaces.

Gives columns with their range or their commonest values, the number of rows, the first and last rows, and rows
that the call asked for. Reads the lines of the page.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from mcp_memory.shortterm.synopsis.page import Focus, PageLine, ResultPage, clip, listed
from mcp_memory.shortterm.synopsis.preview import SynopsisDraft

GAP = re.compile(r" {2,}|\t+")
RULE = re.compile(r"[\s|+:=─━┼│-]*[-=─━]{3,}[\s|+:=─━┼│-]*$")
NUMBER = re.compile(r"[-+]?[$€£]?\d[\d,]*(?:\.\d+)?%?$")
COLUMN = re.compile(r"[A-Za-z#%@][\w %()/.#@-]{0,40}$")
CODE_END = re.compile(r"[;{}]\s*$")
TYPES = {",": "text/csv", "\t": "text/tab-separated-values"}


@dataclass(frozen=True, slots=True)
class TextTable:
    content_type: str
    columns: list[str]
    rows: list[list[str]]
    at: list[int]
    """Raw line of each row."""


def describe_table(page: ResultPage, focus: Focus) -> SynopsisDraft | None:
    """Nearly all sampled lines split into the same number of cells."""
    if len(page.sample) < 3 or sum(1 for line in page.sample if CODE_END.search(line.text)) > 0.2 * len(page.sample):
        return None
    table = _piped(page) or _delimited(page, "\t") or _delimited(page, ",") or _delimited(page, ";") or _aligned(page)
    if table is None or len(table.rows) < 2:
        return None
    more = "" if page.whole else " read"
    named = [clip(name, 30) for name in table.columns if name]
    asked = focus.nearest(range(len(table.rows)), lambda at: " ".join(table.rows[at]))
    odd = _odd_rows(table)
    why, at = ("such as", asked[0]) if asked else ("unlike the rest", odd[0]) if odd else ("first", 0)
    row = ", ".join(cell for cell in table.rows[at] if cell)
    facts = [f"{len(table.rows):,} rows{more}, {len(table.columns)} columns"]
    facts += columns_told(table.columns, table.rows, focus)
    return SynopsisDraft(
        kind="table",
        edges=True,
        content_type=table.content_type,
        summary=f"table of {len(table.rows):,} rows{more}: {listed(named, 8)}; {why}: {clip(row, 90)}",
        score=4,
        facts=("\n".join(facts),),
        picks=dict.fromkeys(table.at[1:200], 0.1) | {table.at[i]: 2.0 for i in odd[:20]},
    )


def _odd_rows(table: TextTable) -> list[int]:
    """Rows with a value that is nearly alone in a column of few values: the pod that crashes, the order refunded."""
    if len(table.rows) < 5:
        return []
    odd: list[int] = []
    for column in range(len(table.columns)):
        counts = Counter(row[column] for row in table.rows if column < len(row))
        if 1 < len(counts) <= 8:
            rare = {value for value, n in counts.items() if n == 1 or n <= 0.02 * len(table.rows)}
            odd += [i for i, row in enumerate(table.rows) if column < len(row) and row[column] in rare]
    return [i for i, _ in Counter(odd).most_common()]


def _delimited(page: ResultPage, mark: str) -> TextTable | None:
    """CSV and its kin; the first line names the columns unless it has numbers in it."""
    need = 3 if mark in ",;" else 2
    counts = Counter(line.text.count(mark) for line in page.sample)
    cells, agree = counts.most_common(1)[0]
    quoted = any('"' in line.text for line in page.sample)
    if cells + 1 < need or agree < (0.5 if quoted else 0.85) * len(page.sample):
        return None
    reader = csv.reader((line.text for line in page.lines), delimiter=mark)
    rows: list[list[str]] = []
    at: list[int] = []
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                rows.append([cell.strip() for cell in row])
                at.append(page.lines[reader.line_num - 1].number)
    except csv.Error:
        return None
    width = Counter(map(len, rows)).most_common(1)[0]
    if width[0] < need or width[1] < 0.85 * len(rows):
        return None
    while len(rows[0]) != width[0]:  # a title above the table
        del rows[0], at[0]
    if sum(1 for line in page.sample if line.text[:1] in " \t") > 0.2 * len(page.sample) and mark != "\t":
        return None
    if mark == "," and sum(map(len, rows[len(rows) // 2])) > 60 * width[0]:  # sentences with commas
        return None
    content_type = TYPES.get(mark, "text/csv")
    if len(rows) < 2:
        return None
    if any(NUMBER.match(cell) for cell in rows[0]) or len(set(rows[0])) < len(rows[0]):
        return TextTable(content_type, [f"column {n + 1}" for n in range(len(rows[0]))], rows, at)
    return TextTable(content_type, rows[0], rows[1:], at[1:])


def _piped(page: ResultPage) -> TextTable | None:
    lines = [line for line in page.lines if line.text.count("|") + line.text.count("│") >= 1 or RULE.match(line.text)]
    filled = sum(1 for line in page.lines if line.text.strip())
    if len(lines) < 3 or len(lines) < 0.8 * filled or not any(RULE.match(line.text) for line in page.sample):
        return None
    lines = [line for line in lines if not RULE.match(line.text)]
    texts = [line.text.replace("│", "|").strip() for line in lines]
    rows = [[cell.strip() for cell in text.removeprefix("|").removesuffix("|").split("|")] for text in texts]
    width = Counter(map(len, rows)).most_common(1)
    if not width or width[0][0] < 2 or width[0][1] < 0.8 * len(rows):
        return None
    return TextTable("text/plain", rows[0], rows[1:], [line.number for line in lines[1:]])


def _aligned(page: ResultPage) -> TextTable | None:
    """Columns that begin where the words of the header begin, as `ps`, `docker ps` or `pip list` print them."""
    lines = [line for line in page.lines if line.text.strip() and not RULE.match(line.text)]
    if len(lines) < 3 or lines[0].text[:1].isspace():
        return None
    starts = [0, *(m.end() for m in GAP.finditer(lines[0].text.rstrip()))]
    if len(starts) < 2 or len(starts) > 40 or not _upright(lines[:60], starts):
        return None
    spans = list(zip(starts, [*starts[1:], None], strict=True))
    names, *rows = [[line.text[start:end].strip() for start, end in spans] for line in lines]
    if not all(COLUMN.match(name) for name in names):
        return None
    return TextTable("text/plain", names, rows, [line.number for line in lines[1:]])


def _upright(lines: Sequence[PageLine], starts: list[int]) -> bool:
    """True where nearly every line has white space just before nearly every column."""
    fits = 0
    for line in lines[1:]:
        text = line.text.ljust(starts[-1] + 1)
        fits += all(text[s - 1].isspace() for s in starts[1:]) and not text[0].isspace()
    return fits >= 0.9 * (len(lines) - 1)


def columns_told(columns: Sequence[str], rows: Sequence[Sequence[str]], focus: Focus) -> list[str]:
    """A line for each of the first thirty columns: its range, its values with their counts, or some of them."""
    return [_column(columns, rows, at, focus) for at in range(min(30, len(columns)))]


def _column(columns: Sequence[str], rows: Sequence[Sequence[str]], at: int, focus: Focus) -> str:
    cells = [row[at] for row in rows if at < len(row) and row[at]]
    name = clip(columns[at] or f"column {at + 1}", 40)
    empty = len(rows) - len(cells)
    gaps = f", {empty:,} empty" if empty else ""
    if not cells:
        return f"  {name}: empty"
    if sum(1 for cell in cells if NUMBER.match(cell)) > 0.9 * len(cells):
        values = sorted((_value(cell), cell) for cell in cells if NUMBER.match(cell))
        return f"  {name}: {clip(values[0][1], 24)} to {clip(values[-1][1], 24)}{gaps}"
    counts = Counter(cells)
    if len(counts) <= 8 and len(counts) < len(cells):
        told = ", ".join(f"{clip(cell, 24)} {n:,}" for cell, n in counts.most_common())
    elif cells == sorted(cells):
        told = f"{clip(cells[0], 30)} … {clip(cells[-1], 30)}, sorted"
    else:
        some = ", ".join(clip(cell, 24) for cell in focus.best(counts, 3))
        told = f"{len(counts):,} different, such as {some}"
    return f"  {name}: {told}{gaps}"


def _value(cell: str) -> float:
    return float(re.sub(r"[^\d.+-]", "", cell)[:300])
