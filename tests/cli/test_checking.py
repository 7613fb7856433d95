"""`status` and `doctor`: what is kept, and what is wrong with it."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

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


# --- status -----------------------------------------------------------------------------------------


def test_status_says_at_a_glance_what_is_kept(run: Run, small_home: Path) -> None:
    lines = dict(line.split(maxsplit=1) for line in run("status").stdout.splitlines())
    assert lines["home"] == str(small_home)
    assert lines["space"] == "default (also here: work)"
    assert lines["memories"] == "3 statements held true, 0 past, 1 fact, 0 scenes"
    assert lines["reader"] == "nobody by itself; the connected agent can, with distill"
    assert lines["waits"] == "4 turns in 1 session, 3 statements for scenes"
    assert lines["tasks"].startswith("3 tool results on 1 canvas, ")
    assert lines["model"] == "none is set"
    assert lines["tokens"] == "o200k_base, exact"
    assert lines["offloading"].endswith(" saved")


def test_status_in_json_has_these_keys(answer: Answer) -> None:
    told = answer("status")
    assert set(told) >= {
        "version", "home", "space", "spaces", "schema", "counts", "disk", "embedding", "model", "tokenizer", "offload",
    }  # fmt: skip
    assert (told["counts"]["atoms"], told["counts"]["canvases"]) == (3, 1)


# --- doctor -----------------------------------------------------------------------------------------


def test_a_healthy_home_passes_every_check(run: Run) -> None:
    result = run("doctor")
    assert (result.exit_code, result.stderr) == (0, "")
    assert {line.split()[0] for line in result.stdout.splitlines()} == {"ok"}


def test_the_checks_are_these(run: Run, small_home: Path) -> None:
    code, found = checks(run, small_home)
    assert (code, list(found)) == (
        0,
        ["python", "engine", "settings", "home", "disk", "hooks", "database", "index", "files", "embedder", "tokenizer"],
    )  # fmt: skip


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
    assert (code, any("is not what its records come to" in each["found"] for each in found["files"])) == (1, True)
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


def test_a_home_under_a_file_cannot_be_written(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    code, found = checks(run, tmp_path / "file" / "home")
    assert (code, found["home"][0]["state"]) == (1, "fail")


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
