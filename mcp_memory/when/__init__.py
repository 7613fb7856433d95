"""Times as people write them: for filters (`parse_time`) and inside questions."""

from __future__ import annotations

from mcp_memory.when.filters import parse_time

__all__ = ["parse_time"]
