"""The full demo: a made-up fortnight is recorded, distilled and searched, and a task's tool results are offloaded.

The results are expanded and folded, and finally each is read back and compared. All output comes from the server's
answers, except the words of the connected agent (`agent.Replies`).
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import click

from mcp_memory import __version__
from mcp_memory.cli.demo.agent import (
    DemoAgent,
    DemoResult,
    DemoStep,
    DemoTask,
    connect,
    load_conversation,
    load_memories,
    load_task,
)
from mcp_memory.cli.terminal import WIDTH, canvas_steps, columns, one_line, wrap
from mcp_memory.core.text import format_bytes, plural
from mcp_memory.shortterm.canvas.flowchart import parse


def print_heading(title: str, about: str) -> None:
    click.echo(f"\n{click.style(title, bold=True)}\n{click.style(about, dim=True)}\n")


def print_quoted(title: str, text: str, *, wraps: bool = True) -> None:
    """Print stored text behind a bar; lines that are too long are wrapped or cut."""
    click.echo(f"  {click.style(title, bold=True)}")
    lines = text.strip().split("\n")
    click.echo(wrap("\n".join(lines if wraps else (one_line(line, WIDTH - 4) for line in lines)), "  | "))
    click.echo()


QUESTIONS = (
    ("a word as it stands", "TRF-90457"),
    ("other words for it", "why was the race called off?"),
    ("in Chinese", "什么时候去看牙医"),
)
RECALL_TOKENS = 1_000
STABLE_LINES = 9


async def play(home: Path) -> None:
    """Start the server and play all acts on it."""
    async with connect(home, "demo") as agent:
        click.echo(f"mcp-memory {__version__}, MCP {agent.protocol} over stdio, memory in {home}")
        await record(agent)
        await remember(agent)
        await distil(agent)
        await read_pages(agent)
        await search(agent)
        task = load_task()
        kept = await offload(agent, task)
        await expand(agent, kept)
        await fold(agent, kept)
        await recall(agent)
        await account(agent, kept, home)


# --- long-term --------------------------------------------------------------------------------------


async def record(agent: DemoAgent) -> None:
    print_heading("1. Record", "A fortnight of talk with one person goes in word for word (record_turns).")
    rows: list[tuple[str, ...]] = []
    for session, turns in load_conversation():
        answer = await agent.call("record_turns", session=session, turns=turns)
        opening = one_line(turns[0]["content"], 50)
        rows.append((session, turns[0]["said_at"][:10], f"{len(answer['stored'])} turns", f"“{opening}”"))
    click.echo(columns(rows, indent=2))


async def remember(agent: DemoAgent) -> None:
    print_heading("2. Remember", "What should hold from now on is told (remember); what it replaces stays, closed.")
    ids: dict[str, str] = {}
    for memory in load_memories():
        key, replaces = memory.pop("key"), memory.pop("replaces", None)
        answer = await agent.call("remember", **memory, supersedes=[ids[replaces]] if replaces else None)
        ids[key] = answer["atom"]["id"]
        click.echo(f"  {ids[key]:<4} {one_line(answer['atom']['text'], WIDTH - 8)}")
        for old in answer["replaced"]:
            click.echo(click.style(f"       replaces {old['id']}: {one_line(old['text'], WIDTH - 24)}", fg="yellow"))


async def search(agent: DemoAgent) -> None:
    print_heading("5. Search", "No model, no key: by words and by meaning, in any language (conversation_search).")
    for how, query in QUESTIONS:
        click.echo(f"  {click.style(query, bold=True)}  ({how})")
        answer = await agent.call("conversation_search", query=query, limit=2, neighbours=0, detail="detailed")
        for passage in answer["passages"]:
            (turn,) = passage["turns"]
            found_by = " and ".join(turn["found"]["by"])
            head = f"    {turn['id']:<4} {turn['said_at'][:10]}  {turn['role']}, found by {found_by}"
            click.echo(f"{click.style(head, dim=True)}\n{wrap(turn['content'], ' ' * 9)}")


# --- short-term -------------------------------------------------------------------------------------


async def offload(agent: DemoAgent, task: DemoTask) -> list[DemoResult]:
    print_heading(
        f"6. Offload: {task.goal}",
        "Each tool result goes to a file; a node on the task's canvas stands for it (offload_tool_result).",
    )
    kept: list[DemoResult] = []
    drawn: list[str] = []
    async for result in agent.offload(task):
        kept.append(result)
        now = canvas_steps(parse((await agent.read("memory://canvas/active")).decode()))
        for line in (line for line in now if line not in drawn):
            click.echo(f"  {line}")
        drawn = now
        click.echo(click.style(f"           {_describe_saving(result.answer, result.step)}", dim=True))
        click.echo(f"           {one_line(result.answer['summary'], WIDTH - 12)}")
    return kept


def _describe_saving(answer: dict[str, Any], step: DemoStep) -> str:
    count, raw, now = format_bytes(len(step.result.encode())), answer["tokens_raw"], answer["tokens_kept"]
    return f"{step.tool}, {answer['kind']}, {count}: {raw:,} -> {now:,} tokens  {answer['ref']}"


async def expand(agent: DemoAgent, kept: list[DemoResult]) -> None:
    node = kept[0].answer["node"]
    print_heading("7. Go down", f"From the canvas to the one line that tells it all (expand_node {node}).")
    records = await agent.call("expand_node", node=node, view="records")
    print_quoted(f"{node}, its records", records["text"])
    lines = await agent.call("expand_node", node=node, grep="already present", max_tokens=300)
    print_quoted(f"{node}, raw, grep 'already present': {lines['tokens']} tokens", lines["text"])


async def fold(agent: DemoAgent, kept: list[DemoResult]) -> None:
    print_heading(
        "8. Fold", "The task is done: four fields stay in the context, the rest is one call away (fold_canvas)."
    )
    canvas = kept[0].answer["node"].partition("-")[0]
    before = await agent.call("fold_canvas", task=canvas, action="show", budget_tokens=8000)
    print_quoted(f"before: {before['nodes']} nodes, {before['tokens']} tokens", before["text"], wraps=False)
    after = await agent.call("fold_canvas", task=canvas, action="complete")
    fields = columns(json.loads(after["text"]).items())
    print_quoted(f"after: {after['tokens']} tokens", fields)


async def recall(agent: DemoAgent) -> None:
    print_heading("9. Recall", "A part of the page (read_persona), and what a next question needs (recall).")
    section = (await agent.call("read_persona"))["sections"][0]
    print_quoted(f"read_persona section “{section}”", (await agent.call("read_persona", section=section))["text"])
    question = "We have the team over for dinner: what must the kitchen know?"
    bundle = await agent.call("recall", query=question, budget_tokens=RECALL_TOKENS)
    lines = bundle["stable"].split("\n")
    rest = lines[STABLE_LINES:]
    more = [f"… {plural(len(rest), 'more line')}: the page that was shown"] if rest else []
    text = "\n".join([*lines[:STABLE_LINES], *more, bundle["dynamic"]])
    print_quoted(f"recall “{question}”: {bundle['tokens']} of {RECALL_TOKENS:,} tokens", text)


# --- the account ------------------------------------------------------------------------------------


async def account(agent: DemoAgent, kept: list[DemoResult], home: Path) -> None:
    print_heading(
        "10. The account", "Each raw result is read back over MCP and compared with what went in, byte by byte."
    )
    rows: list[tuple[str, ...]] = [("result", "kind", "bytes", "tokens without", "with", "saved", "read back")]
    went_in = came_back = raw = now = 0
    for step, answer in ((result.step, result.answer) for result in kept):
        data = step.result.encode()
        same = await agent.read(f"memory://ref/{answer['ref']}") == data
        went_in, came_back = went_in + len(data), came_back + len(data) * same
        raw, now = raw + answer["tokens_raw"], now + answer["tokens_kept"]
        name, verdict = f"{answer['node']} {step.key}", "identical" if same else "DIFFERENT"
        rows.append((name, answer["kind"], *_figures(len(data), answer["tokens_raw"], answer["tokens_kept"]), verdict))
    canvas = await agent.call("fold_canvas", task=kept[0].answer["node"].partition("-")[0])
    total = _figures(went_in, raw, now)
    rows.append(("total", "", *total, f"{came_back / went_in:.0%} of the bytes"))
    click.echo(columns(rows, indent=2))
    click.echo(f"  The canvas, folded, takes {canvas['tokens']:,} tokens more.")
    folder = home / "spaces" / "default"
    files = [
        ("canvas", canvas["mmd_file_path"]),
        ("records", f"offload-{kept[0].answer['session']}.jsonl"),
        ("raw results", f"refs{os.sep} ({len({result.answer['ref'] for result in kept})} files)"),
        ("conversation", f"conversations{os.sep}"),
        ("persona", "persona.md"),
    ]
    click.echo(f"\n  {click.style('files', bold=True)} in {folder}")
    click.echo(columns(files, indent=2))


def _figures(count: int, raw: int, now: int) -> tuple[str, str, str, str]:
    return f"{count:,}", f"{raw:,}", f"{now:,}", f"{(raw - now) / raw:.1%}"


# Subject of the questions of each stage, and the first letter of its ids.
_ABOUT = {
    "extract": ("turn", "t"),
    "merge": ("new statement", "d"),
    "scenes": ("statement", "a"),
    "persona": ("statement", "a"),
}


async def distil(agent: DemoAgent) -> None:
    print_heading(
        "3. Distil",
        "The connected agent extracts statements from the turns (distill): no key, and no other model.\n"
        "Here the answers were written beforehand, by hand, where a client's own model would give its own.",
    )
    waiting = (await agent.call("distill"))["waiting"]
    count = refused = left = 0
    async for question, asked in agent.distil():
        count, refused, left = count + 1, refused + len(asked["refused"]), asked["waiting"]
        _print_answer(question, asked)
    click.echo(
        f"\n  {plural(count, 'question')} for {plural(waiting, 'turn')}, {refused} refused,"
        f" {plural(left, 'turn')} not read yet"
    )


def _print_answer(question: dict[str, Any], asked: dict[str, Any]) -> None:
    """Print a line about a question and its answer, and the server's remarks on the answer."""
    stage = question["stage"]
    word, letter = _ABOUT[stage]
    about = plural(len(set(re.findall(rf"\b{letter}\d+\b", question["question"]))), word)
    kept, refused = asked["kept"], asked["refused"]
    click.echo(f"  {stage:<8} {about:<17}  {len(kept):>2} kept, {len(refused)} refused")
    if kept:
        telling = max(kept, key=lambda line: ("was added" not in line) + (" replaces " in line))
        click.echo(click.style(f"           {one_line(telling, WIDTH - 11)}", dim=True))
    for line in refused:
        click.echo(click.style(wrap(f"refused: {line}", " " * 11), fg="yellow"))


