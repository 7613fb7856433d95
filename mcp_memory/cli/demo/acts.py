"""The acts of the demo, in the order they are played. Each asks the server and prints what it answered."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import click
from mcp import Client, StdioServerParameters

from mcp_memory.cli.demo import inputs, pyramid
from mcp_memory.cli.demo.agent import Agent, act, quoted
from mcp_memory.cli.demo.inputs import Step, Task
from mcp_memory.cli.terminal import WIDTH, columns, one_line, plural, size, steps, wrapped
from mcp_memory.shortterm.canvas.flowchart import parse

__all__ = ["play"]

QUESTIONS = (
    ("a word as it stands", "TRF-90457"),
    ("other words for it", "why was the race called off?"),
    ("in Chinese", "什么时候去看牙医"),
)
RECALL_TOKENS = 1_000
STABLE_LINES = 9


@dataclass(frozen=True, slots=True)
class Kept:
    """An offloaded result: what went in, and what the server answered."""

    step: Step
    answer: dict[str, Any]


async def play(command: list[str], home: Path) -> None:
    """Start the server with `command` and play all acts on it."""
    server = StdioServerParameters(command=command[0], args=command[1:])
    async with Client(server) as client:
        agent = Agent(client)
        click.echo(f"mcp-memory {version('mcp-memory')}, MCP {client.protocol_version} over stdio, memory in {home}")
        await record(agent)
        await remember(agent)
        await pyramid.distil(agent)
        await pyramid.look(agent)
        await search(agent)
        task = inputs.task()
        kept = await offload(agent, task)
        await descend(agent, kept)
        await fold(agent, kept)
        await recall(agent)
        await settle(agent, kept, home)


# --- long-term --------------------------------------------------------------------------------------


async def record(agent: Agent) -> None:
    act("1. Record", "A fortnight of talk with one person goes in word for word (record_turns).")
    rows: list[tuple[str, ...]] = []
    for session, turns in inputs.conversation():
        answer = await agent.call("record_turns", session=session, turns=turns)
        told = one_line(turns[0]["content"], 50)
        rows.append((session, turns[0]["said_at"][:10], f"{len(answer['stored'])} turns", f"“{told}”"))
    click.echo(columns(rows, indent=2))


async def remember(agent: Agent) -> None:
    act("2. Remember", "What should hold from now on is told (remember); what it replaces stays, closed.")
    ids: dict[str, str] = {}
    for memory in inputs.memories():
        key, replaces = memory.pop("key"), memory.pop("replaces", None)
        answer = await agent.call("remember", **memory, supersedes=[ids[replaces]] if replaces else None)
        ids[key] = answer["atom"]["id"]
        click.echo(f"  {ids[key]:<4} {one_line(answer['atom']['text'], WIDTH - 8)}")
        for old in answer["replaced"]:
            click.echo(click.style(f"       replaces {old['id']}: {one_line(old['text'], WIDTH - 24)}", fg="yellow"))


async def search(agent: Agent) -> None:
    act("5. Search", "No model, no key: by words and by meaning, in any language (conversation_search).")
    for how, query in QUESTIONS:
        click.echo(f"  {click.style(query, bold=True)}  ({how})")
        for passage in (await agent.call("conversation_search", query=query, limit=2, neighbours=0))["passages"]:
            (turn,) = passage["turns"]
            found_by = " and ".join(turn["found"]["by"])
            head = f"    {turn['id']:<4} {turn['said_at'][:10]}  {turn['role']}, found by {found_by}"
            click.echo(f"{click.style(head, dim=True)}\n{wrapped(turn['content'], ' ' * 9)}")


# --- short-term -------------------------------------------------------------------------------------


async def offload(agent: Agent, task: Task) -> list[Kept]:
    act(
        f"6. Offload: {task.goal}",
        "Each tool result goes to a file; a node on the task's canvas stands for it (offload_tool_result).",
    )
    kept: list[Kept] = []
    nodes: dict[str, str] = {}
    drawn: list[str] = []
    for step in task.steps:
        answer = await agent.call(
            "offload_tool_result",
            tool_name=step.tool,
            result=step.result,
            arguments=step.arguments,
            session=task.session,
            task=task.goal,
            step=step.step,
            after=[nodes[key] for key in step.after] or None,
            status=step.status,
            summary=step.summary,
        )
        nodes[step.key] = answer["node"]
        kept.append(Kept(step, answer))
        now = steps(parse((await agent.read("memory://canvas/active")).decode()))
        for line in (line for line in now if line not in drawn):
            click.echo(f"  {line}")
        drawn = now
        click.echo(click.style(f"           {_measure(answer, step)}", dim=True))
        click.echo(f"           {one_line(answer['summary'], WIDTH - 12)}")
    return kept


def _measure(answer: dict[str, Any], step: Step) -> str:
    count, raw, now = size(len(step.result.encode())), answer["tokens_raw"], answer["tokens_kept"]
    return f"{step.tool}, {answer['kind']}, {count}: {raw:,} -> {now:,} tokens  {answer['ref']}"


async def descend(agent: Agent, kept: list[Kept]) -> None:
    node = kept[0].answer["node"]
    act("7. Go down", f"From the canvas to the one line that tells it all (expand_node {node}).")
    records = await agent.call("expand_node", node=node, view="records")
    quoted(f"{node}, its records", records["text"])
    found = await agent.call("expand_node", node=node, grep="already present", max_tokens=300)
    quoted(f"{node}, raw, grep 'already present': {found['tokens']} tokens", found["text"])


async def fold(agent: Agent, kept: list[Kept]) -> None:
    act("8. Fold", "The task is done: four fields stay in the context, the rest is one call away (fold_canvas).")
    canvas = kept[0].answer["node"].partition("-")[0]
    before = await agent.call("fold_canvas", task=canvas, action="show", budget_tokens=8000)
    quoted(f"before: {before['nodes']} nodes, {before['tokens']} tokens", before["text"], wrap=False)
    after = await agent.call("fold_canvas", task=canvas, action="complete")
    fields = columns(json.loads(after["text"]).items())
    quoted(f"after: {after['tokens']} tokens", fields)


async def recall(agent: Agent) -> None:
    act("9. Recall", "A part of the page (read_persona), and what a next question needs (recall).")
    section = (await agent.call("read_persona"))["sections"][0]
    quoted(f"read_persona section “{section}”", (await agent.call("read_persona", section=section))["text"])
    question = "We have the team over for dinner: what must the kitchen know?"
    bundle = await agent.call("recall", query=question, budget_tokens=RECALL_TOKENS)
    lines = bundle["stable"].split("\n")
    rest = lines[STABLE_LINES:]
    more = [f"… {plural(len(rest), 'more line')}: the page that was shown"] if rest else []
    text = "\n".join([*lines[:STABLE_LINES], *more, bundle["dynamic"]])
    quoted(f"recall “{question}”: {bundle['tokens']} of {RECALL_TOKENS:,} tokens", text)


# --- the account ------------------------------------------------------------------------------------


async def settle(agent: Agent, kept: list[Kept], home: Path) -> None:
    act("10. The account", "Each raw result is read back over MCP and compared with what went in, byte by byte.")
    rows: list[tuple[str, ...]] = [("result", "kind", "bytes", "tokens without", "with", "saved", "read back")]
    went_in = came_back = raw = now = 0
    for step, answer in ((one.step, one.answer) for one in kept):
        data = step.result.encode()
        same = await agent.read(f"memory://ref/{answer['ref']}") == data
        went_in, came_back = went_in + len(data), came_back + len(data) * same
        raw, now = raw + answer["tokens_raw"], now + answer["tokens_kept"]
        name, verdict = f"{answer['node']} {step.key}", "identical" if same else "DIFFERENT"
        rows.append((name, answer["kind"], *_figures(len(data), answer["tokens_raw"], answer["tokens_kept"]), verdict))
    canvas = await agent.call("fold_canvas", task=kept[0].answer["node"].partition("-")[0])
    rows.append(("canvas, folded", "mermaid", "", "", f"{canvas['tokens']:,}"))
    total = _figures(went_in, raw, now + canvas["tokens"])
    rows.append(("total", "", *total, f"{came_back / went_in:.0%} of the bytes"))
    click.echo(columns(rows, indent=2))
    folder = home / "spaces" / "default"
    files = [
        ("canvas", canvas["mmd_file_path"]),
        ("records", f"offload-{kept[0].answer['session']}.jsonl"),
        ("raw results", f"refs{os.sep} ({len({one.answer['ref'] for one in kept})} files)"),
        ("conversation", f"conversations{os.sep}"),
        ("persona", "persona.md"),
    ]
    click.echo(f"\n  {click.style('files', bold=True)} in {folder}")
    click.echo(columns(files, indent=2))


def _figures(count: int, raw: int, now: int) -> tuple[str, str, str, str]:
    return f"{count:,}", f"{raw:,}", f"{now:,}", f"{(raw - now) / raw:.1%}"
