"""Tables in plain text: CSV and TSV, pipe tables (Markdown, psql), and columns below a header, as `ps` prints them.

Also records of `key: value` lines that repeat, as in a scan of networks or a status of many devices.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from mcp_memory.shortterm.synopsis.tables import Table

RULE = re.compile(r"[\s|+:=─━┼│-]*[-=─━]{3,}[\s|+:=─━┼│-]*$")
NAME = re.compile(r"[A-Za-z#%@][\w%()/.#@+-]{0,40}$")
FIELD = re.compile(r"\s*(?:[*•-] )?(?P<key>[A-Za-z_][\w ./-]{0,48}?(?:\(s\))?)\s*(?::(?= |$)|=|\.{3,})\s*(?P<value>.*)")
SAMPLE = 400
MOST_FIELDS = 500


def table_in(lines: Sequence[str]) -> Table | None:
    """Return the table that nearly all lines are rows of; None if they are not."""
    filled = [line for line in lines if line.strip()]
    if len(filled) < 3:
        return None
    rows = (
        _piped(filled)
        or _delimited(filled, "\t")
        or _delimited(filled, ",")
        or _delimited(filled, ";")
        or _aligned(filled)
    )
    if not rows or len(rows) < 3:
        return None
    names, *cells = rows
    if any(re.match(r"[-+]?\d[\d.,]*$", name) for name in names) or len(set(names)) < len(names):
        names, cells = [f"column {at + 1}" for at in range(len(names))], rows
    table = Table("", rows=len(cells))
    for column, name in enumerate(names):
        values = {at: row[column] for at, row in enumerate(cells) if column < len(row)}
        table.columns[name or f"column {column + 1}"] = values
    return table


def _delimited(lines: Sequence[str], mark: str) -> list[list[str]] | None:
    sample = lines[:SAMPLE]
    cells, agree = Counter(line.count(mark) for line in sample).most_common(1)[0]
    quoted = any('"' in line for line in sample)
    if cells + 1 < (3 if mark in ",;" else 2) or agree < (0.5 if quoted else 0.9) * len(sample):
        return None
    try:
        rows = [[cell.strip() for cell in row] for row in csv.reader(lines, delimiter=mark) if row]
    except csv.Error:
        return None
    width, agree = Counter(map(len, rows)).most_common(1)[0]
    if width < 2 or agree < 0.9 * len(rows):
        return None
    if mark in ",;" and sum(len(cell) for row in rows[:SAMPLE] for cell in row) > 40 * width * len(rows[:SAMPLE]):
        return None  # sentences
    if mark != "\t" and sum(1 for line in sample if line[:1] in " \t") > 0.2 * len(sample):
        return None  # code
    while rows and len(rows[0]) != width:
        del rows[0]  # a title above the table
    return rows


def _piped(lines: Sequence[str]) -> list[list[str]] | None:
    if not any(RULE.match(line) and len(line) > 3 for line in lines[:10]):
        return None
    drawn = [line for line in lines if "|" in line or "│" in line or RULE.match(line)]
    if len(drawn) < 0.9 * len(lines):
        return None
    texts = [line.replace("│", "|").strip() for line in drawn if not RULE.match(line)]
    rows = [[cell.strip() for cell in text.removeprefix("|").removesuffix("|").split("|")] for text in texts]
    width = Counter(map(len, rows)).most_common(1)
    return rows if width and width[0][0] >= 2 and width[0][1] >= 0.9 * len(rows) else None


def _aligned(lines: Sequence[str]) -> list[list[str]] | None:
    """Split rows at white space between the names of a header, wherever nearly all rows have some.

    So a column may be aligned to the left or to the right of its name.
    """
    header, sample = lines[0].expandtabs(), [line.expandtabs() for line in lines[1 : SAMPLE + 1]]
    names = list(re.finditer(r"\S+(?: \S+)*?(?=  |$)|\S+", header.rstrip()))
    if all(" " in name[0] for name in names) or sum(len(name[0].split()) for name in names) > len(names):
        names = list(re.finditer(r"\S+", header))
    if len(names) < 3 or not all(NAME.match(name[0].replace(" ", "_")) for name in names):
        return None
    cuts: list[int] = []
    for left, right in pairwise(names):
        best, most = 0, 0.0
        for place in range(left.end(), right.start() + 1):
            free = sum(
                1 for line in sample if place >= len(line) or line[place - (place == right.start())] == " "
            ) / len(sample)
            if free > most:
                best, most = place, free
        if most < 0.9:
            return None
        cuts.append(best)
    if sum(1 for line in sample if len(line) > cuts[0]) < 0.9 * len(sample):
        return None
    return [[name[0] for name in names]] + [_cells(line.expandtabs(), cuts) for line in lines[1:]]


def _cells(line: str, cuts: Sequence[int]) -> list[str]:
    """Split a row at the cuts; a word across a cut stays whole, in the cell that has its middle."""
    ends = [0, *[_outside_word(line, cut) for cut in cuts], len(line)]
    return [" ".join(line[start:end].split()) for start, end in pairwise(ends)]


def _outside_word(line: str, cut: int) -> int:
    """Return a cut; one inside a word is moved to an end of the word, so that its middle stays on its side."""
    if len(line[cut - 1 : cut + 1].strip()) < 2:
        return cut
    start = cut - len(line[:cut].split()[-1])
    end = cut + len(line[cut:].split(None, 1)[0])
    return start if cut <= (start + end - 1) / 2 else end


def records_in(lines: Sequence[str]) -> Table | None:
    """Return records of indented `key: value` lines below lines that are not indented; None if there are none."""
    filled = [line for line in lines if line.strip()]
    heads = [at for at, line in enumerate(filled) if not line[0].isspace()]
    if not 3 <= len(heads) <= 0.4 * len(filled):
        return None
    table = Table("", rows=len(heads))
    for row, (start, end) in enumerate(zip(heads, [*heads[1:], len(filled)], strict=True)):
        table.labels[row] = filled[start].strip()
        for line in filled[start + 1 : end]:
            if match := FIELD.match(line):
                table.columns.setdefault(match["key"].strip(), {}).setdefault(row, match["value"].strip())
    table.columns = {key: cells for key, cells in table.columns.items() if len(cells) >= 3}
    return table if sum(map(len, table.columns.values())) > 0.4 * len(filled) else None


def fields_in(lines: Sequence[str]) -> Table | None:
    """Return the only row of lines of `key: value` or `KEY=value`, nearly all with keys of their own; None if not."""
    filled = [line for line in lines if line.strip()]
    if len(filled) > MOST_FIELDS:
        return None
    pairs = [(match["key"].strip(), match["value"].strip()) for line in filled if (match := FIELD.match(line))]
    keys = list(dict.fromkeys(key for key, _ in pairs))
    if len(keys) < 4 or len(pairs) < 0.8 * len(filled) or len(keys) < 0.7 * len(pairs):
        return None
    return Table("", rows=1, columns={key: {0: value} for key, value in pairs[::-1]}, objects={"": keys})
