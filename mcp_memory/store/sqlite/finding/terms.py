"""The word index: an FTS5 table a layer, of the terms of `store.sql.terms`; `postings` reads them."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from mcp_memory.store.sql.terms import RULE
from mcp_memory.store.sqlite.finding.term_ranges import cover
from mcp_memory.store.values import Layer

__all__ = ["STATES_RULE", "delete", "insert", "put", "with_all"]

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
