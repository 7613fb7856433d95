"""The logs of coding agents as files: finds them, recognises their agents, and reads their new lines.

A log is read in chunks up to the last whole line that it has when opened, so reading a growing file ends. A log is
recognised by hashes of its first bytes and of those before the position reached: one that shrank, was replaced or
rewritten is read from its start. Lines that are not JSON, or longer than 64 MiB, are counted and skipped. A log that is
one document (older versions of Gemini CLI) is read whole when it has changed.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import count, islice
from pathlib import Path
from typing import IO, Any

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.keyed import keyed_hash
from mcp_memory.core.regular_files import modified_ms, open_regular, read_regular
from mcp_memory.core.secrets.masking import mask_name
from mcp_memory.integrations.importers.agent_logs import FORMATS, LogState
from mcp_memory.integrations.importers.records import (
    AGENTS,
    Agent,
    ImportedResult,
    ImportedTurn,
    ImportProblem,
    SkippedParts,
)
from mcp_memory.store.values import FollowedLog

_ENDINGS = (".jsonl", ".json")
_NO_LOGS = {"subagents", "tool-results", "tool-outputs", "node_modules", ".git"}
_FIRST_LINES, _FIRST_BYTES = 40, 2**20
_LONGEST = 64 * 2**20
_LARGEST_DOCUMENT = 256 * 2**20
_LARGEST_RESULT = 128 * 2**20
_HEAD, _TAIL = 1_024, 256
_LINES, _BYTES = 400, 4 * 2**20  # of a chunk


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentLog:
    path: Path
    client: Agent


def log_folders(client: Agent, *, environ: Mapping[str, str], home: Path) -> list[Path]:
    """Return the folders in which a client keeps its logs, existing or not."""
    match client:
        case "claude-code":
            return [Path(environ.get("CLAUDE_CONFIG_DIR") or home / ".claude") / "projects"]
        case "codex":
            base = Path(environ.get("CODEX_HOME") or home / ".codex")
            return [base / "sessions", base / "archived_sessions"]
        case "gemini":
            return [Path(environ.get("GEMINI_CLI_HOME") or home) / ".gemini" / "tmp"]


def logs_in(folder: Path, known: dict[Path, Agent | None]) -> Iterator[AgentLog]:
    """Yield the logs in a folder and its subfolders, by name. Links to folders are not followed.

    `known` caches whose log each file is, from one call to the next.
    """
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _NO_LOGS)
        for path in (Path(parent, name) for name in sorted(files) if name.endswith(_ENDINGS)):
            if path not in known:
                try:
                    known[path] = agent_of(path)
                except InvalidInput:  # gone, or not readable for this user
                    continue
            if (client := known[path]) is not None:
                yield AgentLog(path=path, client=client)


@dataclass(kw_only=True)
class LogChunk:
    """The records of some lines, and the position behind them."""

    state: LogState
    clock: datetime
    """The time of the last line that has one; before, the file's own time."""
    turns: list[ImportedTurn] = field(default_factory=list[ImportedTurn])
    results: list[ImportedResult] = field(default_factory=list[ImportedResult])
    passed: SkippedParts = field(default_factory=SkippedParts)
    bad: int = 0
    torn: bool = False
    offset: int = 0
    head: str = ""
    tail: str = ""

    @property
    def conversation(self) -> str | None:
        """The client's id of the conversation; None before it is known, and for a sub-agent's."""
        return None if self.state.aside else self.state.conversation

    def position(self, path: Path, client: Agent, session: str, *, at: datetime) -> FollowedLog:
        """Return what has to be noted once the chunk is stored."""
        reached: dict[str, Any] = {"offset": self.offset, "head": self.head, "tail": self.tail}
        state = self.state.dumped()
        return FollowedLog(path=stored_path(path), client=client, session=session, at=at, state=state, **reached)

    def take(self, agent: Agent, value: Any, where: str) -> None:
        """Add the records of a line; None is one that cannot be read."""
        if value is None:
            self.bad += 1
            return
        for one in FORMATS[agent].records(value, where, self.state, self.passed):
            match one:
                case ImportedTurn():
                    self.clock = one.said_at or self.clock
                    self.turns.append(replace(one, began=self.clock))
                case ImportedResult():
                    self.clock = one.said_at or self.clock
                    self.results.append(replace(one, said_at=self.clock))
                case ImportProblem():
                    self.bad += 1


def stored_path(path: Path) -> str:
    """Return the path of a log as it is stored, with a key in it masked."""
    return mask_name(str(path))


def agent_of(path: Path) -> Agent | None:
    """Tell whose log a file is; None if it is no log. Raises InvalidInput if it cannot be read."""
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


