"""Hooks whose daemon is not there: they answer at once, start it for the next, and record what a model missed."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from mcp_memory.core.hook_outcomes import Outcomes, outcomes, outcomes_log, record
from mcp_memory.integrations.hooks import command
from mcp_memory.integrations.hooks.daemon_files import DaemonFiles, daemon_files, make_folders
from tests.integrations.hooks.hook_client import Client, is_running, remember, said, until

QUESTION = "Who is harbour master of Torvik?"

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="signals")]


@pytest.fixture
def client(home: Path, tmp_path: Path) -> Iterator[Client]:
    client = Client(home, tmp_path / "log.jsonl", patient=False)
    yield client
    until(lambda: client.resident() is not None or not (home / "hooks").is_dir())
    client.end()


def week(client: Client) -> Outcomes:
    return outcomes(client.home, now=datetime.now())


def test_first_prompts_at_once_are_all_answered_and_start_one_daemon(client: Client) -> None:
    remember(client, "The harbour master of Torvik is Odd Berge.")
    hooks = [client.start("UserPromptSubmit", prompt=QUESTION) for _ in range(3)]
    assert ["Odd Berge" in said(hook) for hook in hooks] == [True] * 3
    assert week(client) == Outcomes(prompts=3, by_words=3)
    assert client.running()
    assert outcomes_log(client.home).stat().st_mode & 0o077 == 0


def test_what_it_answered_itself_is_not_repeated_by_the_daemon_that_reads_the_log(client: Client) -> None:
    remember(client, "The harbour master of Torvik is Odd Berge.")
    told = client.hook("UserPromptSubmit", prompt=QUESTION)
    client.says_attachment(told)
    patient = Client(client.home, client.log)
    client.running()
    assert patient.hook("UserPromptSubmit", prompt=QUESTION) == ""
    assert " prompt daemon " in outcomes_log(client.home).read_text()


def test_a_miss_is_recorded_with_its_cause(client: Client) -> None:
    client.home.mkdir()
    (client.home / "memory.db").write_bytes(b"no database" * 1000)
    assert client.hook("UserPromptSubmit", prompt=QUESTION) == ""
    [sentence] = week(client).sentences()
    assert sentence.startswith("1 of 1 prompts this week got no memory: the daemon did not run, and reading the store")
    assert "StoreUnavailable" in sentence


def test_a_result_that_the_daemon_does_not_take_stays_as_it_is_and_is_recorded(client: Client) -> None:
    (client.home / "hooks").mkdir(parents=True)
    (client.home / "hooks" / "hooks.log").mkdir()  # no daemon can start
    told = {"tool_name": "Bash", "tool_input": {}, "tool_response": {"stdout": "x"}, "tool_use_id": "t"}
    assert client.hook("PostToolUse", **told) == ""
    [sentence] = week(client).sentences()
    assert sentence.startswith("1 tool results were not looked at: the daemon failed to start")
    (client.home / "hooks" / "hooks.log").rmdir()
    next((client.home / "hooks").glob("*.failed")).unlink()
    client.hook("UserPromptSubmit", prompt="")  # starts one


def test_while_nobody_asks_the_daemon_starts_afresh_without_its_memory_and_then_ends(
    home: Path, tmp_path: Path
) -> None:
    client = Client(home, tmp_path / "log.jsonl", MCP_MEMORY_HOOKS_IDLE_HOURS="0.002")  # 7.2 s
    assert "recorded" in client.answer("SessionStart", source="startup")
    there = client.running()
    until(lambda: not is_running(there.pid))
    assert client.resident() is None
    assert (home / "hooks" / "hooks.log").read_text() == ""


def test_a_daemon_that_rests_answers_as_before(client: Client) -> None:
    remember(client, "The harbour master of Torvik is Odd Berge.")
    client.start_daemon(resting_s=2.0)
    first = client.running()
    patient = Client(client.home, client.log)
    patient.hook("SessionStart", source="startup")  # opens the memory, without which there is nothing to rest from
    until(lambda: (there := client.resident()) is not None and there.token != first.token)
    assert client.running().pid == first.pid  # on POSIX the process is the same
    patient.hook("SessionStart", source="clear")
    assert "start daemon" in outcomes_log(client.home).read_text().splitlines()[-1]


# --- a server that starts ---------------------------------------------------------------------------


def test_a_server_starts_the_daemon_only_where_hooks_ran(client: Client) -> None:
    start = "from mcp_memory.integrations.hooks.command import start_if_used; start_if_used(None, None)"
    client.run_code(start)
    assert not client.home.exists()
    client.hook("UserPromptSubmit", prompt="")
    client.kill(signal.SIGTERM)
    client.run_code(start)
    there = client.running()
    client.run_code(start)  # one runs already
    assert client.running() == there


# --- the record -------------------------------------------------------------------------------------


def test_the_record_is_bounded_and_counts_a_week(home: Path) -> None:
    record(home, "prompt", "daemon", seconds=0.1)
    assert not home.exists()
    files = daemon_files(home, None)
    assert files is not None
    make_folders(files)
    for _ in range(3):
        record(home, "prompt", "daemon", seconds=0.1)
    record(home, "prompt", "nothing", seconds=2, cause="the daemon did not start within 2.0 s")
    with outcomes_log(home).open("a") as log:
        log.write("1 prompt nothing 3 long ago\nno line\n9 x\n")
    found = outcomes(home, now=datetime.now())
    assert found == Outcomes(prompts=4, missed={"the daemon did not start within 2.0 s": 1})
    assert found.sentences() == ["1 of 4 prompts this week got no memory: the daemon did not start within 2.0 s (1)"]
    with outcomes_log(home).open("a") as log:
        log.write("9 tool words 1\n" * 40_000)
    record(home, "prompt", "words", seconds=0.1)
    assert outcomes_log(home).stat().st_size <= 200_000
    assert outcomes(home, now=datetime.now()).by_words == 1


@pytest.mark.parametrize("settings", ['store = "postgresql://nowhere/x"', None])
def test_a_memory_in_postgresql_is_left_to_the_daemon(
    home: Path, settings: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.mkdir()
    if settings:
        (home / "config.toml").write_text(settings)
    else:
        monkeypatch.setenv("MCP_MEMORY_STORE", "postgresql://nowhere/x")
    files = daemon_files(home, None)
    assert files is not None
    monkeypatch.setattr(command, "_STARTING_S", 0.0)
    monkeypatch.setattr(command, "start", _NotStarted)
    reply = command.answer(files, "UserPromptSubmit", "claude-code", b"{}")
    assert (reply.by, reply.content, reply.starts_daemon) == ("nothing", b"", False)
    assert [path.name for path in home.iterdir()] == (["config.toml"] if settings else [])


class _NotStarted:
    def __init__(self, files: DaemonFiles) -> None:
        self.files = files

    def poll(self) -> None:
        return None
