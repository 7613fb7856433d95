"""Runs some clients of a load in one process: `python -m bench.load_clients URL --clients N --period S …`

Each is a real SDK client, alternately of both generations, with its own session and a page that it subscribes to. It
makes a call every `period` seconds from the usual mix: recall, searches, turns to record, results to offload and to
read again. After every forty calls it disconnects and connects as another client. When all are connected, `"ready"` is
written, and the time of the first call is read from standard input, in seconds since 1970. The duration of a call is
counted from the moment it was due, so that a server that falls behind does not look faster. Each call is a line on
standard output.
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import sys
import warnings
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from time import time
from typing import Any

import anyio
import anyio.to_thread
from mcp import Client, MCPDeprecationWarning
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from bench.corpus import batches, log, queries
from mcp_memory.core.types import NewTurn

MIX = {
    "recall": 20,
    "conversation_search": 25,
    "memory_search": 10,
    "record_turns": 20,
    "offload_tool_result": 8,
    "expand_node": 8,
    "remember": 5,
    "fold_canvas": 2,
    "memory://canvas/active": 2,
}
"""Number of calls of each kind among a hundred; the last reads a resource."""

_STAYS_CALLS = 40
_RESULT_BYTES = 20_000
_TURNS = 2_000
_TOO_LONG_SECONDS = 60


@dataclass
class _Person:
    """The requests of one client, and the values that it needs from the answers."""

    seed: int
    chance: random.Random = field(init=False)
    node: str | None = None
    said: int = 0

    def __post_init__(self) -> None:
        self.chance = random.Random(f"person {self.seed}")

    def say(self) -> str:
        """Return a text that was not recorded before."""
        self.said += 1
        return f"{self.chance.choice(_turns()).content} [{self.seed}-{self.said}]"

    def next(self) -> tuple[str, dict[str, Any]]:
        """Return the next call."""
        tool = self.chance.choices([*MIX], weights=[*MIX.values()])[0]
        question = self.chance.choice(_questions())
        match tool:
            case "recall" | "conversation_search" | "memory_search":
                return tool, {"query": question}
            case "record_turns":
                return tool, {"turns": [{"role": role, "content": self.say()} for role in ("user", "assistant")]}
            case "remember":
                return tool, {"text": self.say()[-200:], "kind": "episodic"}
            case "offload_tool_result":
                text = log(_RESULT_BYTES, seed=self.chance.randrange(10**9))
                return tool, {"tool_name": "bash", "result": text, "task": f"Task {self.seed}"}
            case "expand_node" if self.node:
                return tool, {"node": self.node}
            case "expand_node" | "fold_canvas" if self.node is None:
                return "conversation_search", {"query": question}
            case _:
                return tool, {}


@cache
def _turns() -> list[NewTurn]:
    return [turn for batch in batches(_TURNS) for turn in batch]


@cache
def _questions() -> list[str]:
    return [query.text for query in queries(400, turns=_TURNS)]


@dataclass(frozen=True, slots=True)
class _Asked:
    """Seconds between two calls of a client, and of the whole run."""

    period: float
    seconds: float


@dataclass
class _Start:
    """The time of the first call, which is read when every client is connected."""

    waiting: int
    said: anyio.Event = field(default_factory=anyio.Event)
    at: float = 0.0

    async def ready(self) -> float:
        """Wait for all clients; the last one writes "ready" and reads the time of the first call."""
        self.waiting -= 1
        if self.waiting == 0:
            print(json.dumps("ready"), flush=True)
            self.at = float(await anyio.to_thread.run_sync(sys.stdin.readline))
            self.said.set()
        await self.said.wait()
        return self.at


async def _live(url: str, person: _Person, start: _Start, *, tool: str | None, after: float, asked: _Asked) -> None:
    """Make a call every period, until the end."""
    due: float | None = None
    while due is None or due < start.at + asked.seconds:
        try:
            async with _connected(url, legacy=person.seed % 2 == 1) as client:
                if due is None:
                    due = await start.ready() + after
                for _ in range(_STAYS_CALLS):
                    if due >= start.at + asked.seconds:
                        return
                    await anyio.sleep(max(0.0, due - time()))
                    name, arguments = (tool, {"query": "x"}) if tool else person.next()
                    wrong = await _call(client, person, name, arguments)
                    _told(due, name, wrong)
                    due += asked.period
        except Exception as error:  # what breaks a connection is an error of the server's
            if due is None:
                raise
            _told(due, "connection", f"{type(error).__name__}: {_inner(error)}"[:300])
            due += asked.period


def _told(due: float, name: str, wrong: str | None) -> None:
    print(json.dumps([round(due, 3), name, round(1_000 * (time() - due), 2), wrong]), flush=True)


def _inner(error: Exception) -> str:
    """Return the error that ended a task group."""
    inner: list[Exception] = list(getattr(error, "exceptions", ()))
    return _inner(inner[0]) if inner else repr(error)


async def _call(client: Client, person: _Person, name: str, arguments: dict[str, Any]) -> str | None:
    """Make a call; return its error, if any."""
    try:
        with anyio.fail_after(_TOO_LONG_SECONDS):
            if name.startswith("memory://"):
                await client.read_resource(name)
                return None
            answer = await client.call_tool(name, arguments)
    except (MCPError, TimeoutError) as error:
        return f"{type(error).__name__}: {error}"[:300]
    told: Any = answer.structured_content
    if name == "offload_tool_result" and isinstance(told, dict) and not answer.is_error:
        person.node = str(told["node"])  # pyright: ignore[reportUnknownArgumentType]
    return str(answer.content)[:300] if answer.is_error else None


@asynccontextmanager
async def _connected(url: str, *, legacy: bool) -> AsyncGenerator[Client]:
    """Connect, and subscribe to the active canvas if the server has one."""
    async with Client(streamable_http_client(url), mode="legacy" if legacy else "auto") as client:
        watches = client.server_capabilities.resources is not None and client.server_capabilities.resources.subscribe
        if not watches:
            yield client
        elif legacy:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", MCPDeprecationWarning)
                await client.session.subscribe_resource("memory://canvas/active")  # pyright: ignore[reportDeprecated]
            yield client
        else:
            async with client.listen(resource_subscriptions=["memory://canvas/active"]):
                yield client


async def _all(options: argparse.Namespace) -> None:
    for make in (_turns, _questions, partial(log, _RESULT_BYTES)):
        make()  # before anything is due
    asked, start = _Asked(options.period, options.seconds), _Start(options.clients)
    async with anyio.create_task_group() as tasks:
        for number in range(options.clients):
            after = options.period * number / options.clients
            live = partial(_live, tool=options.tool, after=after, asked=asked)
            tasks.start_soon(live, options.url, _Person(options.first + number), start)


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.load_clients")
    parser.add_argument("url")
    parser.add_argument("--clients", type=int, required=True)
    parser.add_argument("--first", type=int, default=0, help="number of the first of them")
    parser.add_argument("--period", type=float, required=True, help="seconds between two calls of a client")
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--tool", help="call this one alone")
    logging.getLogger("mcp").setLevel(logging.CRITICAL)  # the SDK tells of each event that meets a client that leaves
    anyio.run(_all, parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
