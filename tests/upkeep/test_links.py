"""A link that leads nowhere in the place of one file is named, set aside, and that file is written anew."""

from __future__ import annotations

import shutil
import sys
import zipfile
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest

from mcp_memory.cli.doctor import examine
from mcp_memory.core.types import NewTurn
from mcp_memory.service.upkeep.backup import back_up
from mcp_memory.service.upkeep.repair import repair
from mcp_memory.store.sqlite.store import open_store
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
def test_a_link_that_leads_nowhere_is_named_and_the_file_is_made_anew(home: Path, name: str, leads: str) -> None:
    file, held = spoiled(home, name, leads)
    found = [check.found for check in examine(home=str(home), embedder="none") if check.state != "ok"]
    assert any(file.name in one for one in found)
    done = repair(home, now=NOW)
    assert done.rebuilt is None
    assert [file.name in one for one in done.mended] == [True]
    assert done.left == []
    assert file.read_bytes() == held
    assert done.aside is not None
    assert (done.aside / file.relative_to(home)).is_symlink()
    assert repair(home, now=NOW).mended == []


@pytest.mark.parametrize("leads", ["nowhere", "through a file", "itself"])
@pytest.mark.parametrize("name", FILES)
def test_a_link_that_leads_nowhere_stops_no_write(home: Path, name: str, leads: str) -> None:
    spoiled(home, name, leads)
    with closing(open_store(home)) as store:
        new = [NewTurn(role="user", content="More is said.")]
        assert store.append_turns("default", "talk", new, now=CLOCK).stored
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
        assert name == "persona.md" or any(file.name in one for one in store.problems())
    with zipfile.ZipFile(made.path) as archive:
        held = b"".join(archive.read(one) for one in archive.namelist())
    assert b"another program" not in held
    repair(home, now=NOW)
    assert outside.read_bytes() == OUTSIDE


def test_a_folder_that_leads_out_of_the_home_is_not_read(home: Path, tmp_path: Path) -> None:
    refs = home / "spaces/default/refs"
    shutil.move(refs, tmp_path / "elsewhere")
    refs.symlink_to(tmp_path / "elsewhere")
    with closing(open_store(home)) as store:
        made = back_up(store, home, to=tmp_path / "backups", now=NOW)
    assert made.manifest is not None
    assert all("symbolic link" in one for one in made.manifest.lacking)
    assert len(made.manifest.lacking) > 0
