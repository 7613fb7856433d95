"""Compaction: merges indexes, releases free pages and empties the write-ahead log."""

from __future__ import annotations

import apsw

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
