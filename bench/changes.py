"""Measures how soon another server reports a change: `python -m bench.changes [--changes N] [--json FILE]`

Starts PostgreSQL with fsync on (`tests.postgres_server`) and two server processes on one database. A client of the
first records a turn; a client of the second, which has subscribed, gets a message. The time is from the answer of the
first server to the message of the second. The floor, measured alternately: one connection sends NOTIFY, another
connection in the same process receives it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import anyio
import psycopg
from anyio.streams.memory import MemoryObjectReceiveStream
from mcp import Client
from mcp.client.subscriptions import ResourceUpdated

from bench.stats import timings_ms
from tests.postgres_server import running

_SESSION = "bench"
_WATCHED = f"memory://session/{_SESSION}"
_WAIT_S = 10.0


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="bench.changes", description="How soon another server tells of a change.")
    parser.add_argument("--changes", type=int, default=300)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(arguments)
    with running({}) as server, TemporaryDirectory() as home:
        server.make_template()
        found = anyio.run(measure, server.create_memory(), Path(home), given.changes)
    for name, timings in found.items():
        print(f"{name:<34} p50 {timings['p50']:>7.2f} ms   p95 {timings['p95']:>7.2f} ms")
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n")


async def measure(url: str, home: Path, changes: int) -> dict[str, Any]:
    """Return the times of the servers and of the floor, in milliseconds."""
    seen, floor = list[float](), list[float]()
    with serving(url, home / "one") as one, serving(url, home / "other") as other, notifying(url) as notify:
        async with Client(one) as writer, listening(other) as updates:
            for number in range(changes):
                while updates.statistics().current_buffer_used:  # one change may be reported twice
                    updates.receive_nowait()
                await record(writer, f"change {number}")
                began = perf_counter()
                with anyio.fail_after(_WAIT_S):
                    await updates.receive()
                seen.append(perf_counter() - began)
                floor.append(await anyio.to_thread.run_sync(notify))
    return {"a change seen by another server": timings_ms(seen), "NOTIFY, the floor": timings_ms(floor)}


async def record(client: Client, text: str) -> None:
    turns = [{"role": "user", "content": text}]
    answer = await client.call_tool("record_turns", {"turns": turns, "session": _SESSION})
    assert not answer.is_error, answer.content


@asynccontextmanager
async def listening(url: str) -> AsyncGenerator[MemoryObjectReceiveStream[str]]:
    """Yield the updates of the session that a client of a server receives."""
    send, receive = anyio.create_memory_object_stream[str](1_000)
    async with (
        Client(url) as client,
        client.listen(resource_subscriptions=[_WATCHED]) as updates,
        anyio.create_task_group() as tasks,
    ):

        async def forward() -> None:
            async for event in updates:
                if isinstance(event, ResourceUpdated):
                    send.send_nowait(event.uri)

        tasks.start_soon(forward)
        with send, receive:
            yield receive
        tasks.cancel_scope.cancel()


@contextmanager
def serving(url: str, home: Path) -> Generator[str]:
    """Start a server on a database; yield its address."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("MCP_MEMORY_")}
    given = {"MCP_MEMORY_STORE": url, "MCP_MEMORY_HOME": str(home), "MCP_MEMORY_RATE_LIMIT": "0"}
    command = [sys.executable, "-m", "mcp_memory", "serve", "--transport", "http", "--port", "0", "--no-token"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=others | given)
    try:
        assert process.stderr is not None
        address = next(found[0] for line in process.stderr if (found := re.search(r"http://\S+", line)))
        yield address
    finally:
        process.terminate()
        process.communicate()


@contextmanager
def notifying(url: str) -> Generator[Callable[[], float]]:
    """Yield a function that sends a notification and returns the seconds until another connection has received it."""
    with psycopg.connect(url, autocommit=True) as sender, psycopg.connect(url, autocommit=True) as listener:
        listener.execute("LISTEN bench")

        def notify() -> float:
            began = perf_counter()
            sender.execute("NOTIFY bench")
            next(listener.notifies(timeout=_WAIT_S, stop_after=1))
            return perf_counter() - began

        yield notify


if __name__ == "__main__":
    main()
