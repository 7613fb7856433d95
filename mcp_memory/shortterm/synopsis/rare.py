"""Finds unusual rows: the two jobs that failed, the pod that restarts, an amount ten times larger than all others.

Works on rows of cells from any format. A row is rare because of a value that few rows have in a column with few
different values, of a cell that few rows fill (or leave empty), or of a number far outside the range of other numbers.
A column in which too many rows differ (ids, free text, a long tail of numbers) is ignored. Each column is read once,
and sorted once if it has numbers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import quantiles

from mcp_memory.shortterm.synopsis.page import clip

LEAST_ROWS = 8
"""With fewer rows, none is rare."""
FEW = 0.05
"""A value is rare if at most this share of the rows, or a single row, has it."""
KINDS = 12
"""With more different values, a column has no common value."""
FAR = 5.0
"""An outlier is beyond the quartiles by this many interquartile ranges."""
NUMBER = re.compile(r"[-+]?[$€£]?\d[\d,]*(?:\.\d+)?(?: ?(?:%|[A-Za-zµ][A-Za-z/]{0,4}))?$")
NOT_OF_NUMBER = re.compile(r"[^\d.+-]")
SHOWN = 5
CELL = 100


@dataclass(frozen=True, slots=True)
class RareRow:
    at: int
    columns: tuple[int, ...]
    """Columns whose cell is rare in this row."""


def rare_rows(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[RareRow]:
    """Return the rare rows, those with the most rare cells first."""
    if len(rows) < LEAST_ROWS:
        return []
    odd: dict[int, list[int]] = {}
    for column in range(len(columns)):
        for at in _rare_in([row[column] if column < len(row) else "" for row in rows]):
            odd.setdefault(at, []).append(column)
    rare = [RareRow(at, tuple(where)) for at, where in odd.items()]
    return sorted(rare, key=lambda row: (-len(row.columns), row.at))


def describe_row(row: RareRow, columns: Sequence[str], cells: Sequence[str], *, label: str) -> str:
    """Return the rare cells of a row with their column names, after the row's label unless a cell repeats it."""
    values = [cells[at] if at < len(cells) else "" for at in row.columns]
    rare = [f"{columns[at]} {clip(cell, CELL) or 'empty'}" for at, cell in zip(row.columns, values, strict=True)]
    return ", ".join([*([clip(label, CELL)] if label and label not in values else []), *rare])


def number_in(cell: str) -> float:
    """Return the number in a cell that matches `NUMBER`."""
    return float(NOT_OF_NUMBER.sub("", cell)[:300])


def _rare_in(cells: Sequence[str]) -> list[int]:
    """Return the places of rare cells in a column."""
    most = max(1, int(FEW * len(cells)))
    filled = [at for at, cell in enumerate(cells) if cell]
    if len(filled) <= most:
        return filled
    counts = Counter(cells)
    if 1 < len(counts) <= KINDS and counts.most_common(1)[0][1] > 2 * most:
        rare = {cell for cell, n in counts.items() if n <= most}
        places = [at for at, cell in enumerate(cells) if cell in rare]
        return places if len(places) <= 2 * most else []
    if len(filled) < len(cells) <= len(filled) + most:
        return [at for at, cell in enumerate(cells) if not cell]
    numbers = {at: number_in(cells[at]) for at in filled if NUMBER.match(cells[at])}
    return _far_out(numbers, most) if len(numbers) > 0.9 * len(filled) and len(numbers) >= LEAST_ROWS else []


def _far_out(numbers: dict[int, float], most: int) -> list[int]:
    low, _, high = quantiles(numbers.values(), n=4)
    reach = FAR * (high - low)
    outliers = [at for at, value in numbers.items() if not low - reach <= value <= high + reach]
    return outliers if len(outliers) <= most else []
