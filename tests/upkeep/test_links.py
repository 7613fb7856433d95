"""A link in the place of a file or a folder of a home.

Of a file: a link that leads nowhere is named, set aside, and the file is written anew. Of a folder: the home is refused.
"""

from __future__ import annotations

import shutil
import sys
import zipfile
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest
from click.testing import CliRunner, Result

from mcp_memory.cli.doctor import run_checks
from mcp_memory.cli.main import program
from mcp_memory.core.errors import StoreUnavailable
from mcp_memory.core.private_files import make_folder, open_private
from mcp_memory.core.regular_files import read_own, remove_own, rename_own
from mcp_memory.core.types import NewTurn
from mcp_memory.service.upkeep.backup import back_up
from mcp_memory.service.upkeep.repair import repair
from mcp_memory.service.upkeep.restore import restore
from mcp_memory.store.sql import turn_rows
from mcp_memory.store.sqlite.store import open_store
from tests.cli.conftest import unwrapped
from tests.portable.homes import CLOCK, lived_in

NOW = datetime(2026, 5, 8, 8, 0, tzinfo=UTC)
FILES = [
    "persona.md",
    "scenes/moving.md",
    "mmds/001-open-ports.mmd",
    "conversations/2026-05-07.jsonl",
    "offload-*.jsonl",
]
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a file of each kind."""
    home = tmp_path_factory.mktemp("written") / "home"

    async def live() -> None:
        async with lived_in(home):
            pass

    anyio.run(live)
    repair(home, now=NOW)  # which writes the page: no recall has since the last change
    return home


@pytest.fixture
def home(written: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(written, tmp_path / "home"))


def spoiled(home: Path, name: str, leads: str) -> tuple[Path, bytes]:
    """Put a link in the place of a file; return the file and its content."""
    (file,) = (home / "spaces/default").glob(name)
    held = file.read_bytes()
    file.unlink()
    file.symlink_to({"nowhere": home / "nothing/x", "through a file": home / "memory.db/x", "itself": file}[leads])
    return file, held


@pytest.mark.parametrize("leads", ["nowhere", "through a file", "itself"])
@pytest.mark.parametrize("name", FILES)
def test_a_link_that_leads_nowhere_is_kept_and_the_file_is_written_again(home: Path, name: str, leads: str) -> None:
    file, content = spoiled(home, name, leads)
    is_line_file = file.suffix == ".jsonl"  # written again whenever a home is opened
    found = [check.found for check in run_checks(home=str(home), embedder="none") if check.state != "ok"]
    assert any(file.name in problem for problem in found) != is_line_file
    done = repair(home, now=NOW)
    assert (done.rebuilt, done.left, file.read_bytes()) == (None, [], content)
    kept = file.with_name(f"{file.name}.beyond-1") if is_line_file else (done.aside or home) / file.relative_to(home)
    assert kept.is_symlink()
    assert repair(home, now=NOW).mended == []


@pytest.mark.parametrize("leads", ["nowhere", "through a file", "itself"])
@pytest.mark.parametrize("name", FILES)
def test_a_link_that_leads_nowhere_stops_no_write(home: Path, name: str, leads: str) -> None:
    spoiled(home, name, leads)
    with closing(open_store(home)) as store:
        new = [NewTurn(role="user", content="More is said.")]
        assert store.write("default", turn_rows.append, "talk", turn_rows.prepare(new), now=CLOCK).stored
    assert repair(home, now=NOW).left == []


OUTSIDE = b'---\nref: "r-0"\n---\nThe key of another program.'


@pytest.mark.parametrize("name", ["refs/*.md", *FILES])
def test_no_backup_or_check_reads_through_a_link(home: Path, tmp_path: Path, name: str) -> None:
    outside = tmp_path / "secret"
    outside.write_bytes(OUTSIDE)
    file = next((home / "spaces/default").glob(name))
    file.unlink()
    file.symlink_to(outside)
    with closing(open_store(home)) as store:
        made = back_up(store, home, to=tmp_path / "backups", now=NOW)
        is_named = any(file.name in problem for problem in store.problems())
        assert is_named or name == "persona.md" or not file.is_symlink()
    with zipfile.ZipFile(made.path) as archive:
        held = b"".join(archive.read(one) for one in archive.namelist())
    assert b"another program" not in held
    repair(home, now=NOW)
    assert outside.read_bytes() == OUTSIDE


# --- folders ----------------------------------------------------------------------------------------

FOLDERS = [
    *("backups", "run", "logs", "hooks", "spaces", "spaces/default", "spaces/another"),
    *(f"spaces/default/{name}" for name in ("conversations", "mmds", "refs", "scenes")),
]
COMMANDS = [
    *(["status"], ["remember", "The boat is red."], ["backup"], ["rebuild"]),
    *(["purge", "--all", "--yes", "--backups"], ["doctor"], ["doctor", "--repair"], ["search", "boat"]),
]


def run(*arguments: str, home: Path) -> Result:
    return CliRunner().invoke(program, ["--home", str(home), *arguments], prog_name="mcp-memory")


def led_out(home: Path, name: str, outside: Path) -> None:
    """Put a link out of the home in the place of a folder; its target has the same files and those of others."""
    folder = home / name
    if folder.is_dir():
        shutil.move(folder, outside)
    outside.mkdir(exist_ok=True)
    for other in ("notes.txt", "12-34.json", "2026-05-07.jsonl", "1-2-0123abcd", "001-plan.mmd", ".x.1-1.tmp"):
        (outside / other).write_text(f"={name}/notes.txt\n")
    folder.symlink_to(outside)


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path.relative_to(folder)): (path.stat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in folder.rglob("*")
    }


def assert_nothing_goes_through(home: Path, name: str, outside: Path) -> None:
    """Assert that every command is refused, names the link, and leaves alone where it leads."""
    before, backup = contents(outside), home.parent / "backups"
    for command in [*COMMANDS, ["backup", "--to", str(backup)], ["export", str(home.parent / "all.zip")]]:
        done = run(*command, home=home)
        assert contents(outside) == before, command
        assert done.exit_code != 0, command
        assert f"{name} is a symbolic link to" in unwrapped(done.output), command
    assert (home / name).is_symlink()
    assert not backup.exists()


@pytest.mark.parametrize("name", FOLDERS)
def test_nothing_is_written_or_deleted_through_a_folder_that_is_a_link(home: Path, tmp_path: Path, name: str) -> None:
    led_out(home, name, outside := tmp_path / "outside")
    assert_nothing_goes_through(home, name, outside)


@pytest.mark.parametrize("name", ["memory.db", "memory.db-wal", "memory.db-shm"])
def test_nothing_is_read_or_written_through_a_database_that_is_a_link(home: Path, tmp_path: Path, name: str) -> None:
    file, target = home / name, tmp_path / "outside" / "other.db"
    target.parent.mkdir()
    shutil.copyfile(file if file.exists() else home / "memory.db", target)
    file.unlink(missing_ok=True)
    file.symlink_to(target)
    assert_nothing_goes_through(home, name, target.parent)


def test_a_database_that_becomes_a_link_while_the_home_is_open_is_refused(home: Path, tmp_path: Path) -> None:
    with closing(open_store(home)) as store:
        shutil.move(home / "memory.db", tmp_path / "other.db")
        (home / "memory.db").symlink_to(tmp_path / "other.db")
        with pytest.raises(StoreUnavailable):
            store.write(
                "default",
                turn_rows.append,
                "talk",
                turn_rows.prepare([NewTurn(role="user", content="More is said.")]),
                now=CLOCK,
            )


@pytest.mark.parametrize("name", FOLDERS)
def test_a_home_works_again_once_a_link_is_removed(home: Path, tmp_path: Path, name: str) -> None:
    led_out(home, name, tmp_path / "outside")
    (home / name).unlink()
    assert run("status", home=home).exit_code == 0


def test_nothing_is_restored_into_a_home_with_a_folder_that_is_a_link(home: Path, tmp_path: Path) -> None:
    with closing(open_store(home)) as store:
        made = back_up(store, home, to=tmp_path / "backups", now=NOW)
    led_out(home, "spaces/default/mmds", outside := tmp_path / "outside")
    before = contents(outside)
    with pytest.raises(StoreUnavailable, match="mmds is a symbolic link to"):
        restore(made.path, home, now=NOW)
    assert contents(outside) == before


def test_a_link_to_a_home_is_a_home(home: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(home)
    for command in (["status"], ["remember", "The boat is red."], ["backup"], ["rebuild"], ["doctor", "--repair"]):
        done = run(*command, home=tmp_path / "link")
        assert done.exit_code == 0, done.output
    assert "The boat is red." in run("search", "red boat", home=home).stdout


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_that_becomes_a_link_while_the_home_is_open_is_refused(home: Path, tmp_path: Path, name: str) -> None:
    led_out(home, name, outside := tmp_path / "outside")
    before, inside = contents(outside), home / name / "notes.txt"
    for attempt in (remove_own, read_own, make_folder):
        with pytest.raises(OSError, match="its folder is a symbolic link"):
            attempt(inside)
    with pytest.raises(OSError, match="its folder is a symbolic link"):
        open_private(inside, "wb")
    with pytest.raises(OSError, match="its folder is a symbolic link"):
        rename_own(home / "memory.db", inside)
    with pytest.raises(OSError, match="its folder is a symbolic link"):
        rename_own(inside, home / "notes.txt")
    assert contents(outside) == before
