"""Events of conversations: how clients describe them, the work at each, and the answers to clients.

A hook's input is read into a `HookEvent`; unknown fields are ignored, and an event that is not ours, or lacks something
essential, is None. Text that was put before a model is not repeated until its context is compacted. A new daemon reads
earlier recalls back from the client's own log, so nothing has to be stored for it. All text stays within the budgets
below; if nothing is relevant, nothing is said.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_never, cast

import anyio.to_thread

from mcp_memory.core.errors import McpMemoryError
from mcp_memory.core.lru import LRU
from mcp_memory.core.private import without_private
from mcp_memory.core.token_counts import token_counter
from mcp_memory.core.types import NewTurn
from mcp_memory.integrations.hooks import Kind, kind_of, tool_outputs
from mcp_memory.integrations.hooks.endpoint import DaemonFiles, PendingLog
from mcp_memory.integrations.hooks.transcripts import AFTER_A_TURN, AT_THE_END, LogFollower, recalled_before
from mcp_memory.integrations.importers.agent_logs import summary_id, summary_of
from mcp_memory.integrations.importers.records import Agent, agent_named, session_name
from mcp_memory.longterm.attachments import typed_text
from mcp_memory.longterm.turns import SUMMARY, recall_block
from mcp_memory.shortterm.synopsis.synopsis import synopsise
from mcp_memory.suspicion.flags import without_flagged_lines

if TYPE_CHECKING:
    from mcp_memory.service.memory import Memory


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResponse:
    """A tool call that came back. `response` has the form that the client gives it."""

    client: Agent
    tool: str
    arguments: object
    id: str | None
    response: object


@dataclass(frozen=True, slots=True, kw_only=True)
class HookEvent:
    """An event of a conversation. `log` is the file that its client writes of it, which may not be there yet."""

    kind: Kind
    name: str
    """What the client calls it."""
    client: Agent
    conversation: str
    """The client's own id of it."""
    log: Path | None
    source: str = ""
    """How a conversation starts: `startup`, `resume`, `clear`, `compact`, `fork`."""
    text: str = ""
    """The prompt as the client reported it, or the summary of a compaction; without private passages."""
    call: ToolResponse | None = None

    @property
    def session(self) -> str:
        """What the conversation is called here."""
        return session_name(self.client, self.conversation)


_OF_SUBAGENTS = "agent_id"


def read(client: str, name: str, given: object) -> HookEvent | None:
    """Return the event of a hook's input, or None if there is nothing to do.

    Sub-agents are ignored: their contexts are short, their tools are few, and their talk is no conversation.
    """
    of = agent_named(client)
    if not isinstance(given, dict) or of is None:
        return None
    told = cast("dict[str, Any]", given)
    kind = kind_of(of, name)
    conversation, log = told.get("session_id"), told.get("transcript_path")
    if kind is None or not isinstance(conversation, str) or not conversation.strip() or told.get(_OF_SUBAGENTS):
        return None
    text = told.get("prompt") if kind == "prompt" else told.get("compact_summary") if kind == "compacted" else ""
    return HookEvent(
        kind=kind,
        name=name,
        client=of,
        conversation=conversation,
        log=Path(log) if isinstance(log, str) and log else None,
        source=str(told.get("source") or ""),
        text=without_private(text) if isinstance(text, str) else "",
        call=_call(of, told) if kind == "tool" else None,
    )


def _call(client: Agent, told: Mapping[str, Any]) -> ToolResponse | None:
    tool, id = told.get("tool_name"), told.get("tool_use_id")
    if not isinstance(tool, str) or "tool_response" not in told:
        return None
    return ToolResponse(
        client=client,
        tool=tool,
        arguments=told.get("tool_input"),
        id=id if isinstance(id, str) else None,
        response=told["tool_response"],
    )


def context(event: HookEvent, text: str) -> dict[str, Any]:
    """Return the answer that puts a text before the model."""
    return {"hookSpecificOutput": {"hookEventName": event.name, "additionalContext": text}}


