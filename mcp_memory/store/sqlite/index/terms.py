"""The word index: an FTS5 table per layer, of the terms of `store.sql.terms`; `postings` reads them.

The table `term_range` has ranges of row numbers with the version of `text.index_terms` they were indexed with.

A row in no range has the terms of a version before ranges were kept, or of an older program still running on the same
home, which writes rows and no range. So it does not matter when another program stops.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import apsw

from mcp_memory.language.words import TERMS_VERSION
from mcp_memory.store.sql.terms import INDEXED, RULE
from mcp_memory.store.values import Layer

__all__ = ["STATES_RULE", "cover", "delete", "gaps", "insert", "put", "with_all"]

STATES_RULE = f"r.id IN (SELECT rowid FROM turn_terms WHERE turn_terms MATCH 'terms : \"{RULE}\"')"
"""The condition that somebody states a standing rule in a turn `r`."""


def put(con: apsw.Connection, layer: Layer, space: int, rows: Sequence[tuple[int, Sequence[str]]]) -> None:
    """Index rows that follow each other, given as (number, terms)."""
    if rows:
        insert(con, layer, space, rows)
        cover(con, layer, rows[0][0], rows[-1][0])


def insert(con: apsw.Connection, layer: Layer, space: int, rows: Sequence[tuple[int, Sequence[str]]]) -> None:
    con.executemany(
        f"INSERT INTO {layer}_terms (rowid, space, terms) VALUES (?, ?, ?)",
        [(number, f"s{space}", " ".join(found)) for number, found in rows],
    )


def delete(con: apsw.Connection, layer: Layer, number: int) -> None:
    con.execute(f"DELETE FROM {layer}_terms WHERE rowid = ?", (number,))


def with_all(con: apsw.Connection, layer: Layer, space: int, wanted: Sequence[str]) -> list[int]:
    """Return the rows of a space that have every one of these terms."""
    quoted = ['"' + term.replace('"', '""') + '"' for term in dict.fromkeys(wanted) if "\0" not in term]
    match = " AND ".join([f"space : s{space}", *(f"terms : {term}" for term in quoted)])
    rows = con.execute(f"SELECT rowid FROM {layer}_terms WHERE {layer}_terms MATCH ?", (match,))
    return [int(number) for (number,) in rows]


def cover(con: apsw.Connection, layer: Layer, first: int, last: int) -> None:
    """Note that the rows from `first` to `last` have the terms of this version.

    Ranges that touch become one, also across rows that are not indexed: as a rule there is one range.
    """
    found: Any = con.execute(
        "SELECT first, last FROM term_range WHERE layer = ?1 AND version = ?2 AND first <= ?3"
        " ORDER BY first DESC LIMIT 1",
        (layer, TERMS_VERSION, first),
    ).fetchone()
    if found is not None and (found[1] >= first - 1 or not _holds_any(con, layer, found[1] + 1, first - 1)):
        first, last = found[0], max(found[1], last)
    con.execute(
        "DELETE FROM term_range WHERE layer = ?1 AND version = ?2 AND first >= ?3 AND last <= ?4",
        (layer, TERMS_VERSION, first, last),
    )
    following: Any = con.execute(
        "DELETE FROM term_range WHERE layer = ?1 AND version = ?2 AND first > ?3 AND first <= ?4 + 1 RETURNING last",
        (layer, TERMS_VERSION, first, last),
    ).get
    con.execute(
        "INSERT INTO term_range (layer, version, first, last) VALUES (?, ?, ?, ?)",
        (layer, TERMS_VERSION, first, last if following is None else following),
    )


def gaps(con: apsw.Connection, layer: Layer) -> Iterator[tuple[int, int]]:
    """Yield the first and last row of each stretch without terms of this or a later version, newest first."""
    ranges: Any = con.execute(
        "SELECT first, last FROM term_range WHERE layer = ? AND version >= ? ORDER BY last DESC, first",
        (layer, TERMS_VERSION),
    ).fetchall()
    after: int = (con.execute(f"SELECT max(id) FROM {layer}").get or 0) + 1
    for first, last in ranges:
        if last + 1 < after:
            yield last + 1, after - 1
        after = min(after, first)
    if after > 1:
        yield 1, after - 1


def _holds_any(con: apsw.Connection, layer: Layer, first: int, last: int) -> bool:
    sql = f"SELECT 1 FROM {layer} WHERE id BETWEEN ? AND ? AND {INDEXED[layer]} LIMIT 1"
    return con.execute(sql, (first, last)).get is not None
