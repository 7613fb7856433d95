"""Reads sessions that are spread over several files. For formats; blocks.

The title of a file of messages is often in another file of the folder, which may be missing. The same session may also
be stored twice, in two forms.
"""

from __future__ import annotations

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
)
from mcp_memory.integrations.importers.sqlite_file import Database, open_database
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


Load = Callable[[Path], Iterator[SourceValue | ImportProblem]]
"""A `Format.load`."""


def load_lines(session: Callable[[Path, list[Any]], Mapping[str, Any]]) -> Load:
    """Return a function that reads a file of JSON lines; `session` turns its objects into a session."""

    def load(path: Path) -> Iterator[SourceValue | ImportProblem]:
        for value in whole_lines(readable_file(path)):
            if isinstance(value, ImportProblem):
                yield value
            else:
                yield replace(value, value=session(path, value.value))

    return load


def load_document(session: Callable[[Path, Any], Mapping[str, Any]]) -> Load:
    """Return a function that reads a file with a JSON document; `session` turns it into a session."""

    def load(path: Path) -> Iterator[SourceValue | ImportProblem]:
        yield SourceValue(session(path, read_json(path)), path.name, path=path.as_posix())

    return load


def load_database(sessions: Callable[[Database], Iterator[tuple[str, Any]]]) -> Load:
    """Return a function that reads a database; `sessions` yields each session after its name in messages."""

    def load(path: Path) -> Iterator[SourceValue | ImportProblem]:
        with open_database(path) as database:
            for number, (name, session) in enumerate(sessions(database), start=1):
                yield SourceValue(session, name, number, path.as_posix())

    return load


def chat_records(chat: Chat, *, sub_agent: Callable[[SourceValue], bool] = lambda _: False) -> Records:
    """Return a function that yields the records of a chat; it only counts sessions of sub-agents and copies.

    In a session of a sub-agent, the messages of the user are from a program. A copy has the field `is_copy`.
    """

    def records(source: SourceValue, skipped: SkippedParts) -> Iterator[AnyRecord]:
        if sub_agent(source):
            skipped.left_out[SUB_AGENTS] += len(list_of(source.value) or items_of(source.value, "messages"))
        elif find(source.value, "is_copy") is True:
            skipped.left_out[COPIES] += 1
        else:
            yield from chat.records(source, skipped)

    return records


def beside(*names: str) -> Callable[[Path], Sequence[Path]]:
    """Return a function that returns the files of these names in the folder of a file, for `Format.parts`."""
    return lambda path: [path.with_name(name) for name in names]


def write_ahead_log(path: Path) -> Sequence[Path]:
    """Return the write-ahead log of a database, for `Format.parts`."""
    return [path.with_name(f"{path.name}-wal")]
