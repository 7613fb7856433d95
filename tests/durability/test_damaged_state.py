"""Small files of a home that are damaged, cut short, binary, of a wrong type or replaced: noticed, or ignored safely."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from mcp_memory.core.errors import McpMemoryError
from mcp_memory.core.process_registry import all_processes, register
from mcp_memory.core.types import NewTurn
from mcp_memory.integrations.hooks.daemon_files import DaemonEndpoint, daemon_files, endpoint_files, pending_logs
from mcp_memory.service.memory import open_memory
from mcp_memory.store.sqlite.home import identity, identity_problem
from mcp_memory.store.sqlite.store import open_store

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pipes, devices and links")

STATE_FILES = [
    "identity.json",
    "run/1-00.json",
    "run/gate",
    "hooks/0123.json",
    "hooks/waiting/0.json",
    "run/copies.lock",
]


def content(data: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(data)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "empty": content(b""),
    "cut short": content(b'{"home": "ab'),
    "binary": content(bytes(range(256)) * 8),
    "a list": content(b"[]\n"),
    "a number": content(b"1e999\n"),
    "nested deeply": content(b"[" * 8_000),
    "wrong types": content(b'{"home": [], "key": 7, "pid": {}, "what": [], "port": "x", "since": "2026-01-01"}\n'),
    "a folder": lambda path: path.mkdir(),
    "a link to nothing": lambda path: path.symlink_to("nowhere"),
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a pipe": os.mkfifo,
}
every_damage = pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("state") / "home"

    async def fill() -> None:
        async with open_memory(home=home, embedder="none") as memory:
            await memory.record_turns([NewTurn(role="user", content="The pump leaks oil.")])

    anyio.run(fill)
    return home


def damaged(filled: Path, home: Path, file: str, damage: Callable[[Path], object]) -> Path:
    shutil.copytree(filled, home)
    path = home / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    damage(path)
    return path


async def use(home: Path) -> None:
    async with open_memory(home=home, embedder="none") as memory:
        await memory.record_turns([NewTurn(role="user", content="It was mended.")])
        assert len((await memory.conversation_search("pump")).hits) == 1
        await memory.status()


@every_damage
@pytest.mark.parametrize("file", STATE_FILES)
def test_a_damaged_state_file_ends_in_no_traceback(
    filled: Path, home: Path, file: str, damage: Callable[[Path], object]
) -> None:
    damaged(filled, home, file, damage)
    with suppress(McpMemoryError):  # noticed, with the next step
        anyio.run(use, home)
    all_processes(home)
    place = daemon_files(home, None)
    assert place is not None
    assert pending_logs(place) == []
    assert [DaemonEndpoint.read(found) for found in endpoint_files(home)] in ([], [None])


@every_damage
def test_a_damaged_identity_is_noticed_and_written_again_from_the_database(
    filled: Path, home: Path, damage: Callable[[Path], object], caplog: pytest.LogCaptureFixture
) -> None:
    path = damaged(filled, home, "identity.json", damage)
    assert identity_problem(home) == "identity.json is damaged"
    open_store(home).close()
    assert any("identity.json is damaged" in record.getMessage() for record in caplog.records)
    assert identity(home) == identity(filled)
    assert identity_problem(home) is None
    assert path.is_file()
    assert not path.is_symlink()


def test_a_folder_with_files_in_place_of_the_identity_stays_and_is_named(
    filled: Path, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = damaged(filled, home, "identity.json", lambda path: path.mkdir())
    (path / "notes.txt").write_text("of another program")
    open_store(home).close()
    assert any("is damaged and cannot be written" in record.getMessage() for record in caplog.records)
    assert (path / "notes.txt").read_text() == "of another program"
    assert identity_problem(home) == "identity.json is damaged"


def test_the_identity_of_another_memory_is_noticed(filled: Path, home: Path) -> None:
    path = damaged(filled, home, "identity.json", content(json.dumps({"home": "ab", "key": "00" * 32}).encode()))
    assert identity_problem(home) == "identity.json is of another memory"
    open_store(home).close()
    assert path.read_bytes() == (filled / "identity.json").read_bytes()


def test_a_living_process_with_an_odd_note_is_listed(home: Path) -> None:
    note = register(home, what="serve")
    assert note is not None
    (path,) = (home / "run").glob("*-*.json")
    for data in (b"[" * 8_000, b'{"pid": 1e999, "what": ""}\n', b'{"pid": 7, "what": "x", "since": "2026-01-01"}\n'):
        path.write_bytes(data)
        assert len(all_processes(home)) == 1
    note.close()
