"""The store whose files are kept here: another one has its own upkeep."""

from __future__ import annotations

from mcp_memory.store.sqlite import open_store, snapshots

__all__ = ["open_store", "snapshots"]
