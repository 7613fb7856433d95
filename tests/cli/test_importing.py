"""`import`: what people read and programs parse, from files and from standard input."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from mcp_memory.cli import importing
from mcp_memory.cli.main import program
from mcp_memory.integrations.importers import records
from tests.durability.faults import no_file_over
from tests.integrations.importers.agents import TALK, codex, data, written

Run = Callable[..., Result]

TURNS = [
    {"role": "user", "content": "I moved to Porto in May.", "session": "trip", "said_at": "2026-05-07T10:00:00Z"},
    {"role": "assistant", "content": "How is the flat?", "session": "trip", "said_at": "2026-05-08T10:00:00Z"},
]
DATA = "".join(json.dumps(one) + "\n" for one in TURNS)


@pytest.fixture
def run(home: Path) -> Run:
    def call(*arguments: str, stdin: str | None = None) -> Result:
        return CliRunner().invoke(program, ["--home", str(home), *arguments], input=stdin, prog_name="mcp-memory")

    return call


@pytest.fixture
def history(tmp_path: Path) -> Path:
    path = tmp_path / "history.jsonl"
    path.write_text(DATA, encoding="utf-8")
    return path


def test_a_history_is_stored_in_a_memory_made_for_it_and_found(run: Run, history: Path) -> None:
    done = run("import", str(history))
    assert (done.exit_code, done.stderr) == (0, "")
    assert "history.jsonl: 2 turns in 1 session, 2026-05-07 to 2026-05-08\n  2 stored\n" in done.stdout
    assert "`mcp-memory distill`" in done.stdout
    assert "moved to Porto" in run("search", "Porto").stdout
    again = run("import", str(history))
    assert again.exit_code == 0
    assert "history.jsonl: nothing new\n  It was imported on " in again.stdout
    assert "  0 stored, 2 were there before\n" in run("import", "--again", str(history)).stdout


def test_turns_that_were_forgotten_here_are_said_to_stay_so(run: Run, history: Path) -> None:
    run("import", str(history))
    run("forget", "t1", "--yes")
    assert "  1 were forgotten here and would stay so\n" in run("import", "--again", "--dry-run", str(history)).stdout
    again = run("import", "--again", str(history)).stdout
    assert "  0 stored, 1 were there before, 1 were forgotten here and stay so\n" in again
    assert "Porto" not in run("search", "Porto").stdout


def test_standard_input_is_read_too(run: Run) -> None:
    assert "-: 2 turns in 1 session" in run("import", "-", stdin=DATA).stdout
    nowhere = run("import", "-", stdin='{"role": "user", "content": "hi"}')
    assert nowhere.exit_code == 1
    assert nowhere.stderr == "Error: line 1 has no session. Pass --session to name the session of such turns.\n"
    assert run("import", "--session", "x", "-", stdin='{"role": "user", "content": "hi"}').exit_code == 0


def test_a_dry_run_stores_nothing_and_makes_no_memory(run: Run, history: Path, home: Path) -> None:
    seen = run("import", "--dry-run", str(history))
    assert seen.exit_code == 0
    assert "2 turns in 1 session" in seen.stdout
    assert "0 of the turns (0%) are noise" in seen.stdout
    assert "stored" not in seen.stdout
    assert not home.exists()
    run("import", str(history))
    assert "nothing new" in run("import", "--dry-run", str(history)).stdout


@pytest.mark.slow
def test_a_dry_run_with_a_model_says_what_reading_would_cost(
    run: Run, history: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCP_MEMORY_LLM", "gpt-4o-mini")
    seen = " ".join(run("import", "--dry-run", str(history)).stdout.split())
    assert "Having it read takes about 4 calls of gpt-4o-mini: " in seen
    assert " out, about $0." in seen


def test_of_several_files_it_says_what_they_come_to_together(
    run: Run, history: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCP_MEMORY_LLM", "gpt-4o-mini")
    later = tmp_path / "later.jsonl"
    later.write_text(DATA.replace("2026-05", "2026-06").replace("trip", "flat"), encoding="utf-8")
    seen = run("import", "--dry-run", str(history), str(later)).stdout
    whole = seen[seen.index("All 2 together: 4 turns in 2 sessions, 2026-05-07 to 2026-06-08\n") :]
    assert "  0 of the turns (0%) are noise" in whole
    assert "takes about 4 calls" in " ".join(whole.split())  # one a file to read it, and one each for the rest
    done = run("import", str(history), str(later)).stdout
    assert "All 2 together: 4 turns in 2 sessions, 2026-05-07 to 2026-06-08\n  4 stored\n" in done
    assert "together" not in run("import", "--again", str(history)).stdout


def test_files_that_are_wrong_are_told_and_the_others_stored(run: Run, history: Path, tmp_path: Path) -> None:
    wrong, gone = tmp_path / "wrong.jsonl", tmp_path / "gone.jsonl"
    wrong.write_text(DATA + "\n".join('{"role": "\x1b[2J"}' for _ in range(30)) + "\n", encoding="utf-8")
    done = run("import", str(wrong), str(gone), str(history))
    assert done.exit_code == 1
    assert "wrong.jsonl: nothing of it was stored, for 30 places in it cannot be taken" in done.stdout
    assert "  wrong: line 3: " in done.stdout
    assert "(29 more like this)\n  Mend them, or pass over them with --skip-bad.\n" in " ".join(done.stdout.split(" "))
    assert "\x1b[2J" not in done.stdout
    assert "2 stored" in done.stdout
    assert "gone.jsonl cannot be read: No such file" in done.stderr
    assert "  0 stored, 2 were there before\n" in run("import", "--skip-bad", str(wrong)).stdout


def test_in_json_the_same_stands_for_programs(run: Run, history: Path, tmp_path: Path) -> None:
    done = run("import", "--json", str(history), str(tmp_path))
    assert done.exit_code == 1
    told: dict[str, Any] = json.loads(done.stdout)
    [file] = told["files"]
    assert (file["state"], file["stored"], file["duplicates"], file["wrong"]) == ("stored", 2, 0, [])
    assert [error.endswith("Other files have to be named one by one.") for error in told["errors"]] == [True]


def test_a_session_that_cannot_be_is_refused_before_anything_is_read(run: Run, history: Path, home: Path) -> None:
    refused = run("import", "--session", "a/b", str(history))
    assert (refused.exit_code, home.exists()) == (2, False)
    assert "The session 'a/b' has a path separator" in refused.stderr


def test_a_zip_export_and_its_unpacked_folder_are_told_by_what_is_in_them(run: Run, tmp_path: Path) -> None:
    export = (Path(__file__).parents[2] / "fixtures/exports/claude-ai.json").read_bytes()
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "conversations.json").write_bytes(export)
    with zipfile.ZipFile(tmp_path / "export.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("conversations.json", export)
    seen, stored, again = (
        run("import", *more) for more in (["--dry-run", str(folder)], [str(tmp_path / "export.zip")], [str(folder)])
    )
    assert "8 turns in 2 sessions, 2023-11-03 to 2026-04-11\n  0 tool results would be kept, 2 too small" in seen.stdout
    assert "10 stored\n  0 tool results kept, 2 too small for that" in stored.stdout
    assert "0 stored, 10 were there before" in again.stdout
    assert [one.exit_code for one in (seen, stored, again)] == [0, 0, 0]


# --- logs of agents ---------------------------------------------------------------------------------


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A home with a log of each client."""
    for agent, folder in (("claude-code", ".claude"), ("codex", ".codex"), ("gemini", ".gemini")):
        written(tmp_path / folder, agent)
    return tmp_path


