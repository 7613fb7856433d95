"""The conversations that go on: what was told in the context of each, and what becomes of an event.

What was put before a model once is not put there again until its context is compacted. A resident that is new to a
conversation reads that back from the client's own log, so nothing has to be kept for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_never

import anyio.to_thread

from mcp_memory.core.errors import McpMemoryError
from mcp_memory.integrations.hooks import dialects, events, offloading
from mcp_memory.integrations.hooks.dialects import Event
from mcp_memory.integrations.hooks.following import AFTER_A_TURN, AT_THE_END, Following
from mcp_memory.integrations.hooks.notes import Note
from mcp_memory.integrations.hooks.recollecting import told_before
from mcp_memory.integrations.hooks.rendezvous import Place

if TYPE_CHECKING:
    from mcp_memory.service.memory import Memory

__all__ = ["Answer", "Conversations"]

logger = logging.getLogger(__name__)

_WHILE_WORKING = (0.3, 2.0)
"""The log tells what was asked while the tools are at work on it, whose results are judged by it."""
_LATER = (3.0,)
_GROWN = 50  # logs that are looked at


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a client is to be answered, and what is so once it has that: the text that its model has been told, and
    what stands for results."""

    json: dict[str, Any] | None = None
    told: str = ""
    replaced: Sequence[offloading.Replaced] = ()


class Conversations:
    """The conversations of one place. `memory` opens the store, where it is not open."""

    def __init__(self, memory: Callable[[], Awaitable[Memory]], place: Place) -> None:
        self._memory = memory
        self._known: dict[str, list[str]] = {}
        self._warming: asyncio.Task[None] | None = None
        self._live: set[str] = set()
        self._some_ended = False
        self.following = Following(memory, place)

    @property
    def are_over(self) -> bool:
        """Whether some have ended and none goes on."""
        return self._some_ended and not self._live

    async def answer(self, event: Event) -> Answer:
        """Do what an event asks for. Raises what the Memory does; nothing is half done then that is not done again."""
        if event.kind != "end":
            self._live.add(event.session)
        match event.kind:
            case "start":
                return await self._start(event)
            case "prompt":
                await self._follow(event, _WHILE_WORKING)
                if not event.text:
                    return Answer()
                known = list(await self._told(event))
                text = await events.needed(await self._memory(), event.session, event.text, known=known)
                return _before_the_model(event, text)
            case "tool":
                if event.call is None:
                    return Answer()
                memory = await self._memory()
                response, done = await offloading.offloaded(memory, event.session, event.call, log=event.log)
                return Answer(json=None if response is None else dialects.output(event, response), replaced=done)
            case "compacting":
                await self._follow(event, AT_THE_END, flushed=True)
            case "compacted":
                await self._follow(event, AFTER_A_TURN)
                memory = await self._memory()
                async with self.following.storing:
                    await events.summed_up(memory, event.session, event.text)
            case "stop":
                await self._follow(event, AFTER_A_TURN)
            case "end":
                self._some_ended = True
                await self._follow(event, AT_THE_END, flushed=True)
                self._live.discard(event.session)
                self._known.pop(event.session, None)
            case _:
                assert_never(event.kind)
        return Answer()

    async def take_up(self, notes: Iterable[Note]) -> None:
        """Read the logs that were left to be read."""
        for note in notes:
            await self.following.soon(note, AT_THE_END)

    async def was_answered(self, event: Event, answer: Answer) -> None:
        """Note what has been put before the model, once it has: what comes too late is neither told nor saves."""
        if answer.told:
            self._known.setdefault(event.session, []).append(answer.told)
        for one in answer.replaced:
            memory = await self._memory()
            await memory.note_replaced(one.kept, shown=one.shown, note=one.note)

    async def _start(self, event: Event) -> Answer:
        memory = await self._memory()
        if event.source not in ("resume", "fork"):
            self._known[event.session] = []
        known = list(await self._told(event))
        text = await events.opening(
            memory, event.session, source=event.source, recorded=event.log is not None, known=known
        )
        if self._warming is None:
            self._warming = asyncio.create_task(self._warm(memory))
        return _before_the_model(event, text)

    async def _warm(self, memory: Memory) -> None:
        """Do once, while the user types the first prompt, what can be done before it."""
        try:
            await events.warmed(memory)
            await self._follow_grown(memory)
        except McpMemoryError as error:
            logger.warning("at the start: %s", error)
        except Exception:
            logger.exception("at the start, by a fault of this program")

    async def _told(self, event: Event) -> list[str]:
        if event.session not in self._known:
            self._known[event.session] = await anyio.to_thread.run_sync(told_before, event.log)
        return self._known[event.session]

    async def _follow(self, event: Event, delays: tuple[float, ...], *, flushed: bool = False) -> None:
        if event.log is not None:
            note = Note(log=str(event.log), client=event.client, conversation=event.conversation, flushed=flushed)
            await self.following.soon(note, delays)

    async def _follow_grown(self, memory: Memory) -> None:
        """Read on in logs that have grown since nobody told us: a client or a machine went down."""
        held = (await memory.followed_logs())[:_GROWN]
        grown = await anyio.to_thread.run_sync(lambda: [one for one in held if _size(Path(one.path)) > one.offset])
        for one in grown:
            if one.session not in self._live:
                await self.following.soon(Note(log=one.path, client=one.client, conversation=""), _LATER)


def _before_the_model(event: Event, text: str) -> Answer:
    return Answer(json=dialects.context(event, text) if text else None, told=text)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
