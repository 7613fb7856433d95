"""What was put before a model earlier in its conversation, and what it is shown cut, read from its client's own log.

Claude Code notes each text that a hook adds to a context as an attachment, Codex as a message. A compaction leaves
none of them there. Gemini CLI writes them into what the user said, and is not read. Codex notes the output of a command
whole before it shows a hook, and the model, as much of it as it lets through.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mcp_memory.core.regular_files import open_regular
from mcp_memory.integrations.importers.formats.told import list_of, object_of

__all__ = ["told_before", "whole_output"]

_OURS = b"mcp-memory-recall"
_BOUNDARIES = (b'"compact_boundary"', b'"compacted"')
_TAIL = 16 * 2**20
"""Bytes at the end of a log that are looked at: Codex keeps a megabyte of an output, and six as JSON at worst."""
_MOST = 512 * 2**20
"""Bytes at the end of a log in which it is looked for what was told: less than a second's work."""


def told_before(log: Path | None) -> list[str]:
    """Return what we put into the context that a log leads up to; nothing where it cannot be read."""
    told: list[str] = []
    if log is None:
        return told
    try:
        with open_regular(log) as lines:
            end = os.fstat(lines.fileno()).st_size
            lines.seek(max(0, end - _MOST))
            while (left := end - lines.tell()) > 0 and (line := lines.readline(min(left, _TAIL))):
                if any(mark in line for mark in _BOUNDARIES) and _is_boundary(_read(line)):
                    told.clear()
                elif _OURS in line:
                    told += _texts(_read(line))
    except OSError:
        return told
    return told


def whole_output(log: Path | None, call: str | None) -> str | None:
    """Return the output of a command as Codex noted it when the command ended; None where its log has none."""
    if log is None or not call:
        return None
    try:
        with open_regular(log) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
            lines = file.read(_TAIL).split(b"\n")
    except OSError:
        return None
    for line in reversed(lines):
        if b'"aggregated_output"' in line and call.encode() in line:
            item = object_of((object_of(_read(line).get("payload")) or {}).get("item")) or {}
            if item.get("id") == call and isinstance(item.get("aggregated_output"), str):
                return item["aggregated_output"]
    return None


def _read(line: bytes) -> dict[str, Any]:
    try:
        held = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return object_of(held) or {}


def _is_boundary(line: Mapping[str, Any]) -> bool:
    return line.get("subtype") == "compact_boundary" or line.get("type") == "compacted"


def _texts(line: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts of Claude Code's attachment, or of Codex's message to the model."""
    attachment, message = object_of(line.get("attachment")) or {}, object_of(line.get("payload")) or {}
    if attachment.get("type") == "hook_additional_context":
        yield from (text for text in list_of(attachment.get("content")) or [] if isinstance(text, str))
    if message.get("role") == "developer":
        parts = [object_of(part) or {} for part in list_of(message.get("content")) or []]
        yield from (part["text"] for part in parts if isinstance(part.get("text"), str))