def output(event: HookEvent, response: object) -> dict[str, Any]:
    """Return the answer that puts another response in the place of the tool's.

    Codex takes a text: it ends its work on the response, not the turn, and the model reads the reason instead.
    """
    if event.client == "codex":
        return {"continue": False, "stopReason": response}
    return {"hookSpecificOutput": {"hookEventName": event.name, "updatedToolOutput": response}}


STABLE_TOKENS = 700
CANVAS_TOKENS = 1_000
NEEDED_TOKENS = 395
MAX_CHARS = 9_500
"""Claude Code puts what is longer than 10,000 characters into a file, and the model sees its beginning alone."""
_PROMPT_CHARS = 4_000
_MOST_SESSIONS = 256  # whose recalled texts are remembered; of others they are read from the log again
_BEGINNINGS = ("startup", "clear")
_LOCAL = ("bundled", "fastembed:", "model2vec:")


# --- before the model -------------------------------------------------------------------------------


async def opening(memory: Memory, session: str, *, source: str, recorded: bool, known: Sequence[str] = ()) -> str:
    """Return the text at the start of a conversation, without `known` parts; after a compaction, with its canvas."""
    parts = [_recorded_as(session)] if recorded else []
    if recorded and source in _BEGINNINGS and (note := await memory.undistilled()):
        parts = [f"{parts[0]} {note}"]
    start = await memory.recall_stable(session=session, budget_tokens=STABLE_TOKENS)
    parts += [block for block in (start.stable, start.dynamic) if block]
    if source == "compact" and await memory.active_canvas(session):
        view = await memory.fold_canvas(session=session, budget_tokens=CANVAS_TOKENS)
        shown = await anyio.to_thread.run_sync(without_flagged_lines, view.text)
        canvas = recall_block(f"The task at hand; expand_node opens its nodes.\n{shown}", part="canvas")
        parts += [canvas] if sum(map(len, [*parts, canvas])) <= MAX_CHARS else []
    told = "\n".join(known)
    return "\n\n".join(part for part in parts if part not in told)


def _recorded_as(session: str) -> str:
    return (
        f"This conversation is recorded in memory by itself, as session {session}. Do not call record_turns for it; "
        "pass that session to recall, offload_tool_result and fold_canvas, not to a search, which would look only here."
    )


async def recall_beyond_context(memory: Memory, session: str, prompt: str, *, known: Sequence[str]) -> str:
    """Return memories that a prompt needs and its context lacks (`known`); often empty."""
    found = await memory.recall_beyond(
        prompt[:_PROMPT_CHARS], known="\n".join(known), session=session, budget_tokens=NEEDED_TOKENS
    )
    return found.dynamic if len(found.dynamic) <= MAX_CHARS else ""


# --- what takes long the first time -----------------------------------------------------------------


async def warmed(memory: Memory) -> None:
    """Load what the first prompt and the first large output would wait for; a model elsewhere is not asked."""
    await anyio.to_thread.run_sync(_tried, memory.settings.tokenizer)
    if memory.settings.embedder.startswith(_LOCAL):
        await memory.recall_beyond("What is known here?", known="", session="none", is_rehearsal=True)


def _tried(tokenizer: Any) -> None:
    import_module("mcp_memory.shortterm.offload")
    synopsise("2026-01-01 10:00 INFO nothing\n" * 50, tool="Bash", arguments=None, talk="")
    token_counter(tokenizer).count("nothing")


# --- compaction -------------------------------------------------------------------------------------


async def summed_up(memory: Memory, session: str, summary: str) -> None:
    """Keep the summary of a compaction. Its log has it too, under the same id, so it is stored once."""
    text = summary_of(summary)
    if text.strip():
        id = summary_id(text)
        if not await memory.known_client_ids([id]):  # its log dates it, so the store would take it for another
            turn = NewTurn(role=SUMMARY[0], name=SUMMARY[1], content=text, client_id=id)
            await memory.record_turns([turn], session=session)
            await memory.note_compacted(session)


logger = logging.getLogger(__name__)

_WHILE_WORKING = (0.3, 2.0)
"""The log tells what was asked while the tools are at work on it, whose results are judged by it."""
_LATER = (3.0,)
_GROWN = 50  # logs that are looked at


