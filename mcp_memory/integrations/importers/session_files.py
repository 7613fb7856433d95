"""Reads sessions that are spread over several files. For formats; blocks.

A file of messages often has the title beside it, in a file that may be missing; the same session may also be stored
twice, in two forms.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.regular_files import open_regular
from mcp_memory.integrations.importers.chat import Chat
from mcp_memory.integrations.importers.format import AnyRecord, Records
from mcp_memory.integrations.importers.parts import SUB_AGENTS
from mcp_memory.integrations.importers.reader import read_json, whole_lines
from mcp_memory.integrations.importers.records import (
    ImportProblem,
    SkippedParts,
    SourceValue,
    find,
    items_of,
    list_of,
    object_of,
)
from mcp_memory.integrations.importers.streams import readable_file

COPIES = "copies of sessions that are stored in another file too"
_HEAD = 64 * 2**10


def json_at(path: Path) -> Any:
    """Return the JSON document of a file; None if it is missing or cannot be read."""
    try:
        return read_json(path)
    except InvalidInput:
        return None


def text_at(path: Path, *, whole: bool = False) -> str:
    """Return the first 64 KiB of a file, or all of it; empty if it is missing or cannot be read."""
    try:
        with open_regular(path) as stream:
            return stream.read(-1 if whole else _HEAD).decode("utf-8", "replace")
    except OSError:
        return ""


def object_in(text: Any) -> dict[str, Any]:
    """Return the JSON object in a column of a database; empty if there is none."""
    try:
        return object_of(json.loads(text or "null")) or {}
    except (ValueError, TypeError, RecursionError):
        return {}


def list_in(text: Any) -> list[Any]:
    """Return the JSON array in a column of a database; empty if there is none."""
    try:
        return list_of(json.loads(text or "null")) or []
    except (ValueError, TypeError, RecursionError):
        return []


def load_lines(
    session: Callable[[Path, list[Any]], Mapping[str, Any]],
) -> Callable[[Path], Iterator[SourceValue | ImportProblem]]:
    """Return a `Format.load` that yields a file of JSON lines as the value that `session` makes of its objects."""

    def load(path: Path) -> Iterator[SourceValue | ImportProblem]:
        for value in whole_lines(readable_file(path)):
            if isinstance(value, ImportProblem):
                yield value
            else:
                yield replace(value, value=session(path, value.value))

    return load


def load_document(
    session: Callable[[Path, Any], Mapping[str, Any]],
) -> Callable[[Path], Iterator[SourceValue | ImportProblem]]:
    """Return a `Format.load` that yields a JSON document as the value that `session` makes of it."""

    def load(path: Path) -> Iterator[SourceValue | ImportProblem]:
        yield SourceValue(session(path, read_json(path)), path.name, path=path.as_posix())

    return load


def chat_records(
    chat: Chat,
    *,
    sub_agent: Callable[[SourceValue], bool] = lambda _: False,
    copy: str = "is_copy",
    messages: str = "messages",
) -> Records:
    """Return the records of a chat, except those of sub-agents and of copies, which are counted.

    In a session of a sub-agent the user is a program. `copy` is the field that says that a session is a copy.
    """

    def records(source: SourceValue, skipped: SkippedParts) -> Iterator[AnyRecord]:
        if sub_agent(source):
            skipped.left_out[SUB_AGENTS] += len(items_of(source.value, messages))
        elif find(source.value, copy) is True:
            skipped.left_out[COPIES] += 1
        else:
            yield from chat.records(source, skipped)

    return records


def beside(*names: str) -> Callable[[Path], Sequence[Path]]:
    """Return a `Format.parts` that names files in the folder of a file."""
    return lambda path: [path.with_name(name) for name in names]
