"""What is stored is its user's alone to read, whatever the umask is: every file 0600, every folder 0700."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest

from mcp_memory.core.private_files import make_folder, open_private, touch
from mcp_memory.core.types import NewTurn
from mcp_memory.integrations.hooks.daemon_files import DaemonEndpoint, PendingLog, daemon_files, make_folders
from mcp_memory.service.memory import open_memory
from mcp_memory.service.upkeep.rebuild import rebuild
from mcp_memory.service.upkeep.repair import repair
from mcp_memory.service.upkeep.restore import restore
from mcp_memory.store.sqlite.home import exposed_paths
from mcp_memory.store.sqlite.store import open_store

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
LONG = "\n".join(f"{n} GET /item/{n} {200 if n % 7 else 500}" for n in range(400))

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="modes")


@pytest.fixture(params=[0o000, 0o022, 0o277], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def wrong_modes(folder: Path) -> dict[str, str]:
    """Return what is not 0600 or, of folders, 0700."""
    modes = {path: path.lstat().st_mode for path in (folder, *folder.rglob("*"))}
    return {
        str(path.relative_to(folder)): stat.filemode(mode)
        for path, mode in modes.items()
        if stat.S_IMODE(mode) != (0o700 if stat.S_ISDIR(mode) else 0o600)
    }


async def filled(home: Path) -> None:
    async with open_memory(home=home, embedder="none") as memory:
        await memory.record_turns([NewTurn(role="user", content="The pump leaks oil.")])
        await memory.remember("The user has a pump.")
        await memory.offload_tool_result("log", LONG, task="Find the errors")
        await memory.back_up()
        assert wrong_modes(home) == {}


@pytest.mark.usefixtures("umask")
async def test_all_that_a_memory_writes_is_private(tmp_path: Path) -> None:
    home = tmp_path / "above" / "home"
    await filled(home)
    assert (home.parent.stat().st_mode & 0o777, wrong_modes(home)) == (0o700, {})


def test_a_home_that_was_restored_and_rebuilt_is_private(home: Path, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        anyio.run(filled, home)
        backup = next((home / "backups").glob("*.zip"))
        restore(backup, home, now=NOW)
        rebuild(home, now=NOW)
        open_store(home).close()
        assert wrong_modes(home) == {}
    finally:
        os.umask(before)


@pytest.mark.usefixtures("umask")
def test_what_hooks_leave_is_private(home: Path) -> None:
    place = daemon_files(home, None)
    assert place is not None
    make_folders(place)
    PendingLog(log="log", client="claude-code", conversation="1").save(place)
    DaemonEndpoint(1, 2, "token", "0").write(place.file)
    touch(place.failed)
    assert wrong_modes(home) == {}


@pytest.mark.usefixtures("umask")
@pytest.mark.parametrize("mode", ["wb", "xb", "ab", "w+b", "x+b"])
def test_a_file_is_private_from_its_first_moment(tmp_path: Path, mode: str) -> None:
    with open_private(tmp_path / "file", mode) as file:  # type: ignore[arg-type]
        assert os.fstat(file.fileno()).st_mode & 0o777 == 0o600


def test_a_file_that_is_written_again_loses_the_rights_of_others(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o644)
    with open_private(path, "ab") as file:
        file.write(b" and new")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("old and new", 0o600)


def test_a_folder_that_is_shared_with_a_group_stays_shared(tmp_path: Path) -> None:
    tmp_path.chmod(0o2770)
    make_folder(tmp_path / "a" / "b")
    with open_private(tmp_path / "a" / "b" / "file", "xb"):
        pass
    modes = [path.stat().st_mode & 0o7777 for path in (tmp_path / "a", tmp_path / "a" / "b", tmp_path / "a/b/file")]
    assert modes == [0o2770, 0o2770, 0o660]


def test_a_file_in_the_place_of_a_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(OSError, match=r"exists|directory"):
            make_folder(path)


def test_a_repair_closes_what_earlier_versions_left_open(home: Path) -> None:
    anyio.run(filled, home)
    for path in (home, *home.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    open_store(home).close()
    assert [path.stat().st_mode & 0o077 for path in (home, home / "spaces", home / "memory.db")] == [0, 0, 0]
    assert any(True for _ in exposed_paths(home))
    mended = repair(home, now=NOW).mended
    assert any("closed to other users" in line for line in mended)
    assert wrong_modes(home) == {}


def test_a_folder_with_files_of_another_program_keeps_its_mode(home: Path) -> None:
    home.mkdir(mode=0o755)
    home.chmod(0o755)
    (home / "index.html").write_text("of another program")
    open_store(home).close()
    assert home.stat().st_mode & 0o777 == 0o755
    assert {path.stat().st_mode & 0o077 for path in (home / "spaces", home / "memory.db")} == {0}
