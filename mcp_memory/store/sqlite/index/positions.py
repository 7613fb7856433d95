"""Replaces word indexes of earlier versions, which have the positions of terms, by indexes of half the size.

No search uses positions. The new table is filled from the rows in the background, some at a time, while the old one is
searched; then it takes its place. Rows that are written meanwhile are added at the end. After a kill, some rows are
computed again. A table of chunks keeps its positions unless it is empty, because the texts of chunks are in files.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any

import apsw

from mcp_memory.store.sql.word_index import INDEXED, INDEXED_COLUMNS, terms_of_row
from mcp_memory.store.sqlite.index.rowids import ID_BITS, ID_MASK
from mcp_memory.store.values import Layer

_LAYERS: tuple[Layer, ...] = ("turn", "atom")
_ROWS = 200  # some 20 ms to write

Rows = Sequence[tuple[int, str]]
"""Rows of a table of terms: the row number, and the terms, separated by spaces."""


def begin(con: apsw.Connection) -> None:
    """Replace the tables that are empty, and create the new tables for the others."""
    for layer in (*_LAYERS, "chunk"):
        if con.execute(f"SELECT NOT EXISTS (SELECT 1 FROM {layer}_terms_docsize)").get:
            con.execute(f"DROP TABLE {layer}_terms")
            _create(con, f"{layer}_terms")
        elif layer != "chunk":
            _create(con, f"{layer}_new_terms")


def _create(con: apsw.Connection, table: str) -> None:
    """Create a table of terms. It is contentless, and its terms are final: the tokenizer only splits at white space."""
    characters = string.punctuation.replace("'", "''").replace('"', '""')
    con.execute(
        f"CREATE VIRTUAL TABLE {table} USING fts5(terms, content='', contentless_delete=1, detail=none,"
        f" tokenize=\"ascii tokenchars '{characters}'\")"
    )


def next_rows(con: apsw.Connection) -> tuple[Layer, Rows] | None:
    """Return a layer whose new table is not in place yet, and the next rows that it lacks; None if all are in place."""
    for layer in _LAYERS:
        if _is_begun(con, layer):
            return layer, _missing_rows(con, layer)
    return None


def _is_begun(con: apsw.Connection, layer: Layer) -> bool:
    # Not `table_exists`, which may answer from an earlier snapshot of this connection.
    return con.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (f"{layer}_new_terms",)).get is not None


def _missing_rows(con: apsw.Connection, layer: Layer) -> Rows:
    beyond = f"d.id > (SELECT coalesce(max(id), 0) FROM {layer}_new_terms_docsize)"
    skipped = f"d.id NOT IN (SELECT id FROM {layer}_new_terms_docsize)"  # forgotten then, and restored
    return _rows(con, layer, beyond) or _rows(con, layer, skipped)


def _rows(con: apsw.Connection, layer: Layer, which: str) -> Rows:
    found: Any = con.execute(
        f"SELECT d.id, {INDEXED_COLUMNS[layer]} FROM {layer}_terms_docsize d JOIN {layer} r"
        f" ON r.space = d.id >> {ID_BITS} AND r.id = d.id & {ID_MASK}"
        f" WHERE {which} AND {INDEXED[layer]} ORDER BY d.id LIMIT {_ROWS}"
    )
    return [(rowid, " ".join(terms_of_row(layer, text, name))) for rowid, text, name in found]


def add(con: apsw.Connection, layer: Layer, rows: Rows) -> None:
    """Add rows to the new table, except those forgotten meanwhile. If it lacks none, it takes the place of the old.

    Another process may have done the same in the meantime.
    """
    if not _is_begun(con, layer):
        return
    new = f"{layer}_new_terms"
    con.executemany(
        f"INSERT INTO {new} (rowid, terms) SELECT ?1, ?2 WHERE EXISTS (SELECT 1 FROM {layer}_terms_docsize"
        f" WHERE id = ?1) AND NOT EXISTS (SELECT 1 FROM {new}_docsize WHERE id = ?1)",
        rows,
    )
    if not rows and not _missing_rows(con, layer):
        con.execute(
            f"DELETE FROM {new} WHERE rowid IN"
            f" (SELECT id FROM {new}_docsize WHERE id NOT IN (SELECT id FROM {layer}_terms_docsize))"
        )
        con.execute(f"DROP TABLE {layer}_terms; ALTER TABLE {new} RENAME TO {layer}_terms")


def start_again(con: apsw.Connection) -> None:
    """Empty the new tables, because they may have words that are to be erased."""
    for layer in _LAYERS:
        if _is_begun(con, layer):
            con.execute(f"INSERT INTO {layer}_new_terms ({layer}_new_terms) VALUES ('delete-all')")
