"""Stdio clients that share a server: real processes of `mcp-memory serve`, their daemon, and what happens when it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread
from mcp import Client, StdioServerParameters

from mcp_memory.core.process_registry import all_processes
from mcp_memory.integrations.hooks.daemon_files import daemon_files
from mcp_memory.service.memory import open_memory
from tests.integrations.hooks.hook_client import Client as HookClient
from tests.integrations.hooks.hook_client import is_running
from tests.server.answers import INITIALIZE, WAIT, answer_of
from tests.server.test_subscriptions import listening, told
from tests.server.test_transports import ask

COMMAND = [sys.executable, "-m", "mcp_memory", "serve"]


def environment(home: Path, **settings: str) -> dict[str, str]:
    return {
        **os.environ,
        "MCP_MEMORY_HOME": str(home),
        "MCP_MEMORY_EMBEDDER": "none",
        "MCP_MEMORY_SHARED": "true",
        **settings,
    }


def parameters(home: Path, **settings: str) -> StdioServerParameters:
    return StdioServerParameters(command=COMMAND[0], args=COMMAND[1:], env=environment(home, **settings))


@asynccontextmanager
async def connected(home: Path, **settings: str) -> AsyncGenerator[Client]:
    with anyio.fail_after(2 * WAIT):
        async with Client(parameters(home, **settings), mode="legacy") as client:
            yield client


async def record(client: Client, text: str) -> str:
    """Record a turn in the client's default session, and return the session."""
    turns = [{"role": "user", "content": text}]
    return answer_of(await client.call_tool("record_turns", {"turns": turns}))["session"]


def daemons(home: Path) -> list[int]:
    """Return the process ids of the daemons of a home."""
    files = sorted((home / "hooks").glob("*.json"))
    return [json.loads(text)["pid"] for file in files if (text := _content(file))]


def _content(file: Path) -> str:
    try:
        return file.read_text()
    except FileNotFoundError:
        return ""


def kill_daemon(home: Path) -> int:
    """Kill the daemon and return its process id; its file is left."""
    (daemon,) = daemons(home)
    os.kill(daemon, signal.SIGKILL)
    return daemon


def until(holds: Callable[[], Any]) -> None:
    end = time.monotonic() + WAIT
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.fixture(autouse=True)
def _daemon_ends(home: Path) -> Iterator[None]:
    yield
    until(lambda: not any(map(is_running, daemons(home))))


async def test_clients_share_a_process_and_each_has_its_own_session(home: Path) -> None:
    async with connected(home) as first, connected(home) as second:
        sessions = {await record(first, "The ferry leaves at nine."), await record(second, "The train leaves at ten.")}
        assert len(sessions) == 2
        assert await record(first, "It is late.") in sessions
        found = answer_of(await second.call_tool("conversation_search", {"query": "ferry"}))
        assert found["passages"][0]["turns"][0]["content"] == "The ferry leaves at nine."
        (process,) = await to_thread.run_sync(all_processes, home)
        assert [process.pid] == daemons(home)


async def test_clients_with_other_settings_have_another_server(home: Path) -> None:
    async with connected(home) as one, connected(home, MCP_MEMORY_SPACE="work") as other:
        await record(one, "The ferry leaves at nine.")
        found = answer_of(await other.call_tool("conversation_search", {"query": "ferry"}))
        assert found["passages"] == []
        assert len(daemons(home)) == 2


async def test_hooks_and_clients_share_a_process(home: Path, tmp_path: Path) -> None:
    hooks = HookClient(home, tmp_path / "log.jsonl", MCP_MEMORY_SHARED="true")
    async with connected(home) as client:
        await record(client, "The harbour master of Torvik is Odd Berge.")
        answer = await to_thread.run_sync(
            lambda: hooks.answer("UserPromptSubmit", prompt="Who is the harbour master of Torvik?")
        )
        assert "Odd Berge" in answer
        assert len(await to_thread.run_sync(all_processes, home)) == 1
    await anyio.sleep(3)
    assert daemons(home), "it stays for the hooks"
    await to_thread.run_sync(hooks.end)


async def test_a_client_goes_on_when_the_daemon_was_killed(home: Path) -> None:
    async with connected(home) as client:
        session = await record(client, "The ferry leaves at nine.")
        killed = kill_daemon(home)
        assert await record(client, "It is late.") == session
        assert daemons(home) != [killed]


