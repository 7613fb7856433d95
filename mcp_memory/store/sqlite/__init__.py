"""The embedded engine: one SQLite file with FTS5 and sqlite-vec, and the files beside it.

    database     the file, its writer and readers          rows        ids, moments, names, the change feed
    migrations   the schema, step by step                  linefiles   journals kept in step with rows
    turns  atoms  tasks  forgetting                        terms  vectors  filters   the two legs of search
    checks       counts, changes, what is damaged

Each module has plain functions over a connection; `SQLiteStore` gives them transactions and the verbs' names.
"""

from __future__ import annotations

from mcp_memory.store.sqlite.store import SQLiteStore, open_store

__all__ = ["SQLiteStore", "open_store"]
