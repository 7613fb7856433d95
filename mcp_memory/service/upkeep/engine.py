"""The store whose files are kept here: another one has its own upkeep."""

from __future__ import annotations

from mcp_memory.store.sqlite import open_store
from mcp_memory.store.sqlite.explaining import explained
from mcp_memory.store.sqlite.forms import Unreadable
from mcp_memory.store.sqlite.home import IDENTITY, why_read_only
from mcp_memory.store.sqlite.upkeep import comparing, rebuilding, returning, salvaging, snapshots
from mcp_memory.store.sqlite.upkeep.comparing import RESULTS, TURNS
from mcp_memory.store.sqlite.upkeep.refilling import DAMAGED, UNNAMED

__all__ = [
    "DAMAGED",
    "IDENTITY",
    "RESULTS",
    "TURNS",
    "UNNAMED",
    "Unreadable",
    "comparing",
    "explained",
    "open_store",
    "rebuilding",
    "returning",
    "salvaging",
    "snapshots",
    "why_read_only",
]
