"""Conversations that plugins handed over and that could not be stored: a file each, beside the notes of pending logs.

A later hand-over of the same conversation replaces its file, as long as it begins with the same message. Together the
files have at most 64 MB; the oldest go first. They have neither secrets nor private passages.
"""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, cast

from mcp_memory.core.private_files import replace_private
from mcp_memory.core.private_passages import without_private
from mcp_memory.core.regular_files import remove_own
from mcp_memory.core.secrets.masking import mask_values
from mcp_memory.integrations.hooks.daemon_files import DaemonFiles

logger = logging.getLogger(__name__)

_ENDING = ".conversation"
_MAX_BYTES = 64 * 2**20
_BEGINNING = 2_000
"""Characters by which a conversation is recognised."""


def save_conversation(files: DaemonFiles, session: str, conversation: Any) -> Path:
    """Write a conversation to its file, and return the file. Raises OSError."""
    text = json.dumps(mask_values(_without_private(conversation)))
    key = f"{files.space or ''}\n{session}\n{text[:_BEGINNING]}".encode()
    file = files.waiting / f"{blake2b(key, digest_size=8).hexdigest()}{_ENDING}"
    replace_private(file, text.encode())
    kept = 0
    for other in sorted(files.waiting.glob(f"*{_ENDING}"), key=lambda each: each.stat().st_mtime, reverse=True):
        kept += other.stat().st_size
        if kept > _MAX_BYTES:
            logger.warning("the queue is full: a conversation that could not be stored was deleted")
            with suppress(OSError):
                remove_own(other)
    return file


def is_queued_conversation(file: Path, files: DaemonFiles) -> bool:
    return file.parent == files.waiting and file.suffix == _ENDING


def _without_private(value: Any) -> Any:
    match value:
        case str():
            return without_private(value)
        case list():
            return [_without_private(item) for item in cast("list[Any]", value)]
        case dict():
            return {key: _without_private(item) for key, item in cast("dict[str, Any]", value).items()}
        case _:
            return value
