"""Compaction: merges indexes, releases free pages and empties the write-ahead log."""

from __future__ import annotations

import apsw

_INDEXES = ("turn_terms", "atom_terms", "chunk_terms")
_PAGES = 500


def optimise(con: apsw.Connection, *, begin: bool) -> bool:
    """Merge a share of each word index, so that searches read it faster; return whether there is more to merge.

    Other writers wait only for this share. The first call must set `begin`, which makes all segments of the indexes due
    for merging.
    """
    more = False
    for table in _INDEXES:
        before = con.total_changes()
        con.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('merge', ?)", (-_PAGES if begin else _PAGES,))
        more = more or con.total_changes() - before >= 2  # what its manual says
    return more


def free(con: apsw.Connection) -> tuple[int, int]:
    """Return the numbers of unused bytes and of all bytes of the database file."""
    size = con.execute("PRAGMA page_size").get
    return con.execute("PRAGMA freelist_count").get * size, con.execute("PRAGMA page_count").get * size


def vacuum(con: apsw.Connection) -> None:
    """Rewrite the database without its free pages, while other writers wait. Must not be called in a transaction."""
    con.execute("VACUUM")


def checkpoint(con: apsw.Connection) -> bool:
    """Move the write-ahead log into the database and empty it. Return False if a reader still needs the log."""
    busy: int = con.execute("PRAGMA wal_checkpoint(TRUNCATE)").get[0]
    return not busy
