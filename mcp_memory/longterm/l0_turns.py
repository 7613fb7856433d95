"""L0: turns on their way in. What this system itself put into a context is cut out before it is stored.

Recalled text that were stored again would be found, recalled and stored once more; peers filled up with
echoes that way. So recalled blocks carry a tag that nothing inside can close, and the tag is what is cut.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from mcp_memory.errors import InvalidInput
from mcp_memory.text import well_formed, without_blocks
from mcp_memory.types import NewTurn, Role

__all__ = ["MAX_TURN_BYTES", "SUMMARY", "admit", "recall_block"]

MAX_TURN_BYTES = 4 * 2**20
MAX_TURNS = 5_000

SUMMARY: tuple[Role, str] = ("system", "summary")
"""Role and name of the turn that tells what a conversation was before its client summed it up."""

_TAG = "mcp-memory-recall"
_OPENING = re.compile(rf"(<|&lt;|\\u003[cC]){_TAG}\b[^<>\n]{{0,200}}?(>|&gt;|\\u003[eE])")
"""As we write it, and as a page or a JSON text quotes it."""
_TAG_LIKE = re.compile(rf"<(?=\s*/?\s*{_TAG})", re.IGNORECASE)


def recall_block(text: str, *, part: str) -> str:
    """Return the text fenced as recalled data; no tag inside it can close the fence."""
    return f'<{_TAG} part="{part}">\n{_TAG_LIKE.sub("&lt;", text)}\n</{_TAG}>'


def admit(turns: Sequence[NewTurn]) -> tuple[list[NewTurn], int]:
    """Return the turns to store, without recalled blocks, and how many held nothing else.

    Raises InvalidInput, and stores nothing, when one of them cannot be stored as it is.
    """
    if not turns:
        raise InvalidInput("There are no turns to record. Pass at least one {role, content}.")
    if len(turns) > MAX_TURNS:
        raise InvalidInput(f"{len(turns)} turns at once are too many. Send at most {MAX_TURNS} in a call.")
    kept: list[NewTurn] = []
    for place, turn in enumerate(turns, start=1):
        _check(turn, place)
        content = _own(turn.content)
        if content.strip():
            kept.append(replace(turn, content=content))
    return kept, len(turns) - len(kept)


def _own(text: str) -> str:
    if _TAG not in text:
        return text
    return without_blocks(text, _OPENING, lambda found: f"{found[1]}/{_TAG}{found[2]}", after=r"[ \t]*\n?")


def _check(turn: NewTurn, place: int) -> None:
    if not turn.content.strip():
        raise InvalidInput(f"Turn {place} is empty. Leave it out; nothing of this call was stored.")
    for field in (turn.content, turn.name or "", turn.client_id or ""):
        if not well_formed(field):
            raise InvalidInput(
                f"Turn {place} has a lone surrogate, which is not text. Send U+FFFD in its place, or keep the raw "
                "bytes with offload_tool_result; nothing of this call was stored."
            )
    if len(turn.content) > MAX_TURN_BYTES or len(turn.content.encode()) > MAX_TURN_BYTES:
        raise InvalidInput(
            f"Turn {place} is larger than {MAX_TURN_BYTES // 2**20} MiB. Keep it with offload_tool_result and record "
            "what was said about it; nothing of this call was stored."
        )
