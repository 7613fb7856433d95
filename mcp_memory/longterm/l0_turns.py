"""L0: turns on their way in. What this system itself put into a context is cut out, and secrets are masked.

Recalled text that were stored again would be found, recalled and stored once more; peers filled up with
echoes that way. So recalled blocks carry a tag that nothing inside can close, and the tag is what is cut.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.secrets import mask, mask_id
from mcp_memory.core.text import is_blank, well_formed, without_blocks, zoned
from mcp_memory.core.types import NewTurn, Role
from mcp_memory.suspicion import TAG, defused

__all__ = ["MAX_TURN_BYTES", "SUMMARY", "Admitted", "admit", "recall_block"]

MAX_TURN_BYTES = 4 * 2**20
MAX_TURNS = 5_000

SUMMARY: tuple[Role, str] = ("system", "summary")
"""Role and name of the turn that tells what a conversation was before its client summed it up."""

_TAG = TAG
_OPENING = re.compile(rf"(<|&lt;|\\u003[cC]){_TAG}\b[^<>\n]{{0,200}}?(>|&gt;|\\u003[eE])")
"""As we write it, and as a page or a JSON text quotes it."""


def recall_block(text: str, *, part: str) -> str:
    """Return the text fenced as recalled data; nothing inside it can close the fence, or be taken for another's."""
    return f'<{_TAG} part="{part}">\n{defused(text)}\n</{_TAG}>'


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """The turns to store. `emptied` held nothing but what was recalled; in `masked` of those kept a secret stood."""

    turns: list[NewTurn]
    emptied: int
    masked: int


def admit(turns: Sequence[NewTurn]) -> Admitted:
    """Return the turns to store, without recalled blocks and secrets.

    Raises InvalidInput, and stores nothing, when one of them cannot be stored as it is.
    """
    if not turns:
        raise InvalidInput("There are no turns to record. Pass at least one {role, content}.")
    if len(turns) > MAX_TURNS:
        raise InvalidInput(f"{len(turns)} turns at once are too many. Send at most {MAX_TURNS} in a call.")
    kept: list[NewTurn] = []
    masked = 0
    for place, turn in enumerate(turns, start=1):
        _check(turn, place)
        told = _own(turn.content)
        if not is_blank(told):
            content = mask(told, prose=turn.role != "tool")
            masked += content != told
            name = None if turn.name is None else mask(turn.name)
            id = None if turn.client_id is None else mask_id(turn.client_id)
            kept.append(replace(turn, content=content, name=name, client_id=id))
    return Admitted(turns=kept, emptied=len(turns) - len(kept), masked=masked)


def _own(text: str) -> str:
    if _TAG not in text:
        return text
    return without_blocks(text, _OPENING, lambda found: f"{found[1]}/{_TAG}{found[2]}", after=r"[ \t]*\n?")


def _check(turn: NewTurn, place: int) -> None:
    if is_blank(turn.content):
        raise InvalidInput(
            f"Turn {place} is empty: it has no visible character. Leave it out; nothing of this call was stored."
        )
    if turn.said_at is not None:
        try:
            zoned(turn.said_at)
        except ValueError:
            raise InvalidInput(
                f"Turn {place} was said at {turn.said_at.isoformat()}, which is out of range. Send a time such as "
                "2026-05-07T10:00:00Z; nothing of this call was stored."
            ) from None
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