def test_a_log_is_told_by_what_is_in_it_and_stored_as_its_session(run: Run, logs: Path) -> None:
    path = str(written(logs, "claude-code"))
    seen = run("import", "--dry-run", path)
    assert "6 turns in session claude-code-3f2a9c1e, 2026-11-20 to 2026-11-20" in seen.stdout
    assert "1 tool result would be kept, 1 too small for that" in seen.stdout
    done = run("import", path)
    assert (done.exit_code, done.stderr) == (0, "")
    assert "  6 stored\n  1 tool result kept, 1 too small for that\n" in done.stdout
    assert "berth 3 is the busiest" in run("search", "busiest berth").stdout
    assert run("import", path).stdout == "1 log with nothing new\n"
    assert "0 stored, 6 were there before" in run("import", "--again", path).stdout
    assert run("import", "--dry-run", path).stdout == "1 log with nothing new\n"


def test_the_commands_know_the_clients_whose_logs_are_read() -> None:
    assert importing.AGENTS == records.AGENTS


def test_a_clients_name_stands_for_all_of_its_logs_and_a_folder_for_those_in_it(
    run: Run, logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(logs / ".claude"))
    monkeypatch.setenv("CODEX_HOME", str(logs / ".codex"))
    done = json.loads(run("import", "claude-code", "codex", "--json").stdout)
    assert [one["session"] for one in done["files"]] == ["claude-code-3f2a9c1e", "codex-f2713327"]
    monkeypatch.setenv("GEMINI_CLI_HOME", str(logs))
    assert "session gemini-595f5ec3" in run("import", "gemini").stdout
    next(logs.rglob("rollout-*.jsonl")).with_name("rollout-old.jsonl.zst").write_bytes(b"(\xb5/\xfd")
    everything = run("import", str(logs))
    assert "3 logs with nothing new" in everything.stdout
    assert "1 log that Codex has compressed cannot be read" in everything.stderr


