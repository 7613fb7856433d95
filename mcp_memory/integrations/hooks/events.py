"""What is done at the events of a conversation, over an open Memory. Knows no process, no socket and no client's JSON.

    opening    what a conversation begins with: what is known of the user, and that it is recorded
    needed     what a prompt needs beyond what was told before: often nothing
    summed_up  the summary of a compaction, kept as a turn
    warmed     what takes long the first time, done while nobody waits

Within the budgets below; nothing relevant is nothing at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from mcp_memory.core.tokens import token_counter
from mcp_memory.core.types import NewTurn
from mcp_memory.integrations.importers.formats.claude_code import summary_of
from mcp_memory.integrations.importers.formats.logs import summary_id
from mcp_memory.longterm.l0_turns import SUMMARY, recall_block
from mcp_memory.shortterm.synopsis import synopsise
from mcp_memory.suspicion import sifted

if TYPE_CHECKING:
    from mcp_memory.service.memory import Memory

__all__ = ["needed", "opening", "summed_up", "warmed"]

STABLE_TOKENS = 700
CANVAS_TOKENS = 1_000
NEEDED_TOKENS = 395
MAX_CHARS = 9_500
"""Claude Code puts what is longer than 10,000 characters into a file, and the model sees its beginning alone."""
_PROMPT_CHARS = 4_000
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
        canvas = recall_block(f"The task at hand; expand_node opens its nodes.\n{sifted(view.text)}", part="canvas")
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


# --- what takes long the first time -----------------------------------------------------------------


async def warmed(memory: Memory) -> None:
    """Load what the first prompt and the first large output would wait for; a model elsewhere is not asked."""
    await anyio.to_thread.run_sync(_tried, memory.settings.tokenizer)
    if memory.settings.embedder.startswith(_LOCAL):
        await memory.recall_beyond("What is known here?", known="", session="none")


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
