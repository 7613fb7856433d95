"""The short demo: said on Monday, known on Friday; one large tool result, one line of it, the account, the picture."""

from __future__ import annotations

import textwrap
from pathlib import Path
from shutil import get_terminal_size
from typing import Any

import click

from mcp_memory import __version__
from mcp_memory.cli.demo import inputs
from mcp_memory.cli.demo.agent import DemoAgent, DemoResult, connected
from mcp_memory.cli.show import draw
from mcp_memory.cli.terminal import plural, visible
from mcp_memory.core.errors import Refused
from mcp_memory.core.text import size
from mcp_memory.service.memory import open_memory

__all__ = ["play"]

MONDAY, FRIDAY = "Claude Desktop", "Claude Code"
QUESTION = "A note to the movers: when do we move, and under which reference is the van booked?"
TELLING = "already present"
RECALL_TOKENS = 600
_WIDEST, _NARROWEST, _DEEP = 100, 60, "     "
_SAID, _PAGE, _RECALLED, _SUMMARY = 2, 3, 2, 3


async def play(home: Path) -> None:
    """Play Monday and Friday, each with a separate server, and draw the task's canvas."""
    _say(f"mcp-memory {__version__}: the real server over stdio, without a key. Memory: {home}", margin="")
    async with connected(home, MONDAY) as agent:
        await _monday(agent)
    async with connected(home, FRIDAY) as agent:
        await _friday(agent)
        kept = await _result(agent)
        same = [await agent.read(f"memory://ref/{one.answer['ref']}") == one.step.result.encode() for one in kept]
    await _account(home, all(same))


# --- long-term --------------------------------------------------------------------------------------


async def _monday(agent: DemoAgent) -> None:
    session, turns = inputs.conversation()[0]
    _head(f"Monday, in {MONDAY}")
    for turn in [turn for turn in turns if turn["role"] == "user"][-_SAID:]:
        _say(f"“{turn['content']}”")
    stored = len((await agent.call("record_turns", session=session, turns=turns))["stored"])
    _note(f"{plural(stored, 'turn')} are kept word for word, and found by words and meaning without a model.")
    statements = sum([len(asked["kept"]) async for question, asked in agent.distil() if question["stage"] == "extract"])
    page = (await agent.call("read_persona"))["text"]
    _note(f"The agent's own model drew {plural(statements, 'statement')} from them (here with prepared answers):")
    _items(page, _PAGE)


async def _friday(agent: DemoAgent) -> None:
    _head(f"Friday, in {FRIDAY}: another program, a new conversation")
    _say(f"“{QUESTION}”")
    bundle = await agent.call("recall", query=QUESTION, budget_tokens=RECALL_TOKENS)
    _note(f"Recall gives the agent {bundle['tokens']} tokens, among them:")
    _items(bundle["dynamic"], _RECALLED)


# --- short-term -------------------------------------------------------------------------------------


async def _result(agent: DemoAgent) -> list[DemoResult]:
    """Offload all results of the task; show the first, and one line of it."""
    task = inputs.task()
    _head(f"A task of {len(task.steps)} tool calls: {task.goal[0].lower()}{task.goal[1:]}")
    kept = [one async for one in agent.offload(task)]
    first, answer = kept[0].step, kept[0].answer
    _say(f"The first result is a log of {size(len(first.result.encode()))}: {answer['tokens_raw']:,} tokens.")
    _note(f"The model reads {answer['tokens_kept']} tokens instead:")
    _say(answer["summary"], margin=_DEEP, lines=_SUMMARY)
    found = await agent.call("expand_node", node=answer["node"], grep=TELLING, max_tokens=300)
    _note(f"Any line of it is one call away (expand_node {answer['node']}, grep “{TELLING}”):")
    for line in [line for line in found["text"].splitlines()[1:] if TELLING in line]:
        _say(line, margin=_DEEP, lines=3)
    await agent.call("fold_canvas", task=answer["node"].partition("-")[0], action="complete")
    return kept


async def _account(home: Path, same: bool) -> None:
    """Print what `status` says of the results, and draw the canvas."""
    async with open_memory(home=home, distil=False) as memory:
        (canvas,) = await memory.canvases(limit=1)
        status = await memory.status()
    offload, refs = status["offload"], status["counts"]["refs"]
    raw, now = offload["tokens_raw"], offload["tokens_kept"]
    _head("The account")
    _say(f"{refs} results: {raw:,} tokens became {now:,}, {offload['tokens_saved'] / raw:.1%} saved.")
    _say(f"{size(offload['raw_bytes'])} read back: {'every byte is the same' if same else 'SOME BYTES DIFFER'}.")
    picture = home / "canvas.png"
    try:
        draw(canvas, svg=None, png=picture)
        _say(f"The task as a picture: {picture}")
    except Refused as error:
        _say(f"The task as a picture: {error}")


# --- printing ---------------------------------------------------------------------------------------


def _head(text: str) -> None:
    click.echo()
    _say(text, margin="", bold=True)


def _note(text: str) -> None:
    _say(f"-> {text}", dim=True)


def _items(text: str, count: int) -> None:
    """Print the first items of its lists."""
    for line in [line for line in text.splitlines() if line.startswith("- ")][:count]:
        _say(line, margin=_DEEP, lines=4)


def _say(text: str, *, margin: str = "  ", lines: int = 2, **style: Any) -> None:
    """Print a text in at most `lines` lines, as wide as the terminal."""
    width = max(_NARROWEST, min(_WIDEST, get_terminal_size().columns)) - len(margin)
    for line in textwrap.wrap(visible(text), width, max_lines=lines, placeholder="…", subsequent_indent="  "):
        click.echo(margin + click.style(line, **style))
