"""Logs of conversations, read as they grow: one after the other, in the background of a resident.

A client writes its log a little after it tells of an event, so a log is read at once and again soon after. What cannot
be stored now, because the store is locked or the disk is full, is tried again for a while. What is due is noted until
it is read.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from mcp_memory.core.errors import InvalidInput, McpMemoryError
from mcp_memory.core.logs import Word
from mcp_memory.integrations.hooks.notes import Note
from mcp_memory.integrations.hooks.rendezvous import Place
from mcp_memory.integrations.importers.agents import agent_named, session_name
from mcp_memory.integrations.importers.follow import follow

if TYPE_CHECKING:
    from mcp_memory.service.memory import Memory

__all__ = ["AFTER_A_TURN", "AT_THE_END", "Following", "within"]

logger = logging.getLogger(__name__)

AFTER_A_TURN = (0.0, 0.5, 2.0)
AT_THE_END = (0.0, 0.7)
"""Seconds after an event at which a log is read."""
_AGAIN_S, _ATTEMPTS = 20.0, 6
_PASS_S = 5.0
"""After so many seconds with one log it is the turn of the others."""


@dataclass(frozen=True, slots=True)
class _Due:
    when: float
    note: Note
    attempt: int = 1


class Following:
    """What is to be read, and when. `memory` opens the store, where it is not open; notes are left at the place."""

    def __init__(self, memory: Callable[[], Awaitable[Memory]], place: Place) -> None:
        self._memory = memory
        self._place = place
        self._due: list[_Due] = []
        self._bell = asyncio.Event()
        self._noting = asyncio.Lock()
        self.storing = asyncio.Lock()
        """Held while turns are stored: what is known is looked up before, so that none is stored twice."""
        self._finishing = False
        self._passed = set[str]()

    async def soon(self, note: Note, delays: Sequence[float] = AFTER_A_TURN) -> None:
        """Have a log read after so many seconds each; this takes the place of what was due of it before."""
        now = asyncio.get_running_loop().time()
        before = [due.note for due in self._due if due.note.log == note.log]
        last = replace(note, flushed=note.flushed or any(one.flushed for one in before))
        self._due = [due for due in self._due if due.note not in before]
        self._due += [_Due(now + delay, replace(note, flushed=False)) for delay in delays[:-1]]
        self._due.append(_Due(now + delays[-1], last))
        self._bell.set()
        if note.conversation:  # one without is found again by its growth
            await self._noted(last)

    async def run(self) -> None:
        """Read what is due until `finish` is called and all was tried."""
        clock = asyncio.get_running_loop().time
        while self._due or not self._finishing:
            self._bell.clear()
            wait = min((due.when for due in self._due), default=clock() + 3600) - clock()
            if wait <= 0 or self._finishing:
                await self._read_next()
            else:
                await within(self._bell.wait(), wait)

    def finish(self) -> None:
        """Have what is due read now, each once, and `run` return."""
        self._finishing = True
        self._bell.set()

    async def _read_next(self) -> None:
        due = min(self._due, key=lambda one: one.when)
        self._due.remove(due)
        try:
            if await self._read(await self._memory(), due.note):
                await self._is_done(due.note)
            elif not self._finishing:  # else its note stays
                self._due.append(_Due(asyncio.get_running_loop().time(), due.note))
        except McpMemoryError as error:
            logger.warning("a log of %s was not taken in: %s", Word(due.note.client), error)
            if not self._finishing and due.attempt < _ATTEMPTS:  # else its note stays
                later = asyncio.get_running_loop().time() + _AGAIN_S
                self._due.append(_Due(later, due.note, due.attempt + 1))
        except Exception:
            logger.exception("a log of %s was not taken in, by a fault of this program", Word(due.note.client))
            await self._is_done(due.note)

    async def _noted(self, note: Note) -> None:
        try:
            async with self._noting:
                await anyio.to_thread.run_sync(note.leave, self._place)
        except OSError as error:
            logger.warning("what is to be read was not noted: %s", error)

    async def _is_done(self, note: Note) -> None:
        async with self._noting:
            if not any(due.note.log == note.log for due in self._due):
                await anyio.to_thread.run_sync(note.withdraw, self._place)

    async def _read(self, memory: Memory, note: Note) -> bool:
        """Read a log for a while, and tell whether all of it is read."""
        client = agent_named(note.client)
        if client is None:
            return True
        try:
            async with self.storing:
                read = await follow(memory, Path(note.log), live=True, client=client, within_s=_PASS_S)
        except InvalidInput as unfit:
            if not isinstance(unfit.__cause__, FileNotFoundError):  # not written yet, or gone
                self._pass_over(note, unfit.__cause__ or unfit)
            return True
        if read.bad:
            logger.warning("%d lines of a log of %s could not be read", read.bad, Word(client))
        if read.unread and read.session is not None:
            return False
        if read.unread:
            self._pass_over(note, InvalidInput("so far it tells of no conversation"))
        if note.flushed:
            await memory.flush(session_name(client, note.conversation))
        return True

    def _pass_over(self, note: Note, why: BaseException) -> None:
        """Log once that a log cannot be read; `doctor` shows it."""
        if note.log not in self._passed:
            self._passed.add(note.log)
            logger.warning("a log of %s was passed over: %s", Word(note.client), why)


async def within(waiting: Coroutine[Any, Any, object], seconds: float) -> None:
    """Wait for something, but no longer than so many seconds."""
    try:
        await asyncio.wait_for(waiting, seconds)
    except TimeoutError:
        pass
