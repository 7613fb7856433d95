"""`mcp_memory.secrets`, by the name it had here."""

from mcp_memory.secrets import mask

__all__ = ["mask"]
