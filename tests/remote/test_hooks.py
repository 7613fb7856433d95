"""Hooks whose memory is on a server: real hooks, a real server, and a network that is slow, cut or gone."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from mcp_memory.core.hook_outcomes import outcomes, outcomes_log
from mcp_memory.integrations.hooks.daemon_files import waiting_logs
from tests.integrations.hooks.hook_client import Client, said, until
from tests.remote.team_server import TeamServer, answering, start

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="signals")]

FIXTURES = Path(__file__).parents[2] / "fixtures" / "plugins"
QUESTION = "Who is harbour master of Torvik?"
ANSWER = "The harbour master of Torvik is Odd Berge."


class Laptop(Client):
    """A client on a laptop, with the token of a server and no memory."""

    def __init__(self, folder: Path, server: TeamServer, token: str, *, patient: bool = True, url: str = "") -> None:
        folder.mkdir(exist_ok=True)
        env = {"MCP_MEMORY_SERVER": url or server.url, "MCP_MEMORY_SERVER_TOKEN": token}
        super().__init__(folder / "home", folder / "log.jsonl", patient=patient, **env)

    def misses(self) -> list[str]:
        return outcomes(self.home, now=datetime.now()).sentences()

    def outcome_lines(self) -> list[list[str]]:
        return [line.split(" ", 4) for line in outcomes_log(self.home).read_text().splitlines()]


@pytest.fixture
def laptop(tmp_path: Path, server: TeamServer) -> Iterator[Laptop]:
    laptop = Laptop(tmp_path / "laptop", server, server.token("laptop"))
    yield laptop
    until(lambda: laptop.resident() is not None or not (laptop.home / "hooks").is_dir())
    laptop.end()


def remember_there(server: TeamServer) -> None:
    server.ask(lambda memory: memory.remember(ANSWER, typed=True))


def until_stored(server: TeamServer, *texts: str) -> None:
    def is_stored() -> bool:
        sessions = server.ask(lambda memory: memory.sessions())
        return bool(sessions) and server.turns() == [*texts]

    until(is_stored)


def test_a_prompt_is_answered_cold_and_warm_and_conversations_are_stored_on_the_server(
    server: TeamServer, laptop: Laptop
) -> None:
    remember_there(server)
    assert "Odd Berge" in laptop.hook("UserPromptSubmit", prompt=QUESTION)
    assert " prompt server " in outcomes_log(laptop.home).read_text()
    laptop.running()
    assert "Odd Berge" in laptop.answer("UserPromptSubmit", prompt=QUESTION)
    assert " prompt daemon " in outcomes_log(laptop.home).read_text()
    laptop.says("user", "My boat is the Havørn.")
    laptop.says("assistant", "A fine boat.")
    laptop.hook("Stop")
    until_stored(server, "My boat is the Havørn.", "A fine boat.")
    roles = [turn.role for turn in server.ask(lambda memory: memory.session_turns("claude-code-3f2a9c1e"))]
    assert roles == ["user", "assistant"]
    assert not (laptop.home / "memory.db").exists()
    until(lambda: waiting_logs(laptop.home).count == 0)


def test_a_large_result_is_kept_on_the_server_and_left_as_it_is_without_it(server: TeamServer, laptop: Laptop) -> None:
    lines = "\n".join(f"2026-11-29 10:{number % 60:02} INFO job {number} done" for number in range(2_000))
    told = {"tool_name": "Bash", "tool_input": {"command": "log"}, "tool_response": {"stdout": lines, "stderr": ""}}
    laptop.answer("SessionStart", source="startup")
    note = laptop.answer("PostToolUse", **told, tool_use_id="one")
    ref = note.split(" r-")[1][:12]
    assert server.ask(lambda memory: memory.ref(f"r-{ref}"))[1].decode() == lines
    server.proxy.refuse()
    server.proxy.cut()
    assert laptop.hook("PostToolUse", **told, tool_use_id="two") == ""
    assert "1 tool results were not looked at: the server cannot be reached (1)" in laptop.misses()
    server.proxy.accept()


def test_while_the_server_is_away_the_client_goes_on_and_what_was_said_waits(
    server: TeamServer, laptop: Laptop
) -> None:
    remember_there(server)
    laptop.answer("SessionStart", source="startup")
    laptop.says("user", "My boat is the Havørn.")
    laptop.hook("Stop")
    until_stored(server, "My boat is the Havørn.")
    port = server.proxy.server_port
    server.end()
    laptop.says("user", "It sails at six.")
    assert laptop.hook("UserPromptSubmit", prompt=QUESTION) == ""
    laptop.hook("Stop")
    until(lambda: waiting_logs(laptop.home).count == 1)
    assert laptop.misses()[0].startswith("1 of 1 prompts this week got no memory: the server cannot be reached")
    laptop.kill(signal.SIGKILL)  # what waits is on disk
    laptop.says("user", "From the north quay.")
    assert laptop.hook("Stop") == ""  # starts another
    server.process, _ = start(server.home, port)
    assert "Odd Berge" in laptop.answer("UserPromptSubmit", prompt=QUESTION)
    until_stored(server, "My boat is the Havørn.", "It sails at six.", "From the north quay.")
    until(lambda: waiting_logs(laptop.home).count == 0)


def test_a_connection_that_is_cut_before_the_answer_stores_a_turn_once(server: TeamServer, laptop: Laptop) -> None:
    laptop.answer("SessionStart", source="startup")
    server.proxy.cut_after(b"verb.record_turns")
    laptop.says("user", "My boat is the Havørn.")
    laptop.hook("Stop")
    until_stored(server, "My boat is the Havørn.")
    laptop.says("user", "It sails at six.")
    laptop.hook("Stop")
    until_stored(server, "My boat is the Havørn.", "It sails at six.")


def test_a_server_that_is_slow_keeps_nobody_waiting_and_the_cause_is_recorded(
    server: TeamServer, laptop: Laptop, tmp_path: Path
) -> None:
    remember_there(server)
    laptop.answer("SessionStart", source="startup")
    server.proxy.delay = 3.0
    assert laptop.hook("UserPromptSubmit", prompt=QUESTION) == ""
    assert "1 of 1 prompts this week got no memory: the server did not answer within 1.0 s (1)" in laptop.misses()
    server.proxy.delay = 0.0
    assert "Odd Berge" in laptop.answer("UserPromptSubmit", prompt=QUESTION)
    laptop.end()
    server.proxy.delay = 3.0
    quick = Laptop(tmp_path / "laptop", server, laptop.env["MCP_MEMORY_SERVER_TOKEN"], patient=False)
    assert quick.hook("UserPromptSubmit", prompt=QUESTION) == ""
    assert "the daemon did not run, and the server did not answer in time" in laptop.misses()[0]
    server.proxy.delay = 0.0


@pytest.mark.parametrize("daemon", [True, False])
def test_a_wrong_token_is_no_hindrance_and_is_recorded(server: TeamServer, tmp_path: Path, daemon: bool) -> None:
    laptop = Laptop(tmp_path / "laptop", server, "mcm_0_wrong")
    if daemon:
        laptop.hook("SessionStart", source="startup")
        laptop.running()
    assert laptop.hook("UserPromptSubmit", prompt=QUESTION) == ""
    assert "the server does not accept the token" in laptop.misses()[0]
    laptop.running()
    laptop.end()


def test_with_a_token_that_only_reads_prompts_are_answered_and_conversations_wait(
    server: TeamServer, tmp_path: Path
) -> None:
    remember_there(server)
    laptop = Laptop(tmp_path / "laptop", server, server.token("reader", right="read"))
    assert "Odd Berge" in laptop.answer("UserPromptSubmit", prompt=QUESTION)
    laptop.says("user", "My boat is the Havørn.")
    laptop.hook("Stop")
    until(lambda: "the token lacks the right" in (laptop.home / "hooks" / "hooks.log").read_text())
    assert waiting_logs(laptop.home).count == 1
    laptop.end()


@pytest.mark.parametrize("answer", [(500, b"<h1>Oops</h1>", "text/html"), (200, b"<html>Sign in</html>", "text/html")])
def test_what_answers_but_is_no_memory_is_no_hindrance(
    server: TeamServer, tmp_path: Path, answer: tuple[int, bytes, str]
) -> None:
    with answering((answer[0], answer[1], {"Content-Type": answer[2]})) as url:
        laptop = Laptop(tmp_path / "laptop", server, "token", url=url)
        assert laptop.hook("UserPromptSubmit", prompt=QUESTION) == ""
        cause = "the server failed (HTTP 500)" if answer[0] == 500 else "the answer is of no memory"
        assert cause in laptop.misses()[0]
        laptop.running()
        laptop.end()


def test_two_laptops_share_what_is_known_and_each_stores_its_own_conversation(
    server: TeamServer, tmp_path: Path
) -> None:
    laptops = [Laptop(tmp_path / name, server, server.token(name)) for name in ("one", "two")]
    for number, laptop in enumerate(laptops):
        laptop.log = tmp_path / laptop.home.parent.name / "same-name.jsonl"
        line = {
            "type": "user",
            "sessionId": f"{number}f2a9c1e-0d4b-4c3a-9b7e-000000000000",
            "uuid": f"{number}0000000-0000-4000-8000-000000000000",
            "timestamp": "2026-11-22T10:00:00.000Z",
            "message": {"role": "user", "content": f"I am the laptop {number}."},
        }
        laptop.log.write_text(json.dumps(line) + "\n")
        said(laptop.start("Stop", session_id=line["sessionId"], transcript_path=str(laptop.log)))

    def stored() -> set[str]:
        return {info.session for info in server.ask(lambda memory: memory.sessions())}

    until(lambda: stored() == {"claude-code-0f2a9c1e", "claude-code-1f2a9c1e"})
    assert [server.turns(f"claude-code-{number}f2a9c1e") for number in (0, 1)] == [
        ["I am the laptop 0."],
        ["I am the laptop 1."],
    ]
    assert "laptop 0" in laptops[1].answer("UserPromptSubmit", prompt="Which laptop am I? I said: the laptop 0")
    for laptop in laptops:
        laptop.end()


def test_a_conversation_that_a_plugin_hands_over_waits_in_a_private_file(server: TeamServer, tmp_path: Path) -> None:
    laptop = Laptop(tmp_path / "laptop", server, server.token("opencode"))
    lines = (FIXTURES / "opencode.jsonl").read_text().replace("$WEIGHTS", "").splitlines()
    handed = next(step["payload"] for step in reversed([*map(json.loads, lines)]) if "conversation" in step["payload"])
    server.proxy.refuse()

    def hook(event: str) -> bytes:
        command = [*laptop.command, "hook", event, "--client", "opencode"]
        run = subprocess.run(command, input=json.dumps(handed).encode(), capture_output=True, env=laptop.env)
        return run.stdout + run.stderr

    queue = laptop.home / "hooks" / "waiting"
    assert hook("session.idle") == b""
    until(lambda: len([*queue.glob("*.conversation")]) == 1)
    assert all(file.stat().st_mode & 0o077 == 0 for file in queue.iterdir())
    server.proxy.accept()
    laptop.kill(signal.SIGKILL)
    hook("chat.message")  # starts another daemon
    until(lambda: bool(server.ask(lambda memory: memory.sessions())))
    until(lambda: [*queue.iterdir()] == [])
    laptop.end()
