"""Stores the new part of a coding agent's log, once or as it is written.

Turns are stored, then large results kept, then the position is recorded. A kill in between repeats a chunk, whose turns
and results are recognised: a turn by the client's message id, and in other sessions of the space also by its words (a
fork copies its parent's lines), a result by its call. Two processes that follow the same log store it once.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Literal

import anyio
from anyio.to_thread import run_sync as to_thread

from mcp_memory.core.config import Settings
from mcp_memory.core.errors import InvalidInput, McpMemoryError
from mcp_memory.core.projects import project_of
from mcp_memory.core.token_counts import estimate_tokens
from mcp_memory.core.types import NewTurn
from mcp_memory.integrations.importers.log_file import (
    AgentLog,
    LogChunk,
    agent_of,
    read_chunks,
    read_full_result,
    stored_path,
)
from mcp_memory.integrations.importers.log_lines import is_own, is_stand_in
from mcp_memory.integrations.importers.records import Agent, ImportedResult, ImportedTurn
from mcp_memory.integrations.importers.refusals import refuse_log
from mcp_memory.integrations.importers.report import (
    FileReport,
    HistorySize,
    ImportCounts,
    Price,
    State,
    estimate_cost,
    log_notes,
)
from mcp_memory.longterm.turns import MAX_TURN_BYTES, SUMMARY, admit
from mcp_memory.service.memory import Memory
from mcp_memory.store.values import ClientTurn, FollowedLog

LARGE_RESULT = 300
"""The least size in tokens of a result that is kept, by an estimate that is rather high."""
LIVE_FOR = timedelta(hours=1)
"""How old a result of a live log may be to go to the canvas."""
LOGS = "followed logs"
"""The purpose of the secret that keys the hashes of followed logs."""

_PASS_S = 10.0
"""Seconds to read a log before the next log is read."""
_POLL_SHARE = 20
"""Looking for changed logs takes at most 1/20 of the time."""

ResultClass = Literal["large", "small", "ours"]


def classify_result(result: ImportedResult) -> ResultClass:
    """Classify a result. Only `large` results are kept; results and notes of this memory's tools are `ours`."""
    if is_own(result.tool) or is_stand_in(result.text):
        return "ours"
    is_large = len(result.text) > LARGE_RESULT // 2 and estimate_tokens(result.text[: 32 * LARGE_RESULT]) > LARGE_RESULT
    return "large" if is_large else "small"


async def select_new_results(memory: Memory, session: str, results: Sequence[ImportedResult]) -> list[ImportedResult]:
    """Return the results that the session lacks, the first of each call; a result without a call counts as new."""
    first = {result.call: result for result in reversed(results)}
    kept = await memory.kept_calls(session, [call for call in first if call is not None])
    return [
        result
        for result in results
        if result.call is None or (result.call not in kept and first[result.call] is result)
    ]


@dataclass(kw_only=True)
class FollowReport(ImportCounts):
    """The result of reading a log.

    `bad` counts unreadable lines and `misdated` unreadable times; the next reading continues at the byte `offset`.
    `torn` is true if the last line is incomplete, `unread` if time ran out before the end of the log. `is_first` is
    true if the log was not read before; `left_out` counts skipped messages and parts by category.
    """

    path: Path
    client: str
    misdated: int = 0
    offset: int = 0
    torn: bool = False
    unread: bool = False
    is_first: bool = False
    left_out: Counter[str] = field(default_factory=Counter[str])

    @property
    def is_unreadable(self) -> bool:
        """Whether a first reading found no turn, no result, and nothing that is left out on purpose."""
        return self.is_first and not (self.turns or self.kept or self.small or self.left_out or self.torn)

    def report(self, name: str, state: State, **more: Any) -> FileReport:
        """Return the report of the file."""
        notes = [*self.notes, *log_notes(self.bad, self.misdated, self.left_out, torn=self.torn)]
        return FileReport(
            **{**self.counts(), "notes": notes, "sessions": min(self.turns, 1)}, file=name, state=state, **more
        )


class _LogReading:
    """The state while a log is read: recognises and skips repeated turns and results."""

    def __init__(self, path: Path, client: str, position: FollowedLog | None) -> None:
        self.done = FollowReport(
            path=path,
            client=client,
            session=position and position.session,
            offset=position.offset if position else 0,
            is_first=position is None,
        )
        self._turns = set[str]()
        self._calls = set[str]()

    def take(self, chunk: LogChunk) -> tuple[dict[str, NewTurn], list[ImportedResult], list[ImportedResult]]:
        """Count a chunk; return its new turns by id, its new large results, and its notes that replace results."""
        done = self.done
        done.bad, done.torn, done.offset = done.bad + chunk.bad, chunk.torn, chunk.offset
        done.misdated += chunk.skipped.misdated
        done.left_out += chunk.skipped.left_out
        fresh: dict[str, NewTurn] = {}
        large: list[ImportedResult] = []
        stand_ins: list[ImportedResult] = []
        session = chunk.session_of(done.client)
        if session is None:
            return fresh, large, stand_ins
        done.session = session
        for turn in map(new_turn, chunk.turns):
            if str(turn.client_id) not in self._turns:
                self._turns.add(str(turn.client_id))
                fresh[str(turn.client_id)] = turn
                done.count(turn.said_at)
        for result in chunk.results:
            if is_stand_in(result.text) and not is_own(result.tool):
                stand_ins.append(result)
            if result.call is None or result.call not in self._calls:
                self._calls |= {result.call} - {None}
                kind = classify_result(result)
                large += [result] if kind == "large" else []
                done.small += kind == "small"
        return fresh, large, stand_ins


