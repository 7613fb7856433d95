"""Secure delete, and the search for what is left of purged content: what SQLite's files hold beside its rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw

from mcp_memory.store.sqlite.upkeep import compacting
from mcp_memory.store.traces import Traces

__all__ = ["excuse", "shred"]


def shred(con: apsw.Connection, *, patience: float) -> bool:
    """Leave nothing of what was erased in the database's free pages, indexes and log; in no transaction.

    False where others were reading all the while, so that the log could not be emptied: then it is to be done again.
    """
    con.execute("PRAGMA secure_delete = ON; PRAGMA temp_store = FILE")
    try:
        for layer in ("turn", "atom", "chunk"):  # rebuilt: what was deleted is left out only then
            con.execute(f"INSERT INTO {layer}_terms ({layer}_terms) VALUES ('optimize')")
        compacting.vacuum(con)
    finally:
        con.execute("PRAGMA temp_store = MEMORY")
    waits: int = con.execute("PRAGMA busy_timeout").get
    con.set_busy_timeout(round(patience * 1_000))
    try:
        if not compacting.checkpoint(con):
            return False
    finally:
        con.set_busy_timeout(waits)
    return True


def excuse(con: apsw.Connection, home: Path, traces: Traces) -> list[str]:
    """See `Store.excuse`."""
    said = traces.excuse(_kept(con))
    refs: Any = con.execute(
        "SELECT r.id, s.name, r.path FROM ref r JOIN space s ON s.id = r.space WHERE r.purged_at IS NULL ORDER BY r.id"
    )
    for id, space, path in refs:
        target = home / "spaces" / space / path
        if target.is_file() and traces.excuse_file(target):
            said.append(id)
    return said


def _kept(con: apsw.Connection) -> Iterator[tuple[str, bytes]]:
    """Yield every text that the rows hold, by its place: `t8`, `a5`, or its table."""
    tables: list[str] = [
        str(name)
        for (name,) in con.execute(
            "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'"
            " AND name NOT LIKE 'sqlite_%' AND name NOT LIKE '%\\_row\\__' ESCAPE '\\' ORDER BY name"
        )
    ]
    for table in tables:
        names = [str(name) for (name,) in con.execute("SELECT name FROM pragma_table_info(?)", (table,))]
        texts = [name for name in names if name not in ("sha256", "hash", "digest", "key", "vector", "directions")]
        key = "id" if "id" in names else "''"
        for id, *values in con.execute(f"SELECT {key}, {', '.join(texts)} FROM {table}"):
            named = f"{table[0]}{id}" if table in ("turn", "atom") else str(id) if table == "ref" else table
            for value in values:
                if isinstance(value, str) and value:
                    yield named, value.encode("utf-8", "surrogatepass")
