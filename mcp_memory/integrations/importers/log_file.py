"""The log of a coding agent as a file: whose it is, and what was written to it since it was read last.

Read in pieces, each with the place behind it, up to the last whole line that it has when it is opened: a file that
grows all the time is read to an end. It is known again by hashes of its first bytes and of those before the place that
was reached: one that shrank, was replaced or was written anew is read from its start. Lines that are no JSON, or longer
than 64 MiB, are counted and passed over. A log that is one document (of older versions of Gemini CLI) is read whole
when it has changed.

Where the logs of coding agents are. Reads the names and the first lines of files, and writes nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import count, islice
from pathlib import Path
from typing import IO, Any, assert_never

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.regular_files import open_regular, read_regular, written_ms
from mcp_memory.integrations.importers.agent_logs import FORMATS, LogState
from mcp_memory.integrations.importers.records import (
    AGENTS,
    Agent,
    ImportedResult,
    ImportedTurn,
    ImportProblem,
    SkippedParts,
)
from mcp_memory.store.protocol import FollowedLog

_FIRST_LINES, _FIRST_BYTES = 40, 2**20
_LONGEST = 64 * 2**20
_LARGEST_DOCUMENT = 256 * 2**20
_LARGEST_RESULT = 128 * 2**20
_HEAD, _TAIL = 1_024, 256
_LINES, _BYTES = 400, 4 * 2**20  # of a piece


@dataclass(kw_only=True)
class LogChunk:
    """What some lines tell. `offset`, `head`, `tail` and `so_far` are what has to be noted when it is stored."""

    turns: list[ImportedTurn] = field(default_factory=list[ImportedTurn])
    results: list[ImportedResult] = field(default_factory=list[ImportedResult])
    passed: SkippedParts = field(default_factory=SkippedParts)
    clock: datetime
    """When the last line of it that names a time was written; the file's own time before there is one."""
    bad: int = 0
    torn: bool = False
    offset: int = 0
    head: str = ""
    tail: str = ""
    so_far: LogState


def agent_of(path: Path) -> Agent | None:
    """Tell whose log a file is; None where it is none. InvalidInput where it cannot be read."""
    try:
        with open_regular(path) as stream:
            head = stream.read(2_048)
            if head.lstrip().startswith(b"{") and b'"sessionId"' in head and b'"projectHash"' in head:
                return "gemini"
            if not head.lstrip().startswith(b"{"):
                return None
            stream.seek(0)
            for _ in range(_FIRST_LINES):
                value = _parsed(stream.readline(_FIRST_BYTES))
                for agent in AGENTS:
                    if FORMATS[agent].is_line(value):
                        return agent
    except OSError as error:
        raise _unreadable(path, error) from error
    return None


def read_chunks(path: Path, agent: Agent, known: FollowedLog | None) -> Generator[LogChunk, None, None]:
    """Yield what was written since the log was `known`, or all of it. InvalidInput where it cannot be read."""
    try:
        with open_regular(path) as stream:
            if agent == "gemini" and path.suffix == ".json":
                yield from _document(stream, agent, known, path)
            else:
                yield from _lines(stream, agent, known)
    except OSError as error:
        raise _unreadable(path, error) from error


def whole_of(path: Path, agent: Agent, conversation: str, name: str) -> bytes | None:
    """Return a result that the client put into a file of the conversation; None where there is no such file.

    `name` is the last part of a path: nothing outside the conversation's own folder is read.
    """
    if agent == "gemini":
        folder = path.parent.parent / "tool-outputs" / f"session-{conversation}"
    else:
        folder = path.with_suffix("") / "tool-results"
    found = folder / name
    try:
        if found.resolve().parent != folder.resolve():
            return None
        return read_regular(found, _LARGEST_RESULT) or None
    except (OSError, RuntimeError):  # RuntimeError: a link that leads to itself
        return None


# --- lines ------------------------------------------------------------------------------------------


def _lines(stream: IO[bytes], agent: Agent, known: FollowedLog | None) -> Iterator[LogChunk]:
    offset, so_far = _reached(stream, known)
    clock = _written(stream)
    name = "new line" if offset else "line"
    end = os.fstat(stream.fileno()).st_size
    stream.seek(offset)
    numbers = count(1)
    is_rest = False  # of a line that is too long
    while True:
        piece, start = LogChunk(so_far=so_far, clock=clock), offset
        for number in islice(numbers, _LINES):
            data = stream.readline(max(0, min(_LONGEST, end - offset)))
            ended = data.endswith(b"\n")
            is_too_long = is_rest or (len(data) == _LONGEST and not ended)
            value = None if is_too_long else _parsed(data)
            if value is None and not ended and not (is_too_long and data):
                piece.torn = len(data) > 0
                break
            offset += len(data)
            if data.strip() and not is_rest:
                _take(piece, agent, value, f"{name} {number}")
            is_rest = is_too_long and not ended
            if offset - start > _BYTES:
                break
        if offset == start and not piece.torn:
            return
        clock = piece.clock
        piece.offset = offset
        piece.head, piece.tail = _marks(stream, offset)
        stream.seek(offset)
        yield piece
        if piece.torn:
            return


