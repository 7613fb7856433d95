"""What the model is still working with: results whose names stand in its newest messages are not the first to go."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from mcp_memory.service.compression.plan import Item

__all__ = ["in_use"]

NAME = re.compile(r"[A-Za-z_][\w./-]{5,}")
RARE = 2
"""Messages, those of the newest calls left out, in which a name that tells results apart may stand."""


def in_use(items: Sequence[Item], calls: int) -> set[tuple[int, int]]:
    """Return the results (item, part) that the newest `calls` messages of the model still speak of."""
    newest: list[int] = [at for at, item in enumerate(items) if item.calls and not item.is_note][-calls:]
    if not newest:
        return set()
    spoken = {
        name
        for at in newest
        for part in items[at].message.parts
        if part.kind in ("text", "call")
        for name in NAME.findall(part.text)
    }
    names = {
        (at, place): spoken.intersection(NAME.findall(part.text))
        for at, item in enumerate(items[: newest[0]])
        for place, part in enumerate(item.message.parts)
    }
    held = Counter(name for found in names.values() for name in found)
    return {
        (at, place)
        for (at, place), found in names.items()
        if items[at].message.parts[place].kind == "result" and any(held[name] <= RARE for name in found)
    }
