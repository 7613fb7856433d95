"""The short demo: words of Monday are on the page on Tuesday, a promise is kept on Friday, large results are offloaded.

It shows one line of the first result, the savings and the picture.
"""

from __future__ import annotations

import textwrap
from datetime import date, timedelta
from pathlib import Path
from shutil import get_terminal_size
from typing import Any

import click

from mcp_memory import __version__
from mcp_memory.cli.demo.agent import (
    DemoAgent,
    DemoResult,
    HookedClient,
    connect,
    load_monday,
    load_task,
    start_hooked_client,
)
from mcp_memory.cli.show import draw_canvas
from mcp_memory.cli.terminal import escape_controls
from mcp_memory.core.config import load_settings
from mcp_memory.core.errors import Refused
from mcp_memory.core.text import day_in_words, format_bytes, plural
from mcp_memory.core.token_counts import token_counter
from mcp_memory.service.memory import open_memory
from mcp_memory.store.citations import cited_atoms

MONDAY, LATER = "Claude Desktop", "Claude Code"
QUESTION = "What is worth seeing in Portugal's capital?"
DONE = "Tamsin was told that Bruno owes her 40 euros."
TELLING = "already present"
_WIDEST, _NARROWEST, _DEEP = 100, 60, "     "
_SUMMARY = 3


async def play(home: Path) -> None:
    """Play Monday with one server, and Tuesday and Friday with another; draw the task's canvas."""
    monday = monday_before(date.today())
    _say(f"mcp-memory {__version__}: the real server and real hooks, no model. Memory: {home}", margin="")
    _say(f"Monday's words are dated {day_in_words(monday)}; the rest happens now.", margin="")
    async with connect(home, MONDAY) as agent:
        await _record_monday(agent, monday)
    async with connect(home, LATER) as agent, start_hooked_client(home) as client:
        await _show_page(agent, client)
        await _promise(agent, client)
        kept = await _offload_results(agent)
        same = [
            await agent.read(f"memory://ref/{result.answer['ref']}") == result.step.result.encode() for result in kept
        ]
    await _account(home, all(same))


def monday_before(today: date) -> date:
    """Return the Monday before the last Friday (today included), so that no date of the demo is in the future."""
    friday = today - timedelta(days=(today.weekday() - 4) % 7)
    return friday - timedelta(days=4)


# --- long-term --------------------------------------------------------------------------------------


async def _record_monday(agent: DemoAgent, day: date) -> None:
    _heading(f"Monday, in {MONDAY}")
    count = 0
    for session, turns in load_monday(day):
        for turn in turns:
            if turn["role"] == "user":
                _say(f"“{turn['content']}”", lines=3)
        count += len((await agent.record(session, turns))["stored"])
    _note(f"{plural(count, 'turn')} are kept word for word; statements are made of them in the background.")


async def _show_page(agent: DemoAgent, client: HookedClient) -> None:
    _heading(f"Tuesday, in {LATER}: another program, a new conversation")
    _note("The page about the user, in their own words, each with its id:")
    for line in (await agent.call("read_persona"))["text"].splitlines():
        if line.startswith("## "):
            _say(line.removeprefix("## "), margin=_DEEP)
        elif line.startswith("- "):
            _say(line, margin=_DEEP, lines=3)
    started = await client.start("tuesday")
    tokens = token_counter(load_settings().tokenizer).count(started)
    _note(f"The hook starts the conversation with {tokens} tokens:")
    for line in started.splitlines():
        if not line.startswith("<"):
            _say(line, margin=_DEEP, lines=3)


async def _promise(agent: DemoAgent, client: HookedClient) -> None:
    """Ask about an open promise in other words, let the agent close it, and ask again in another conversation.

    If the hook adds nothing to the first question, say so and stop there.
    """
    _heading(f"Friday, in {LATER}")
    _say(f"“{QUESTION}”")
    shown = await _ask_for_promises(client, "friday")
    _note("The hook adds:")
    for line in shown:
        _say(line, margin=_DEEP)
    if not shown:
        _say("Nothing: a hook gives up after a second, for example on a busy machine.", margin=_DEEP)
        return
    (promise, *_) = cited_atoms("\n".join(shown))
    done = await agent.call("remember", text=DONE, supersedes=[promise])
    _note(f"The agent tells Tamsin, and calls remember, which closes {done['replaced'][0]['id']}: “{DONE}”")
    again = await _ask_for_promises(client, "friday-afternoon")
    _note(f"Asked again in another conversation, the hook adds {plural(len(again), 'promise')}.")


async def _ask_for_promises(client: HookedClient, conversation: str) -> list[str]:
    """Start a conversation, ask the question in it, and return the open promises that hooks add."""
    started = await client.start(conversation)
    brought = await client.prompt(conversation, QUESTION)
    return [line for line in f"{started}\n{brought}".splitlines() if line.startswith("Promise of ")]


# --- short-term -------------------------------------------------------------------------------------


async def _offload_results(agent: DemoAgent) -> list[DemoResult]:
    """Offload all results of the task, show the summary of the first and some of its lines, and complete the canvas."""
    task = load_task()
    _heading(f"A task of {len(task.steps)} tool calls: {task.goal[0].lower()}{task.goal[1:]}")
    kept = [result async for result in agent.offload(task)]
    first, answer = kept[0].step, kept[0].answer
    _say(f"The first result is a log of {format_bytes(len(first.result.encode()))}: {answer['tokens_raw']:,} tokens.")
    _note(f"The model reads {answer['tokens_kept']} tokens instead:")
    _say(answer["summary"], margin=_DEEP, lines=_SUMMARY)
    lines = await agent.call("expand_node", node=answer["node"], grep=TELLING, max_tokens=300)
    _note(f"Any line of it is one call away (expand_node {answer['node']}, grep “{TELLING}”):")
    for line in [line for line in lines["text"].splitlines()[1:] if TELLING in line]:
        _say(line, margin=_DEEP, lines=3)
    await agent.call("fold_canvas", task=answer["node"].partition("-")[0], action="complete")
    return kept


async def _account(home: Path, same: bool) -> None:
    """Print the savings according to `status`, and draw the canvas. `same`: the results read back are unchanged."""
    async with open_memory(home=home, distil=False) as memory:
        (canvas,) = await memory.canvases(limit=1)
        status = await memory.status()
    offload, refs = status["offload"], status["counts"]["refs"]
    raw, now = offload["tokens_raw"], offload["tokens_kept"]
    _heading("The account")
    _say(f"{refs} results: {raw:,} tokens became {now:,}, {offload['tokens_saved'] / raw:.1%} saved.")
    _say(
        f"{format_bytes(offload['raw_bytes'])} read back: {'every byte is the same' if same else 'SOME BYTES DIFFER'}."
    )
    picture = home / "canvas.png"
    try:
        draw_canvas(canvas, svg=None, png=picture)
        _say(f"The task as a picture: {picture}")
    except Refused as error:
        _say(f"The task as a picture: {error}")


# --- printing ---------------------------------------------------------------------------------------


def _heading(text: str) -> None:
    click.echo()
    _say(text, margin="", bold=True)


def _note(text: str) -> None:
    _say(f"-> {text}", dim=True)


def _say(text: str, *, margin: str = "  ", lines: int = 2, **style: Any) -> None:
    """Print a text in at most `lines` lines, as wide as the terminal."""
    width = max(_NARROWEST, min(_WIDEST, get_terminal_size().columns)) - len(margin)
    for line in textwrap.wrap(escape_controls(text), width, max_lines=lines, placeholder="…", subsequent_indent="  "):
        click.echo(margin + click.style(line, **style))