async def test_each_request_is_answered_and_each_turn_stored_once_however_often_the_daemon_is_killed(
    home: Path,
) -> None:
    texts = [f"The ferry number {number} leaves at nine." for number in range(20)]
    sessions: set[str] = set()

    async def record_all(client: Client) -> None:
        for text in texts:
            sessions.add(await record(client, text))

    async with connected(home) as one, connected(home) as other:
        await record(one, texts[0])
        async with anyio.create_task_group() as recording:
            recording.start_soon(record_all, one)
            recording.start_soon(record_all, other)
            for _ in range(4):
                await anyio.sleep(0.4)
                if any(map(is_running, daemons(home))):
                    kill_daemon(home)
    async with open_memory(home=home, embedder="none") as memory:
        for session in sessions:
            assert [turn.content for turn in await memory.session_turns(session)] == texts
    assert len(sessions) == 2


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
async def test_a_subscription_outlives_the_daemon(home: Path, era: Any) -> None:
    uri = "memory://status"
    async with connected(home) as writer, listening(parameters(home), era, [uri]) as updates:
        await record(writer, "The ferry leaves at nine.")
        assert uri in await told(updates, {uri})
        killed = kill_daemon(home)
        await to_thread.run_sync(until, lambda: daemons(home) not in ([], [killed]))
        with anyio.fail_after(WAIT):
            while updates.statistics().current_buffer_used == 0:  # until the subscription is renewed
                await record(writer, "It is late.")
                await anyio.sleep(0.2)


@pytest.fixture
def piped(home: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []

    def start(**settings: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(home, **settings),
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


Start = Callable[..., "subprocess.Popen[str]"]


def test_wrong_settings_end_the_server_with_their_error(piped: Start) -> None:
    process = piped(MCP_MEMORY_LLM_TIMEOUT="soon")
    _, errors = process.communicate(json.dumps(INITIALIZE) + "\n", timeout=WAIT)
    assert process.returncode == 2
    assert "llm_timeout" in errors


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes anywhere")
def test_a_home_that_cannot_be_written_is_served_by_a_process_of_the_clients_own(home: Path, piped: Start) -> None:
    home.mkdir()
    home.chmod(0o500)
    assert ask(piped(), json.dumps(INITIALIZE))["result"]["serverInfo"]["name"] == "mcp-memory"
    home.chmod(0o700)


def test_a_client_is_served_by_a_process_of_its_own_where_no_daemon_can_start(home: Path, piped: Start) -> None:
    (home / "hooks").mkdir(parents=True)
    (home / "hooks" / "waiting").write_text("")  # a file where the daemon has a folder
    assert ask(piped(), json.dumps(INITIALIZE))["result"]["serverInfo"]["name"] == "mcp-memory"
    assert daemons(home) == []


def test_malformed_lines_are_answered(piped: Start) -> None:
    process = piped()
    ask(process, json.dumps(INITIALIZE))
    assert ask(process, '{"jsonrpc": "2.0", "id": 2,')["error"]["code"] == -32700
    assert ask(process, '{"jsonrpc": "2.0", "id": 3, "method": 7}')["error"]["code"] == -32600
    assert ask(process, json.dumps({"jsonrpc": "2.0", "id": 9, "method": "ping"}))["id"] == 9


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGTERM on Windows")
def test_it_ends_on_a_signal_and_with_its_input(piped: Start) -> None:
    process = piped()
    ask(process, json.dumps(INITIALIZE))
    process.terminate()
    assert process.wait(WAIT) == 0
    process = piped()
    ask(process, json.dumps(INITIALIZE))
    assert process.communicate(timeout=WAIT) == ("", "")
    assert process.returncode == 0


@pytest.mark.parametrize(("settings", "is_same"), [({}, True), ({"MCP_MEMORY_LLM": "openai/gpt-5-mini"}, False)])
def test_clients_with_other_keys_of_a_provider_share_a_server_only_without_a_model(
    home: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], is_same: bool
) -> None:
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    before = daemon_files(home, None)
    monkeypatch.setenv("OPENAI_API_KEY", "another")
    after = daemon_files(home, None)
    assert before is not None
    assert after is not None
    assert (before.key == after.key) == is_same
