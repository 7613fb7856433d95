"""Writes histories to files in every shape, imports them, and reads the stored turns."""

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
    """Write a file with an old mtime, so that it does not look like a file that is being written."""

    def write(data: bytes, name: str = "history.jsonl", *, modified: int = 1_700_000_000) -> Path:
        path = tmp_path / name
        path.write_bytes(data)
        os.utime(path, (modified, modified))
        return path

    return write


def survey_path(path: Path, **options: Any) -> Survey:
    """Return the result of the first pass over a file."""
    return survey(source_of(path), ImportOptions(**options), on_read=lambda _: None)


def read_records(path: Path, **options: Any) -> list[Any]:
    """Return all records of a file, with its problems."""
    survey_report = survey_path(path, **options)
    return list(
        records(
            source_of(path),
            ImportOptions(**options),
            survey_report.layout,
            skipped=survey_report.skipped,
            on_read=lambda _: None,
        )
    )


Records = Callable[[SourceValue, SkippedParts], Iterable[Any]]


def without_results(records: Records, value: Any, skipped: SkippedParts | None = None) -> list[Any]:
    """Return the records of a conversation without its tool results."""
    yielded = records(SourceValue(value, "line 1, [0]"), skipped or SkippedParts())
    return [record for record in yielded if not isinstance(record, ImportedResult)]


def only_results(records: Records, value: Any) -> list[ImportedResult]:
    yielded = records(SourceValue(value, "line 1, [0]"), SkippedParts())
    return [record for record in yielded if isinstance(record, ImportedResult)]


class Killed(BaseException):
    """Raised instead of killing the process."""


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


def import_into(
    home: Path, path: Path, *, lives: int | None = None, progress: Callable[..., None] = silent, **options: Any
) -> FileReport:
    """Import a file into the memory at `home`."""
    source = source_of(path)

    async def visit(memory: Memory) -> FileReport:
        into: Any = memory if lives is None else Mortal(memory, lives)
        return await import_file(into, source, ImportOptions(**options), now=NOW, progress=progress)

    return in_memory(home, visit)


def rows(home: Path) -> dict[str, list[Row]]:
    """Return the stored turns of each session, in order."""

    async def visit(memory: Memory) -> dict[str, list[Row]]:
        return {
            info.session: [
                (stored.role, stored.content, stored.name, stored.sha256, stored.said_at)
                for stored in await memory.session_turns(info.session, limit=10_000)
            ]
            for info in sorted(await memory.sessions(limit=10_000), key=lambda info: info.session)
        }

    return in_memory(home, visit)


def contents(home: Path) -> dict[str, list[str]]:
    return {session: [row[1] for row in kept] for session, kept in rows(home).items()}
