"""The answers of the daemon to hooks: within the time that a hook waits, and with the cause if there is none."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from mcp_memory.core.config import Settings
from mcp_memory.core.errors import McpMemoryError, ServerAway, ServerRefused
from mcp_memory.core.logs import SafeText
from mcp_memory.integrations.clients.description import Kind
from mcp_memory.integrations.hooks.answers import Conversations, HookAnswer
from mcp_memory.integrations.hooks.daemon_files import ACKNOWLEDGED, MAX_HEAD, NO_ANSWER, DaemonFiles, PendingLog
from mcp_memory.integrations.hooks.events import HookEvent, parse_input

if TYPE_CHECKING:
    from mcp_memory.service.memory import Memory

logger = logging.getLogger(__name__)

_ACKNOWLEDGING_S = 2.0
_WAITING_S: Mapping[Kind, float] = {"start": 2.8, "prompt": 2.8, "tool": 7.8}
"""Seconds until an answer is late: a little less than the hook waits at most."""
_SERVER_S = 1.0
"""The same at a prompt where the memory is on a server: the hook has no other way to answer."""
_NOTING_S = 0.2
"""The same for other hooks, which wait only until the pending log is noted."""


class Hooks:
    """Answers hooks, and reads the logs of their conversations in the background."""

    def __init__(self, memory: Callable[[], Awaitable[Memory]], settings: Settings, files: DaemonFiles) -> None:
        """`memory` opens the memory if needed."""
        self._waiting_s = {**_WAITING_S, "prompt": _SERVER_S} if settings.server else _WAITING_S
        self._memory_name = "the server" if settings.server else "the memory"
        self._overdue = set[asyncio.Task[HookAnswer]]()
        self._conversations = Conversations(memory, files)
        self._following = asyncio.create_task(self._conversations.following.run())
        self._last_cause = ""

    async def resume_reading(self, logs: Sequence[PendingLog]) -> None:
        """Read logs that an earlier daemon or a hook left."""
        await self._conversations.resume_reading(logs)

    def finish(self) -> set[asyncio.Task[Any]]:
        """Begin no more work, and return the tasks that are not finished."""
        self._conversations.following.finish()
        return {self._following, *self._overdue, *self._conversations.background}

    async def answer(self, question: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the question of a hook, and note whether the answer arrived."""
        event = await anyio.to_thread.run_sync(_parse_question, question)
        answer = HookAnswer() if event is None else await self._answer_in_time(event)
        reply = json.dumps(answer.json).encode() if answer.json else b""
        try:
            missed = NO_ANSWER % answer.missed.encode()[: MAX_HEAD - 10]
            writer.write(missed if answer.missed else b"%d\n" % len(reply) + reply)
            await writer.drain()
            if event is not None and not answer.missed and event.kind in ("start", "prompt"):
                async with asyncio.timeout(_ACKNOWLEDGING_S):
                    if await reader.readexactly(len(ACKNOWLEDGED)) == ACKNOWLEDGED:
                        self._conversations.note_delivered(event, answer)
                        return
        except (OSError, EOFError, TimeoutError):
            pass  # the hook has given up, and answered itself
        if event is not None and event.kind in ("start", "prompt"):
            self._conversations.forget_shown(event)

    async def _answer_in_time(self, event: HookEvent) -> HookAnswer:
        """Return the answer if it is ready while its hook waits, else one that was missed; the work then continues.

        Missed too if it failed. While earlier work is late, tool outputs are not processed at all.
        """
        if event.kind == "tool" and self._overdue:
            return HookAnswer(missed=f"{self._memory_name} is too slow now")
        task = asyncio.create_task(self._conversations.answer(event))
        seconds = self._waiting_s.get(event.kind, _NOTING_S)
        await asyncio.wait({task}, timeout=seconds)
        if not task.done():
            self._overdue.add(task)
            task.add_done_callback(partial(self._on_late_answer, event))
            late = f"{self._memory_name} did not answer within {seconds:.1f} s"
            return HookAnswer(missed=late) if event.kind in self._waiting_s else HookAnswer()
        return self._result_of(event, task)

    def _on_late_answer(self, event: HookEvent, task: asyncio.Task[HookAnswer]) -> None:
        self._overdue.discard(task)
        self._result_of(event, task)

    def _result_of(self, event: HookEvent, task: asyncio.Task[HookAnswer]) -> HookAnswer:
        if task.cancelled():
            return HookAnswer(missed="the daemon ended")
        match task.exception():
            case None:
                return task.result()
            case ServerAway() | ServerRefused() as error:
                if error.cause != self._last_cause:  # each cause once: it is recorded for each prompt
                    logger.warning("%s: %s", SafeText(event.name), error)
                self._last_cause = error.cause
                return HookAnswer(missed=error.cause)
            case McpMemoryError() as error:
                logger.warning("%s: %s", SafeText(event.name), error)
            case error:
                logger.error("%s failed, by a fault of this program", SafeText(event.name), exc_info=error)
        return HookAnswer(missed="the daemon failed, see hooks.log")


def _parse_question(question: bytes) -> HookEvent | None:
    head, _, payload = question.partition(b"\n")
    header = json.loads(head)
    try:
        return parse_input(header["client"], header["event"], payload)
    except (ValueError, RecursionError) as error:
        logger.warning("%s: the input of the hook is no JSON: %s", SafeText(header["event"]), error)
        return None
