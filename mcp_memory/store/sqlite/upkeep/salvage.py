"""Salvage: copies the readable rows of a torn database to a whole one, each table from both ends up to a torn page.

Indexes, vectors and other derived tables are left out: they are rebuilt.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import apsw

from mcp_memory.store.sqlite.upkeep.snapshots import opened

__all__ = ["MADE_ANEW", "salvage"]

MADE_ANEW = {"migration", "term_range", "chunk", "vector_index"}
"""Tables that are not carried from one database to another."""


def salvage(torn: Path, into: Path) -> list[str]:
    """Copy what can be read to a new, empty database; return the tables of which a part could not be, and why."""
    unreadable: list[str] = []
    with opened(into, write=True) as new:
        new.execute("PRAGMA foreign_keys = OFF; BEGIN")
        for table in tables(new):
            new.execute(f"DELETE FROM {table}")
            columns = [str(name) for (name,) in new.execute("SELECT name FROM pragma_table_info(?)", (table,))]
            if why := _salvaged(torn, new, table, columns):
                unreadable.append(f"{table} ({why})")
        new.execute("COMMIT")
    return unreadable


def tables(con: apsw.Connection) -> list[str]:
    """Return the tables that hold rows of ours, in the order of their names."""
    names = con.execute(
        "SELECT name FROM main.sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
        " AND name NOT GLOB '*_terms_*' ORDER BY name"
    )
    return [str(name) for (name,) in names if name not in MADE_ANEW]


def _salvaged(torn: Path, new: apsw.Connection, table: str, columns: Iterable[str]) -> str | None:
    why = None
    for order in ("", "ORDER BY rowid DESC"):
        # A connection that met a torn page gives errors from then on.
        try:
            with opened(torn) as con:
                held = {str(name) for (name,) in con.execute("SELECT name FROM pragma_table_info(?)", (table,))}
                names = [name for name in columns if name in held]
                if not names:
                    return None
                marks = ", ".join("?" * len(names))
                insert = f"INSERT OR IGNORE INTO {table} ({', '.join(names)}) VALUES ({marks})"
                for row in con.execute(f"SELECT {', '.join(names)} FROM {table} NOT INDEXED {order}"):
                    new.execute(insert, row)
            return why
        except apsw.Error as error:
            why = str(error)
    return why
