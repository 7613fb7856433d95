"""Memory for agents over MCP: a long-term pyramid and a short-term canvas over one local store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp_memory.core.config import Settings
    from mcp_memory.core.types import NewTurn
    from mcp_memory.service.memory import Memory, compress, open_memory

__all__ = ["Memory", "NewTurn", "Settings", "__version__", "compress", "open_memory"]

__version__ = "0.1.0"

_HOMES = {
    "Memory": "mcp_memory.service.memory",
    "NewTurn": "mcp_memory.core.types",
    "Settings": "mcp_memory.core.config",
    "compress": "mcp_memory.service.memory",
    "open_memory": "mcp_memory.service.memory",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first access, because servers and the command line must start at once."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
