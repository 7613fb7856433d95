"""A step of the schema: converts vectors that earlier versions stored in virtual tables of sqlite-vec 0.1.

sqlite-vec is no longer installed, so its own tables are read, in the form that version 0.1.9 wrote: `…_rowids` has the
chunk and the place of each row, `…_vector_chunks00` the vectors of a chunk. Row numbers have the space in the upper
bits (`index.rowids`). Coarse vectors (`…_sketch_…`, `…_row_…`, `…_plan_…`) are deleted; they are no longer used.
"""

from __future__ import annotations

from itertools import groupby
from types import SimpleNamespace
from typing import Any

import apsw

_ROWS = 128  # of a block
_LAYERS = ("turn", "atom")


def to_blocks(con: apsw.Connection) -> None:
    """Move all vectors into tables of blocks with the same names. A damaged index is deleted, to be computed again."""
    rows: Any = con.execute("SELECT id, dimensions FROM vector_index").fetchall()
    con.create_module("vec0", _module())
    try:
        for index, dimensions in rows:
            tables = [f"{layer}_vec_{index}" for layer in _LAYERS]
            is_whole = all(_is_whole(con, table, dimensions) for table in tables)
            for table in tables:
                if is_whole:
                    _copy(con, table, dimensions)
                _drop(con, table)
                if is_whole:
                    con.execute(f"ALTER TABLE {table}_blocks RENAME TO {table}")
            for layer in _LAYERS:
                _drop(con, f"{layer}_sketch_{index}")
                con.execute(f"DROP TABLE IF EXISTS {layer}_row_{index}; DROP TABLE IF EXISTS {layer}_plan_{index}")
            if not is_whole:
                con.execute("DELETE FROM vector_index WHERE id = ?", (index,))
    finally:
        con.create_module("vec0", None)


def _is_whole(con: apsw.Connection, table: str, dimensions: int) -> bool:
    parts = [table, *(f"{table}_{part}" for part in ("chunks", "rowids", "vector_chunks00"))]
    declared = con.execute("SELECT instr(sql, ?) FROM sqlite_schema WHERE name = ?", (f"INT8[{dimensions}]", table)).get
    return bool(declared) and all(con.table_exists("main", part) for part in parts)


def _copy(con: apsw.Connection, table: str, dimensions: int) -> None:
    con.execute(
        f"CREATE TABLE {table}_blocks (id INTEGER PRIMARY KEY, present BLOB NOT NULL CHECK (length(present) = {_ROWS}),"
        f" vectors BLOB NOT NULL CHECK (length(vectors) = {_ROWS} * {dimensions})) STRICT"
    )
    if not (first := con.execute(f"SELECT min(rowid) FROM {table}_vector_chunks00").get):
        return
    with con.blob_open("main", f"{table}_vector_chunks00", "vectors", first, False) as chunk:
        rows = con.execute(f"SELECT rowid, chunk_id, chunk_offset FROM {table}_rowids ORDER BY rowid")
        for block, of_block in groupby(rows, lambda row: _block(row[0])):
            present, vectors = bytearray(_ROWS), bytearray(_ROWS * dimensions)
            for rowid, chunk_id, offset in of_block:
                place = rowid % _ROWS
                chunk.reopen(chunk_id)
                chunk.seek(offset * dimensions)
                present[place] = 1
                vectors[place * dimensions : (place + 1) * dimensions] = chunk.read(dimensions)
            con.execute(f"INSERT INTO {table}_blocks VALUES (?, ?, ?)", (block, present, vectors))


def _block(rowid: int) -> int:
    space, number = rowid >> 40, rowid & (1 << 40) - 1
    return space << 40 | number // _ROWS


def _drop(con: apsw.Connection, table: str) -> None:
    """Delete a table of sqlite-vec and the tables with its rows."""
    con.execute(f"DROP TABLE IF EXISTS {table}")
    parts: Any = con.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name GLOB ? AND name <> ?",
        (f"{table}_*", f"{table}_blocks"),
    ).fetchall()
    for (part,) in parts:
        con.execute(f"DROP TABLE {part}")


def _module() -> Any:
    """Return a module of virtual tables without rows, with which SQLite can drop the tables of sqlite-vec."""
    table = SimpleNamespace(Destroy=lambda: None, Disconnect=lambda: None)

    def create(*_: Any) -> tuple[str, Any]:
        return "CREATE TABLE vec0 (space)", table

    return SimpleNamespace(Create=create, Connect=create)