def _take(piece: LogChunk, agent: Agent, value: Any, where: str) -> None:
    if value is None:
        piece.bad += 1
        return
    for one in FORMATS[agent].records(value, where, piece.so_far, piece.passed):
        if not isinstance(one, ImportProblem):
            piece.clock = one.said_at or piece.clock
        match one:
            case ImportedTurn():
                piece.turns.append(replace(one, began=piece.clock))
            case ImportedResult():
                piece.results.append(replace(one, said_at=piece.clock))
            case _:
                piece.bad += 1


def _parsed(data: bytes) -> Any:
    """Return the object of a line; None where it is none. What is cut off is never one."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None  # pyright: ignore[reportUnknownVariableType]


# --- how far ----------------------------------------------------------------------------------------


def _reached(stream: IO[bytes], known: FollowedLog | None) -> tuple[int, LogState]:
    """Return where to go on, and what is known by then."""
    if known is not None and _marks(stream, known.offset) == (known.head, known.tail):
        try:
            return known.offset, LogState.loaded(known.state)
        except (TypeError, ValueError, AttributeError):  # of another version: all of it is known again
            pass
    return 0, LogState()


def _marks(stream: IO[bytes], offset: int) -> tuple[str, str]:
    """Return hashes of the first bytes and of those before the place; of what is not there, none that is noted."""
    stream.seek(0)
    head = stream.read(min(_HEAD, offset))
    stream.seek(max(0, offset - _TAIL))
    tail = stream.read(min(_TAIL, offset))
    return (_hash(head), _hash(tail)) if len(tail) == min(_TAIL, offset) else ("", "")


def _written(stream: IO[bytes]) -> datetime:
    """Return the file's own time."""
    return datetime.fromtimestamp(written_ms(os.fstat(stream.fileno())) / 1000, UTC)


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:24]


# --- documents --------------------------------------------------------------------------------------


def _document(stream: IO[bytes], agent: Agent, known: FollowedLog | None, path: Path) -> Iterator[LogChunk]:
    stream.seek(0)
    data = stream.read(_LARGEST_DOCUMENT + 1)
    if len(data) > _LARGEST_DOCUMENT:
        raise InvalidInput(f"{path} is larger than {_LARGEST_DOCUMENT // 2**20} MiB, too large for one JSON document.")
    digest = _hash(data)
    if known is not None and known.head == digest:
        return
    value = _parsed(data)
    piece = LogChunk(so_far=LogState(), clock=_written(stream), offset=len(data), head=digest, torn=value is None)
    if value is not None:
        _take(piece, agent, value, "document")
    else:
        piece.offset, piece.head = 0, ""
    yield piece


def _unreadable(path: Path, error: OSError) -> InvalidInput:
    return InvalidInput(f"{path} cannot be read: {error.strerror or error}.")


_ENDINGS = (".jsonl", ".json")
_PASSED = {"subagents", "tool-results", "tool-outputs", "node_modules", ".git"}


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentLog:
    """A log that was found, and whose it is."""

    path: Path
    client: Agent


def log_folders(client: Agent, *, environ: Mapping[str, str], home: Path) -> list[Path]:
    """Return the folders in which a client keeps its logs, whether they are there or not."""
    match client:
        case "claude-code":
            return [Path(environ.get("CLAUDE_CONFIG_DIR") or home / ".claude") / "projects"]
        case "codex":
            base = Path(environ.get("CODEX_HOME") or home / ".codex")
            return [base / "sessions", base / "archived_sessions"]
        case "gemini":
            return [Path(environ.get("GEMINI_CLI_HOME") or home) / ".gemini" / "tmp"]
        case _:
            assert_never(client)


def logs_in(folder: Path, known: dict[Path, Agent | None]) -> Iterator[AgentLog]:
    """Yield the logs in a folder and those below it, by name. Links to folders are not followed.

    `known` keeps what files were found to be, from one call to the next.
    """
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _PASSED)
        for name in sorted(files):
            path = Path(parent, name)
            if not name.endswith(_ENDINGS):
                continue
            if path not in known:
                try:
                    known[path] = agent_of(path)
                except InvalidInput:  # gone again, or not ours to read
                    continue
            if (client := known[path]) is not None:
                yield AgentLog(path=path, client=client)
