"""What was put before a model earlier in its conversation, read back from its client's own log.

Claude Code notes each text that a hook adds to a context, as an attachment. A compaction leaves none of them there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mcp_memory.importing.formats.told import list_of, object_of

__all__ = ["told_before"]

_BOUNDARY = b'"compact_boundary"'
_OURS = b"mcp-memory-recall"


def told_before(log: Path | None) -> list[str]:
    """Return what we put into the context that a log leads up to; nothing where it cannot be read."""
    told: list[str] = []
    if log is None:
        return told
    try:
        with log.open("rb") as lines:
            for line in lines:
                if _BOUNDARY in line and _read(line).get("subtype") == "compact_boundary":
                    told.clear()
                elif _OURS in line:
                    told += _texts(_read(line).get("attachment"))
    except OSError:
        return told
    return told


def _read(line: bytes) -> dict[str, Any]:
    try:
        held = json.loads(line)
    except ValueError:
        return {}
    return object_of(held) or {}


def _texts(attachment: object) -> Iterator[str]:
    held = object_of(attachment) or {}
    if held.get("type") == "hook_additional_context":
        yield from (text for text in list_of(held.get("content")) or [] if isinstance(text, str))
