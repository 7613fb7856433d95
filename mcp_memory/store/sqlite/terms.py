"""The lexical leg in SQLite: FTS5 over the terms of `text.index_terms`, ranked by BM25.

FTS5 scores every row that matches, at a microsecond or more each, so what a query costs is how many postings
it touches. A term that stands in much of the store tells little: the query keeps its rarest terms and takes
commoner ones only while their postings stay within a bound. No list of stop words, no language.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import apsw

from mcp_memory.store.protocol import Filters, Layer, Scored
from mcp_memory.store.sqlite.filters import is_plain, where
from mcp_memory.store.sqlite.rows import space_id
from mcp_memory.store.sqlite.term_ranges import cover
from mcp_memory.text import index_terms, spoken, well_formed

__all__ = ["CommonTerms", "delete", "insert", "of_atom", "of_turn", "put", "search"]

_POSTINGS = 3_000
_COMMON = 1_500  # rows at which a term is called common; nobody counts further
_RAREST = 2  # kept whatever they cost, so that a query of common words is still answered …
_NEWEST = 25_000  # … but among this many rows, the newest
_MOST = 48
_REMEMBERED = 10_000


@dataclass(slots=True)
class CommonTerms:
    """Terms known to be common, by layer. Rows only come, so what is common stays so (a `forget` is no matter)."""

    known: dict[Layer, set[str]] = field(default_factory=lambda: {"turn": set[str](), "atom": set[str]()})

    def add(self, layer: Layer, term: str) -> None:
        if len(self.known[layer]) < _REMEMBERED:
            self.known[layer].add(term)


def of_turn(content: str, name: str | None) -> list[str]:
    return index_terms(spoken(content, name))


def of_atom(text: str) -> list[str]:
    return index_terms(text)


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


def search(
    con: apsw.Connection,
    layer: Layer,
    space: str,
    wanted: Sequence[str],
    *,
    filters: Filters,
    limit: int,
    common: CommonTerms,
) -> list[Scored]:
    """See `Store.lexical`."""
    number = space_id(con, space)
    sayable = [term for term in dict.fromkeys(wanted) if "\0" not in term and well_formed(term)]
    kept, all_common = _telling(con, layer, sayable[:_MOST], common)
    if number is None or not kept:
        return []
    table = f"{layer}_terms"
    query = "terms : (" + " OR ".join(map(_quoted, kept)) + ")"
    if con.execute("SELECT count(*) FROM space").get > 1:
        query = f"space : s{number} AND {query}"
    joined, values = "", list[int | str]()
    if not is_plain(layer, filters):
        condition, values = where(layer, number, filters)
        joined = f"AND {table}.rowid IN (SELECT r.id FROM {layer} r WHERE {condition})"
    elif all_common:
        joined = f"AND {table}.rowid > (SELECT max(id) FROM {layer}) - {_NEWEST}"
    rows = con.execute(
        f"SELECT rowid, bm25({table}, 0.0, 1.0) AS score FROM {table} WHERE {table} MATCH ? {joined}"
        " ORDER BY score, rowid DESC LIMIT ?",
        (query, *values, limit),
    )
    return [Scored(id=f"{layer[0]}{id}", score=-float(score)) for id, score in rows]


def _telling(con: apsw.Connection, layer: Layer, wanted: list[str], common: CommonTerms) -> tuple[list[str], bool]:
    """Return the terms worth looking for, rarest first, and whether they are all common ones."""
    counted: list[tuple[int, str]] = []
    for term in wanted:
        count = _COMMON if term in common.known[layer] else _count(con, layer, term)
        if count:
            counted.append((count, term))
        if count == _COMMON:
            common.add(layer, term)
    kept: list[str] = []
    postings = 0
    for count, term in sorted(counted):
        postings += count
        if len(kept) >= _RAREST and postings > _POSTINGS:
            break
        kept.append(term)
    return kept, bool(counted) and min(counted)[0] == _COMMON


def _count(con: apsw.Connection, layer: Layer, term: str) -> int:
    return con.execute(
        f"SELECT count(*) FROM (SELECT 1 FROM {layer}_terms WHERE {layer}_terms MATCH ? LIMIT {_COMMON})",
        (f"terms : {_quoted(term)}",),
    ).get


def _quoted(term: str) -> str:
    return '"' + term.replace('"', '""') + '"'
