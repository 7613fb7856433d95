"""Compaction: merges indexes, releases free pages and empties the write-ahead log.

Also secure delete, and the texts that rows retain, which a purge excludes from its search.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw

from mcp_memory.store.purge_search import Traces

__all__ = ["checkpoint", "excuse", "free", "optimise", "shred", "vacuum"]

_INDEXES = ("turn_terms", "atom_terms", "chunk_terms")
_PAGES = 500


def optimise(con: apsw.Connection, *, begin: bool) -> bool:
    """Do a share of bringing each word index into one piece, which searches read faster; True while there is more.

    Other writers wait for a share, not for all of it.
    """
    more = False
    for table in _INDEXES:
        before = con.total_changes()
        con.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('merge', ?)", (-_PAGES if begin else _PAGES,))
        more = more or con.total_changes() - before >= 2  # what its manual says
    return more


def free(con: apsw.Connection) -> tuple[int, int]:
    """Return (bytes that nothing uses, bytes in all) of the database file."""
    size = con.execute("PRAGMA page_size").get
    return con.execute("PRAGMA freelist_count").get * size, con.execute("PRAGMA page_count").get * size


def vacuum(con: apsw.Connection) -> None:
    """Rewrite the database without its free pages; outside of a transaction. Other writers wait meanwhile."""
    con.execute("VACUUM")


def checkpoint(con: apsw.Connection) -> bool:
    """Bring the log of writes into the database and cut it to nothing; False while a reader is at an older state."""
    busy: int = con.execute("PRAGMA wal_checkpoint(TRUNCATE)").get[0]
    return not busy


def shred(con: apsw.Connection, *, patience: float) -> bool:
    """Remove erased content from free pages, indexes and the log; outside of a transaction.

    Returns False if others were reading all the time, so that the log could not be emptied: call it again then.
    """
    con.execute("PRAGMA secure_delete = ON; PRAGMA temp_store = FILE")
    try:
        for layer in ("turn", "atom", "chunk"):  # a rebuild is needed to drop deleted entries
            con.execute(f"INSERT INTO {layer}_terms ({layer}_terms) VALUES ('optimize')")
        vacuum(con)
    finally:
        con.execute("PRAGMA temp_store = MEMORY")
    waits: int = con.execute("PRAGMA busy_timeout").get
    con.set_busy_timeout(round(patience * 1_000))
    try:
        if not checkpoint(con):
            return False
    finally:
        con.set_busy_timeout(waits)
    return True


def excuse(con: apsw.Connection, home: Path, traces: Traces) -> list[str]:
    """See `Store.exclude_retained`."""
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
