"""What the model is still working with: results whose names stand in its newest messages are not the first to go."""

from __future__ import annotations

from collections.abc import Sequence

from mcp_memory.compression.plan import Item

__all__ = ["in_use"]


def in_use(items: Sequence[Item], calls: int) -> set[tuple[int, int]]:
    """Return the parts (item, part) that the newest `calls` messages of the model still speak of."""
    return set()
