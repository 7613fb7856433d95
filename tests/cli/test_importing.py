"""`import`: what people read and programs parse, from files and from standard input."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from mcp_memory.cli import program

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


def test_standard_input_is_read_too(run: Run) -> None:
    assert "-: 2 turns in 1 session" in run("import", "-", stdin=DATA).stdout
    nowhere = run("import", "-", stdin='{"role": "user", "content": "hi"}')
    assert nowhere.exit_code == 1
    assert nowhere.stderr == "Error: line 1 names no session. Say with --session where such turns belong.\n"
    assert run("import", "--session", "x", "-", stdin='{"role": "user", "content": "hi"}').exit_code == 0


def test_a_dry_run_stores_nothing_and_makes_no_memory(run: Run, history: Path, home: Path) -> None:
    seen = run("import", "--dry-run", str(history))
    assert seen.exit_code == 0
    assert "2 turns in 1 session" in seen.stdout
    assert "0 of them (0%) are noise" in seen.stdout
    assert "stored" not in seen.stdout
    assert not home.exists()
    run("import", str(history))
    assert "nothing new" in run("import", "--dry-run", str(history)).stdout


def test_a_dry_run_with_a_model_says_what_reading_would_cost(
    run: Run, history: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCP_MEMORY_LLM", "gpt-4o-mini")
    seen = " ".join(run("import", "--dry-run", str(history)).stdout.split())
    assert "Having gpt-4o-mini read it takes about 4 questions, " in seen
    assert " out, about $0." in seen
    assert "With the caps on tokens it takes 1 day." in seen


def test_files_that_are_wrong_are_told_and_the_others_stored(run: Run, history: Path, tmp_path: Path) -> None:
    wrong, gone = tmp_path / "wrong.jsonl", tmp_path / "gone.jsonl"
    wrong.write_text(DATA + "\n".join('{"role": "\x1b[2J"}' for _ in range(30)) + "\n", encoding="utf-8")
    done = run("import", str(wrong), str(gone), str(history))
    assert done.exit_code == 1
    assert "wrong.jsonl: nothing of it was stored, for 30 places in it cannot be taken" in done.stdout
    assert "  wrong: line 3: " in done.stdout
    assert "  and 10 more\n  Mend them, or pass over them with --skip-bad.\n" in done.stdout
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
    assert "8 stored\n  0 tool results kept, 2 too small for that" in stored.stdout
    assert "0 stored, 8 were there before" in again.stdout
    assert [one.exit_code for one in (seen, stored, again)] == [0, 0, 0]
