"""Measures whether agents use the memory: everyday talks, played by a plain agent loop over the real server.

    python -m bench.agent_loop [TALK...] [--llm MODEL] [--show]

The model sees what any client shows it: the server's instructions, the definitions of the tools, the messages. For each
turn of the user, the report lists the memory tools that the model called before it answered, the expected tools that it
did not call, and those that it should not have called. MODEL is any model of litellm that calls tools; the key comes
from litellm's own variables. Without a model, the actions recorded in the talk are played: those of a person who
followed the same texts.

A talk (fixtures/talks/*.json) has `about`, `held` (calls that fill the memory first) and `turns`. A turn has `user`,
optionally `context` (text that a client's hook would add before it), `calls` (expected tools; `|` separates
alternatives), `never` (unwanted tools, `*` for any), `shows` (words that the tools' answers must contain; checked only
for recorded actions, since a model chooses its own arguments) and `played` (the recorded steps, each a list of calls).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mcp import Client, StdioServerParameters
from mcp.types import TextContent
from pydantic import BaseModel

from mcp_memory.core.text import one_line
from mcp_memory.models.llm import import_litellm

TALKS = Path(__file__).parents[1] / "fixtures" / "talks"
_MAX_STEPS = 12  # of one turn; an agent that calls tools for longer goes in circles

Message = dict[str, Any]


class Call(BaseModel):
    """A tool call; `id` is the one that the model assigned."""

    name: str
    arguments: dict[str, Any]
    id: str = "played"


class Turn(BaseModel, extra="forbid"):
    """A turn of the user with the expected calls and the recorded actions."""

    user: str
    context: str = ""
    calls: list[str] = []
    never: list[str] = []
    shows: list[str] = []
    played: list[list[Call]] = []


class Talk(BaseModel, extra="forbid"):
    about: str
    held: list[Call] = []
    turns: list[Turn]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The result of a turn of the user."""

    called: list[str]
    missing: list[str]
    unwanted: list[str]
    unshown: list[str]
    failed: list[str]
    """Calls that the server refused, with its messages."""

    @property
    def right(self) -> bool:
        return not (self.missing or self.unwanted or self.unshown or self.failed)


Agent = Callable[[list[Message], list[Message]], Awaitable[tuple[str, list[Call]]]]
"""Takes messages and tools in OpenAI's format; returns its text and its tool calls (none when it has finished)."""


async def play(client: Client, talk: Talk, agent: Agent) -> tuple[list[Outcome], list[Message]]:
    """Play a talk over a server whose memory is empty; return the outcome of each turn, and all messages."""
    for held in talk.held:
        await client.call_tool(held.name, held.arguments)
    tools = [
        {"type": "function", "function": {"name": t.name, "description": t.description, "parameters": t.input_schema}}
        for t in (await client.list_tools()).tools
    ]
    messages: list[Message] = [
        {"role": "system", "content": f"You are a helpful assistant.\n\n# Server memory\n{client.instructions}"}
    ]
    outcomes: list[Outcome] = []
    for turn in talk.turns:
        messages.append({"role": "user", "content": "\n\n".join(filter(None, (turn.context, turn.user)))})
        outcomes.append(await _turn(client, turn, agent, messages, tools))
    return outcomes, messages


async def _turn(client: Client, turn: Turn, agent: Agent, messages: list[Message], tools: list[Message]) -> Outcome:
    called, shown, failed = list[str](), "", list[str]()
    for _ in range(_MAX_STEPS):
        text, calls = await agent(messages, tools)
        messages.append(_assistant(text, calls))
        if not calls:
            break
        for call in calls:
            result = await client.call_tool(call.name, call.arguments)
            answer = "\n".join(block.text for block in result.content if isinstance(block, TextContent))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": answer})
            called.append(call.name)
            shown += answer
            failed += [f"{call.name}: {answer}"] if result.is_error else []
    return Outcome(
        called=called,
        missing=[names for names in turn.calls if not {*names.split("|")} & {*called}],
        unwanted=[name for name in dict.fromkeys(called) if {name, "*"} & {*turn.never}],
        unshown=[words for words in turn.shows if words not in shown],
        failed=failed,
    )


def _assistant(text: str, calls: Sequence[Call]) -> Message:
    made = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": json.dumps(call.arguments)}}
        for call in calls
    ]
    return {"role": "assistant", "content": text, **({"tool_calls": made} if made else {})}


# --- who plays the model ----------------------------------------------------------------------------


def from_talk(talk: Talk) -> Agent:
    """Return the agent that repeats the actions recorded in a talk."""
    nothing: list[Call] = []
    steps = iter([step for turn in talk.turns for step in (*turn.played, nothing)])

    async def agent(_messages: list[Message], _tools: list[Message]) -> tuple[str, list[Call]]:
        return "", next(steps)

    return agent


def in_own_words(talk: Talk) -> Talk:
    """Return a talk without `shows`: a model searches with other words than the recorded actions."""
    return talk.model_copy(update={"turns": [turn.model_copy(update={"shows": []}) for turn in talk.turns]})


def from_model(model: str) -> Agent:
    """Return an agent that asks a model through litellm."""
    litellm = import_litellm()

    async def agent(messages: list[Message], tools: list[Message]) -> tuple[str, list[Call]]:
        said: Any = (await litellm.acompletion(model=model, messages=messages, tools=tools)).choices[0].message
        calls: list[Any] = said.tool_calls or []
        made = [
            Call(id=call.id, name=call.function.name, arguments=json.loads(call.function.arguments or "{}"))
            for call in calls
        ]
        return said.content or "", made

    return agent


# --- the command ------------------------------------------------------------------------------------


async def main(names: Sequence[str], model: str | None, show: bool) -> int:
    files = sorted(TALKS.glob("*.json"))
    right = turns = 0
    for file in [file for file in files if not names or file.stem in names]:
        talk = Talk.model_validate_json(file.read_bytes())
        with TemporaryDirectory() as home:
            command = StdioServerParameters(command=sys.executable, args=["-m", "mcp_memory", "--home", home, "serve"])
            async with Client(command) as client:
                if model:
                    outcomes, messages = await play(client, in_own_words(talk), from_model(model))
                else:
                    outcomes, messages = await play(client, talk, from_talk(talk))
        print(f"\n{file.stem}: {talk.about}")
        for turn, one in zip(talk.turns, outcomes, strict=True):
            print(f"  {'right' if one.right else 'WRONG'}  {one_line(turn.user, 60)!r}: {', '.join(one.called) or '–'}")
            for what in ("missing", "unwanted", "unshown", "failed"):
                if found := getattr(one, what):
                    print(f"         {what}: {', '.join(found)}")
        if show:
            print(json.dumps(messages, ensure_ascii=False, indent=1))
        right, turns = right + sum(one.right for one in outcomes), turns + len(outcomes)
    print(f"\n{right} of {turns} turns right, {'played by ' + model if model else 'as they were played by hand'}")
    return 0 if right == turns else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("talks", nargs="*", help="names in fixtures/talks; left out, all")
    parser.add_argument("--llm", help="litellm's name of a model that calls tools")
    parser.add_argument("--show", action="store_true", help="print every message")
    given = parser.parse_args()
    sys.exit(asyncio.run(main(given.talks, given.llm, given.show)))
