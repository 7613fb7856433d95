"""A small real memory that the commands read, and the command line itself, run in this process."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import anyio
import pytest
from click.testing import CliRunner, Result

from mcp_memory.cli.main import program
from mcp_memory.core.types import NewTurn
from mcp_memory.service.memory import open_memory

Run = Callable[..., Result]

LOG = "".join(f"2026-10-25 01:10:{i:02d} INFO row {i}\n" for i in range(60)) + "2026-10-25 01:11:00 ERROR key lost\n"
ODD = "caf\u00e9 \x00\x1b[31m \r\n no newline at the end"


def unwrapped(page: str) -> str:
    """What was printed, with the lines that were too long in one piece again."""
    return re.sub(r"\n +", " ", page)


@pytest.fixture(scope="session")
def small_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A memory with a session, three statements, a task of three results, and a second space."""
    home = tmp_path_factory.mktemp("small")
    anyio.run(_fill, home)
    return home


async def _fill(home: Path) -> None:
    async with open_memory(home=home) as memory:
        said = [
            ("user", "The van is booked under reference TRF-90457."),
            ("assistant", "Noted, TRF-90457 for Saturday 14 November."),
            ("user", "李伟的妈妈下周五要去看牙医。"),
            ("user", "A terminal trap: \x1b[2J\x1b[1mgone"),
        ]
        turns = [
            NewTurn(role=role, content=text, said_at=datetime.fromisoformat(f"2026-10-21T18:3{i}:00+02:00"))
            for i, (role, text) in enumerate(said)
        ]
        await memory.record_turns(turns, session="moving")
        await memory.remember("Tamsin is allergic to hazelnuts.", typed=True)
        await memory.remember("Tamsin lives in Bergen.", entity="user", relation="lives in", value="Bergen", typed=True)
        await memory.remember("No emoji in answers.", kind="instruction", typed=True)
        task = {"session": "moving", "task": "Fix the import"}
        first = await memory.offload_tool_result("shell", LOG, step="Read the log", status="done", **task)
        await memory.offload_tool_result("shell", ODD, step="Try a newer library", status="blocked", **task)
        await memory.offload_tool_result(
            "read_file", "def key():\n    return 1\n", step="Read the code", after=[first.node], **task
        )
    async with open_memory(home=home, space="work") as memory:
        await memory.remember("The office is on the quay.", typed=True)


@pytest.fixture
def run(small_home: Path) -> Run:
    """Run the command line on the small memory."""

    def call(*arguments: str, home: Path = small_home) -> Result:
        return CliRunner().invoke(program, ["--home", str(home), *arguments], prog_name="mcp-memory")

    return call


@pytest.fixture
def answer(run: Run) -> Callable[..., Any]:
    """Run a command with `--json` and return what it answered."""

    def call(*arguments: str) -> Any:
        result = run(*arguments, "--json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    return call
