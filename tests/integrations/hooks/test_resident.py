"""Hooks as a client runs them: real processes, which answer, start no more than one resident, and leave none behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import apsw
import pytest

from mcp_memory import __version__
from mcp_memory.core.errors import NotFound
from mcp_memory.integrations.hooks.daemon_files import (
    PROTOCOL,
    DaemonEndpoint,
    PendingLog,
    daemon_files,
    health,
    make_folders,
    pending_logs,
    proof,
)
from tests.integrations.hooks.hook_client import ID, WAIT, Client, is_running, remember, said, turns, until

OUTPUT = {"stdout": "\n".join(f"line {n} of a long log, job {n * 37}" for n in range(900)), "stderr": ""}

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="signals")]


@pytest.fixture
def client(home: Path, tmp_path: Path) -> Iterator[Client]:
    """A client; what its hooks started is ended, and has to be gone soon."""
    client = Client(home, tmp_path / "log.jsonl")
    yield client
    client.end()


def test_a_conversation_is_recalled_kept_and_recorded_and_the_resident_waits_for_the_next(client: Client) -> None:
    remember(client, "The harbour master of Torvik is Odd Berge.")
    assert "claude-code-3f2a9c1e" in client.answer("SessionStart", source="resume")
    there = client.running()
    assert client.hook("UserPromptSubmit", prompt="Who is harbour master of Torvik?") == ""  # told at the start
    client.says("user", "Who is harbour master of Torvik?")
    kept = client.answer(
        "PostToolUse", tool_name="Bash", tool_input={"command": "x"}, tool_use_id="t", tool_response=OUTPUT
    )
    assert kept.startswith("[001-N1 r-")
    client.says("assistant", "Odd Berge.")
    assert client.hook("Stop", last_assistant_message="Odd Berge.") == ""
    client.says("user", "Thank you.")
    assert client.hook("SessionEnd", reason="other") == ""
    until(lambda: not any((client.home / "hooks" / "waiting").iterdir()))
    assert client.resident() == there
    client.kill(signal.SIGTERM)
    assert client.resident() is None
    assert turns(client) == ["Who is harbour master of Torvik?", "Odd Berge.", "Thank you."]


def test_hooks_that_come_at_once_have_one_resident(client: Client) -> None:
    hooks = [client.start("SessionStart", source="startup") for _ in range(4)]
    assert all("recorded" in (said(hook) or client.answer("SessionStart", source="startup")) for hook in hooks)
    assert client.resident() is not None
    (file,) = (client.home / "hooks").glob("*.json")  # it leads to the process, and is its user's alone
    assert [path.stat().st_mode & 0o077 for path in (client.home, file.parent, file)] == [0, 0, 0]


def test_a_resident_that_was_killed_has_a_successor(client: Client) -> None:
    client.answer("SessionStart", source="startup")
    first = client.kill(signal.SIGKILL)
    assert client.resident() == first  # its file is left
    assert "recorded" in client.answer("SessionStart", source="resume")
    second = client.running()
    assert second.pid != first.pid


def test_another_program_at_the_port_is_told_nothing_and_replaced(client: Client) -> None:
    heard = bytearray()

    def listen(stranger: socket.socket) -> None:
        wire, _ = stranger.accept()
        with wire:
            heard.extend(wire.recv(4096))
            wire.sendall(b"220 mail.example.com\r\n")
            while more := wire.recv(4096):
                heard.extend(more)

    client.answer("SessionStart", source="startup")
    there = client.kill(signal.SIGKILL)
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        listening = threading.Thread(target=listen, args=[stranger])
        listening.start()
        (file,) = (client.home / "hooks").glob("*.json")
        DaemonEndpoint(os.getpid(), stranger.getsockname()[1], there.token, __version__).write(file)
        client.hook("UserPromptSubmit", prompt="a secret")
        listening.join(WAIT)
    until(lambda: client.running().pid != os.getpid())
    assert heard.startswith(b"mcp-memory-hook/1 ")
    assert b"secret" not in heard
    assert there.token.encode() not in heard


def test_what_could_not_be_handed_over_is_captured_by_the_next_resident(client: Client) -> None:
    client.says("user", "The pump leaks oil.")
    place = daemon_files(client.home, None)
    assert place is not None
    make_folders(place)
    PendingLog(log=str(client.log), client="claude-code", conversation=ID, flushed=True).save(place)
    PendingLog(log=str(client.log.with_name("b")), client="another", conversation=ID).save(place)
    (place.waiting / "odd.json").write_text("{")
    other = Client(client.home, client.log.with_name("other.jsonl"))
    other.hook("SessionStart", source="startup")
    until(lambda: not any((client.home / "hooks" / "waiting").iterdir()))
    client.kill(signal.SIGTERM)
    assert turns(client) == ["The pump leaks oil."]


@pytest.mark.parametrize("how", ["deleted", "replaced"])
def test_a_daemon_whose_home_is_deleted_ends_and_writes_nothing_back(client: Client, how: str) -> None:
    client.says("user", "The pump leaks oil.")
    client.answer("SessionStart", source="startup")
    there = client.running()
    client.hook("SessionEnd", reason="other")  # its log is read a moment later
    shutil.rmtree(client.home)
    if how == "replaced":
        client.home.mkdir()
    until(lambda: not is_running(there.pid))
    left = sorted(str(path) for path in client.home.rglob("*")) if client.home.exists() else []
    assert left == []
    assert client.home.exists() == (how == "replaced")


def test_what_a_killed_resident_had_not_read_is_read_by_the_next(client: Client) -> None:
    client.answer("SessionStart", source="startup")
    client.says("user", "The pump leaks oil.")
    client.hook("SessionEnd", reason="other")
    client.kill(signal.SIGKILL)
    Client(client.home, client.log.with_name("other.jsonl")).hook("SessionStart", source="startup")
    until(lambda: not any((client.home / "hooks" / "waiting").iterdir()))
    assert turns(client) == ["The pump leaks oil."]


def test_the_hooks_of_a_project_bring_the_personal_memory_too(client: Client) -> None:
    remember(client, "Odd Berge is harbour master of Torvik.")
    client.command += ["--space", "web", "--personal-space", "default"]
    start = client.answer("SessionStart", source="startup")
    assert 'memory="personal"' in start
    assert "Odd Berge is harbour master of Torvik. (personal:a1)" in start


def test_what_is_left_for_one_space_is_not_read_into_another(client: Client) -> None:
    client.says("user", "The pump leaks oil.")
    at_work = daemon_files(client.home, "work")
    assert at_work is not None
    note = PendingLog(log=str(client.log), client="claude-code", conversation=ID, flushed=True)
    make_folders(at_work)
    note.save(at_work)
    client.answer("SessionStart", source="startup")
    assert pending_logs(at_work) == [note]
    assert [path.stat().st_mode & 0o077 for path in (client.home, at_work.folder, at_work.waiting)] == [0, 0, 0]
    Client(client.home, client.log, MCP_MEMORY_SPACE="work").hook("UserPromptSubmit", prompt="")
    until(lambda: pending_logs(at_work) == [])
    for file in (client.home / "hooks").glob("*.json"):
        there = DaemonEndpoint.read(file)
        assert there is not None
        os.kill(there.pid, signal.SIGTERM)
    until(lambda: not any((client.home / "hooks").glob("*.json")))
    with pytest.raises(NotFound):
        turns(client)


def test_an_answer_that_came_too_late_was_not_told(client: Client) -> None:
    remember(client, "The harbour master of Torvik is Odd Berge.")
    prompt = "Who is harbour master of Torvik?"
    client.hook("UserPromptSubmit", prompt="")
    there = client.running()
    with socket.create_connection(("127.0.0.1", there.port)) as wire, wire.makefile("rwb") as stream:
        stream.write(PROTOCOL + b" 00\n")
        stream.flush()
        nonce = stream.readline().split()[1]
        told = json.dumps({"session_id": ID, "prompt": prompt}).encode()
        question = b'{"event": "UserPromptSubmit", "client": "claude-code"}\n' + told
        stream.write(proof(there.token, "hook", nonce) + b"\n%d\n%s" % (len(question), question))
        stream.flush()
        assert int(stream.readline()) > 0  # and no word of having it
    assert "Odd Berge" in client.answer("UserPromptSubmit", prompt=prompt)
    assert client.hook("UserPromptSubmit", prompt=prompt) == ""


def test_a_stranger_that_answers_slowly_holds_no_hook_up(client: Client) -> None:
    gone = threading.Event()

    def drip(stranger: socket.socket) -> None:
        wire, _ = stranger.accept()
        with wire:
            try:
                while not gone.wait(0.02):
                    wire.sendall(b"x")
            except OSError:
                gone.set()

    client.answer("SessionStart", source="startup")
    there = client.kill(signal.SIGKILL)
    (file,) = (client.home / "hooks").glob("*.json")
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        dripping = threading.Thread(target=drip, args=[stranger])
        dripping.start()
        DaemonEndpoint(os.getpid(), stranger.getsockname()[1], there.token, __version__).write(file)
        assert "recorded" in client.hook("SessionStart", source="startup")  # of its own resident, within its time
        assert gone.wait(WAIT)
        dripping.join(WAIT)


def test_residents_of_two_versions_do_not_end_each_other(client: Client) -> None:
    folder = client.home / "hooks"
    folder.mkdir(parents=True)
    for name, version in (("old", "0.0.1"), ("new", "999.0")):
        DaemonEndpoint(1, 9, "t", version).write(folder / f"{name}.json")
    client.hook("Stop")
    until(lambda: not (folder / "old.json").exists())
    assert (folder / "new.json").exists()
    (folder / "new.json").unlink()


def test_a_clock_that_was_set_back_keeps_no_resident_from_starting(client: Client) -> None:
    client.hook("UserPromptSubmit", prompt="")
    there = client.running()
    os.kill(there.pid, signal.SIGTERM)
    until(lambda: client.resident() is None)
    for file in (client.home / "hooks").glob("*.lock"):
        file.with_suffix(".failed").touch()
        os.utime(file.with_suffix(".failed"), (time.time() + 86_400, time.time() + 86_400))
    assert "recorded" in client.answer("SessionStart", source="startup")


@pytest.mark.parametrize(
    "told", ["{", "[]", "9" * 5_000, "[" * 100_000, '{"pid": 1, "port": 99999, "token": "", "version": ""}']
)
def test_a_rendezvous_that_makes_no_sense_is_none(tmp_path: Path, told: str) -> None:
    (tmp_path / "there.json").write_text(told)
    assert DaemonEndpoint.read(tmp_path / "there.json") is None


def test_while_another_program_locks_the_store_hooks_answer_and_nothing_is_lost(client: Client) -> None:
    client.answer("SessionStart", source="startup")
    locked = apsw.Connection(str(client.home / "memory.db"))
    locked.execute("BEGIN IMMEDIATE")
    client.says("user", "The pump leaks oil.")
    assert client.hook("UserPromptSubmit", prompt="What leaks?") == ""
    told = {"tool_name": "Bash", "tool_input": {}, "tool_response": OUTPUT}
    assert [client.hook("PostToolUse", tool_use_id=f"t{n}", **told) for n in range(2)] == ["", ""]
    client.hook("Stop")
    locked.execute("ROLLBACK")
    locked.close()
    client.kill(signal.SIGTERM)
    assert turns(client) == ["The pump leaks oil."]


def test_what_was_cut_within_a_character_is_kept_all_the_same(client: Client) -> None:
    output = {**OUTPUT, "stdout": f"{OUTPUT['stdout']}\ud83d"}
    given = {"tool_name": "Bash", "tool_input": {"command": "x \ud83d"}, "tool_use_id": "t", "tool_response": output}
    client.answer("SessionStart", source="startup")
    assert client.answer("PostToolUse", **given).startswith("[001-N1 r-")
    assert client.hook("UserPromptSubmit", prompt="What \ud83d?") == ""
    assert (client.home / "hooks" / "hooks.log").read_text() == ""


def test_what_is_wrong_with_a_hook_never_stops_its_client(client: Client) -> None:
    def run(*arguments: str, given: bytes = b"{}", **env: str) -> tuple[int, bytes, bytes]:
        command = [sys.executable, "-m", "mcp_memory", *arguments]
        ran = subprocess.run(command, input=given, capture_output=True, check=False, env={**client.env, **env})
        return ran.returncode, ran.stdout, ran.stderr

    nothing = (0, b"", b"")
    file = client.home.with_name("file")
    file.write_text("")
    client.answer("SessionStart", source="startup")
    assert run("hook", "Stop", given=b"\xff\x00 no JSON") == nothing
    assert run("hook", "UserPromptSubmit", given=b"") == nothing
    assert run("hook", "NoEvent", given=b'{"session_id": "1"}') == nothing
    assert run("hook", "Stop", "--unknown", "more", "--client", "another") == nothing
    assert run("hook", "SessionStart", given=b'{"session_id": "1"}', MCP_MEMORY_HOME="/proc/no") == nothing
    assert run("hook", "SessionStart", given=b'{"session_id": "1"}', MCP_MEMORY_HOME=str(file)) == nothing
    failures = health(client.home, now=datetime.now()).failures
    assert len(failures) == 2
    assert all("no JSON" in failure for failure in failures)


@pytest.mark.parametrize("name", ["hooks.log", "{key}.json"])
def test_a_pipe_in_the_place_of_a_file_of_hooks_holds_no_hook_up(
    client: Client, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("MCP_MEMORY_HOME", "MCP_MEMORY_EMBEDDER"):
        monkeypatch.setenv(variable, client.env[variable])
    place = daemon_files(client.home, None)
    assert place is not None
    place.folder.mkdir(parents=True)
    os.mkfifo(place.folder / name.format(key=place.key))
    assert "recorded" in client.answer("SessionStart", source="startup")


def test_where_no_resident_can_work_hooks_wait_for_it_once(client: Client) -> None:
    (client.home / "hooks").mkdir(parents=True)
    (client.home / "hooks" / "hooks.log").mkdir()
    assert client.hook("Stop") == ""
    (failed,) = (client.home / "hooks").glob("*.failed")
    before = failed.stat().st_mtime_ns
    assert client.hook("UserPromptSubmit", prompt="Who?") == ""
    assert failed.stat().st_mtime_ns == before
    assert [note.name for note in (client.home / "hooks" / "waiting").iterdir()] != []
    (client.home / "hooks" / "hooks.log").rmdir()
    failed.unlink()
    assert "recorded" in client.answer("SessionStart", source="startup")


def test_a_resident_whose_file_is_deleted_ends(client: Client) -> None:
    client.answer("SessionStart", source="startup")
    there = client.running()
    next((client.home / "hooks").glob("*.json")).unlink()
    until(lambda: not is_running(there.pid))
