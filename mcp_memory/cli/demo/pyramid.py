"""The acts of the pyramid: turns become statements, pages and the persona, and each leads down again to words said.

The demo plays a connected agent whose model answers the questions of `distill`; what it answers was written beforehand
(`replies`). Everything printed comes out of the server's answers.
"""

from __future__ import annotations

import re
from typing import Any

import click

from mcp_memory.cli.demo.agent import Agent, act, quoted
from mcp_memory.cli.demo.replies import Replies
from mcp_memory.cli.terminal import WIDTH, columns, one_line, plural, wrapped

__all__ = ["distil", "look"]

# What a question of each stage is about, and how its ids begin.
_ABOUT = {
    "extract": ("turn", "t"),
    "merge": ("new statement", "d"),
    "scenes": ("statement", "a"),
    "persona": ("statement", "a"),
}


async def distil(agent: Agent) -> None:
    act(
        "3. Distil",
        "The connected agent is asked what the turns come to (distill): no key, and no other model.\n"
        "Here the answers were written beforehand, by hand, where a client's own model would give its own.",
    )
    replies = Replies()
    count = refused = 0
    asked = await agent.call("distill")
    waiting = asked["waiting"]
    while (question := asked["next"]) is not None:
        reply = replies.to(question["stage"], question["question"])
        if reply is None:
            click.echo(f"  {question['stage']:<8} No answer was written to this question: it waits.")
            break
        asked = await agent.call("distill", work_id=question["work_id"], reply=reply)
        count, refused = count + 1, refused + len(asked["refused"])
        _answered(question, asked)
        if asked["next"] is not None and asked["next"]["work_id"] == question["work_id"]:
            click.echo("           The answer cannot be used: the question waits.")
            break
    figures = f"{plural(count, 'question')} for {plural(waiting, 'turn')}, {refused} refused"
    click.echo(f"\n  {figures}, {plural(asked['waiting'], 'turn')} not read yet")


def _answered(question: dict[str, Any], asked: dict[str, Any]) -> None:
    """Print a line about a question and its answer, and what the server had to say of it."""
    stage = question["stage"]
    word, letter = _ABOUT[stage]
    about = plural(len(set(re.findall(rf"\b{letter}\d+\b", question["question"]))), word)
    kept, refused = asked["kept"], asked["refused"]
    click.echo(f"  {stage:<8} {about:<17}  {len(kept):>2} kept, {len(refused)} refused")
    if kept:
        telling = max(kept, key=lambda line: ("was added" not in line) + (" replaces " in line))
        click.echo(click.style(f"           {one_line(telling, WIDTH - 11)}", dim=True))
    for line in refused:
        click.echo(click.style(wrapped(f"refused: {line}", " " * 11), fg="yellow"))


async def look(agent: Agent) -> None:
    act("4. Look", "From the page about the person down to the words that were said, and back in time.")
    persona = await agent.call("read_persona")
    quoted("the persona, and under it the list of scenes (read_persona)", persona["text"])
    found = await agent.call("memory_search", query="the night boat", limit=1)
    for scene in found["scenes"][:1]:
        page = (await agent.read(f"memory://scene/{scene['slug']}")).decode()
        quoted(f"one scene (memory://scene/{scene['slug']})", page)
    await _evidence(agent, "hazelnuts")
    await _two_dates(agent, "When do they move to Trondheim?", "2026-10-20", "2026-10-22")


async def _evidence(agent: Agent, query: str) -> None:
    """Follow a statement down to the words that it rests on."""
    found = await agent.call("memory_search", query=query, kind="persona", limit=1)
    for atom in (one["atom"] for one in found["atoms"]):
        click.echo(f"  {click.style('one statement, down to the words it rests on', bold=True)}")
        click.echo(wrapped(f"{atom['id']:<4} {atom['text']}", "  | "))
        passages = await agent.call("conversation_search", query=atom["text"], limit=3, detail="detailed")
        turns = [turn for passage in passages["passages"] for turn in passage["turns"]]
        for turn in (turn for turn in turns if turn["id"] == atom["evidence"]):
            start, stop = atom["span"]
            head = f"{turn['id']:<4} {turn['said_at'][:10]}, {turn['role']}, characters {start} to {stop} of"
            click.echo(wrapped(f"{head} “{turn['content']}”", "  | "))
            click.echo(wrapped(f"     “{turn['content'][start:stop]}”", "  | "))
        click.echo()


async def _two_dates(agent: Agent, question: str, *dates: str) -> None:
    """Show what was held true at each date."""
    click.echo(f"  {click.style(f'{question} As it was known then (memory_search as_of)', bold=True)}")
    rows: list[tuple[str, ...]] = []
    for date in dates:
        found = await agent.call("memory_search", query=question, as_of=date, limit=1)
        for fact in found["facts"][:1]:
            until = f"until {fact['valid_to'][:10]}" if fact["valid_to"] else "open"
            told = f"{fact['entity']}, {fact['relation'].replace('_', ' ')}: {fact['value']}"
            rows.append((date, fact["atom"], told, f"since {fact['valid_from'][:10]}", until))
    click.echo(columns(rows, indent=2))
