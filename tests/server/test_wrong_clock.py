"""A server whose machine has a wrong clock: it dates rows by the clock of the database, and deletes nothing."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from mcp_memory.core.config import Settings
from mcp_memory.core.errors import Refused
from mcp_memory.core.types import NewTurn
from mcp_memory.service.memory import open_memory
from mcp_memory.store.postgres import clock
from tests.postgres.notes import sql
from tests.server.answers import WAIT, answer_of

pytestmark = [pytest.mark.postgres, pytest.mark.anyio]

SITECUSTOMIZE = """
import datetime, time
SPAN = datetime.timedelta(days=60)
right, real = time.time, datetime.datetime
class Kind(type(real)):
    def __instancecheck__(cls, thing): return isinstance(thing, real)
class Shifted(real, metaclass=Kind):
    @classmethod
    def now(cls, tz=None): return real.now(tz) + SPAN
time.time = lambda: right() + SPAN.total_seconds()
datetime.datetime = Shifted
"""
"""Python imports this first: everything in the process sees a clock that is 60 days ahead."""
DATED_TODAY = "greatest(said_at, learned_at) < 1000 * extract(epoch FROM now() + interval '1 day')"


@asynccontextmanager
async def ahead(folder: Path, url: str) -> AsyncGenerator[tuple[str, Callable[[bytes], Awaitable[bytes]]]]:
    """Run a server whose clock is 60 days ahead; yield its address, and a function that waits for words in its log."""
    (folder / "sitecustomize.py").write_text(SITECUSTOMIZE)
    environment = {
        **os.environ,
        "PYTHONPATH": f"{folder}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
        "MCP_MEMORY_HOME": str(folder / "home"),
        "MCP_MEMORY_STORE": url,
        "MCP_MEMORY_EMBEDDER": "none",
    }
    command = [sys.executable, "-m", "mcp_memory", "serve", "--transport", "http", "--port", "0", "--no-token"]
    async with await anyio.open_process(command, env=environment, stdout=None) as process:
        log = b""

        async def wait_for(words: bytes) -> bytes:
            nonlocal log
            assert process.stderr is not None
            with anyio.fail_after(WAIT):
                while words not in log:
                    log += await process.stderr.receive()
            return log

        try:
            address = re.search(rb"listens on (\S+)\n", await wait_for(b"/mcp\n"))
            assert address is not None
            yield address[1].decode(), wait_for
        finally:
            process.kill()


async def test_a_server_60_days_ahead_dates_by_the_database_and_deletes_nothing(url: str, tmp_path: Path) -> None:
    async with open_memory(Settings(home=tmp_path / "own", store=url, embedder="none")) as memory:
        await memory.set_retention({"turns": 30})
        await memory.record_turns([NewTurn(role="user", content="The boat leaves at nine.")], session="s")
        async with ahead(tmp_path, url) as (address, wait_for), httpx2.AsyncClient(timeout=WAIT) as probe:
            async with Client(streamable_http_client(address)) as client:
                turns = [{"role": "user", "content": "It leaves at ten now."}]
                answer_of(await client.call_tool("record_turns", {"turns": turns, "session": "s"}))
            ready = await probe.get(address.replace("/mcp", "/readyz"))
            log = await wait_for(b"a retention policy was not applied")
    kept = sql(url, f"SELECT content, {DATED_TODAY} FROM turn WHERE tombstone IS NULL ORDER BY id")
    assert kept == [("The boat leaves at nine.", True), ("It leaves at ten now.", True)]
    assert ready.status_code == 200
    assert re.match(r"The clock of this machine is 60 days, 0:00:0\d ahead of the database's\.", ready.text)
    assert ready.text.encode() in log


async def test_what_is_wrong_with_the_clock_is_a_problem_and_ends_with_it(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = clock.time.time
    monkeypatch.setattr(clock.time, "time", lambda: real() - 3600)
    async with open_memory(Settings(home=tmp_path, store=url, embedder="none")) as memory:
        await memory.set_retention({"turns": 30})
        (problem,) = await memory.problems()
        assert (await memory.status())["clock"] == problem
        assert re.match(r"The clock of this machine is 1:00:00 behind the database's\. ", problem)
        with pytest.raises(Refused, match="applies no retention policy"):
            await memory.follow_retention(eager=True)
        assert abs(memory.now() - datetime.fromtimestamp(real(), UTC)) < timedelta(minutes=1)
        monkeypatch.setattr(clock.time, "time", real)
        monkeypatch.setattr(clock, "_MAX_AGE", 0)
        assert await memory.follow_retention(eager=True) != []
        assert await memory.problems() == []


async def test_a_memory_in_files_uses_the_clock_of_its_machine(home: Path) -> None:
    async with open_memory(Settings(home=home, embedder="none")) as memory:
        before = datetime.now(UTC)
        assert before <= memory.now() <= datetime.now(UTC)
        assert memory.warnings() == []
