"""The clients' own logs, searched for earlier recalls and full outputs; `following` reads them as they grow.

Claude Code logs each text that a hook adds to a context as an attachment, Codex as a message; a compaction removes them
from the context. Gemini CLI writes them into the user's words; its log is not searched. Codex logs the full output of a
command before it shows the cut output to hook and model.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mcp_memory.core.regular_files import open_regular
from mcp_memory.integrations.importers.records import list_of, object_of

_OURS = b"mcp-memory-recall"
_BOUNDARIES = (b'"compact_boundary"', b'"compacted"')
_TAIL = 16 * 2**20
"""Bytes at the end of a log that are searched: Codex keeps 1 MB of an output, at most 6 MB as JSON."""
_MAX_BYTES = 512 * 2**20
"""Bytes at the end of a log that are searched for recalled texts, in less than a second."""


def recalled_before(log: Path | None) -> list[str]:
    """Return the texts that hooks added to the current context; empty if the log cannot be read."""
    texts: list[str] = []
    if log is None:
        return texts
    try:
        with open_regular(log) as lines:
            end = os.fstat(lines.fileno()).st_size
            lines.seek(max(0, end - _MAX_BYTES))
            while (left := end - lines.tell()) > 0 and (line := lines.readline(min(left, _TAIL))):
                if any(mark in line for mark in _BOUNDARIES) and _is_boundary(_parse_line(line)):
                    texts.clear()
                elif _OURS in line:
                    texts += _texts(_parse_line(line))
    except OSError:
        return texts
    return texts


def whole_output(log: Path | None, call: str | None) -> str | None:
    """Return the full output of a command from the log of Codex; None if it is not there."""
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
            item = object_of((object_of(_parse_line(line).get("payload")) or {}).get("item")) or {}
            if item.get("id") == call and isinstance(item.get("aggregated_output"), str):
                return item["aggregated_output"]
    return None


def _parse_line(line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return object_of(value) or {}


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
