"""What happens at each event of a conversation, and the answers to clients.

Text that a model was shown is not repeated until its context is compacted. A new daemon reads earlier recalls from the
client's own log, so they need not be stored. All text stays within the budgets below; without relevant memories the
answer is empty.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_never

import anyio.to_thread

from mcp_memory.core.errors import McpMemoryError
from mcp_memory.core.lru import LRU
from mcp_memory.core.projects import project_of
from mcp_memory.core.token_counts import token_counter
from mcp_memory.core.types import NewTurn
from mcp_memory.integrations.clients.description import Kind, hooks_described
from mcp_memory.integrations.hooks import NEEDED_TOKENS, STABLE_TOKENS, tool_outputs
from mcp_memory.integrations.hooks.daemon_files import DaemonFiles, PendingLog
from mcp_memory.integrations.hooks.events import (
    MAX_CHARS,
    PROMPT_CHARS,
    HookEvent,
    context_answer,
    output_answer,
    recording_notice,
)
from mcp_memory.integrations.hooks.following import AFTER_A_TURN, AT_THE_END, LogFollower, store_handed_over
from mcp_memory.integrations.hooks.transcripts import recalled_before
from mcp_memory.integrations.importers.agent_logs import extract_summary
from mcp_memory.integrations.importers.log_lines import summary_id
from mcp_memory.integrations.project_files import store_project_files
from mcp_memory.longterm.attachments import typed_text
from mcp_memory.longterm.turns import SUMMARY, recall_block
from mcp_memory.shortterm.synopsis.synopsis import synopsise
from mcp_memory.suspicion.flags import without_flagged_lines

if TYPE_CHECKING:
    from mcp_memory.service.memory import Memory


CANVAS_TOKENS = 1_000
_MAX_SESSIONS = 256  # sessions whose shown texts are kept in memory; for others, the log is read again
_BEGINNINGS = ("startup", "clear")
_LOCAL = ("bundled", "fastembed:", "model2vec:")


# --- texts for the model ----------------------------------------------------------------------------


async def opening_text(
    memory: Memory, session: str, *, source: str, recorded: bool, project: str | None = None, shown: Sequence[str] = ()
) -> str:
    """Return the text to inject at the start of a conversation, without the parts that the model was already `shown`.

    After a compaction it includes the canvas of the session.
    """
    parts = [recording_notice(session)] if recorded else []
    if recorded and source in _BEGINNINGS and (note := await memory.undistilled()):
        parts = [f"{parts[0]} {note}"]
    start = await memory.recall_stable(session=session, project=project, budget_tokens=STABLE_TOKENS)
    parts += [block for block in (start.stable, start.dynamic) if block]
    if source == "compact" and await memory.active_canvas(session):
        view = await memory.fold_canvas(session=session, budget_tokens=CANVAS_TOKENS)
        canvas_text = await anyio.to_thread.run_sync(without_flagged_lines, view.text)
        canvas = recall_block(f"The task at hand; expand_node opens its nodes.\n{canvas_text}", part="canvas")
        parts += [canvas] if sum(map(len, [*parts, canvas])) <= MAX_CHARS else []
    already_shown = "\n".join(shown)
    return "\n\n".join(part for part in parts if part not in already_shown)


async def recall_beyond_context(
    memory: Memory, session: str, prompt: str, *, project: str | None = None, shown: Sequence[str]
) -> str:
    """Return memories that are relevant to a prompt and not in its context (`shown`); often empty."""
    recall = await memory.recall_beyond(
        prompt[:PROMPT_CHARS],
        known="\n".join(shown),
        session=session,
        project=project,
        budget_tokens=NEEDED_TOKENS,
    )
    return recall.dynamic if len(recall.dynamic) <= MAX_CHARS else ""


# --- warming up -------------------------------------------------------------------------------------


async def warm_up(memory: Memory) -> None:
    """Load the modules and models for the first prompt and the first large output. Remote models are not called.

    A server has loaded its own: it is asked once, so that the connection is there.
    """
    if memory.settings.server is not None:
        await memory.recall_beyond("What is known here?", known="", session="none", is_rehearsal=True)
        return
    await anyio.to_thread.run_sync(_load_lazily, memory.settings.tokenizer)
    if memory.settings.embedder.startswith(_LOCAL):
        await memory.recall_beyond("What is known here?", known="", session="none", is_rehearsal=True)


def _load_lazily(tokenizer: Any) -> None:
    import_module("mcp_memory.shortterm.offload")
    synopsise("2026-01-01 10:00 INFO nothing\n" * 50, tool="Bash", arguments=None, talk="")
    token_counter(tokenizer).count("nothing")


# --- compaction -------------------------------------------------------------------------------------


async def record_summary(memory: Memory, session: str, summary: str) -> None:
    """Record the summary of a compaction and note the compaction, unless the summary is recorded already.

    The log contains it too, under the same id.
    """
    text = extract_summary(summary)
    if text.strip():
        id = summary_id(text)
        if not await memory.known_client_ids([id]):  # the log's copy has a time, so the store would not see a duplicate
            turn = NewTurn(role=SUMMARY[0], name=SUMMARY[1], content=text, client_id=id)
            await memory.record_turns([turn], session=session)
            await memory.note_compacted(session)


logger = logging.getLogger(__name__)

_WHILE_WORKING = (0.3, 2.0)
"""Delays after a prompt. Short, because offloading judges tool results by the prompt, which must be stored by then."""
_LATER = (3.0,)
_GROWN = 50  # logs that are checked for growth


@dataclass(frozen=True, slots=True, kw_only=True)
class HookAnswer:
    """The answer to a client; `shown_text` is the text that the model has seen once the answer has arrived.

    `missed` says, without any contents, why there is none; the hook records it.
    """

    json: dict[str, Any] | None = None
    shown_text: str = ""
    missed: str = ""


class Conversations:
    """The conversations that a daemon serves. `memory` opens the store if needed."""

    def __init__(self, memory: Callable[[], Awaitable[Memory]], files: DaemonFiles) -> None:
        self._memory = memory
        self._shown = LRU[str, list[str]](_MAX_SESSIONS)
        self._waiting = LRU[str, dict[Kind, str]](_MAX_SESSIONS)
        self._is_warm = False
        self._live: set[str] = set()
        self.following = LogFollower(memory, files)
        self.background = set[asyncio.Task[None]]()

    async def answer(self, event: HookEvent) -> HookAnswer:
        """Process an event and return the answer. Raises the errors of Memory; unfinished work is repeated later."""
        if event.kind != "end":
            self._live.add(event.session)
        match event.kind:
            case "start":
                return await self._start(event)
            case "prompt":
                self.following.note_prompt(event.session, event.text)
                await self._follow(event, _WHILE_WORKING)
                typed = (await anyio.to_thread.run_sync(typed_text, event.text)).strip()
                if not typed:
                    return HookAnswer()
                shown = list(await self._shown_texts(event))
                text = await recall_beyond_context(
                    await self._memory(), event.session, typed, project=await _project_of(event), shown=shown
                )
                self.following.retry_soon()  # the memory is there
                return self._answer_with_text(event, text)
            case "tool":
                answer = self._answer_with_text(event, "")
                if event.call is None:
                    return answer
                memory = await self._memory()
                response = await tool_outputs.offload_output(memory, event.session, event.call, log=event.log)
                replaced = None if response is None else output_answer(event, response)
                return replace(answer, json={**(answer.json or {}), **replaced}) if replaced else answer
            case "compacting":
                await self._follow(event, AT_THE_END, flushed=True)
            case "compacted":
                await self._follow(event, AFTER_A_TURN)
                memory = await self._memory()
                async with self.following.storing:
                    await record_summary(memory, event.session, event.text)
            case "stop":
                await self._follow(event, AFTER_A_TURN)
            case "end":
                await self._follow(event, AT_THE_END, flushed=True)
                self._live.discard(event.session)
                self._shown.pop(event.session)
                self._waiting.pop(event.session)
            case _:
                assert_never(event.kind)
        return HookAnswer()

    async def resume_reading(self, notes: Iterable[PendingLog]) -> None:
        """Schedule the logs that an earlier daemon or hook left unread."""
        for note in notes:
            await self.following.schedule(note, AT_THE_END)

    def note_delivered(self, event: HookEvent, answer: HookAnswer) -> None:
        """Remember the shown text of an answer that has arrived."""
        if answer.shown_text:
            self._shown.get_or_put(event.session, list[str]).append(answer.shown_text)

    def forget_shown(self, event: HookEvent) -> None:
        """Read from the client's log again what was shown, since the hook may have answered itself."""
        self._shown.pop(event.session)

    async def _start(self, event: HookEvent) -> HookAnswer:
        memory = await self._memory()
        hooks = hooks_described(event.client)
        if event.source not in ("resume", "fork") or not (hooks and hooks.keeps_context):
            self._shown.put(event.session, [])
        shown = list(await self._shown_texts(event))
        recorded = event.log is not None or bool(hooks and hooks.hands_over)
        text = await opening_text(
            memory,
            event.session,
            source=event.source,
            recorded=recorded,
            project=await _project_of(event),
            shown=shown,
        )
        task = asyncio.create_task(self._prepare(memory, event))
        self.background.add(task)
        task.add_done_callback(self.background.discard)
        return self._answer_with_text(event, text)

    def _answer_with_text(self, event: HookEvent, text: str) -> HookAnswer:
        """Return the answer that adds a text to the context, with those that wait for it.

        If the client adds none at this event, the text waits for the next event at which it does, in place of an
        earlier text of the same kind of event.
        """
        waiting = self._waiting.get_or_put(event.session, dict[Kind, str])
        if text:
            waiting[event.kind] = text
        if not waiting or not event.adds_context:
            return HookAnswer()
        self._waiting.pop(event.session)
        shown = "\n\n".join(waiting.values())
        hooks = hooks_described(event.client)
        stays = bool(hooks and (hooks.keeps_context or event.kind == "start"))
        return HookAnswer(json=context_answer(event, shown), shown_text=shown if stays else "")

    async def _prepare(self, memory: Memory, event: HookEvent) -> None:
        """At the first start, warm up and follow grown logs; read the files of the project. Errors are only logged."""
        is_first, self._is_warm = not self._is_warm, True
        try:
            if is_first:
                await warm_up(memory)
                await self._follow_grown(memory)
            if event.folder and memory.settings.server is None:
                await store_project_files(memory, Path(event.folder), client=event.client, log=event.log)
        except McpMemoryError as error:
            logger.warning("at the start: %s", error)
        except Exception:
            logger.exception("at the start, by a fault of this program")

    async def _shown_texts(self, event: HookEvent) -> list[str]:
        shown = self._shown.get(event.session)
        if shown is None:
            recalled = await anyio.to_thread.run_sync(recalled_before, event.log)
            shown = self._shown.get_or_put(event.session, lambda: recalled)  # another event may have set it meanwhile
        return shown

    async def _follow(self, event: HookEvent, delays: tuple[float, ...], *, flushed: bool = False) -> None:
        if event.log is not None:
            note = PendingLog(
                log=str(event.log),
                client=event.client,
                conversation=event.conversation,
                flushed=flushed,
                folder=event.folder,
            )
            await self.following.schedule(note, delays)
            return
        if event.transcript is not None:
            try:
                async with self.following.storing:
                    await store_handed_over(
                        await self._memory(), event.client, event.session, event.transcript, folder=event.folder
                    )
            except McpMemoryError:  # the client keeps it in a store that is not read here
                await self.following.queue_conversation(event, flushed=flushed)
                raise
        if flushed:
            await (await self._memory()).flush(event.session)

    async def _follow_grown(self, memory: Memory) -> None:
        """Follow logs that have grown without an event, as when the client or the machine crashed."""
        logs = (await memory.followed_logs())[:_GROWN]
        grown = await anyio.to_thread.run_sync(lambda: [log for log in logs if _size(Path(log.path)) > log.offset])
        for log in grown:
            if log.session not in self._live:
                await self.following.schedule(PendingLog(log=log.path, client=log.client, conversation=""), _LATER)


async def _project_of(event: HookEvent) -> str | None:
    return await anyio.to_thread.run_sync(project_of, Path(event.folder)) if event.folder else None


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