def read_chunks(
    path: Path, agent: Agent, known: FollowedLog | None, secret: bytes = b"", *, prompts: Sequence[str] = ()
) -> Generator[LogChunk, None, None]:
    """Yield the chunks after the position `known`, or all. Raises InvalidInput if the file cannot be read.

    A position has hashes of the log, keyed with `secret`. `prompts` are what the client's hook reported as typed by
    the user.
    """
    try:
        with open_regular(path) as stream:
            if agent == "gemini" and path.suffix == ".json":
                yield from _document(stream, agent, known, path, secret, prompts)
            else:
                yield from _lines(stream, agent, known, secret, prompts)
    except OSError as error:
        raise _unreadable(path, error) from error


def whole_of(path: Path, agent: Agent, conversation: str, name: str) -> bytes | None:
    """Return a result that the client put into a file of the conversation; None if there is no such file.

    `name` is the last part of a path: nothing outside the conversation's own folder is read.
    """
    if agent == "gemini":
        folder = path.parent.parent / "tool-outputs" / f"session-{conversation}"
    else:
        folder = path.with_suffix("") / "tool-results"
    try:
        inside = (folder / name).resolve().parent == folder.resolve()
        return (read_regular(folder / name, _LARGEST_RESULT) or None) if inside else None
    except (OSError, RuntimeError):  # RuntimeError: a link to itself
        return None


def _lines(
    stream: IO[bytes], agent: Agent, known: FollowedLog | None, secret: bytes, prompts: Sequence[str]
) -> Iterator[LogChunk]:
    offset, state = _reached(stream, known, secret)
    state.prompts = prompts
    clock = _written(stream)
    name = "new line" if offset else "line"
    end = os.fstat(stream.fileno()).st_size
    stream.seek(offset)
    numbers = count(1)
    is_rest = False  # of a line that is too long
    while True:
        chunk, start = LogChunk(state=state, clock=clock), offset
        for number in islice(numbers, _LINES):
            data = stream.readline(max(0, min(_LONGEST, end - offset)))
            ended = data.endswith(b"\n")
            is_too_long = is_rest or (len(data) == _LONGEST and not ended)
            value = None if is_too_long else _parsed(data)
            if value is None and not ended and not (is_too_long and data):
                chunk.torn = len(data) > 0
                break
            offset += len(data)
            if data.strip() and not is_rest:
                chunk.take(agent, value, f"{name} {number}")
            is_rest = is_too_long and not ended
            if offset - start > _BYTES:
                break
        if offset == start and not chunk.torn:
            return
        clock = chunk.clock
        chunk.offset = offset
        chunk.head, chunk.tail = _marks(stream, offset, secret)
        stream.seek(offset)
        yield chunk
        if chunk.torn:
            return


def _parsed(data: bytes) -> Any:
    """Return the object of a line; None for anything else."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None  # pyright: ignore[reportUnknownVariableType]


def _reached(stream: IO[bytes], known: FollowedLog | None, secret: bytes) -> tuple[int, LogState]:
    """Return the position to continue from, and the state there."""
    if known is not None and _marks(stream, known.offset, secret) == (known.head, known.tail):
        try:
            return known.offset, LogState.loaded(known.state)
        except (TypeError, ValueError, AttributeError):  # of another version: everything is read and recognised again
            pass
    return 0, LogState()


def _marks(stream: IO[bytes], offset: int, secret: bytes) -> tuple[str, str]:
    """Return hashes of the first bytes and of those before a position; empty if the file is shorter."""
    stream.seek(0)
    head = stream.read(min(_HEAD, offset))
    stream.seek(max(0, offset - _TAIL))
    tail = stream.read(min(_TAIL, offset))
    return (_hash(head, secret), _hash(tail, secret)) if len(tail) == min(_TAIL, offset) else ("", "")


def _written(stream: IO[bytes]) -> datetime:
    return datetime.fromtimestamp(modified_ms(os.fstat(stream.fileno())) / 1000, UTC)


def _hash(data: bytes, secret: bytes) -> str:
    return keyed_hash(secret, hashlib.sha256(data).hexdigest()[:24], digits=24)


def _document(
    stream: IO[bytes], agent: Agent, known: FollowedLog | None, path: Path, secret: bytes, prompts: Sequence[str]
) -> Iterator[LogChunk]:
    data = stream.read(_LARGEST_DOCUMENT + 1)
    if len(data) > _LARGEST_DOCUMENT:
        raise InvalidInput(f"{path} is larger than {_LARGEST_DOCUMENT // 2**20} MiB, too large for one JSON document.")
    digest = _hash(data, secret)
    if known is not None and known.head == digest:
        return
    value = _parsed(data)
    chunk = LogChunk(state=LogState(prompts=prompts), clock=_written(stream), torn=value is None)
    if value is not None:
        chunk.offset, chunk.head = len(data), digest
        chunk.take(agent, value, "document")
    yield chunk


def _unreadable(path: Path, error: OSError) -> InvalidInput:
    return InvalidInput(f"{path} cannot be read: {error.strerror or error}.")
