"""Histories written to files in every shape, and what a memory holds after importing them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from mcp_memory.core.types import Recorded
from mcp_memory.integrations.importers.history import ImportOptions, import_file, records, source_of, survey
from mcp_memory.integrations.importers.records import ImportedResult, SkippedParts, SourceValue
from mcp_memory.integrations.importers.report import FileReport, Survey
from mcp_memory.service.memory import Memory
from tests.in_memory import in_memory

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
Row = tuple[str, str, str | None, str, datetime]
"""Role, content, name, hash, time."""


def turn(content: str, *, session: str | None = "trip", role: str = "user", **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **({} if session is None else {"session": session}), **more}


def jsonl(values: Sequence[Any], *, end: str = "\n") -> bytes:
    return "".join(json.dumps(value, ensure_ascii=False) + end for value in values).encode()


@pytest.fixture
def file(tmp_path: Path) -> Callable[..., Path]:
    """Write a file; its mtime is long past, so that it is not taken for one being written."""

    def write(data: bytes, name: str = "history.jsonl", *, modified: int = 1_700_000_000) -> Path:
        path = tmp_path / name
        path.write_bytes(data)
        os.utime(path, (modified, modified))
        return path

    return write


def seen(path: Path, **asked: Any) -> Survey:
    """What the first pass finds in a file."""
    return survey(source_of(path), ImportOptions(**asked), on_read=lambda _: None)


def told(path: Path, **asked: Any) -> list[Any]:
    """What a file tells, right and wrong."""
    found = seen(path, **asked)
    return list(
        records(source_of(path), ImportOptions(**asked), found.layout, skipped=found.skipped, on_read=lambda _: None)
    )


Records = Callable[[SourceValue, SkippedParts], Iterable[Any]]


def without_results(records: Records, value: Any, skipped: SkippedParts | None = None) -> list[Any]:
    """What the records of a format tell of a conversation, but for the results of its tools."""
    found = records(SourceValue(value, "line 1, [0]"), skipped or SkippedParts())
    return [one for one in found if not isinstance(one, ImportedResult)]


def results_alone(records: Records, value: Any) -> list[ImportedResult]:
    found = records(SourceValue(value, "line 1, [0]"), SkippedParts())
    return [one for one in found if isinstance(one, ImportedResult)]


class Killed(BaseException):
    """Raised where a process would have been killed."""


class Mortal:
    """A memory whose process is killed in the nth call that stores something."""

    def __init__(self, memory: Memory, lives: int) -> None:
        self._memory = memory
        self._lives = lives
        self.imported = memory.imported
        self.note_import = memory.note_import
        self.secret = memory.secret
        self.client_turns = memory.client_turns
        self.session_turns = memory.session_turns

    async def record_turns(self, turns: Sequence[Any], *, session: str) -> Recorded:
        if self._lives == 0:
            raise Killed
        self._lives -= 1
        return await self._memory.record_turns(turns, session=session)


def silent(doing: str, done: int, of: int) -> None: ...


def brought(
    home: Path, path: Path, *, lives: int | None = None, progress: Callable[..., None] = silent, **asked: Any
) -> FileReport:
    """Import a file into the memory at `home`."""
    source = source_of(path)

    async def visit(memory: Memory) -> FileReport:
        into: Any = memory if lives is None else Mortal(memory, lives)
        return await import_file(into, source, ImportOptions(**asked), now=NOW, progress=progress)

    return in_memory(home, visit)


def rows(home: Path) -> dict[str, list[Row]]:
    """Every turn that is stored, by session, in order."""

    async def visit(memory: Memory) -> dict[str, list[Row]]:
        return {
            info.session: [
                (one.role, one.content, one.name, one.sha256, one.said_at)
                for one in await memory.session_turns(info.session, limit=10_000)
            ]
            for info in sorted(await memory.sessions(limit=10_000), key=lambda info: info.session)
        }

    return in_memory(home, visit)


def contents(home: Path) -> dict[str, list[str]]:
    return {session: [row[1] for row in kept] for session, kept in rows(home).items()}
