"""The store whose files are kept here: another one has its own upkeep."""

from __future__ import annotations

from mcp_memory.store.sqlite import open_store
from mcp_memory.store.sqlite.forgetting import returning
from mcp_memory.store.sqlite.upkeep import comparing, rebuilding, salvaging, snapshots

__all__ = ["comparing", "open_store", "rebuilding", "returning", "salvaging", "snapshots"]
