"""`mcp-memory wrap` as clients start it, before servers that behave and servers that do not."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcp_memory.integrations.proxy import stdio
from tests.server.answers import HANDSHAKE

SERVER = Path(__file__).with_name("raw_server.py")
WAIT = 20
posix = pytest.mark.skipif(sys.platform == "win32", reason="signals")


class Wrapped(subprocess.Popen[bytes]):
    """A proxy, and a client that writes lines and reads them."""

    def say(self, method: str, params: Any = None, id: int | None = None) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params or {}} | ({} if id is None else {"id": id})
        assert self.stdin is not None
        self.stdin.write(json.dumps(message).encode() + b"\n")
        self.stdin.flush()

    def hear(self) -> Any:
        assert self.stdout is not None
        return json.loads(self.stdout.readline())

    def ask(self, method: str, params: Any = None, id: int = 1) -> Any:
        self.say(method, params, id)
        return self.hear()

    def end(self) -> tuple[list[Any], str, int]:
        """Hang up; return the messages that were left, stderr and the exit code."""
        output, log = self.communicate(timeout=WAIT)
        return [json.loads(line) for line in output.splitlines()], log.decode(), self.returncode


Start = Callable[..., Wrapped]


@pytest.fixture
def start(home: Path) -> Iterator[Start]:
    started: list[Wrapped] = []

    def start(*arguments: str, **env: str) -> Wrapped:
        wrapped = Wrapped(
            [sys.executable, "-m", "mcp_memory", "wrap", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "MCP_MEMORY_HOME": str(home), "MCP_MEMORY_EMBEDDER": "none", **env},
        )
        started.append(wrapped)
        return wrapped

    yield start
    for wrapped in started:
        wrapped.kill()
        wrapped.communicate()


@pytest.fixture
def wrap(start: Start) -> Callable[..., Wrapped]:
    return lambda how, *options, **env: start(*options, "--", sys.executable, str(SERVER), how, **env)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def until(happens: Callable[[], bool]) -> None:
    for _ in range(WAIT * 50):
        if happens():
            return
        time.sleep(0.02)
    pytest.fail("it did not happen")


@pytest.mark.slow
def test_a_large_result_is_kept_and_the_environment_goes_on_without_our_secrets(wrap: Start, home: Path) -> None:
    proxy = wrap("good", "--session", "trip")
    assert proxy.ask("initialize", HANDSHAKE)["result"]["serverInfo"]["name"] == "good"
    kept = proxy.ask("tools/call", {"name": "read"}, 2)["result"]["content"][0]["text"]
    assert "001-N1" in kept
    assert "expand_good" in kept
    opened = proxy.ask("tools/call", {"name": "expand_good", "arguments": {"ref": "001-N1", "lines": "1000"}}, 3)
    assert "GET /item/999" in opened["result"]["content"][0]["text"]
    assert proxy.end() == ([], "stderr of good\n", 0)
    assert (home / "spaces" / "default" / "offload-trip.jsonl").is_file()

    proxy = wrap("says-who", "--over", "100000", MCP_MEMORY_TOKEN="s3cret", API_KEY="theirs")
    _, environ = json.loads(proxy.ask("tools/call", {"name": "x"})["result"]["content"][0]["text"])
    assert ("MCP_MEMORY_TOKEN" in environ, environ["API_KEY"]) == (False, "theirs")


@pytest.mark.parametrize(("how", "code"), [("dies-at-once", 7), ("dies-early", 8), ("dies", 137)])
def test_who_waits_for_a_server_that_dies_is_told_and_the_exit_code_is_its_own(
    wrap: Start, how: str, code: int
) -> None:
    if sys.platform == "win32" and how == "dies":
        pytest.skip("no SIGKILL")
    proxy = wrap(how)
    proxy.say("initialize", HANDSHAKE, 1)
    if how != "dies-at-once":
        proxy.say("tools/call", {"name": "read"}, 2)  # at once: who asks later finds nobody, and does not wait
        assert "result" in proxy.hear()
    heard = proxy.hear()
    assert heard["error"]["code"] == -32000
    assert f"exit code {code}" in heard["error"]["message"]
    assert proxy.wait(WAIT) == code


def test_what_cannot_be_started_is_said_in_one_sentence(start: Start, tmp_path: Path) -> None:
    assert start("--", "no-such-program").end()[1:] == (
        "Error: There is no program 'no-such-program' on PATH. Name it by its full path.\n",
        1,
    )
    assert start().end()[2] == 2


def test_a_wrong_setting_keeps_nobody_from_the_server(wrap: Start) -> None:
    proxy = wrap("good", MCP_MEMORY_RERANK="perhaps")
    text = proxy.ask("tools/call", {"name": "read"}, 2)["result"]["content"][0]["text"]
    assert len(text) > 10_000
    assert "large results pass as they are: Setting 'rerank'" in proxy.end()[1]


@posix
async def test_a_server_that_does_not_leave_is_made_to(monkeypatch: pytest.MonkeyPatch) -> None:
    assert stdio.LEAVING_SECONDS + stdio.STOPPING_SECONDS < 4, "clients kill the proxy itself after four seconds"
    monkeypatch.setattr(stdio, "LEAVING_SECONDS", 0.2)
    monkeypatch.setattr(stdio, "STOPPING_SECONDS", 0.2)
    server = await stdio.ServerProcess.start([sys.executable, str(SERVER), "hangs"])
    await server.send(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize"}).encode() + b"\n")
    with anyio.fail_after(WAIT):
        assert b"serverInfo" in await anext(server.lines())  # it ignores SIGTERM by now
        assert await server.wait() == 137


@posix
@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_reaches_the_server_once(wrap: Start, signum: signal.Signals) -> None:
    proxy = wrap("counts-signals")
    proxy.ask("initialize", HANDSHAKE)
    proxy.send_signal(signum)
    assert proxy.wait(WAIT) == 5
    assert proxy.end()[1] == f"stderr of counts-signals\nsignal {signum.value}\n"


@posix
def test_a_proxy_that_is_killed_leaves_no_server_behind(wrap: Start) -> None:
    proxy = wrap("good")
    proxy.ask("initialize", HANDSHAKE)
    (server,) = children(proxy.pid)
    proxy.kill()
    until(lambda: not is_alive(server))


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@posix
def test_a_client_that_stops_reading_stops_the_flood_and_one_that_goes_away_ends_it(wrap: Start) -> None:
    proxy = wrap("floods")
    proxy.say("tools/call", {"name": "x"}, 1)
    proxy.hear()
    assert resident_mb(proxy.pid) < 60
    assert proxy.stdout is not None
    proxy.stdout.close()
    assert proxy.wait(WAIT) is not None


def resident_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def test_nothing_heavy_is_loaded_before_the_first_large_result() -> None:
    code = (
        "import sys; from mcp_memory.cli.main import program\n"
        "program.get_command(None, 'wrap'); import mcp_memory.integrations.proxy.relay\n"
        "print(*sorted(name for name in sys.modules if name in sys.argv[1:]))"
    )
    heavy = ["mcp", "mcp_types", "httpx2", "numpy", "litellm", "tiktoken", "apsw", "tokenizers", "regex", "pydantic"]
    done = subprocess.run([sys.executable, "-c", code, *heavy], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
