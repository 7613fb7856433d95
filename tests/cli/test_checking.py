"""`status` and `doctor`: what is kept, and what is wrong with it."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from mcp_memory.cli import doctor
from mcp_memory.core.types import Spend
from mcp_memory.store.sql import home_rows
from mcp_memory.store.sqlite.store import open_store
from tests.cli.conftest import unwrapped
from tests.core.test_process_registry import HOLDS, another

NOW = datetime(2026, 11, 22, tzinfo=UTC)
MODEL = {"name": "m", "tokens_today": 10, "daily_tokens": 100, "today": [{"failed": 1}]}
PARKED = {"state": "parked", "stage": "extract", "error": "no answer"}

Run = Callable[..., Result]
Answer = Callable[..., Any]


@pytest.fixture
def copy(small_home: Path, tmp_path: Path) -> Path:
    """A copy of the small memory, to damage."""
    return shutil.copytree(small_home, tmp_path / "copy")


def checks(run: Run, home: Path) -> tuple[int, dict[str, list[dict[str, Any]]]]:
    result = run("doctor", "--json", home=home)
    by_name: dict[str, list[dict[str, Any]]] = {}
    for check in json.loads(result.stdout)["checks"]:
        by_name.setdefault(check["name"], []).append(check)
    return result.exit_code, by_name


def rows(page: str) -> dict[str, str]:
    """The rows of the page of status by name."""
    return dict(line.split(maxsplit=1) for line in unwrapped(page).splitlines())


# --- status -----------------------------------------------------------------------------------------


def test_status_says_at_a_glance_what_is_kept(run: Run, small_home: Path) -> None:
    lines = rows(run("status").stdout)
    assert lines["home"] == str(small_home)
    assert lines["space"] == "default (also here: work)"
    assert lines["memories"] == "3 statements valid, 0 past, 1 fact, 0 scenes"
    assert lines["reader"] == "no model is set; the connected agent can distill"
    assert lines["waits"] == "4 turns in 1 session, 3 statements for scenes"
    assert lines["tasks"].startswith("3 tool results on 1 canvas, ")
    assert lines["model"] == "none is set"
    assert lines["tokens"] == "o200k_base, exact"
    assert lines["offloading"] == "no note seen in a client's log yet; savings count from then on"


def test_the_status_of_an_unknown_space_says_so_and_names_spaces_with_similar_names_first(run: Run) -> None:
    assert rows(run("--space", "wrk", "status").stdout)["space"] == (
        "wrk, which does not exist yet (also here: work, default)"
    )


def test_status_tells_how_much_models_read_from_their_providers_cache(run: Run, copy: Path) -> None:
    with closing(open_store(copy)) as store:
        call = Spend(at=NOW, purpose="extract", model="m", prompt_tokens=3_000, completion_tokens=500)
        store.write_home(home_rows.add_spend, call)
        assert rows(run("status", home=copy).stdout)["model"] == "none is set, 1 call and 3,500 tokens in all"
        store.write_home(home_rows.add_spend, replace(call, cached_tokens=2_000))
    told = "none is set, 2 calls and 7,000 tokens in all, of which 2,000 from the provider's cache"
    assert rows(run("status", home=copy).stdout)["model"] == told


def test_status_is_one_page_and_says_how_it_grew_who_is_there_and_what_is_backed_up(run: Run, small_home: Path) -> None:
    with another(HOLDS, small_home) as process:
        lines = rows(run("status").stdout)
        assert f"serve stdio for an editor since {datetime.now():%Y-%m-%d}" in lines["connected"]
        assert f"(process {process.pid})" in lines["connected"]
    lines = rows(run("status").stdout)
    assert (lines["connected"], lines["review"]) == ("no client now", "nothing is quarantined")
    assert lines["grew"].startswith("by ")
    assert " database, " in lines["on"]
    assert lines["backups"] == "none; mcp-memory backup makes one"
    assert len(lines) <= 24


def test_status_in_json_has_what_is_kept_disk_by_kind_and_growth_by_span(answer: Answer) -> None:
    told = answer("status")
    assert set(told) >= {
        "version", "home", "space", "spaces", "schema", "counts", "disk", "embedding", "model", "tokenizer", "offload",
    }  # fmt: skip
    assert (told["counts"]["atoms"], told["counts"]["canvases"]) == (3, 1)
    assert set(told["grown"]) == {"day", "week", "month"}
    assert told["disk"]["kinds"]["database"] == told["disk"]["database"]
    assert sum(told["disk"]["kinds"].values()) == told["disk"]["database"] + told["disk"]["files"]
    assert {"results", "journal", "records", "canvases"} <= set(told["disk"]["kinds"])
    assert (told["backups"], told["tokens"]) == ([], {"valid": 0, "expired": 0, "revoked": 0})


def test_a_backup_is_seen_by_status_and_doctor(run: Run, copy: Path) -> None:
    assert run("backup", home=copy).exit_code == 0
    assert json.loads(run("status", "--json", home=copy).stdout)["backups"][0]["problem"] is None
    assert checks(run, copy)[1]["backups"][0]["state"] == "ok"
    [made] = (copy / "backups").glob("*.zip")
    made.write_bytes(made.read_bytes()[:100])
    assert checks(run, copy)[1]["backups"][0]["state"] == "warn"


@pytest.mark.parametrize(
    ("check", "state", "words"),
    [
        (doctor.check_model({"name": None}, {"paused": None}), "ok", "none is set"),
        (doctor.check_model(MODEL, {"paused": None}), "ok", "m, 10 of 100 tokens today, 1 call failed"),
        (doctor.check_model({**MODEL, "tokens_today": 95}, {"paused": None}), "warn", "95 of 100"),
        (doctor.check_model(MODEL, {"paused": {"since": "2026-11-22T10:00", "reason": "a trip"}}), "warn", "a trip"),
        (doctor.check_jobs({"works": [], "waiting": {"turns": 3, "drafts": 0}}), "ok", "3 turns to read"),
        (
            doctor.check_jobs({"works": [PARKED], "waiting": {"turns": 3, "drafts": 0}}),
            "warn",
            "extract with: no answer",
        ),
        (doctor.check_quarantine(2), "warn", "2 rows"),
        (
            doctor.check_processes([{"pid": 5, "what": "serve http", "version": "0.0.9"}]),
            "warn",
            "1 process of another",
        ),
        (doctor.check_backups([], turns=10, now=NOW), "ok", "none"),
        (doctor.check_backups([], turns=5_000, now=NOW), "warn", "none"),
    ],
)
def test_what_needs_a_look_is_a_warning_with_a_next_step(check: doctor.Check, state: str, words: str) -> None:
    assert (check.state, words in check.found) == (state, True)
    assert (check.next_step is None) == (state == "ok")


# --- doctor -----------------------------------------------------------------------------------------


def test_a_healthy_home_passes_every_check(run: Run, small_home: Path) -> None:
    result = run("doctor")
    assert (result.exit_code, result.stderr) == (0, "")
    assert {line.split()[0] for line in unwrapped(result.stdout).splitlines()} == {"ok"}
    code, found = checks(run, small_home)
    assert (code, list(found)) == (
        0,
        ["python", "engine", "settings", "home", "disk", "hooks", "database", "index", "files", "work", "model", "review",
         "connected", "backups", "embedder", "tokenizer"],
    )  # fmt: skip


def test_doctor_looks_for_the_client_that_is_the_model(
    run: Run, small_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCP_MEMORY_LLM", "client:gemini")
    monkeypatch.setenv("PATH", str(tmp_path))
    code, found = checks(run, small_home)
    (check,) = found["client"]
    assert (code, check["state"]) == (0, "warn")
    assert check["found"].startswith("Gemini CLI was not found. Install it")
    (tmp_path / "gemini").touch(mode=0o755)
    assert checks(run, small_home)[1]["client"][0]["found"] == f"client:gemini is {tmp_path / 'gemini'}"
    monkeypatch.setenv("MCP_MEMORY_LLM", "client:cursor")
    assert "client:codex" in checks(run, small_home)[1]["client"][0]["found"]


@pytest.mark.parametrize(("installed", "state"), [(True, "ok"), (False, "warn")])
def test_doctor_says_that_spans_leave_the_machine(
    run: Run, small_home: Path, installed: bool, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://user:secret@127.0.0.1:9")
    monkeypatch.setattr("mcp_memory.core.telemetry.is_installed", lambda: installed)
    code, found = checks(run, small_home)
    (check,) = found["telemetry"]
    assert (code, check["state"], "secret" in str(check)) == (0, state, False)


def test_a_home_whose_database_is_gone_fails_and_is_repaired(run: Run, copy: Path) -> None:
    before = run("show", "sessions", home=copy).stdout
    (copy / "memory.db").unlink()
    code, found = checks(run, copy)
    assert (code, found["database"][0]["state"]) == (1, "fail")
    assert "`mcp-memory doctor --repair`" in found["database"][0]["found"]
    assert run("status", home=copy).exit_code == 1
    assert not (copy / "memory.db").exists()
    assert run("doctor", "--repair", home=copy).exit_code == 0
    assert run("show", "sessions", home=copy).stdout == before


def test_a_home_that_is_not_there_is_well_and_is_not_made(run: Run, home: Path) -> None:
    code, found = checks(run, home)
    assert (code, found["database"][0]["state"], home.exists()) == (0, "ok", False)


def test_a_changed_raw_result_is_found(run: Run, copy: Path) -> None:
    torn = max((copy / "spaces" / "default" / "refs").iterdir(), key=lambda path: path.stat().st_size)
    torn.write_bytes(torn.read_bytes()[:-1])
    code, found = checks(run, copy)
    assert code == 1
    assert [(check["state"], torn.name in check["found"]) for check in found["files"]] == [("fail", True)]


def test_a_missing_canvas_file_is_found(run: Run, copy: Path) -> None:
    [canvas] = (copy / "spaces" / "default" / "mmds").iterdir()
    canvas.unlink()
    code, found = checks(run, copy)
    assert (code, canvas.name in found["files"][0]["found"]) == (1, True)
    run("--home", str(copy), "show", "canvas", "1", "--rebuild")
    assert canvas.is_file()
    assert checks(run, copy)[0] == 0


def test_a_canvas_that_is_not_what_its_records_come_to_is_found(run: Run, copy: Path) -> None:
    with sqlite3.connect(copy / "memory.db") as con:
        con.execute("UPDATE canvas SET text = replace(text, 'flowchart TD', 'flowchart LR')")
    code, found = checks(run, copy)
    assert (code, any("differs from its records" in each["found"] for each in found["files"])) == (1, True)
    run("--home", str(copy), "show", "canvas", "1", "--rebuild")
    assert checks(run, copy)[0] == 0


def test_a_file_that_is_no_database_is_found(run: Run, home: Path) -> None:
    home.mkdir()
    (home / "memory.db").write_bytes(b"not a database at all, but long enough to be looked at" * 40)
    code, found = checks(run, home)
    assert (code, found["database"][0]["state"]) == (1, "fail")


@pytest.mark.parametrize("text", ["space = ", "colour = 'blue'", "tokenizer = 'words'"])
def test_wrong_settings_are_found_and_the_rest_waits(text: str, run: Run, copy: Path) -> None:
    (copy / "config.toml").write_text(text, encoding="utf-8")
    code, found = checks(run, copy)
    assert (code, list(found)) == (1, ["python", "engine", "settings"])
    assert "config.toml" in found["settings"][0]["found"] or "tokenizer" in found["settings"][0]["found"]


def test_a_home_under_a_file_is_a_wrong_setting(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    code, found = checks(run, tmp_path / "file" / "home")
    assert (code, list(found), found["settings"][0]["state"]) == (1, ["python", "engine", "settings"], "fail")
    assert "is a file, but a home must be a folder" in found["settings"][0]["found"]


def test_a_file_left_unfinished_is_found_and_one_being_written_is_not(run: Run, copy: Path) -> None:
    (copy / "spaces" / "default" / "refs" / ".young.md.1.tmp").touch()
    assert checks(run, copy)[0] == 0
    old = copy / "spaces" / "default" / "refs" / ".old.md.1.tmp"
    old.touch()
    os.utime(old, (0, 0))
    code, found = checks(run, copy)
    assert (code, ".old.md.1.tmp" in found["files"][0]["found"]) == (1, True)


def test_a_search_by_words_alone_is_a_warning(run: Run, copy: Path) -> None:
    (copy / "config.toml").write_text('embedder = "none"\n', encoding="utf-8")
    code, found = checks(run, copy)
    assert (code, found["embedder"][0]["state"]) == (0, "warn")
    assert "MCP_MEMORY_EMBEDDER" in found["embedder"][0]["next_step"]


# --- the environment --------------------------------------------------------------------------------


def test_a_variable_that_sets_nothing_is_named_with_the_one_that_was_meant(
    run: Run, small_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCP_MEMORY_HOEM", "/elsewhere")
    monkeypatch.setenv("MCP_MEMORY_EMBEDING", "none")
    monkeypatch.setenv("MCP_MEMORY_UNHEARD_OF_FLAVOUR", "1")
    monkeypatch.setenv("MCP_MEMORY_SESSION", "s")
    monkeypatch.setenv("MCP_MEMORY_LOG_LEVL", "")  # set to nothing, it is not set
    said = (
        "MCP_MEMORY_EMBEDING (perhaps MCP_MEMORY_EMBEDDER), MCP_MEMORY_HOEM (perhaps MCP_MEMORY_HOME), "
        "MCP_MEMORY_UNHEARD_OF_FLAVOUR"
    )
    lines = rows(run("status").stdout)
    assert lines["settings"] == f"unknown variables: {said}"
    (check,) = checks(run, small_home)[1]["settings"]
    assert (check["state"], check["found"]) == (
        "warn",
        f"unknown variables that begin with MCP_MEMORY_: {said}",
    )
