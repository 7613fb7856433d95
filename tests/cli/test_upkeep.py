"""`backup`, `restore`, `rebuild`, `compact` and `doctor --repair`, as people run them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from mcp_memory.cli.main import program
from tests.cli.conftest import unwrapped
from tests.in_memory import in_memory


class Home:
    """A copy of the small memory, and the command line on it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def run(self, *arguments: str) -> Result:
        return CliRunner().invoke(program, ["--home", str(self.path), *arguments])

    def answer(self, *arguments: str) -> Any:
        result = self.run(*arguments, "--json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)


@pytest.fixture
def mine(small_home: Path, home: Path) -> Home:
    shutil.copytree(small_home, home)
    return Home(home)


def test_a_backup_is_made_listed_and_verified(mine: Home) -> None:
    result = mine.run("backup")
    assert result.exit_code == 0
    path, proven = unwrapped(result.stdout).splitlines()
    assert path.startswith(str(mine.path / "backups" / "mcp-memory-"))
    assert proven.startswith("verified: ")
    assert proven.endswith("the database is intact; 4 turns, 4 statements, 3 results in 2 spaces")
    [line] = unwrapped(mine.run("backup", "--list").stdout).splitlines()
    assert line.endswith("4 turns, 4 statements, 3 results in 2 spaces")
    [listed] = mine.answer("backup", "--list")
    verified = unwrapped(mine.run("backup", "--verify", listed["path"]).stdout)
    assert verified.startswith(f"{listed['path']} is intact: 4 turns")
    Path(listed["path"]).write_bytes(b"PK")
    wrong = mine.run("backup", "--verify", listed["path"])
    assert (wrong.exit_code, "is not a backup" in wrong.stderr) == (2, True)


def test_older_backups_go_and_that_is_said(mine: Home) -> None:
    first = mine.answer("backup", "--keep", "1")
    second = mine.answer("backup", "--keep", "1")
    assert second["removed"] == [first["path"]]
    assert [one["path"] for one in mine.answer("backup", "--list")] == [second["path"]]


def test_a_backup_is_restored_in_place_and_elsewhere(mine: Home) -> None:
    made = mine.answer("backup")["path"]
    result = mine.run("restore", made)
    assert result.exit_code == 0
    told, kept = unwrapped(result.stdout).splitlines()
    assert told.startswith(f"{mine.path} is as it was on ")
    assert kept.startswith(f"the previous files are kept in {mine.path / 'backups' / 'aside-'}")
    other = Home(mine.path.parent / "other")
    assert other.answer("restore", made)["aside"] is None
    assert other.answer("status")["counts"] == mine.answer("status")["counts"]


def test_a_backup_and_an_export_that_are_taken_for_each_other_are_told_apart(mine: Home, tmp_path: Path) -> None:
    backup, export = mine.answer("backup")["path"], str(tmp_path / "memory.zip")
    assert mine.run("export", export).exit_code == 0
    refused = mine.run("import", backup)
    assert (refused.exit_code, "is a backup: use `mcp-memory restore`" in refused.stderr) == (1, True)
    for command in (["restore", export], ["backup", "--verify", export]):
        refused = mine.run(*command)
        assert refused.exit_code == 2
        assert "it has no memory.db. `mcp-memory import` reads exports" in refused.stderr


def test_without_a_memory_each_says_so(mine: Home) -> None:
    nowhere = Home(mine.path.parent / "nowhere")
    for command in (["backup"], ["rebuild"], ["compact"], ["doctor", "--repair"]):
        result = nowhere.run(*command)
        assert (result.exit_code, result.stdout) == (1, "")
        assert str(nowhere.path) in result.stderr
    result = nowhere.run("restore", "there-is-none.zip")
    assert (result.exit_code, "There is no file" in result.stderr) == (2, True)
    assert nowhere.run("backup", "--list").stdout == "There are no backups. `mcp-memory backup` makes one.\n"


def test_a_rebuilding_says_what_it_adds_and_replaces_the_database(mine: Home) -> None:
    checked = mine.run("rebuild", "--check")
    assert (checked.exit_code, "has all that the files have" in checked.stdout) == (0, True)
    (mine.path / "memory.db").unlink()
    answer = json.loads(mine.run("rebuild", "--json").stdout)
    assert (answer["needed"], answer["is_swapped"], answer["notes"]) == (True, True, [])
    assert answer["added"]["turns"] == 8
    assert mine.answer("doctor")["ok"]


def test_compacting_says_what_it_gave_back(mine: Home) -> None:
    answer = mine.answer("compact")
    assert answer["after"] <= answer["before"]
    assert (answer["deleted"], answer["postponed"]) == ([], None)
    assert " became " in mine.run("compact").stdout
    assert mine.answer("doctor")["ok"]


def test_doctor_mends_what_it_finds_when_asked_to(mine: Home) -> None:
    journal = next((mine.path / "spaces/default/conversations").iterdir())
    words = journal.read_bytes()
    journal.write_bytes(words.replace(b'"role":"user"', b'"role":"tool"', 1))
    assert mine.run("doctor").exit_code == 1
    result = mine.run("doctor", "--repair")
    assert result.exit_code == 0
    assert f"mended default: conversations/{journal.name} is written from the database." in result.stdout
    assert mine.answer("doctor", "--repair")["mended"] == ["Nothing needed repair."]
    assert journal.read_bytes() == words


def test_what_a_backup_lacks_is_an_exit_code_of_making_proving_and_restoring_it(mine: Home) -> None:
    result = next((mine.path / "spaces").glob("*/refs/*.md"))
    result.unlink()
    said = [mine.run("backup")]
    made = str(next((mine.path / "backups").glob("*.zip")))
    for told in (*said, mine.run("backup", "--verify", made), mine.run("restore", made)):
        assert told.exit_code == 1
        assert f"not included, because the memory had lost it: default: refs/{result.name} is missing." in told.stdout


def test_what_a_lost_log_of_writes_had_is_named_and_added_by_a_repair(mine: Home) -> None:
    early = (mine.path / "memory.db").read_bytes()

    in_memory(mine.path, lambda memory: memory.remember("The ferry to Torvik sails at noon.", typed=True))
    (mine.path / "memory.db").write_bytes(early)
    for ending in ("-wal", "-shm"):
        (mine.path / f"memory.db{ending}").unlink(missing_ok=True)
    assert "beyond-1" in mine.run("status").stdout
    assert mine.run("doctor").exit_code == 1
    assert "1 turns, 1 statements added" in " ".join(mine.run("doctor", "--repair").stdout.split())
    assert "The ferry to Torvik sails at noon." in mine.run("search", "ferry").stdout
    assert mine.answer("doctor")["ok"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="There is no pseudo-terminal.")
@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (["backup"], ("copying results", "proving")),
        (["export", "{}"], ("reading rows",)),
        (["rebuild"], ("rebuilding",)),
    ],
)
def test_long_work_has_a_bar_on_a_terminal_only(command: list[str], shown: tuple[str, ...], mine: Home) -> None:
    import pty

    words = [word.format(mine.path.parent / "out.zip") for word in command]
    ours, theirs = pty.openpty()
    program = [sys.executable, "-m", "mcp_memory", "--home", str(mine.path), *words]
    done = subprocess.run(program, stdout=subprocess.PIPE, stderr=theirs, timeout=60, check=True)
    os.close(theirs)
    bars = os.read(ours, 65_536).decode()
    os.close(ours)
    assert all(doing in bars for doing in shown)
    assert "100%" in bars
    assert not any(doing in done.stdout.decode() for doing in shown)
