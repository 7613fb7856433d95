"""Pages of one question: opaque cursors that say where the next page starts, and whose question it was."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json

from mcp_memory.errors import InvalidInput

__all__ = ["MAX_OFFSET", "next_cursor", "offset_of"]

MAX_OFFSET = 600


def next_cursor(offset: int, asked: object) -> str:
    """Return an opaque cursor for the results from `offset` on of what was `asked`."""
    text = json.dumps([offset, _digest(asked)], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def offset_of(cursor: str | None, asked: object) -> int:
    """Return where a cursor points. InvalidInput for one that is not ours or belongs to another question."""
    if cursor is None:
        return 0
    try:
        offset, digest = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (ValueError, binascii.Error, TypeError):
        raise InvalidInput("That cursor is not one of ours. Leave it out to start from the first result.") from None
    if not isinstance(offset, int) or not 0 < offset <= MAX_OFFSET or digest != _digest(asked):
        raise InvalidInput(
            "That cursor belongs to another question. Repeat the same query and filters with it, or leave it out."
        )
    return offset


def _digest(asked: object) -> str:
    return hashlib.sha256(repr(asked).encode("utf-8", "surrogatepass")).hexdigest()[:12]
