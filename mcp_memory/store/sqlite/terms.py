"""The lexical leg in SQLite: FTS5 over the terms of `text.index_terms`, ranked by BM25.

A term that stands in much of the store costs much and tells little, so a query keeps its rarest terms and
takes commoner ones only while their postings stay within a bound. No list of stop words, no language.
"""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from mcp_memory.store.protocol import Filters, Layer, Scored
from mcp_memory.store.sqlite.filters import where
from mcp_memory.store.sqlite.rows import space_id
from mcp_memory.text import index_terms

__all__ = ["delete", "of_atom", "of_turn", "put", "search"]

_POSTINGS = 20_000
_RAREST = 3  # kept whatever they cost: a query of common words only is still answered
_MOST = 64


def of_turn(content: str, name: str | None) -> list[str]:
    """Return a turn's terms: its words and who said them."""
    return index_terms(f"{name} {content}" if name else content)


def of_atom(text: str) -> list[str]:
    return index_terms(text)


def put(con: apsw.Connection, layer: Layer, space: int, number: int, found: Sequence[str]) -> None:
    con.execute(
        f"INSERT INTO {layer}_terms (rowid, space, terms) VALUES (?, ?, ?)",
        (number, f"s{space}", " ".join(found)),
    )


def delete(con: apsw.Connection, layer: Layer, number: int) -> None:
    con.execute(f"DELETE FROM {layer}_terms WHERE rowid = ?", (number,))


def search(
    con: apsw.Connection, layer: Layer, space: str, wanted: Sequence[str], *, filters: Filters, limit: int
) -> list[Scored]:
    """See `Store.lexical`."""
    number = space_id(con, space)
    kept = _telling(con, layer, list(dict.fromkeys(wanted))[:_MOST])
    if number is None or not kept:
        return []
    query = "terms : (" + " OR ".join(f'"{term.replace(chr(34), chr(34) * 2)}"' for term in kept) + ")"
    if con.execute("SELECT count(*) FROM space").get > 1:
        query = f"space : s{number} AND {query}"
    condition, values = where(layer, number, filters)
    rows = con.execute(
        f"SELECT r.id, bm25({layer}_terms, 0.0, 1.0) AS score"
        f" FROM {layer}_terms JOIN {layer} r ON r.id = {layer}_terms.rowid"
        f" WHERE {layer}_terms MATCH ? AND {condition} ORDER BY score, r.id DESC LIMIT ?",
        (query, *values, limit),
    )
    return [Scored(id=f"{layer[0]}{id}", score=-float(score)) for id, score in rows]


def _telling(con: apsw.Connection, layer: Layer, wanted: list[str]) -> list[str]:
    """Return the terms worth looking for, rarest first."""
    counted = [
        (int(count), term)
        for term in wanted
        if (count := con.execute(f"SELECT doc FROM {layer}_vocabulary WHERE term = ? AND col = 'terms'", (term,)).get)
    ]
    kept: list[str] = []
    postings = 0
    for count, term in sorted(counted):
        postings += count
        if len(kept) >= _RAREST and postings > _POSTINGS:
            break
        kept.append(term)
    return kept
