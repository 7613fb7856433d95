"""The word index: an FTS5 table per layer, of the terms of `store.sql.word_index`; `postings` reads them.

The table `term_range` has ranges of a space's row numbers with the version of `text.index_terms` they were indexed
with.

A row in no range has the terms of a version before ranges were kept, or of an older program still running on the same
home, which writes rows and no range. So it does not matter when another program stops.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import apsw

from mcp_memory.language.words import TERMS_VERSION
from mcp_memory.store.sql.word_index import INDEXED, RULE
from mcp_memory.store.sqlite.index.rowids import ID_MASK, rowid, span
from mcp_memory.store.values import Layer

__all__ = ["Rows", "cover", "delete", "gaps", "insert", "put", "quoted", "states_rule", "with_all"]


def states_rule(space: int) -> str:
    """Return the condition that somebody states a standing rule in a turn `r` of a space."""
    first, last = span(space)
    return (
        f"r.id IN (SELECT rowid & {ID_MASK} FROM turn_terms WHERE turn_terms MATCH '{quoted(RULE)}'"
        f" AND rowid BETWEEN {first} AND {last})"
    )


def quoted(term: str) -> str:
    """Return a term quoted for FTS5's query language."""
    return '"' + term.replace('"', '""') + '"'


Rows = Sequence[tuple[int, Sequence[str] | None]]
"""Rows of a space as (number, terms); None for one that is not to be found by its words."""


def put(con: apsw.Connection, layer: Layer, space: int, rows: Rows) -> None:
    """Index consecutive rows."""
    if rows:
        insert(con, layer, space, rows)
        cover(con, layer, space, rows[0][0], rows[-1][0])


def insert(con: apsw.Connection, layer: Layer, space: int, rows: Rows) -> None:
    con.executemany(
        f"INSERT INTO {layer}_terms (rowid, terms) VALUES (?, ?)",
        [(rowid(space, number), " ".join(found)) for number, found in rows if found is not None],
    )


def delete(con: apsw.Connection, layer: Layer, space: int, numbers: Sequence[int]) -> None:
    con.executemany(f"DELETE FROM {layer}_terms WHERE rowid = ?", [(rowid(space, number),) for number in numbers])


def with_all(con: apsw.Connection, layer: Layer, space: int, wanted: Sequence[str]) -> list[int]:
    """Return the rows of a space that have all of these terms."""
    match = " AND ".join(quoted(term) for term in dict.fromkeys(wanted) if "\0" not in term)
    rows = con.execute(
        f"SELECT rowid & {ID_MASK} FROM {layer}_terms WHERE {layer}_terms MATCH ? AND rowid BETWEEN ? AND ?",
        (match, *span(space)),
    )
    return [int(number) for (number,) in rows]


def cover(con: apsw.Connection, layer: Layer, space: int, first: int, last: int) -> None:
    """Record that the rows from `first` to `last` have the terms of this version.

    Adjacent ranges are merged, also across rows that are not indexed, so there is usually one range.
    """
    known = (space, layer, TERMS_VERSION)
    found: Any = con.execute(
        "SELECT first, last FROM term_range WHERE space = ? AND layer = ? AND version = ? AND first <= ?"
        " ORDER BY first DESC LIMIT 1",
        (*known, first),
    ).fetchone()
    if found is not None and (found[1] >= first - 1 or not _holds_any(con, layer, space, found[1] + 1, first - 1)):
        first, last = found[0], max(found[1], last)
    con.execute(
        "DELETE FROM term_range WHERE space = ? AND layer = ? AND version = ? AND first >= ? AND last <= ?",
        (*known, first, last),
    )
    following: Any = con.execute(
        "DELETE FROM term_range WHERE space = ? AND layer = ? AND version = ? AND first > ? AND first <= ? + 1"
        " RETURNING last",
        (*known, first, last),
    ).get
    con.execute(
        "INSERT INTO term_range (space, layer, version, first, last) VALUES (?, ?, ?, ?, ?)",
        (*known, first, last if following is None else following),
    )


def gaps(con: apsw.Connection, layer: Layer) -> Iterator[tuple[int, int, int]]:
    """Yield (space, first row, last row) of each stretch without terms of this or a later version, newest first."""
    rows: Any = con.execute(
        "SELECT n.space, n.last, r.first, r.last FROM number n LEFT JOIN term_range r ON r.space = n.space"
        " AND r.layer = n.kind AND r.version >= ? WHERE n.kind = ? ORDER BY n.space, r.last DESC, r.first",
        (TERMS_VERSION, layer),
    ).fetchall()
    for (space, newest), ranges in groupby(rows, key=lambda row: row[:2]):
        after: int = newest + 1
        for _, _, first, last in ranges:
            if first is None:
                continue
            if last + 1 < after:
                yield space, last + 1, after - 1
            after = min(after, first)
        if after > 1:
            yield space, 1, after - 1


def _holds_any(con: apsw.Connection, layer: Layer, space: int, first: int, last: int) -> bool:
    sql = f"SELECT 1 FROM {layer} WHERE space = ? AND id BETWEEN ? AND ? AND {INDEXED[layer]} LIMIT 1"
    return con.execute(sql, (space, first, last)).get is not None
