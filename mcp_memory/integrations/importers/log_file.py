"""The logs of coding agents as files: finds them, recognises their agents, and reads their new lines.

A log is read in chunks, up to the last complete line at the time of opening, so reading a growing file ends. A log is
recognised by hashes of its first bytes and of the bytes before the position. If it shrank, was replaced or rewritten,
it is read from its start. Lines that are not JSON, or longer than 64 MiB, are counted and skipped. A log that is one
document (older versions of Gemini CLI), or that a format of imports reads, is read whole when it has changed.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import count, islice
from pathlib import Path
from typing import IO, Any

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.keyed_hash import keyed_hash
from mcp_memory.core.regular_files import modified_ms, open_regular, read_regular
from mcp_memory.core.secrets.masking import mask_name
from mcp_memory.integrations.clients.description import hooks_described
from mcp_memory.integrations.importers.agent_logs import FORMATS
from mcp_memory.integrations.importers.file_records import whole_records
from mcp_memory.integrations.importers.format import AnyRecord
from mcp_memory.integrations.importers.format_table import format_named
from mcp_memory.integrations.importers.log_lines import LogLine, LogState
from mcp_memory.integrations.importers.parts import parse_or_keep
from mcp_memory.integrations.importers.records import (
    AGENTS,
    Agent,
    ImportedResult,
    ImportedStatement,
    ImportedTurn,
    ImportProblem,
    SkippedParts,
    object_of,
    session_name,
)
from mcp_memory.integrations.importers.streams import readable_file
from mcp_memory.store.values import FollowedLog

_ENDINGS = (".jsonl", ".json")
_NO_LOGS = {"subagents", "tool-results", "tool-outputs", "node_modules", ".git"}
_FIRST_LINES, _FIRST_BYTES = 40, 2**20
_MAX_LINE = 64 * 2**20
_MAX_DOCUMENT = 256 * 2**20
_MAX_RESULT = 128 * 2**20
_HEAD, _TAIL = 1_024, 256
_LINES, _BYTES = 400, 4 * 2**20  # lines and bytes of a chunk


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentLog:
    """A log; `is_named` if the user named this file, and not a folder."""

    path: Path
    client: Agent
    is_named: bool = False


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


def find_logs(folder: Path, agents: dict[Path, Agent | None]) -> Iterator[AgentLog]:
    """Yield the logs in a folder and its subfolders, by name. Links to folders are not followed.

    `agents` caches the agent of each file between calls.
    """
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _NO_LOGS)
        for path in (Path(parent, name) for name in sorted(files) if name.endswith(_ENDINGS)):
            if path not in agents:
                try:
                    agents[path] = agent_of(path)
                except InvalidInput:  # deleted, or not readable for this user
                    continue
            if (client := agents[path]) is not None:
                yield AgentLog(path=path, client=client)


@dataclass(kw_only=True)
class LogChunk:
    """The records of some lines, and the position after them.

    `bad` counts unreadable lines; `torn` is true if the last line is incomplete. `head` and `tail` are hashes by which
    the log is recognised.
    """

    state: LogState
    clock: datetime
    """The time of the last line that has a time, initially the file's mtime."""
    turns: list[ImportedTurn] = field(default_factory=list[ImportedTurn])
    results: list[ImportedResult] = field(default_factory=list[ImportedResult])
    skipped: SkippedParts = field(default_factory=SkippedParts)
    session: str | None = None
    """The session, if the format of imports names it."""
    bad: int = 0
    torn: bool = False
    offset: int = 0
    head: str = ""
    tail: str = ""

    @property
    def conversation(self) -> str | None:
        """The client's id of the conversation; None until a line gives it, and always in the log of a sub-agent."""
        return None if self.state.is_subagent else self.state.conversation

    def session_of(self, client: str) -> str | None:
        """Return the session of the conversation in this memory; None until it is known."""
        return self.session or (self.conversation and session_name(client, self.conversation))

    def position(self, path: Path, client: str, session: str, *, at: datetime) -> FollowedLog:
        """Return the position to record once the chunk is stored."""
        return FollowedLog(
            path=stored_path(path),
            client=client,
            session=session,
            at=at,
            offset=self.offset,
            head=self.head,
            tail=self.tail,
            state=self.state.dump(),
        )

    def add(self, agent: str, value: dict[str, Any] | None, where: str) -> None:
        """Add the records of a line. `value` is its object, or None for an unreadable line, which is only counted."""
        if value is None:
            self.bad += 1
            return
        for record in FORMATS[agent].records(LogLine(value, where, self.state, self.skipped)):
            self.add_record(record)

    def add_record(self, record: AnyRecord) -> None:
        match record:
            case ImportedTurn():
                self.clock = record.said_at or self.clock
                self.turns.append(replace(record, began=self.clock))
            case ImportedResult():
                self.clock = record.said_at or self.clock
                self.results.append(replace(record, said_at=self.clock))
            case ImportProblem():
                self.bad += not record.torn
                self.torn = self.torn or record.torn
            case ImportedStatement():
                pass


