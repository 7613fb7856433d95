"""The store whose files are kept here: another one has its own upkeep."""

from __future__ import annotations

from mcp_memory.store.sqlite import open_store
from mcp_memory.store.sqlite.database import explained
from mcp_memory.store.sqlite.home import IDENTITY, why_read_only
from mcp_memory.store.sqlite.unreadable import Unreadable
from mcp_memory.store.sqlite.upkeep import comparison, restored_rows, salvage, snapshots
from mcp_memory.store.sqlite.upkeep import rebuild as database_rebuild

__all__ = [
    "IDENTITY",
    "Unreadable",
    "comparison",
    "database_rebuild",
    "explained",
    "open_store",
    "restored_rows",
    "salvage",
    "snapshots",
    "why_read_only",
]
