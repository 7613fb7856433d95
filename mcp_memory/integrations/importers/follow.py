"""Which results of tools, told beside the turns of a history, are worth a file of their own, and which have one.

The rule is one for exports and for logs of agents. It does not know where a result is put.

Takes in what a coding agent's log has grown by since it was last read.

Turns are stored, then large results kept, then it is noted how far that was. A kill in between repeats a piece, of
which everything is known again: a turn by the client's id of the message in any session of the space (a fork copies its
parent's lines), a result by its call. Two processes at one log both find all of it, and store it once.

Follows logs as they are written. Files are looked at, not subscribed to: that works on every system and share.

What following a log would store, and what having it read would cost. Nothing is stored.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Literal

import anyio
from anyio.to_thread import run_sync as to_thread

from mcp_memory.core.config import Settings
from mcp_memory.core.errors import InvalidInput, McpMemoryError
from mcp_memory.core.tokens import estimate_tokens
from mcp_memory.core.types import NewTurn
from mcp_memory.integrations.importers.agent_logs import is_own, is_stand_in
from mcp_memory.integrations.importers.log_file import AgentLog, LogChunk, agent_of, read_chunks, whole_of
from mcp_memory.integrations.importers.records import Agent, ImportedResult, ImportedTurn, session_name
from mcp_memory.integrations.importers.report import HistorySize, ImportReport, Price, estimate_cost, of_log
from mcp_memory.longterm.turns import MAX_TURN_BYTES
from mcp_memory.service.memory import Memory
from mcp_memory.store.protocol import FollowedLog

OVER = 300
"""Tokens, rather too many estimated than too few: what a result must be larger than to be kept."""

Worth = Literal["large", "small", "ours"]
"""The `large` ones are kept; `ours` tell of this memory, which has it already."""


def worth(result: ImportedResult) -> Worth:
    """Tell whether a result is worth keeping. Of a text that is over the threshold, its start proves it."""
    if is_own(result.tool) or is_stand_in(result.text):
        return "ours"
    is_large = len(result.text) > OVER // 2 and estimate_tokens(result.text[: 32 * OVER]) > OVER
    return "large" if is_large else "small"


async def not_kept(memory: Memory, session: str, results: Sequence[ImportedResult]) -> list[ImportedResult]:
    """Return those results that the session does not hold yet, the first of each call; one without a call is new."""
    first = {one.call: one for one in reversed(results)}
    known = await memory.kept_calls(session, [call for call in first if call is not None])
    return [one for one in results if one.call is None or (one.call not in known and first[one.call] is one)]


LIVE_FOR = timedelta(hours=1)
"""A result of a live log that is older belongs to its past."""


@dataclass(slots=True, kw_only=True)
class FollowReport:
    """What one reading of a log came to. `session` is None where it holds no conversation (yet).

    Of `turns` told, `stored` are new, `duplicates` were there before and `forgotten` ones stay so; `kept` tool results
    became refs, `small` ones did not. `offset` is how many bytes are behind it; `torn`: its last line was not whole.
    """

    path: Path
    client: Agent
    session: str | None = None
    turns: int = 0
    stored: int = 0
    duplicates: int = 0
    forgotten: int = 0
    emptied: int = 0
    """Turns that held nothing but what this memory had recalled."""
    kept: int = 0
    small: int = 0
    bad: int = 0
    """Lines that could not be read, and were passed over."""
    misdated: int = 0
    """Times that could not be read."""
    offset: int = 0
    torn: bool = False
    unread: bool = False
    """The time was over before the end was reached."""
    first: datetime | None = None
    last: datetime | None = None
    notes: list[str] = field(default_factory=list[str])

    def count(self, turn: NewTurn) -> None:
        self.turns += 1
        if turn.said_at is not None:
            self.first = min(self.first or turn.said_at, turn.said_at)
            self.last = max(self.last or turn.said_at, turn.said_at)


async def follow_log(
    memory: Memory,
    path: Path,
    *,
    live: bool,
    client: Agent | None = None,
    again: bool = False,
    within_s: float | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> FollowReport:
    """Store what a log tells that is not stored yet, from where it was read to last time up to its last whole line.

    `live`: results of the last hour come onto the session's canvas; all others are kept and indexed only. `client` says
    whose log it is, where that is known; `again` reads it from its start. It stops after `within_s` seconds, and the
    next call goes on from there. InvalidInput where it cannot be read, or is no log.
    """
    try:
        path = await to_thread(path.resolve)
    except (OSError, RuntimeError, ValueError) as error:  # RuntimeError: a link to itself; ValueError: a NUL
        raise InvalidInput(f"{path} cannot be read: {error}.") from error
    until = None if within_s is None else time.monotonic() + within_s
    whose = client or await to_thread(agent_of, path)
    if whose is None:
        raise InvalidInput(f"{path} is no log of a coding agent. `mcp-memory import --help` says what can be read.")
    held = [] if again else await memory.followed_logs(path)
    known = held[0] if held else None
    begun = FollowReport(path=path, client=whose, session=known and known.session, offset=known.offset if known else 0)
    run = _LogImport(memory, begun, live=live, now=now)
    with closing(read_chunks(path, whose, known)) as read:
        while piece := await to_thread(partial(next, read, None)):
            await run.take(piece)
            if until is not None and time.monotonic() > until:
                run.done.unread = True
                break
    return run.done


def new_turn(told: ImportedTurn) -> NewTurn:
    """Return a turn of a log as it is stored. One that has no id is known by what it says, and when.

    Without a time of its own it has that of the line before it, which is a guess.
    """
    client_id = told.id
    if client_id is None:
        digest = hashlib.sha256(f"{told.session}\n{told.role}\n{told.said_at}\n{told.content}".encode())
        client_id = f"log-{digest.hexdigest()[:24]}"
    return NewTurn(
        role=told.role,
        content=told.content,
        name=told.name,
        said_at=told.said_at or told.began,
        client_id=client_id,
        guessed=told.said_at is None,
    )


class _LogImport:
    """One reading: what it has stored so far."""

    def __init__(self, memory: Memory, done: FollowReport, *, live: bool, now: Callable[[], datetime]) -> None:
        self._memory = memory
        self.done = done
        self._live = live
        self._now = now
        self._turns = set[str]()
        self._calls = set[str]()

    async def take(self, piece: LogChunk) -> None:
        """Store a piece, then note that it is."""
        done = self.done
        done.bad, done.torn, done.offset = done.bad + piece.bad, piece.torn, piece.offset
        done.misdated += piece.passed.misdated
        conversation = piece.so_far.conversation
        if conversation is None or piece.so_far.aside:
            return
        done.session = session_name(done.client, conversation)
        await self._record(done.session, piece.turns)
        await self._keep(done.session, conversation, piece.results)
        if piece.head:
            await self._memory.note_followed(
                FollowedLog(
                    path=str(done.path),
                    client=done.client,
                    session=done.session,
                    offset=piece.offset,
                    head=piece.head,
                    tail=piece.tail,
                    state=piece.so_far.dumped(),
                    at=self._now(),
                )
            )

    async def _record(self, session: str, told: Sequence[ImportedTurn]) -> None:
        done = self.done
        fresh: dict[str, NewTurn] = {}
        for turn in map(new_turn, told):
            if str(turn.client_id) not in self._turns:
                fresh.setdefault(str(turn.client_id), turn)
        self._turns |= fresh.keys()
        for turn in fresh.values():
            done.count(turn)
        known = await self._memory.known_client_ids(list(fresh))
        new = [turn for id, turn in fresh.items() if id not in known]
        done.forgotten += sum(known.values())
        done.duplicates += len(fresh) - len(new) - sum(known.values())
        too_large = [turn for turn in new if len(turn.content.encode()) > MAX_TURN_BYTES]
        if too_large:
            new = [turn for turn in new if turn not in too_large]
            done.bad += len(too_large)
            done.notes.append(f"Turns over {MAX_TURN_BYTES // 2**20} MiB are left out: {len(too_large)}.")
        if new:
            try:
                await self._store(session, new)
            except InvalidInput:  # of all of them, for one: it alone is left out
                for turn in new:
                    try:
                        await self._store(session, [turn])
                    except InvalidInput as error:
                        done.bad += 1
                        done.notes.append(f"A turn is left out. {error}")

    async def _store(self, session: str, turns: Sequence[NewTurn]) -> None:
        done, stored = self.done, await self._memory.record_turns(turns, session=session)
        done.stored += len(stored.stored)
        done.duplicates += stored.duplicates
        done.forgotten += stored.forgotten
        done.emptied += stored.emptied

    async def _keep(self, session: str, conversation: str, results: Sequence[ImportedResult]) -> None:
        done, large = self.done, list[ImportedResult]()
        for result in results:
            if result.call is not None and result.call in self._calls:
                continue
            if result.call is not None:
                self._calls.add(result.call)
            match worth(result):
                case "large":
                    large.append(result)
                case "small":
                    done.small += 1
                case "ours":
                    pass
        for result in await not_kept(self._memory, session, large):
            try:
                await self._put_away(session, conversation, result)
                done.kept += 1
            except InvalidInput as error:
                done.bad += 1
                done.notes.append(f"{result.where}: a result is left out. {error}")

    async def _put_away(self, session: str, conversation: str, result: ImportedResult) -> None:
        data: str | bytes = result.text
        if result.whole is not None:
            found = await to_thread(whole_of, self.done.path, self.done.client, conversation, result.whole)
            data = found or data
        tool = result.tool or "tool"
        if self._live and result.said_at is not None and result.said_at > self._now() - LIVE_FOR:
            await self._memory.offload_tool_result(
                tool, data, arguments=result.arguments, tool_call_id=result.call, session=session, replaced=False
            )
        else:
            await self._memory.keep_tool_result(
                tool,
                data,
                arguments=result.arguments,
                tool_call_id=result.call,
                session=session,
                at=result.said_at,
            )


_PASS_S = 10.0
"""After so many seconds with one log it is the turn of the others."""
_SHARE = 20
"""Looking takes at most one part in so many of the time."""


async def watch_logs(
    memory: Memory,
    find: Callable[[], Iterable[AgentLog]],
    *,
    told: Callable[[AgentLog, FollowReport | McpMemoryError], None],
    every: float = 1.0,
) -> None:
    """Follow the logs that `find` finds, new ones too, until cancelled. It is asked again every so many seconds.

    What they hold at the first look is history; what comes later is live. `told` hears of each that was read, and of
    what went wrong: that log is tried again at the next look.
    """
    seen: dict[Path, tuple[int, int]] = {}
    live = False
    while True:
        begun = time.monotonic()
        logs = await to_thread(_looked, find)
        took = time.monotonic() - begun
        for log, stamp in logs:
            if seen.get(log.path) == stamp:
                continue
            try:
                read = await follow_log(memory, log.path, live=live, client=log.client, within_s=_PASS_S)
                told(log, read)
                if not read.unread:
                    seen[log.path] = stamp
            except McpMemoryError as error:
                told(log, error)
        live = True
        await anyio.sleep(max(every, _SHARE * took))


def _looked(find: Callable[[], Iterable[AgentLog]]) -> list[tuple[AgentLog, tuple[int, int]]]:
    looked: list[tuple[AgentLog, tuple[int, int]]] = []
    for log in find():
        try:
            found = log.path.stat()
        except OSError:
            continue
        looked.append((log, (found.st_mtime_ns, found.st_size)))
    return looked


def preview_log(
    path: Path,
    client: Agent,
    settings: Settings,
    *,
    name: str,
    price: Price,
    known: FollowedLog | None,
    within: HistorySize | None = None,
) -> ImportReport:
    """Read what is new in a log, and tell. What is stored already under another session is told too; blocks.

    The turns are added to `within`.
    """
    done = FollowReport(path=path, client=client, session=known and known.session)
    size = HistorySize(settings.batch_turns, within)
    seen, calls = set[str | None](), set[str | None]()
    for piece in read_chunks(path, client, known):
        done.bad, done.torn = done.bad + piece.bad, piece.torn
        done.misdated += piece.passed.misdated
        if piece.so_far.conversation is None or piece.so_far.aside:
            continue
        done.session = session_name(client, piece.so_far.conversation)
        for turn in map(new_turn, piece.turns):
            if turn.client_id not in seen:
                seen.add(turn.client_id)
                done.count(turn)
                size.add(done.session, turn)
        for result in piece.results:
            if result.call is None or result.call not in calls:
                calls.add(result.call)
                found = worth(result)
                done.kept += found == "large"
                done.small += found == "small"
    if known is not None and not (done.turns or done.kept):
        return of_log(name, done, state="known")
    return of_log(name, done, state="seen", noise=size.noise, cost=estimate_cost(size, settings, price))