async def follow_log(
    memory: Memory,
    path: Path,
    *,
    live: bool,
    client: str | None = None,
    again: bool = False,
    within_s: float | None = None,
    folder: str = "",
    prompts: Sequence[str] = (),
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> FollowReport:
    """Store the part of a log after the last position, up to its last whole line.

    If `live`, results of the last hour go to the session's canvas; other results are only kept and indexed. `client` is
    the agent that wrote the log, if known. `again` reads the log from its start. The client's hook reported the
    `folder` in which it runs (by default the log names it) and the `prompts` that were typed in the conversation. Stops
    after `within_s` seconds; the next call continues. Raises InvalidInput for a file that cannot be read or is no log.
    """
    try:
        path = await to_thread(path.resolve)
    except (OSError, RuntimeError, ValueError) as error:  # RuntimeError: a link to itself; ValueError: a NUL
        raise InvalidInput(f"{path} cannot be read: {error}.") from error
    until = None if within_s is None else time.monotonic() + within_s
    agent = client or await to_thread(agent_of, path)
    if agent is None:
        raise InvalidInput(f"{path} is not a log of a coding agent. `mcp-memory import --help` lists what can be read.")
    stored = await to_thread(stored_path, path)  # in a thread: the first call loads word lists
    positions = [] if again else await memory.followed_logs(path=stored)
    position = positions[0] if positions else None
    reading = _LogReading(path, agent, position)
    done = reading.done
    secret = await memory.secret(LOGS)
    with closing(read_chunks(path, agent, position, secret, prompts=prompts)) as chunks:
        while chunk := await to_thread(partial(next, chunks, None)):
            turns, results, stand_ins = reading.take(chunk)
            if done.session is not None and chunk.session_of(agent) is not None:
                await record_new_turns(memory, done.session, turns, done)
                await _keep(memory, done, chunk.conversation or "", results, since=now() - LIVE_FOR if live else None)
                for stand_in in stand_ins:
                    if stand_in.call is not None:
                        await memory.note_replaced(done.session, stand_in.call, stand_in.text, at=stand_in.said_at)
                if ran_in := folder or chunk.state.folder:
                    await memory.note_project(done.session, await to_thread(project_of, Path(ran_in)))
                if chunk.head:
                    await memory.note_followed(chunk.position(path, agent, done.session, at=now()))
            if until is not None and time.monotonic() > until:
                done.unread = True
                break
    return done


def new_turn(turn: ImportedTurn) -> NewTurn:
    """Return a turn of a log as it is stored. Without an id it is identified by its words and time.

    Without a time it gets the time of the line before, marked as a guess.
    """
    client_id = turn.id
    if client_id is None:
        digest = hashlib.sha256(f"{turn.session}\n{turn.role}\n{turn.said_at}\n{turn.content}".encode())
        client_id = f"log-{digest.hexdigest()[:24]}"
    return NewTurn(
        role=turn.role,
        content=turn.content,
        name=turn.name,
        said_at=turn.said_at or turn.began,
        client_id=client_id,
        guessed=turn.said_at is None,
    )


def stored_words(turn: NewTurn) -> str:
    """Return the words of a turn as they are stored: without private passages, attachments and secrets."""
    return next((kept.content for kept in admit([turn]).turns), "")


def _same(turn: NewTurn, session: str, stored: Sequence[ClientTurn]) -> list[ClientTurn]:
    """Return the stored turns that are this turn: of its session, or a fork's copy with the same words."""
    return [row for row in stored if row.session == session or row.content is None or row.content == stored_words(turn)]


async def _without_stored(memory: Memory, session: str, turns: Iterable[NewTurn], done: ImportCounts) -> list[NewTurn]:
    """Return the turns that are not stored yet, and count the others.

    If another session has the id of a turn, with different words, the turn gets a new id, so that both are kept.
    """
    by_id = {str(turn.client_id): turn for turn in turns}
    stored = await memory.client_turns(list(by_id))
    new: list[NewTurn] = []
    renamed: list[NewTurn] = []
    for id, turn in by_id.items():
        same = _same(turn, session, stored.get(id, ()))
        if same:
            is_forgotten = all(row.forgotten for row in same)
            done.forgotten += is_forgotten
            done.duplicates += not is_forgotten
        elif id in stored:
            digest = hashlib.sha256(f"{session}\n{id}".encode()).hexdigest()[:24]
            renamed.append(replace(turn, client_id=f"log-{digest}"))
        else:
            new.append(turn)
    return [*new, *(await _without_stored(memory, session, renamed, done))] if renamed else new


async def record_new_turns(memory: Memory, session: str, turns: dict[str, NewTurn], done: ImportCounts) -> None:
    """Store the turns of a session (by id, in order) that are not stored yet, and count them in `done`."""
    new = await _without_stored(memory, session, turns.values(), done)
    order = {id: place for place, id in enumerate(turns)}
    new.sort(key=lambda turn: order.get(str(turn.client_id), len(order)))
    if too_large := [turn for turn in new if len(turn.content.encode()) > MAX_TURN_BYTES]:
        new = [turn for turn in new if turn not in too_large]
        done.bad += len(too_large)
        done.notes.append(f"Turns over {MAX_TURN_BYTES // 2**20} MiB are left out: {len(too_large)}.")
    try:
        if new:
            done.add_turns(await memory.record_turns(new, session=session))
    except InvalidInput:  # one turn refuses the batch: leave out only that turn
        for turn in new:
            try:
                done.add_turns(await memory.record_turns([turn], session=session))
            except InvalidInput as error:
                done.bad += 1
                done.notes.append(f"A turn is left out. {error}")
    for turn in new:
        if (turn.role, turn.name) == SUMMARY:
            await memory.note_compacted(session, at=turn.said_at)


async def keep_result(
    memory: Memory, session: str, result: ImportedResult, data: str | bytes, *, since: datetime | None
) -> None:
    """Store a tool result, whose content is `data`; later than `since`, also as a step on the session's canvas."""
    tool = result.tool or "tool"
    call: dict[str, Any] = {"arguments": result.arguments, "tool_call_id": result.call}
    if since is not None and result.said_at is not None and result.said_at > since:
        await memory.offload_tool_result(tool, data, **call, session=session)
    else:
        await memory.keep_tool_result(tool, data, **call, session=session, at=result.said_at)


async def _keep(
    memory: Memory, done: FollowReport, conversation: str, results: Sequence[ImportedResult], *, since: datetime | None
) -> None:
    """Store new tool results. Results later than `since` also become steps on the session's canvas."""
    assert done.session is not None
    for result in await select_new_results(memory, done.session, results):
        data: str | bytes = result.text
        if result.whole is not None:
            data = await to_thread(read_full_result, done.path, done.client, conversation, result.whole) or data
        try:
            await keep_result(memory, done.session, result, data, since=since)
            done.kept += 1
        except InvalidInput as error:
            done.bad += 1
            done.notes.append(f"{result.where}: a result is left out. {error}")


def preview_log(
    path: Path,
    client: Agent,
    settings: Settings,
    *,
    name: str,
    price: Price,
    position: FollowedLog | None,
    within: HistorySize | None = None,
    secret: bytes = b"",
    is_named: bool = False,
) -> FileReport:
    """Return what `follow_log` would store, and the estimated cost of extraction. Stores nothing; blocks.

    Raises InvalidInput for a log that was named and has no message.

    Turns that are already stored in another session are counted too. If given, `within` sums up all previewed files.
    """
    reading, size = _LogReading(path, client, position), HistorySize(settings.batch_turns, within)
    done = reading.done
    for chunk in read_chunks(path, client, position, secret):
        turns, results, _ = reading.take(chunk)
        done.kept += len(results)
        for turn in turns.values():
            size.add(str(done.session), turn)
    if is_named and done.is_unreadable:
        raise InvalidInput(refuse_log(name, client))
    if position is not None and not (done.turns or done.kept):
        return done.report(name, "known")
    return done.report(name, "seen", noise=size.noise, cost=estimate_cost(size, settings, price))


async def watch_logs(
    memory: Memory,
    find: Callable[[], Iterable[AgentLog]],
    *,
    report: Callable[[AgentLog, FollowReport | McpMemoryError], None],
    every: float = 1.0,
) -> None:
    """Store the new parts of logs until cancelled. `find` returns the logs; it is called about every `every` seconds.

    Logs are polled, because that works on every system and network share. Their content at the first poll is
    history, later content is live. Each reading, and each error, is passed to `report`; a log with an error is read
    again at the next poll.
    """
    seen: dict[Path, tuple[int, int]] = {}
    live = False
    while True:
        begun = time.monotonic()
        logs = await to_thread(lambda: list(_with_stamps(find())))
        took = time.monotonic() - begun
        for log, stamp in logs:
            if seen.get(log.path) == stamp:
                continue
            try:
                read = await follow_log(memory, log.path, live=live, client=log.client, within_s=_PASS_S)
                report(log, read)
                if not read.unread:
                    seen[log.path] = stamp
            except McpMemoryError as error:
                report(log, error)
        live = True
        await anyio.sleep(max(every, _POLL_SHARE * took))


def _with_stamps(logs: Iterable[AgentLog]) -> Iterator[tuple[AgentLog, tuple[int, int]]]:
    for log in logs:
        try:
            stat = log.path.stat()
        except OSError:
            continue
        yield log, (stat.st_mtime_ns, stat.st_size)
