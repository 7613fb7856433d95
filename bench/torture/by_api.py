"""A process that works through the public API, with a scripted model in the background."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import anyio
from pydantic_core import to_jsonable_python

from bench.reader import Reader
from bench.torture.deeds import Declined, do_next
from bench.torture.ledger import Ledger
from mcp_memory.core.config import Settings
from mcp_memory.core.errors import McpMemoryError
from mcp_memory.core.types import NewTurn
from mcp_memory.service.memory import Memory, open_memory


@dataclass(frozen=True, slots=True)
class Clock:
    """A clock that runs faster from `start` on, so that waiting times end within the run."""

    start: float
    speed: float = 20.0

    def __call__(self) -> datetime:
        passed = time.time() - self.start
        return datetime.fromtimestamp(self.start, UTC) + timedelta(seconds=passed * self.speed)


def settings_of(home: Path) -> Settings:
    return Settings(
        home=home, scenes_interval=30, persona_every=20, llm_daily_tokens=10**9, llm_hourly_tokens=10**9, every_turns=3
    )


def live(home: Path, ledger: Path, *, seed: str, seat: str, now: Callable[[], datetime]) -> None:
    """Open the home and work until killed."""
    anyio.run(work, home, Ledger(ledger), seed, seat, now)


async def work(
    home: Path, book: Ledger, seed: str, seat: str, now: Callable[[], datetime], deeds: int | None = None
) -> None:
    """Open the home and perform operations: `deeds` of them, or without end."""
    async with open_memory(settings_of(home), now=now, llm=Reader()) as memory:

        async def call(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
            try:
                return to_jsonable_python(await _asked(memory, tool, arguments))
            except McpMemoryError as error:
                raise Declined(f"{tool}: {error}") from error

        for _ in count() if deeds is None else range(deeds):
            await do_next(call, book, seed, seat)


async def _asked(memory: Memory, tool: str, arguments: dict[str, Any]) -> Any:
    match tool:
        case "record_turns":
            turns = [
                NewTurn(role=turn["role"], content=turn["content"], client_id=turn.get("id"))
                for turn in arguments["turns"]
            ]
            return await memory.record_turns(turns, session=arguments["session"])
        case "offload_tool_result":
            rest = {name: value for name, value in arguments.items() if name not in ("tool_name", "result")}
            return await memory.offload_tool_result(arguments["tool_name"], arguments["result"], **rest)
        case "distill":
            reply = arguments.get("reply")
            return await memory.distill(arguments.get("work_id"), None if reply is None else json.dumps(reply))
        case _:
            return await getattr(memory, tool)(**arguments)