@dataclass(frozen=True, slots=True, kw_only=True)
class HookAnswer:
    """The answer to a client. `told` is the text that the model has seen once the answer has arrived."""

    json: dict[str, Any] | None = None
    told: str = ""


class Conversations:
    """The conversations of one place. `memory` opens the store, where it is not open."""

    def __init__(self, memory: Callable[[], Awaitable[Memory]], place: DaemonFiles) -> None:
        self._memory = memory
        self._known = LRU[str, list[str]](_MOST_SESSIONS)
        self._warming: asyncio.Task[None] | None = None
        self._live: set[str] = set()
        self._some_ended = False
        self.following = LogFollower(memory, place)

    @property
    def are_over(self) -> bool:
        """Whether some have ended and none goes on."""
        return self._some_ended and not self._live

    async def answer(self, event: HookEvent) -> HookAnswer:
        """Process an event. Raises what Memory raises; unfinished work is repeated later."""
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
                known = list(await self._told(event))
                text = await recall_beyond_context(await self._memory(), event.session, typed, known=known)
                return _before_the_model(event, text)
            case "tool":
                if event.call is None:
                    return HookAnswer()
                memory = await self._memory()
                response = await tool_outputs.offload_output(memory, event.session, event.call, log=event.log)
                return HookAnswer(json=None if response is None else output(event, response))
            case "compacting":
                await self._follow(event, AT_THE_END, flushed=True)
            case "compacted":
                await self._follow(event, AFTER_A_TURN)
                memory = await self._memory()
                async with self.following.storing:
                    await summed_up(memory, event.session, event.text)
            case "stop":
                await self._follow(event, AFTER_A_TURN)
            case "end":
                self._some_ended = True
                await self._follow(event, AT_THE_END, flushed=True)
                self._live.discard(event.session)
                self._known.pop(event.session)
            case _:
                assert_never(event.kind)
        return HookAnswer()

    async def take_up(self, notes: Iterable[PendingLog]) -> None:
        """Read the logs that were left to be read."""
        for note in notes:
            await self.following.soon(note, AT_THE_END)

    def was_answered(self, event: HookEvent, answer: HookAnswer) -> None:
        """Remember what has been put before the model, once the answer has arrived."""
        if answer.told:
            self._known.get_or_put(event.session, list[str]).append(answer.told)

    async def _start(self, event: HookEvent) -> HookAnswer:
        memory = await self._memory()
        if event.source not in ("resume", "fork"):
            self._known.put(event.session, [])
        known = list(await self._told(event))
        text = await opening(memory, event.session, source=event.source, recorded=event.log is not None, known=known)
        if self._warming is None:
            self._warming = asyncio.create_task(self._warm(memory))
        return _before_the_model(event, text)

    async def _warm(self, memory: Memory) -> None:
        """Do once, while the user types the first prompt, what can be done before it."""
        try:
            await warmed(memory)
            await self._follow_grown(memory)
        except McpMemoryError as error:
            logger.warning("at the start: %s", error)
        except Exception:
            logger.exception("at the start, by a fault of this program")

    async def _told(self, event: HookEvent) -> list[str]:
        known = self._known.get(event.session)
        if known is None:
            recalled = await anyio.to_thread.run_sync(recalled_before, event.log)
            known = self._known.get_or_put(event.session, lambda: recalled)  # another event may have been faster
        return known

    async def _follow(self, event: HookEvent, delays: tuple[float, ...], *, flushed: bool = False) -> None:
        if event.log is not None:
            note = PendingLog(log=str(event.log), client=event.client, conversation=event.conversation, flushed=flushed)
            await self.following.soon(note, delays)

    async def _follow_grown(self, memory: Memory) -> None:
        """Follow logs that have grown without an event: a client or the machine went down."""
        held = (await memory.followed_logs())[:_GROWN]
        grown = await anyio.to_thread.run_sync(lambda: [one for one in held if _size(Path(one.path)) > one.offset])
        for one in grown:
            if one.session not in self._live:
                await self.following.soon(PendingLog(log=one.path, client=one.client, conversation=""), _LATER)


def _before_the_model(event: HookEvent, text: str) -> HookAnswer:
    return HookAnswer(json=context(event, text) if text else None, told=text)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
