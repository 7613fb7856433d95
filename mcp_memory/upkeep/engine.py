"""The store whose files are kept here: another one has its own upkeep."""

from __future__ import annotations

from mcp_memory.store.sqlite import comparing, open_store, rebuilding, returning, salvaging, snapshots

__all__ = ["comparing", "open_store", "rebuilding", "returning", "salvaging", "snapshots"]
