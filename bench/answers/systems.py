"""Texts that each system returns for a question, as a reader gets them, and their tokens.

    recall   `Memory.recall` without a session: its stable and its dynamic block
    pyramid  the same in a memory with statements, scenes and a persona, which `bench.pyramid --home` has kept
    search   the text of the tool `conversation_search` with 10 hits and default values of the other arguments
    hook     the text that the prompt hook adds to the context of a new conversation
    nothing  no text

`recall:600` is recall with a budget of 600 tokens instead of BUDGET. The sentence with which the search reports no hits
counts as no text. Tokens are counted with the tokenizer of the settings.
"""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import count

from anyio import to_thread

from mcp_memory.core.token_counts import token_counter
from mcp_memory.integrations.hooks.answers import recall_beyond_context
from mcp_memory.service.memory import Memory
from mcp_memory.service.render import render

BUDGET = 1_200
HITS = 10
_conversations = count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """The text that a system returned; empty if it found nothing."""

    text: str
    tokens: int


async def _recall(memory: Memory, question: str, budget: int) -> str:
    bundle = await memory.recall(question, budget_tokens=budget)
    return "\n\n".join(block for block in (bundle.stable, bundle.dynamic) if block)


async def _search(memory: Memory, question: str, _: int) -> str:
    shown = await memory.conversation_excerpts(question, neighbours=1, limit=HITS)
    return render(shown) if shown.passages or shown.results else ""


async def _hook(memory: Memory, question: str, _: int) -> str:
    return await recall_beyond_context(memory, f"new-conversation-{next(_conversations)}", question, shown=[])


async def _nothing(_memory: Memory, _question: str, _: int) -> str:
    return ""


SYSTEMS: dict[str, Callable[[Memory, str, int], Awaitable[str]]] = {
    "recall": _recall,
    "pyramid": _recall,
    "search": _search,
    "hook": _hook,
    "nothing": _nothing,
}

_BUDGETED = ("recall", "pyramid")


def systems_named(text: str) -> list[str]:
    """Return the systems in the value of an option, separated by commas. Raises ArgumentTypeError."""
    systems = text.split(",")
    if unknown := sorted({system for system in systems if _way_and_budget(system) is None}):
        raise ArgumentTypeError(f"unknown system {', '.join(unknown)}; choose from {', '.join(SYSTEMS)}")
    if len(set(systems)) < len(systems):
        raise ArgumentTypeError("names a system twice; name each once")
    return systems


def needs_pyramid(system: str) -> bool:
    return system.partition(":")[0] == "pyramid"


def _way_and_budget(system: str) -> tuple[str, int] | None:
    """Return a key of SYSTEMS and a number of tokens; None for an unknown name. Only recall has a budget."""
    way, colon, budget = system.partition(":")
    if way not in SYSTEMS or (colon and (way not in _BUDGETED or not budget.isdecimal())):
        return None
    return way, int(budget or BUDGET)


async def bring(system: str, memory: Memory, question: str) -> Brought:
    """Return the text of a system for a question. Raises KeyError for a name that `systems_named` would refuse."""
    known = _way_and_budget(system)
    if known is None:
        raise KeyError(system)
    way, budget = known
    text = await SYSTEMS[way](memory, question, budget)
    if not text:
        return Brought(text="", tokens=0)
    counter = token_counter(memory.settings.tokenizer)
    return Brought(text=text, tokens=await to_thread.run_sync(counter.count, text))
