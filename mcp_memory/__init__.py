"""Memory for agents over MCP: a long-term pyramid and a short-term canvas over one local store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp_memory.config import Settings
    from mcp_memory.memory import Memory, open_memory
    from mcp_memory.memory.at_once import compress

__all__ = ["Memory", "Settings", "__version__", "compress", "open_memory"]

__version__ = "0.1.0"

_HOMES = {
    "Memory": "mcp_memory.memory",
    "Settings": "mcp_memory.config",
    "compress": "mcp_memory.memory.at_once",
    "open_memory": "mcp_memory.memory",
}


def __getattr__(name: str) -> Any:
    """Load what is asked for when it is asked for: a server or a command line must start at once."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
