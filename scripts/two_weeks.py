"""The memory of `fixtures/two_weeks`: what a user has who installed it and set nothing, after two weeks.

Each conversation goes the way of its client. The hooks of Claude Code and Cursor recall before each prompt, record the
conversation and offload large tool results. The agent in Claude Desktop calls tools: it recalls where the file says so,
and records the conversation at its end.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from anyio import to_thread

from bench.ours import until_indexed
from mcp_memory.core.config import Settings
from mcp_memory.core.types import NewTurn
from mcp_memory.integrations.clients.description import hooks_described
from mcp_memory.integrations.hooks.answers import opening_text, recall_beyond_context
from mcp_memory.integrations.hooks.tool_outputs import ToolResponse, offload_output
from mcp_memory.integrations.importers.follow import LIVE_FOR, classify_result, keep_result
from mcp_memory.integrations.importers.records import ImportedResult
from mcp_memory.service.memory import Memory, open_memory
from mcp_memory.testing import FixedClock

FOLDER = Path(__file__).resolve().parent.parent / "fixtures" / "two_weeks"
NOW = datetime(2026, 11, 20, 17, 30, tzinfo=UTC)
"""The time at which the memory is looked at."""
_DAY = re.compile(r"\{([+-]\d+)\}")


@dataclass(frozen=True, slots=True)
class Talk:
    """A conversation; each step is an object with `user`, `assistant`, `recall` or `tool`."""

    session: str
    client: str
    project: str | None
    begins: datetime
    has_hooks: bool
    steps: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])


def talks(now: datetime) -> list[Talk]:
    """Return the conversations in order, dated back from `now`."""
    found: list[Talk] = []
    for line in (FOLDER / "talks.jsonl").read_text(encoding="utf-8").splitlines():
        step: dict[str, Any] = json.loads(_DAY.sub(lambda match: _day_in_words(now, int(match[1])), line))
        if "session" in step:
            day = (now + timedelta(days=step["day"])).date()
            begins = datetime.fromisoformat(f"{day}T{step['at']}+00:00")
            has_hooks = hooks_described(step["client"]) is not None
            found.append(Talk(step["session"], step["client"], step.get("project"), begins, has_hooks))
            continue
        if "tool" in step:
            step["result"] = (FOLDER / "results" / step["result"]).read_text(encoding="utf-8")
        found[-1].steps.append(step)
    return found


def _day_in_words(now: datetime, days: int) -> str:
    day = now + timedelta(days=days)
    return f"{day:%A} {day.day} {day:%B}"


@asynccontextmanager
async def two_weeks(home: Path, *, now: datetime = NOW) -> AsyncGenerator[Memory]:
    """Record the two weeks before `now` in a new home, and yield its memory, whose clock stands at `now`.

    The settings are the default ones, whatever the environment says. The days are those of UTC, on POSIX.
    """
    clock = FixedClock(now)
    with _in_utc():
        async with open_memory(Settings(home=home), now=clock) as memory:
            for talk in await to_thread.run_sync(talks, now):
                await _record(memory.called_by(talk.client), talk, clock)
            clock.moment = now
            yield memory


@contextmanager
def _in_utc() -> Generator[None]:
    """Set the time zone of this process to UTC meanwhile: dates in texts are read by it."""
    if not hasattr(time, "tzset"):
        yield
        return
    before = os.environ.get("TZ")
    os.environ["TZ"] = "UTC"
    time.tzset()
    try:
        yield
    finally:
        os.environ.pop("TZ")
        if before is not None:
            os.environ["TZ"] = before
        time.tzset()


async def _record(memory: Memory, talk: Talk, clock: FixedClock) -> None:
    clock.moment = talk.begins
    await (_record_by_hooks if talk.has_hooks else _record_by_tools)(memory, talk, clock)


async def _record_by_hooks(memory: Memory, talk: Talk, clock: FixedClock) -> None:
    opening = await opening_text(memory, talk.session, source="startup", recorded=True, project=talk.project)
    shown, new = [opening], list[NewTurn]()
    for number, step in enumerate(talk.steps):
        clock.moment += _duration(step)
        match step:
            case {"user": text}:
                shown.append(await recall_beyond_context(memory, talk.session, text, project=talk.project, shown=shown))
                new = [_turn(step, clock())]
            case {"tool": tool, "arguments": arguments, "result": output}:
                await _store(memory, talk, new)  # first: a tool's output is judged by the prompt
                new = []
                await _call(memory, talk, f"toolu_{talk.session[-8:]}_{number}", tool, arguments, output)
            case _:
                await _store(memory, talk, [*new, _turn(step, clock())])
                new = []
    if talk.project:
        await memory.note_project(talk.session, talk.project)


async def _record_by_tools(memory: Memory, talk: Talk, clock: FixedClock) -> None:
    """Let the agent recall when it wants to, and record all turns at the end."""
    turns: list[NewTurn] = []
    for step in talk.steps:
        clock.moment += _duration(step)
        if "recall" in step:
            await memory.recall_answer(step["recall"], session=talk.session)
        else:
            turns.append(_turn(step, clock()))
    await _store(memory, talk, turns)


async def _store(memory: Memory, talk: Talk, turns: list[NewTurn]) -> None:
    """Record turns and wait until the background has read them, so that each run reads the same turns together."""
    if turns:
        await memory.record_turns(turns, session=talk.session)
        await until_indexed(memory)


def _duration(step: dict[str, Any]) -> timedelta:
    return timedelta(minutes=2, seconds=20) if "user" in step else timedelta(seconds=40)


def _turn(step: dict[str, Any], at: datetime) -> NewTurn:
    [(role, text)] = step.items()
    return NewTurn(role="user" if role == "user" else "assistant", content=text, said_at=at)


async def _call(memory: Memory, talk: Talk, id: str, tool: str, arguments: Any, output: str) -> None:
    """Offload the output if the hook does; else store it as the reader of the client's log does."""
    call = ToolResponse(
        client=talk.client, tool=tool, arguments=arguments, id=id, response={"stdout": output, "stderr": ""}
    )
    replaced = await offload_output(memory, talk.session, call)
    if replaced is not None:
        await memory.note_replaced(talk.session, id, replaced["stdout"])
        return
    said_at = memory.now()
    result = ImportedResult(where=id, tool=tool, text=output, arguments=arguments, call=id, said_at=said_at)
    if classify_result(result) == "large":
        await keep_result(memory, talk.session, result, output, since=said_at - LIVE_FOR)
