"""Exports that are started on a page: their progress, their file, and what is left of them."""

from __future__ import annotations

import asyncio
import os
import zipfile
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from mcp_memory.core.types import NewTurn
from mcp_memory.service.memory import Memory
from mcp_memory.service.portable.reading import open_export
from mcp_memory.ui.exports import Exports, ExportState
from mcp_memory.ui.sessions import Reader
from tests.ui.browsing import Browser, browsing

pytestmark = [pytest.mark.anyio, pytest.mark.files]

WAIT = 30


class Watched(Exports):
    """Exports that remember their states, and can be waited for."""

    def __init__(self) -> None:
        super().__init__(lambda: self.seen.append(dict(self._states)))
        self.seen = list[dict[str, ExportState]]()

    async def made(self, memory: Memory) -> ExportState:
        self.start(memory)
        with anyio.fail_after(WAIT):
            await asyncio.gather(*self._tasks.values())
        return await self.state(memory)


@pytest.fixture
async def memory(memory: Memory) -> Memory:
    for quay in range(20):  # turns would be judged in the background, which changes their rows
        await memory.remember(f"Boat {quay} leaves from quay {quay}.", typed=True)
    return memory


async def paths(home: Path) -> list[str]:
    folder = home / "exports"
    return await anyio.to_thread.run_sync(
        lambda: sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    )


async def test_an_export_tells_how_far_it_is_and_is_that_of_the_command(memory: Memory, home: Path) -> None:
    exports = Watched()
    file = (await exports.made(memory)).file
    *shares, last = [seen["default"] for seen in exports.seen]
    assert [*dict.fromkeys(state.doing for state in shares)] == ["reading rows", "packing"]
    assert all(0 < state.done <= state.total for state in shares)
    assert last == ExportState()
    assert file is not None
    await memory.export(home / "by-command.zip")
    assert await anyio.Path(file.path).read_bytes() == await anyio.Path(home / "by-command.zip").read_bytes()
    assert file.bytes == (await anyio.Path(file.path).stat()).st_size


async def test_nothing_of_it_is_outside_of_the_homes_folder(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    assert (await Watched().made(memory)).error is None


async def test_a_new_export_replaces_the_last_one_of_its_space_alone(memory: Memory, home: Path) -> None:
    other, exports = memory.in_space("other"), Watched()
    await other.record_turns([NewTurn(role="user", content="Hello.")], session="s")
    folder = anyio.Path(home / "exports/default")
    await folder.mkdir(parents=True)
    await (folder / "2026-01-01-000000.zip").write_bytes(b"old")
    await exports.made(other)
    await exports.made(memory)
    assert [name.partition("/")[0] for name in await paths(home)] == ["default", "other"]


async def test_exports_and_remains_older_than_a_day_are_deleted(memory: Memory, home: Path) -> None:
    exports = Watched()
    await exports.made(memory)
    old = (datetime.now(UTC) - timedelta(days=1, minutes=1)).timestamp()
    (name,) = await paths(home)
    left = anyio.Path(home / "exports/default/.mcp-memory-export-x")
    await left.mkdir()
    await (left / "turns.jsonl").write_text("{}")
    for path in (home / "exports" / name, home / "exports/default/.mcp-memory-export-x"):
        await anyio.to_thread.run_sync(os.utime, path, (old, old))
    assert (await exports.state(memory)).file is None
    assert await paths(home) == []


async def test_a_file_of_an_earlier_process_can_be_downloaded(memory: Memory) -> None:
    made = await Watched().made(memory)
    assert (await Watched().state(memory)).file == made.file


async def test_what_cannot_be_written_is_said(memory: Memory, home: Path) -> None:
    await anyio.Path(home / "exports").write_text("in the way")
    state = await Watched().made(memory)
    assert state.error is not None
    assert "cannot be written" in state.error
    await anyio.Path(home / "exports").unlink()
    assert (await Watched().made(memory)).error is None


async def test_it_ends_with_the_program_and_leaves_nothing(memory: Memory, home: Path) -> None:
    exports = Watched()
    exports.stop()
    await exports.made(memory)
    assert await paths(home) == []


# --- on the page ------------------------------------------------------------------------------------


@pytest.fixture
async def browser(home: Path) -> AsyncGenerator[Browser]:
    async with browsing(home) as opened:
        await opened.memory.record_turns([NewTurn(role="user", content="The boat leaves.")], session="s")
        yield opened


async def test_the_owner_makes_an_export_and_downloads_it(browser: Browser, tmp_path: Path) -> None:
    assert "Make an export" in (await browser.open("/home")).text
    assert (await browser.open("/download/export")).status_code == 404
    assert (await browser.do("export")).headers["location"].endswith("/default/home")
    with anyio.fail_after(WAIT):
        while "Download the export" not in (page := (await browser.open("/home")).text):
            assert "Making the export" in page
    answer = await browser.open("/download/export")
    assert answer.headers["content-type"] == "application/zip"
    assert answer.headers["content-disposition"].startswith('attachment; filename="mcp-memory-default-2')
    assert answer.headers["content-security-policy"].startswith("sandbox")
    assert "README.md" in zipfile.ZipFile(BytesIO(answer.content)).namelist()
    file = tmp_path / "e.zip"
    await anyio.Path(file).write_bytes(answer.content)

    def turns() -> int:
        with open_export(file) as parcel:
            return parcel.spaces["default"]["turns"]

    assert await anyio.to_thread.run_sync(turns) == 1


async def test_nobody_else_does(home: Path) -> None:
    async with browsing(home, Reader(space="default")) as browser:
        await browser.memory.record_turns([NewTurn(role="user", content="The boat leaves.")], session="s")
        assert "Make an export" not in (await browser.open("/home")).text
        assert (await browser.do("export")).status_code == 403
        assert (await browser.open("/download/export")).status_code == 404


async def test_words_that_are_erased_for_good_are_in_no_export_either(browser: Browser, home: Path) -> None:
    await browser.do("export")
    with anyio.fail_after(WAIT):
        while "Download the export" not in (await browser.open("/home")).text:
            pass
    forgotten = await browser.memory.forget(["t1"], dry_run=False)
    await browser.do("purge", word="PURGE", tombstones=str(forgotten.tombstone))
    assert await paths(home) == []