def stored_path(path: Path) -> str:
    """Return the path of a log as it is stored, with secrets masked."""
    return mask_name(str(path))


def agent_of(path: Path) -> Agent | None:
    """Return the agent that wrote a file; None if it is not a log. Raises InvalidInput if it cannot be read."""
    try:
        with open_regular(path) as stream:
            head = stream.read(2_048)
            if head.lstrip().startswith(b"{") and b'"sessionId"' in head and b'"projectHash"' in head:
                return "gemini"
            if not head.lstrip().startswith(b"{"):
                return None
            stream.seek(0)
            for _ in range(_FIRST_LINES):
                value = _parse_object(stream.readline(_FIRST_BYTES))
                for agent in AGENTS:
                    if FORMATS[agent].is_line(value):
                        return agent
    except OSError as error:
        raise _read_error(path, error) from error
    return None


def read_chunks(
    path: Path, agent: str, position: FollowedLog | None, secret: bytes = b"", *, prompts: Sequence[str] = ()
) -> Generator[LogChunk, None, None]:
    """Yield the chunks after `position`, or all chunks without it. Raises InvalidInput if the file cannot be read.

    The agent is one of `FORMATS`, or a described client whose logs a format of imports reads.

    The hashes of a position are keyed with `secret`. `prompts` are prompts that the client's hook reported as typed
    by the user.
    """
    try:
        with open_regular(path) as stream:
            if agent not in FORMATS:
                yield from _conversation(stream, agent, position, path, secret)
            elif agent == "gemini" and path.suffix == ".json":
                yield from _document(stream, agent, position, path, secret, prompts)
            else:
                yield from _lines(stream, agent, position, secret, prompts)
    except OSError as error:
        raise _read_error(path, error) from error


def read_full_result(path: Path, agent: str, conversation: str, name: str) -> bytes | None:
    """Return a result that the client wrote to a file of the conversation; None if there is no such file.

    `name` is the last part of a path: nothing outside the conversation's own folder is read.
    """
    if agent == "gemini":
        folder = path.parent.parent / "tool-outputs" / f"session-{conversation}"
    else:
        folder = path.with_suffix("") / "tool-results"
    try:
        inside = (folder / name).resolve().parent == folder.resolve()
        return (read_regular(folder / name, _MAX_RESULT) or None) if inside else None
    except (OSError, RuntimeError):  # RuntimeError: a link to itself
        return None


def _lines(
    stream: IO[bytes], agent: str, position: FollowedLog | None, secret: bytes, prompts: Sequence[str]
) -> Iterator[LogChunk]:
    offset, state = _resume(stream, position, secret)
    state.prompts = prompts
    clock = _modified_at(stream)
    name = "new line" if offset else "line"
    end = os.fstat(stream.fileno()).st_size
    stream.seek(offset)
    numbers = count(1)
    is_rest = False  # the line is the rest of a line that is too long
    while True:
        chunk, start = LogChunk(state=state, clock=clock), offset
        for number in islice(numbers, _LINES):
            data = stream.readline(max(0, min(_MAX_LINE, end - offset)))
            ended = data.endswith(b"\n")
            is_too_long = is_rest or (len(data) == _MAX_LINE and not ended)
            value = None if is_too_long else _parse_object(data)
            if value is None and not ended and not (is_too_long and data):
                chunk.torn = len(data) > 0
                break
            offset += len(data)
            if data.strip() and not is_rest:
                chunk.add(agent, value, f"{name} {number}")
            is_rest = is_too_long and not ended
            if offset - start > _BYTES:
                break
        if offset == start and not chunk.torn:
            return
        clock = chunk.clock
        chunk.offset = offset
        chunk.head, chunk.tail = _fingerprints(stream, offset, secret)
        stream.seek(offset)
        yield chunk
        if chunk.torn:
            return


