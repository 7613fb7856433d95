"""Follows the clients' own logs as they grow.

A client writes its log a little after the event, so a log is read at once and again soon after. Pending logs are noted
on disk: the logs and these notes are the queue of what is not stored yet. If turns cannot be stored, because the store
is locked, the disk full or the server away, a log is read again after 20 seconds, then at intervals that grow to five
minutes, and as soon as the memory answers a prompt. A conversation that a plugin handed over is put into a file beside
the notes until then, and read like a log.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from mcp_memory.core.errors import InvalidInput, McpMemoryError
from mcp_memory.core.logs import SafeText
from mcp_memory.core.projects import project_of
from mcp_memory.core.regular_files import read_regular, remove_own
from mcp_memory.core.secrets.masking import holds_key
from mcp_memory.integrations.clients.description import hooks_described
from mcp_memory.integrations.hooks.daemon_files import DaemonFiles, PendingLog
from mcp_memory.integrations.hooks.queued_conversations import is_queued_conversation, save_conversation
from mcp_memory.integrations.importers.conversations import store_conversation
from mcp_memory.integrations.importers.follow import follow_log
from mcp_memory.integrations.importers.records import session_name

if TYPE_CHECKING:
    from mcp_memory.integrations.hooks.events import HookEvent
    from mcp_memory.service.memory import Memory

logger = logging.getLogger(__name__)

AFTER_A_TURN = (0.0, 0.5, 2.0)
AT_THE_END = (0.0, 0.7)
"""Seconds after an event at which a log is read."""
_AGAIN_S, _AGAIN_MOST_S = 20.0, 300.0
_PROMPTS, _LONGEST_PROMPT = 50, 200_000
"""Prompts of a conversation that are remembered, and the characters of the longest."""
_PASS_S = 5.0
"""Seconds to read a log before the next log is read."""


@dataclass(frozen=True, slots=True)
class _DueRead:
    when: float
    note: PendingLog
    attempt: int = 1


class LogFollower:
    """Reads logs in the background of a daemon, at scheduled times. `memory` opens the store if needed."""

    def __init__(self, memory: Callable[[], Awaitable[Memory]], files: DaemonFiles) -> None:
        self._memory = memory
        self._files = files
        self._due: list[_DueRead] = []
        self._bell = asyncio.Event()
        self._noting = asyncio.Lock()
        self.storing = asyncio.Lock()
        """Locked while turns are stored, so that no turn is stored between the check for duplicates and the write."""
        self._finishing = False
        self._unreadable = set[str]()
        self._failures = dict[str, str]()
        self._prompts: dict[str, deque[str]] = {}

    def note_prompt(self, session: str, prompt: str) -> None:
        """Remember a typed prompt in memory, to find it in the log among text that the client attached to it.

        Very long prompts are ignored.
        """
        if len(prompt) <= _LONGEST_PROMPT:
            self._prompts.setdefault(session, deque(maxlen=_PROMPTS)).append(prompt)

    async def schedule(self, note: PendingLog, delays: Sequence[float] = AFTER_A_TURN) -> None:
        """Schedule readings of a log after each of the delays, in place of earlier schedules, and note it on disk."""
        now = asyncio.get_running_loop().time()
        before = [due.note for due in self._due if due.note.log == note.log]
        last = replace(note, flushed=note.flushed or any(earlier.flushed for earlier in before))
        self._due = [due for due in self._due if due.note not in before]
        self._due += [_DueRead(now + delay, replace(note, flushed=False)) for delay in delays[:-1]]
        self._due.append(_DueRead(now + delays[-1], last))
        self._bell.set()
        if note.conversation:  # without, the log is found again by its growth
            await self._save_note(last)

    async def run(self) -> None:
        """Read logs as scheduled, until `finish` is called and each log was tried."""
        clock = asyncio.get_running_loop().time
        while self._due or not self._finishing:
            self._bell.clear()
            wait = min((due.when for due in self._due), default=clock() + 3600) - clock()
            if wait <= 0 or self._finishing:
                await self._read_next()
            else:
                await wait_at_most(self._bell.wait(), wait)

    def retry_soon(self) -> None:
        """Read the logs now that could not be stored earlier."""
        if any(due.attempt > 1 for due in self._due):
            self._due = [replace(due, when=0.0) if due.attempt > 1 else due for due in self._due]
            self._bell.set()

    async def queue_conversation(self, event: HookEvent, *, flushed: bool) -> None:
        """Write a conversation that a plugin handed over to a file, and schedule its reading. Errors are logged."""
        try:
            file = await anyio.to_thread.run_sync(save_conversation, self._files, event.session, event.transcript)
        except OSError as error:
            logger.warning("a conversation was not put into the queue: %s", error)
            return
        note = PendingLog(
            log=str(file),
            client=event.client,
            conversation=event.conversation,
            flushed=flushed,
            folder=event.folder,
        )
        await self.schedule(note, (_AGAIN_S,))

    def finish(self) -> None:
        """Make `run` read all scheduled logs now, once each, and end."""
        self._finishing = True
        self._bell.set()

    async def _read_next(self) -> None:
        due = min(self._due, key=lambda reading: reading.when)
        self._due.remove(due)
        try:
            if await self._read(await self._memory(), due.note):
                self._failures.pop(due.note.log, None)
                await self._discard_note(due.note)
            elif not self._finishing:  # else its note stays
                self._due.append(_DueRead(asyncio.get_running_loop().time(), due.note))
        except McpMemoryError as error:
            if self._failures.get(due.note.log) != str(error):  # each reason once
                logger.warning("a log of %s was not stored: %s", SafeText(due.note.client), error)
                self._failures[due.note.log] = str(error)
            if not self._finishing:  # else its note stays
                wait = min(_AGAIN_S * 2 ** (due.attempt - 1), _AGAIN_MOST_S)
                self._due.append(_DueRead(asyncio.get_running_loop().time() + wait, due.note, due.attempt + 1))
        except Exception:
            logger.exception("a log of %s was not stored, by a fault of this program", SafeText(due.note.client))
            await self._discard_note(due.note)

    async def _save_note(self, note: PendingLog) -> None:
        def save() -> None:
            if not any(map(holds_key, (note.log, note.conversation, note.folder))):  # a note is not masked
                note.save(self._files)

        try:
            async with self._noting:
                await anyio.to_thread.run_sync(save)
        except OSError as error:
            logger.warning("a pending log was not noted: %s", error)

    async def _discard_note(self, note: PendingLog) -> None:
        async with self._noting:
            if not any(due.note.log == note.log for due in self._due):
                await anyio.to_thread.run_sync(note.discard, self._files)

    async def _read(self, memory: Memory, note: PendingLog) -> bool:
        """Read a log for a while; at its end, request extraction if the note says so.

        Return whether it is done: read to its end, or unreadable, which is logged.
        """
        client = note.client
        if await anyio.to_thread.run_sync(hooks_described, client) is None:
            return True
        if is_queued_conversation(Path(note.log), self._files):
            await self._store_queued(memory, note)
            return True
        try:
            prompts = [*self._prompts.get(session_name(client, note.conversation), ())]
            async with self.storing:
                read = await follow_log(
                    memory, Path(note.log), live=True, client=client, within_s=_PASS_S, folder=note.folder,
                    prompts=prompts,
                )  # fmt: skip
        except InvalidInput as unfit:
            if not isinstance(unfit.__cause__, FileNotFoundError):  # not yet created, or deleted
                self._log_unreadable(note, unfit.__cause__ or unfit)
            return True
        if read.bad:
            logger.warning("%d lines of a log of %s could not be read", read.bad, SafeText(client))
        if read.unread and read.session is not None:
            return False
        if read.unread:
            self._log_unreadable(note, InvalidInput("it names no conversation yet"))
        if note.flushed:
            await memory.flush(session_name(client, note.conversation))
            self._prompts.pop(session_name(client, note.conversation), None)  # all of their messages are stored
        return True

    async def _store_queued(self, memory: Memory, note: PendingLog) -> None:
        """Store a conversation of the queue, and delete its file."""
        file, session = Path(note.log), session_name(note.client, note.conversation)
        try:
            conversation = await anyio.to_thread.run_sync(lambda: json.loads(read_regular(file)))
        except (OSError, ValueError):  # it was torn by a full disk, or deleted
            conversation = None
        if conversation is not None:
            async with self.storing:
                await store_handed_over(memory, note.client, session, conversation, folder=note.folder)
        if note.flushed:
            await memory.flush(session)
        with suppress(OSError):
            await anyio.to_thread.run_sync(remove_own, file)

    def _log_unreadable(self, note: PendingLog, why: BaseException) -> None:
        """Log once that a log cannot be read; `doctor` shows it."""
        if note.log not in self._unreadable:
            self._unreadable.add(note.log)
            logger.warning("a log of %s was passed over: %s", SafeText(note.client), why)


async def store_handed_over(memory: Memory, client: str, session: str, conversation: Any, *, folder: str) -> None:
    """Store a conversation that a plugin handed over, with the project of its folder. Raises the errors of Memory."""
    await store_conversation(memory, client, session, conversation)
    if folder:
        await memory.note_project(session, await anyio.to_thread.run_sync(project_of, Path(folder)))


async def wait_at_most(waiting: Coroutine[Any, Any, object], seconds: float) -> None:
    """Await a coroutine for at most `seconds`."""
    try:
        await asyncio.wait_for(waiting, seconds)
    except TimeoutError:
        pass
