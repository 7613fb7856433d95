"""`status` and `doctor` for a memory on a server: what this machine can see of it, and what waits here."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import anyio

from mcp_memory import __version__
from mcp_memory.cli.check import Check
from mcp_memory.core.errors import McpMemoryError, Refused
from mcp_memory.core.rights import includes
from mcp_memory.core.text import plural
from mcp_memory.integrations.hooks.daemon_files import waiting_logs
from mcp_memory.service.memory import open_memory

if TYPE_CHECKING:
    from mcp_memory.core.config import Settings
    from mcp_memory.service.memory import Memory

T = TypeVar("T")
_ROUNDS = 5
_SLOW_S = 0.5
_CLOCK_S = 60.0


def server_status(settings: Settings) -> dict[str, Any]:
    """Return the status of the server's memory, or why there is none, with the queue of this machine."""
    waits = waiting_logs(settings.home).sentence()
    here: dict[str, Any] = {"server": settings.server, "home": str(settings.home), "waiting": waits, "problem": None}
    try:
        return {**_ask(settings, lambda memory: memory.status(brief=True)), **here}
    except McpMemoryError as error:
        return {**here, "problem": str(error)}


def server_rows(answer: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the rows of the page of `status`."""
    yield "server", answer["server"]
    if answer["problem"]:
        yield "problem", answer["problem"]
    else:
        access, counts = answer["access"], answer["counts"]
        yield "space", f"{access['space']}, with the right {access['right']}"
        yield "version", answer["version"]
        yield "conversation", f"{plural(counts['turns'], 'turn')} in {plural(counts['sessions'], 'session')}"
        yield "memories", f"{plural(counts['current'], 'statement')} valid, {plural(counts['scenes'], 'scene')}"
        results = f"{plural(counts['records'], 'tool result')} on {plural(counts['canvases'], 'canvas')}"
        yield "tasks", results
        if answer["held"]:
            yield "review", f"{plural(answer['held'], 'row')} quarantined"
    yield "here", answer["home"]
    yield "queue", answer["waiting"] or "nothing waits for the server"


def check_server(settings: Settings) -> Iterator[Check]:
    """Check that the server answers, accepts the token and is of this version; check latency, clock and queue."""
    began = time.time()
    try:
        status, seconds = _ask(settings, _measure)
    except Refused as error:
        yield Check("server", "fail", str(error), "Ask who runs the server for a token: mcp-memory token create.")
        yield _check_queue(settings)
        return
    except McpMemoryError as error:
        yield Check("server", "fail", str(error), "Hooks go on without memory, and keep what they capture until then.")
        yield _check_queue(settings)
        return
    access = status["access"]
    yield Check("server", "ok", f"{settings.server} accepts the token, for the space {access['space']}")
    if includes(access["right"], "write"):
        yield Check("rights", "ok", f"the token may {access['right']}")
    else:
        yield Check(
            "rights", "warn", "the token may only read", "Conversations are not stored: ask for one with write."
        )
    if status["version"] == __version__:
        yield Check("version", "ok", f"{__version__}, as here")
    else:
        yield Check("version", "warn", f"{status['version']}, and {__version__} here", "Update the older one.")
    text = f"{seconds * 1000:.0f} ms for a request"
    slow = "A prompt waits at most 1.2 s for the memory, and gets none if that is not enough."
    yield Check("latency", "ok", text) if seconds < _SLOW_S else Check("latency", "warn", text, slow)
    ahead = datetime.fromisoformat(status["access"]["now"]).timestamp() - began
    if abs(ahead) < _CLOCK_S:
        yield Check("clock", "ok", "agrees with the server's")
    else:
        where = "behind" if ahead > 0 else "ahead of"
        text = f"this machine is {abs(ahead) / 60:,.0f} minutes {where} the server"
        yield Check("clock", "warn", text, "Set the clock: what is said is dated by it.")
    yield _check_queue(settings)


def _check_queue(settings: Settings) -> Check:
    waits = waiting_logs(settings.home).sentence()
    if not waits:
        return Check("queue", "ok", "nothing waits for the server")
    return Check(
        "queue", "warn", waits, f"They are sent when it answers. Why they wait is in {settings.home}/hooks/hooks.log."
    )


async def _measure(memory: Memory) -> tuple[dict[str, Any], float]:
    """Return the status, and the median of the seconds that a small request takes."""
    status = await memory.status(brief=True)
    times: list[float] = []
    for _ in range(_ROUNDS):
        began = time.perf_counter()
        await memory.kept_calls("none", [])
        times.append(time.perf_counter() - began)
    return status, sorted(times)[_ROUNDS // 2]


def _ask(settings: Settings, question: Callable[[Memory], Awaitable[T]]) -> T:
    async def visit() -> T:
        async with open_memory(settings) as memory:
            return await question(memory)

    return anyio.run(visit)