async def read_pages(agent: DemoAgent) -> None:
    print_heading("4. Look", "From the page about the person down to the words that were said, and back in time.")
    persona = await agent.call("read_persona")
    print_quoted("the persona, and under it the list of scenes (read_persona)", persona["text"])
    answer = await agent.call("memory_search", query="the night boat", limit=1)
    for scene in answer["scenes"][:1]:
        page = (await agent.read(f"memory://scene/{scene['slug']}")).decode()
        print_quoted(f"one scene (memory://scene/{scene['slug']})", page)
    await _evidence(agent, "hazelnuts")
    await _facts_at(agent, "When do they move to Trondheim?", "2026-10-20", "2026-10-22")


async def _evidence(agent: DemoAgent, query: str) -> None:
    """Search for a statement, and print it with the words of the turn that it is based on."""
    answer = await agent.call("memory_search", query=query, kind="persona", limit=1)
    for atom in (hit["atom"] for hit in answer["atoms"]):
        click.echo(f"  {click.style('one statement, down to the words it is based on', bold=True)}")
        click.echo(wrap(f"{atom['id']:<4} {atom['text']}", "  | "))
        passages = await agent.call("conversation_search", query=atom["text"], limit=3, detail="detailed")
        turns = [turn for passage in passages["passages"] for turn in passage["turns"]]
        for turn in (turn for turn in turns if turn["id"] == atom["evidence"]):
            start, stop = atom["span"]
            head = f"{turn['id']:<4} {turn['said_at'][:10]}, {turn['role']}, characters {start} to {stop} of"
            click.echo(wrap(f"{head} “{turn['content']}”", "  | "))
            click.echo(wrap(f"     “{turn['content'][start:stop]}”", "  | "))
        click.echo()


async def _facts_at(agent: DemoAgent, question: str, *dates: str) -> None:
    """Print the fact that answers the question at each date."""
    click.echo(f"  {click.style(f'{question} As it was known then (memory_search as_of)', bold=True)}")
    rows: list[tuple[str, ...]] = []
    for date in dates:
        answer = await agent.call("memory_search", query=question, as_of=date, limit=1)
        for fact in answer["facts"][:1]:
            until = f"until {fact['valid_to'][:10]}" if "valid_to" in fact else "open"
            fact_text = f"{fact['entity']}, {fact['relation'].replace('_', ' ')}: {fact['value']}"
            rows.append((date, fact["atom"], fact_text, f"since {fact['valid_from'][:10]}", until))
    click.echo(columns(rows, indent=2))
