"""A client that runs real hooks, and what it finds afterwards."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mcp_memory.integrations.hooks.daemon_files import DaemonEndpoint
from mcp_memory.service.memory import Memory
from tests.in_memory import in_memory

ID = "3f2a9c1e-0d4b-4c3a-9b7e-000000000000"
WAIT = 20.0
_PATIENT = f"""
from mcp_memory.cli.main import main
from mcp_memory.integrations.hooks import command
command._LIMITS_S, command._LIMIT_S = {{}}, {WAIT}
main()
"""


class Client:
    """A client with one conversation, whose hooks it runs.

    A `patient` client's hooks wait for the daemon as long as it takes on a busy machine, instead of answering themselves.
    """

    def __init__(self, home: Path, log: Path, *, patient: bool = True, **env: str) -> None:
        self.home = home
        self.log = log
        self.command = [sys.executable, "-c", _PATIENT] if patient else [sys.executable, "-m", "mcp_memory"]
        self.env = {**os.environ, "MCP_MEMORY_HOME": str(home), "MCP_MEMORY_EMBEDDER": "none", **env}

    def start(self, event: str, **told: Any) -> subprocess.Popen[bytes]:
        given = {"session_id": ID, "transcript_path": str(self.log), "hook_event_name": event, **told}
        hook = subprocess.Popen(
            [*self.command, "hook", event],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.env,
        )
        assert hook.stdin is not None
        hook.stdin.write(json.dumps(given).encode())
        hook.stdin.close()
        return hook

    def hook(self, event: str, **told: Any) -> str:
        """Return what the model is told, or what stands for an output; empty where the hook printed nothing."""
        return said(self.start(event, **told))

    def answer(self, event: str, **told: Any) -> str:
        """Return the answer to a hook. On a busy machine it may come after the hook gave up: then run the hook again."""
        end = time.monotonic() + WAIT
        while not (said := self.hook(event, **told)):
            assert time.monotonic() < end
        return said

    def says(self, role: str, text: str) -> None:
        number = len(self.log.read_text().splitlines()) if self.log.exists() else 0
        line = {
            "type": role,
            "sessionId": ID,
            "uuid": f"00000000-0000-4000-8000-{number:012d}",
            "timestamp": f"2026-11-22T10:00:{number:02d}.000Z",
            "message": {"role": role, "content": text},
        }
        with self.log.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def says_attachment(self, text: str) -> None:
        """Write into the log, as the client does, that a hook added a text."""
        attachment = {"type": "hook_additional_context", "content": [text]}
        with self.log.open("a") as file:
            file.write(json.dumps({"type": "attachment", "sessionId": ID, "attachment": attachment}) + "\n")

    def run_code(self, code: str) -> None:
        """Run a program with the settings of this client."""
        subprocess.run([sys.executable, "-c", code], env=self.env, check=True)

    def start_daemon(self, *, resting_s: float) -> None:
        """Start a daemon that rests after fewer seconds; the one that it becomes then rests as usual."""
        self.run_code(
            "import subprocess, sys\n"
            "from mcp_memory.integrations.hooks.daemon_files import daemon_files, make_folders\n"
            "files = daemon_files(None, None)\nmake_folders(files)\n"
            "code = 'import sys\\nfrom mcp_memory.daemon import daemon, process\\n"
            f"daemon.RESTING_S = {resting_s}\\nsys.exit(process.main(sys.argv[1:]))'\n"
            "arguments = [str(files.home), '', files.key]\n"
            "subprocess.Popen([sys.executable, '-c', code, *arguments], start_new_session=True)"
        )
        until(self.resident)

    def resident(self) -> DaemonEndpoint | None:
        files = list((self.home / "hooks").glob("*.json"))
        assert len(files) <= 1
        return DaemonEndpoint.read(files[0]) if files else None

    def running(self) -> DaemonEndpoint:
        """Return the resident that a hook started. It may still be starting, as the hook waits only a short time."""
        until(self.resident)
        there = self.resident()
        assert there is not None
        return there

    def kill(self, signum: signal.Signals) -> DaemonEndpoint:
        """Send a signal to the resident, wait until it is gone, and return what it was."""
        there = self.running()
        os.kill(there.pid, signum)
        until(lambda: not is_running(there.pid))
        return there

    def end(self) -> None:
        """End the resident, and a second one that a hook may have started while the first was too busy to answer it."""
        while (there := self.resident()) is not None:
            if is_running(there.pid):
                os.kill(there.pid, signal.SIGTERM)
            until(lambda pid=there.pid: not is_running(pid))
            assert self.resident() != there


def said(hook: subprocess.Popen[bytes]) -> str:
    with hook:
        assert hook.stdout is not None
        assert hook.stderr is not None
        printed, complaint = hook.stdout.read(), hook.stderr.read()
        assert (hook.wait(WAIT), complaint) == (0, b"")
    said: dict[str, Any] = json.loads(printed)["hookSpecificOutput"] if printed else {}
    return said.get("additionalContext") or said.get("updatedToolOutput", {}).get("stdout", "")


def until(true: Callable[[], object]) -> None:
    end = time.monotonic() + WAIT
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return not Path(f"/proc/{pid}/stat").exists() or ") Z " not in Path(f"/proc/{pid}/stat").read_text()


def turns(client: Client) -> list[str]:
    async def read(memory: Memory) -> list[str]:
        return [turn.content for turn in await memory.session_turns("claude-code-3f2a9c1e")]

    return in_memory(client.home, read)


def remember(client: Client, text: str) -> None:
    in_memory(client.home, lambda memory: memory.remember(text, typed=True))