def test_where_no_log_is_that_is_said(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))
    for asked in ("codex", str(tmp_path)):
        none = run("import", asked)
        assert none.exit_code == 1
        assert f"There is no log, and no file of another known format, in {tmp_path}" in none.stderr
    history = tmp_path / "history.jsonl"
    history.write_text(DATA, encoding="utf-8")
    watched = run("import", "--watch", str(history))
    assert watched.exit_code == 2
    assert "--watch follows logs of coding agents" in watched.stderr
    assert run("import", "--watch", "--dry-run", str(history)).exit_code == 2


@pytest.mark.slow
def test_a_watch_stores_what_is_there_and_goes_on_until_it_is_ended(logs: Path, home: Path) -> None:
    path = written(logs, "codex", TALK[:4])
    command = [sys.executable, "-m", "mcp_memory", "--home", str(home), "import", "--watch", str(path)]
    environ = {**os.environ, "PYTHONUNBUFFERED": "1", "MCP_MEMORY_EMBEDDER": "none"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8", env=environ
    ) as watching:
        assert watching.stdout
        assert watching.stderr
        try:
            assert "2 turns in session codex-f2713327" in watching.stdout.readline()
            path.write_bytes(data(codex(TALK)))
            assert any("4 turns in session codex-f2713327" in line for line in watching.stdout)
        finally:
            watching.send_signal(signal.SIGINT)
        assert "Ended." in watching.stderr.read()
        assert watching.wait(30) == 0


@pytest.mark.skipif(sys.platform == "win32", reason="limits of files")
def test_what_finds_no_room_on_the_disk_is_said_without_a_traceback(run: Run) -> None:
    with no_file_over(100):
        done = run("import", "-", stdin=DATA)
    assert (done.exit_code, done.stderr) == (1, "Error: File too large. Free some disk space and try again.\n")


def test_a_log_of_another_program_is_not_taken_for_one_with_nothing_new(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "odd.jsonl"
    lines = [{"type": "user", "sessionId": "s", "uuid": f"u{n}", "message": {"role": "user"}} for n in range(3)]
    path.write_bytes(data(lines))
    done = run("import", str(path))
    assert (done.exit_code, done.stdout) == (1, "")
    assert "was taken for a log of claude-code, but none of its lines is a message that can be read" in done.stderr


def test_a_folder_of_several_programs_is_imported_each_file_by_its_format(run: Run) -> None:
    fixtures = Path(__file__).parents[2] / "fixtures/imports"
    done = json.loads(run("import", "--json", str(fixtures / "qwen"), str(fixtures / "cline")).stdout)
    assert [(one["turns"], one["state"]) for one in done["files"]] == [(6, "stored"), (9, "stored")]
    again = json.loads(run("import", "--json", str(fixtures / "qwen"), str(fixtures / "cline")).stdout)
    assert [one["state"] for one in again["files"]] == ["known", "known"]


def test_the_instructions_of_a_project_are_listed_and_found_and_nothing_is_imported(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "web"
    folder.mkdir()
    assert run("import", "--project", str(folder)).stdout.startswith("There are no instructions for agents")
    (folder / "AGENTS.md").write_text("- Walruses are fed at noon.\n", encoding="utf-8")
    assert run("import", "--project", str(folder)).stdout == f"{folder}: 1 file\n  AGENTS.md  read\n"
    assert run("import", "--project", str(folder)).stdout == f"{folder}: 1 file\n  AGENTS.md  unchanged\n"
    listed = json.loads(run("import", "--project", str(folder), "--json").stdout)
    assert [file["path"] for file in listed["projects"][str(folder)]] == [str(folder / "AGENTS.md")]
    hits = json.loads(run("search", "When are walruses fed?", "--json").stdout)
    assert [(hit["layer"], hit["title"]) for hit in hits["hits"]] == [("result", f"AGENTS.md of {folder}")]
    assert "is no folder" in run("import", "--project", str(folder / "AGENTS.md")).stderr
    assert run("import", "--project", str(folder), "--watch").exit_code == 2