def _parse_object(data: bytes) -> dict[str, Any] | None:
    """Return the object of a line; None for anything else."""
    return object_of(parse_or_keep(data))


def _resume(stream: IO[bytes], position: FollowedLog | None, secret: bytes) -> tuple[int, LogState]:
    """Return the position to continue from, and the state there."""
    if position is not None and _fingerprints(stream, position.offset, secret) == (position.head, position.tail):
        try:
            return position.offset, LogState.load(position.state)
        except (TypeError, ValueError, AttributeError):  # from another version: everything is read and recognised again
            pass
    return 0, LogState()


def _fingerprints(stream: IO[bytes], offset: int, secret: bytes) -> tuple[str, str]:
    """Return hashes of the first bytes and of the bytes just before a position; empty if the file is shorter."""
    stream.seek(0)
    head = stream.read(min(_HEAD, offset))
    stream.seek(max(0, offset - _TAIL))
    tail = stream.read(min(_TAIL, offset))
    return (_hash(head, secret), _hash(tail, secret)) if len(tail) == min(_TAIL, offset) else ("", "")


def _modified_at(stream: IO[bytes]) -> datetime:
    return datetime.fromtimestamp(modified_ms(os.fstat(stream.fileno())) / 1000, UTC)


def _hash(data: bytes, secret: bytes) -> str:
    return keyed_hash(secret, hashlib.sha256(data).hexdigest()[:24], digits=24)


def _document(
    stream: IO[bytes], agent: str, position: FollowedLog | None, path: Path, secret: bytes, prompts: Sequence[str]
) -> Iterator[LogChunk]:
    data = _read_whole(stream, path)
    digest = _hash(data, secret)
    if position is not None and position.head == digest:
        return
    value = _parse_object(data)
    chunk = LogChunk(state=LogState(prompts=prompts), clock=_modified_at(stream), torn=value is None)
    if value is not None:
        chunk.offset, chunk.head = len(data), digest
        chunk.add(agent, value, "document")
    yield chunk


def _conversation(
    stream: IO[bytes], client: str, position: FollowedLog | None, path: Path, secret: bytes
) -> Iterator[LogChunk]:
    """Yield the log of a client that a format of imports reads, if it has changed.

    Titles are left out: a client makes them up from what was said, again and again.
    """
    data = _read_whole(stream, path)
    digest = _hash(data, secret)
    hooks = hooks_described(client)
    if hooks is None or (position is not None and position.head == digest):
        return
    chunk = LogChunk(state=LogState(), clock=_modified_at(stream), offset=len(data), head=digest)
    form = format_named(hooks.log_format)
    live = replace(form, records=form.live or form.records)
    for record in whole_records(path, readable_file(path), live, chunk.skipped):
        if not (isinstance(record, ImportedTurn) and record.name == "title"):
            chunk.add_record(record)
    chunk.session = next((record.session for record in (*chunk.turns, *chunk.results) if record.session), None)
    yield chunk


def _read_whole(stream: IO[bytes], path: Path) -> bytes:
    data = stream.read(_MAX_DOCUMENT + 1)
    if len(data) > _MAX_DOCUMENT:
        raise InvalidInput(f"{path} is larger than {_MAX_DOCUMENT // 2**20} MiB, too large to be read whole.")
    return data


def _read_error(path: Path, error: OSError) -> InvalidInput:
    return InvalidInput(f"{path} cannot be read: {error.strerror or error}.")
