"""The embedded engine: one SQLite file with FTS5 and sqlite-vec, and the files beside it.

    database     the file, its writer and readers          rows        ids, moments, names, the change feed
    migrations   the schema, step by step                  linefiles   journals kept in step with rows
    turns  atoms  tasks  forgetting                        terms  vectors  filters   the two legs of search
    checks       counts, changes, what is damaged
    snapshots    a copy at one moment, and what its rows say of files      mending   what rows can make again
    refilling  comparing  rebuilding  salvaging   the database made anew of the files, and the proof

Each module has plain functions over a connection; `SQLiteStore` gives them transactions and the verbs' names.
"""

from __future__ import annotations

from mcp_memory.store.sqlite.store import SQLiteStore, open_store

__all__ = ["SQLiteStore", "open_store"]
