"""How commands end when they are interrupted, or when nobody reads their output any more: without a message."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
import uvicorn as uvicorn  # here, because importing it blocks
from click.testing import CliRunner

from mcp_memory.cli import main, status
from mcp_memory.service.http_server import listen, run_http

COMMAND = [sys.executable, "-m", "mcp_memory"]
WAIT = 60

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and pipes")


def piped(arguments: list[str], lines: int) -> tuple[int, str]:
    """Run a command whose reader closes the pipe after some lines. Return its exit code and what it complains of."""
    with subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        for _ in range(lines):
            process.stdout.readline()
        process.stdout.close()
        complaint = process.stderr.read().decode()
        return process.wait(WAIT), complaint


@pytest.mark.slow
@pytest.mark.parametrize("lines", [0, 2])
@pytest.mark.parametrize("command", [["demo"], ["--help"], ["status"], ["doctor"], ["status", "--json"]], ids=" ".join)
def test_a_command_whose_reader_leaves_ends_without_a_message(tmp_path: Path, command: list[str], lines: int) -> None:
    code, complaint = piped(["--home", str(tmp_path / "home"), *command], lines)
    assert complaint == ""
    assert code in (0, 1, 141)


@pytest.mark.slow
def test_a_demo_whose_reader_leaves_says_so_by_its_exit_code(tmp_path: Path) -> None:
    assert piped(["demo", "--home", str(tmp_path / "home")], 2) == (141, "")


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), BaseExceptionGroup("group", [KeyboardInterrupt(), ValueError("cancelled too")])]
)
def test_an_interrupted_command_ends_without_a_message(
    error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise error

    monkeypatch.setattr(status, "ask", interrupted)
    ended = CliRunner().invoke(main.program, ["--home", str(tmp_path), "status"])
    assert (ended.exit_code, ended.output) == (130, "")


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [["ui", "--no-browser"], ["serve"], ["serve", "--transport", "http", "--port", "0"], ["status"]],
    ids=" ".join,
)
def test_ctrl_c_while_the_memory_is_opened_ends_without_a_message(tmp_path: Path, command: list[str]) -> None:
    home = tmp_path / "home"
    subprocess.run([*COMMAND, "--home", str(home), "remember", "The user drinks tea."], check=True, capture_output=True)
    with subprocess.Popen(
        [*COMMAND, "--home", str(home), *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        end = time.monotonic() + WAIT
        while not any((home / "run").glob("*-*.json")) and process.poll() is None:  # its note, before the store is open
            assert time.monotonic() < end
        process.send_signal(signal.SIGINT)
        _, complaint = process.communicate(timeout=WAIT)
    assert process.returncode in (0, 130)
    assert not [
        line for line in complaint.decode().splitlines() if "Error" in line or "ERROR" in line or "Trace" in line
    ]


async def test_ctrl_c_while_the_http_server_starts_ends_it_and_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        assert scope["type"] == "lifespan"
        await receive()
        os.kill(os.getpid(), signal.SIGINT)
        await anyio.lowlevel.checkpoint()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})

    with listen("127.0.0.1", 0) as listener, anyio.fail_after(WAIT):
        await run_http(app, listener, started=lambda: None)
    assert [record.getMessage() for record in caplog.records if record.levelname in ("ERROR", "CRITICAL")] == []
