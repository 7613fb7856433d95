"""`export` and `import` of what it wrote, as people call them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

Run = Callable[..., Result]


def test_an_export_is_named_by_its_space_and_day_and_never_written_over(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("export")
    (file,) = tmp_path.iterdir()
    assert done.exit_code == 0
    assert file.name.startswith("mcp-memory-default-20")
    assert file.stat().st_mode & 0o077 == 0
    assert "default: 7 turns, 3 statements, 3 tool results, 1 task" in done.output
    again = run("export")
    assert again.exit_code == 2
    assert "exists already" in again.stderr


def test_all_spaces_travel_in_one_file(run: Run, tmp_path: Path) -> None:
    file, other = tmp_path / "all.zip", tmp_path / "other"
    assert run("export", str(file), "--all-spaces").exit_code == 0
    seen = run("import", str(file), "--dry-run", home=other)
    assert "It is intact, and holds" in seen.stdout
    assert not other.exists()
    done = json.loads(run("import", str(file), "--json", home=other).stdout)
    ((name, spaces),) = done["exports"].items()
    assert (name, [(one["space"], one["into"]) for one in spaces]) == (
        str(file),
        [("default", "default"), ("work", "work")],
    )
    assert all(one["stored"] for one in spaces)
    assert "Bergen" in run("search", "Bergen", home=other).stdout
    named = run("import", str(file), "--space", "mine", home=other)
    assert named.exit_code == 1
    assert "holds 2 spaces" in named.stderr


def test_one_space_may_come_into_another(run: Run, tmp_path: Path) -> None:
    file, other = tmp_path / "work.zip", tmp_path / "other"
    assert run("export", str(file), "--space", "work").exit_code == 0
    done = run("import", str(file), "--space", "mine", home=other)
    assert "work into mine: " in done.stdout
    assert "the quay" in run("search", "office", "--space", "mine", home=other).stdout
    again = run("import", str(file), "--space", "mine", home=other)
    assert "0 rows stored" in again.stdout


@pytest.mark.parametrize("arguments", [("export", "x.zip", "--space", "nowhere"), ("import", "x.zip")])
def test_what_is_not_there_is_said(run: Run, arguments: tuple[str, ...], tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    done = run(*arguments)
    assert done.exit_code == 1
    assert done.stderr.startswith("Error: ")
