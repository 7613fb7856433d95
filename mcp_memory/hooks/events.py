"""What is done at the events of a conversation, over an open Memory. Knows no process, no socket and no client's JSON.

    opening    what a conversation begins with: what is known of the user, and that it is recorded
    needed     what a prompt needs beyond what was told before: often nothing
    offloaded  a large tool output, kept whole, with what stands for it in its place
    summed_up  the summary of a compaction, kept as a turn
    warmed     what takes long the first time, done while nobody waits

Within the budgets below; nothing relevant is nothing at all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from mcp_memory.hooks.dialects import Call
from mcp_memory.hooks.outputs import Part, parts_of, replaced, whole_file
from mcp_memory.hooks.recollecting import whole_output
from mcp_memory.importing.agents import Agent
from mcp_memory.importing.formats.claude_code import summary_of
from mcp_memory.importing.formats.logs import is_own, is_stand_in, summary_id
from mcp_memory.longterm.l0_turns import recall_block
from mcp_memory.render import render_offloaded
from mcp_memory.shortterm.synopsis import synopsise
from mcp_memory.tokens import token_counter
from mcp_memory.types import NewTurn

if TYPE_CHECKING:
    from mcp_memory.memory import Memory

__all__ = ["needed", "offloaded", "opening", "summed_up", "warmed"]

STABLE_TOKENS = 700
CANVAS_TOKENS = 1_000
NEEDED_TOKENS = 600
MAX_CHARS = 9_500
"""Claude Code puts what is longer than 10,000 characters into a file, and the model sees its beginning alone."""
_PROMPT_CHARS = 4_000
_READ_FACTOR = 4
"""A file that was read is about to be edited, so it is kept out only from so many times the threshold on."""
_MAX_FILE = 128 * 2**20
_BEGINNINGS = ("startup", "clear")
_LOCAL = ("bundled", "fastembed:", "model2vec:")


# --- before the model -------------------------------------------------------------------------------


async def opening(memory: Memory, session: str, *, source: str, recorded: bool, known: Sequence[str] = ()) -> str:
    """Return what a conversation begins with but what is `known` in its context; after a compaction, its canvas too."""
    parts = [_recorded_as(session)] if recorded else []
    if recorded and source in _BEGINNINGS and (note := await memory.undistilled()):
        parts = [f"{parts[0]} {note}"]
    stable = (await memory.recall_stable(budget_tokens=STABLE_TOKENS)).stable
    parts += [stable] if stable else []
    if source == "compact" and await memory.active_canvas(session):
        view = await memory.fold_canvas(session=session, budget_tokens=CANVAS_TOKENS)
        canvas = recall_block(f"The task at hand; expand_node opens its nodes.\n{view.text}", part="canvas")
        parts += [canvas] if sum(map(len, [*parts, canvas])) <= MAX_CHARS else []
    told = "\n".join(known)
    return "\n\n".join(part for part in parts if part not in told)


def _recorded_as(session: str) -> str:
    return (
        f"This conversation is recorded in memory by itself, as session {session}. Do not call record_turns for it; "
        "pass that session to recall, offload_tool_result and fold_canvas, not to a search, which would look only here."
    )


async def needed(memory: Memory, session: str, prompt: str, *, known: Sequence[str]) -> str:
    """Return what a prompt needs beyond what is `known` in its context; empty where that is nothing."""
    found = await memory.recall_beyond(
        prompt[:_PROMPT_CHARS], known="\n".join(known), session=session, budget_tokens=NEEDED_TOKENS
    )
    return found.dynamic if len(found.dynamic) <= MAX_CHARS else ""


# --- tool outputs -----------------------------------------------------------------------------------


async def offloaded(memory: Memory, session: str, call: Call, *, log: Path | None = None) -> Any:
    """Keep what is large of a tool's answer, and return the answer with what stands for it; None to leave it.

    `log` is the client's log of the conversation, which has whole what the answer may have cut.
    """
    over = memory.settings.offload_over * (_READ_FACTOR if _is_reading(call) else 1)
    if not over or _is_ours(call, memory.settings.home) or _is_asked_for(call):
        return None
    notes: dict[Any, str] = {}
    for part in parts_of(call.client, call.tool, call.response):
        if await anyio.to_thread.run_sync(partial(_is_large, part.text, over, memory.settings.tokenizer)):
            note = await _kept(memory, session, call, part, log)
            if len(note) < len(part.text):
                notes[part.way] = note
    return replaced(call.response, notes) if notes else None


async def _kept(memory: Memory, session: str, call: Call, part: Part, log: Path | None) -> str:
    data: str | bytes = part.text
    id = call.id
    if _is_cut(call.client, part.text):
        whole = await anyio.to_thread.run_sync(whole_output, log, call.id)
        data, id = (whole, id) if whole else (data, None)  # what is not found now is kept when its log is read
    if part.way == ("stdout",) and (file := whole_file(call.tool, call.response)):
        data = await anyio.to_thread.run_sync(partial(_whole, Path(file), part.text))
    kept = await memory.offload_tool_result(
        call.tool,
        data,
        arguments=call.arguments,
        tool_call_id=id,
        session=session,
    )
    return render_offloaded(kept)


def _is_cut(client: Agent, text: str) -> bool:
    return client == "codex" and text.startswith("Warning: truncated output")


def _whole(file: Path, begun: str) -> str | bytes:
    """Return what the file holds, if it is what `begun` is the beginning of; else that."""
    try:
        if file.stat().st_size > _MAX_FILE:
            return begun
        data = file.read_bytes()
    except OSError:
        return begun
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data


def _is_large(text: str, over: int, tokenizer: Any) -> bool:
    if len(text) * 4 <= over or is_stand_in(text):  # a character has four bytes at most, and a token at least one
        return False
    return not token_counter(tokenizer).fits(text, over)


def _is_reading(call: Call) -> bool:
    """Tell whether a model reads a file, perhaps to edit it. Codex has no other way than its shell."""
    if call.client == "codex":
        return _FILE.search(_command(call)) is not None and not _is_cut(call.client, str(call.response))
    return call.tool == "Read"


def _is_asked_for(call: Call) -> bool:
    """Tell whether a model reads a part of a file: it knows what it wants, and would only ask again."""
    match call.arguments:
        case {"offset": int()} | {"limit": int()}:
            return call.tool == "Read"
        case _:
            return _PART.search(_command(call)) is not None


def _command(call: Call) -> str:
    match call.arguments:
        case {"command": str() as command} if call.tool == "Bash":
            return command
        case _:
            return ""


_FILE = re.compile(r"(?:^|[;&|])\s*(?:cat|nl)\b[^;&|]*$")
_PART = re.compile(r"(?:^|[;&|])\s*(?:sed -n|head|tail)\b[^;&|]*$")


def _is_ours(call: Call, home: Path) -> bool:
    """Tell whether a model looks at what is kept here: to put that away again would lead it in a circle."""
    told = json.dumps(call.arguments, ensure_ascii=False)
    return is_own(call.tool) or str(home) in told or "mcp-memory" in told


# --- what takes long the first time -----------------------------------------------------------------


async def warmed(memory: Memory) -> None:
    """Load what the first prompt and the first large output would wait for; a model elsewhere is not asked."""
    await anyio.to_thread.run_sync(_tried, memory.settings.tokenizer)
    if memory.settings.embedder.startswith(_LOCAL):
        await memory.recall_beyond("What is known here?", known="", session="none")


def _tried(tokenizer: Any) -> None:
    import_module("mcp_memory.shortterm.results.offload")
    synopsise("2026-01-01 10:00 INFO nothing\n" * 50, tool="Bash", arguments=None, talk="")
    token_counter(tokenizer).count("nothing")


# --- compaction -------------------------------------------------------------------------------------


async def summed_up(memory: Memory, session: str, summary: str) -> None:
    """Keep the summary of a compaction. Its log has it too, under the same id, so it is stored once."""
    text = summary_of(summary)
    if text.strip():
        turn = NewTurn(role="system", name="summary", content=text, client_id=summary_id(text))
        await memory.record_turns([turn], session=session)
