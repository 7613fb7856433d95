"""The hash of a turn, which detects words that differ from those that a client sent.

It covers the fields as the client sent them. It includes a version, so that old hashes can still be checked if the
fields ever change. It does not depend on the engine.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from mcp_memory.core.types import NewTurn, Turn

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def evidence_hash(turn: NewTurn) -> bytes:
    """Return SHA-256 over the tagged, length-prefixed fields that a client sent; times in whole milliseconds."""
    said_ms = "" if turn.said_at is None or turn.guessed else str((turn.said_at - _EPOCH) // timedelta(milliseconds=1))
    digest = hashlib.sha256(b"mcp-memory turn 1\n")
    for field in (turn.role, turn.name or "", said_ms, turn.content):
        data = field.encode()
        digest.update(b"%d:" % len(data) + data)
    return digest.digest()


def is_intact(turn: Turn) -> bool:
    """Return whether a stored turn matches its hash, which includes the time only if the client gave a time."""
    sent = NewTurn(role=turn.role, name=turn.name, content=turn.content, said_at=turn.said_at)
    return turn.sha256 in (evidence_hash(sent).hex(), evidence_hash(replace(sent, said_at=None)).hex())
