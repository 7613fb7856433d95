"""A home that is deleted or replaced while it is open: nothing of it is shown, and nothing is written back."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from mcp import Client
from mcp.types import CallToolResult, TextContent

from mcp_memory.core.config import Settings, load_settings
from mcp_memory.core.errors import HomeGone
from mcp_memory.core.process_registry import sole_holder, waiting_lock
from mcp_memory.core.regular_files import OpenedFolder
from mcp_memory.core.types import NewTurn
from mcp_memory.integrations.proxy.kept_results import ProxiedCall, ResultKeeper
from mcp_memory.server.mcp_server import MemoryServer
from mcp_memory.service.memory import open_memory
from mcp_memory.store import files
from mcp_memory.store.sqlite.store import open_store
from tests.ui.browsing import browsing

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="open files cannot be deleted there")

LONG = "\n".join(f"{n} GET /item/{n} {200 if n % 7 else 500}" for n in range(400))


def delete(home: Path) -> None:
    shutil.rmtree(home)


def move_away(home: Path) -> None:
    home.rename(home.with_name("moved"))


def replace_by_empty(home: Path) -> None:
    shutil.rmtree(home)
    home.mkdir()


def replace_by_another(home: Path) -> None:
    home.rename(home.with_name("moved"))
    open_store(home).close()


def replace_by_copy(home: Path) -> None:
    shutil.copytree(home, home.with_name("copy"))
    shutil.rmtree(home)
    home.with_name("copy").rename(home)


def replace_database(home: Path) -> None:
    """As a program would that restores a copy of the one file and knows of no other process."""
    shutil.copy(home / "memory.db", home / "copy.db")
    (home / "copy.db").replace(home / "memory.db")


HOW = [delete, move_away, replace_by_empty, replace_by_another, replace_by_copy, replace_database]
every_way = pytest.mark.parametrize("change", HOW, ids=lambda change: change.__name__)


@pytest.fixture
def settings(home: Path) -> Settings:
    return load_settings({}, home=home, embedder="none")


def contents(home: Path) -> dict[str, bytes] | None:
    """Return all files of a home but the notes of processes; None where there is no such folder."""
    if not home.exists():
        return None
    paths = [path for path in sorted(home.rglob("*")) if path.is_file()]
    return {path.relative_to(home).as_posix(): path.read_bytes() for path in paths if path.parent.name != "run"}


def said(result: CallToolResult) -> str:
    return "".join(part.text for part in result.content if isinstance(part, TextContent))


@every_way
async def test_a_server_says_that_its_home_is_gone_and_writes_nothing_back(
    settings: Settings, home: Path, change: Callable[[Path], None]
) -> None:
    server = MemoryServer(settings)
    async with server.hold_open(), Client(server) as client:
        turn = {"role": "user", "content": "The pump leaks oil."}
        assert not (await client.call_tool("record_turns", {"turns": [turn]})).is_error
        await anyio.to_thread.run_sync(change, home)
        before = await anyio.to_thread.run_sync(contents, home)
        for tool, arguments in (
            ("recall", {"query": "What leaks?"}),
            ("record_turns", {"turns": [{"role": "user", "content": "It still leaks."}]}),
            ("remember", {"text": "The user has a pump."}),
            ("offload_tool_result", {"tool_name": "log", "result": LONG}),
            ("conversation_search", {"query": "pump"}),
        ):
            answer = await client.call_tool(tool, arguments)
            assert answer.is_error, (tool, said(answer))
            assert f"The memory's folder {home} is gone or was replaced." in said(answer), tool
            assert "Restart the client" in said(answer)
    assert await anyio.to_thread.run_sync(contents, home) == before


# Where the database alone is replaced, a write that is under way ends in its log, which has the same path.
@pytest.mark.parametrize("change", HOW[:-1], ids=lambda change: change.__name__)
async def test_the_end_of_a_process_writes_nothing_into_a_home_that_was_removed(
    home: Path, change: Callable[[Path], None]
) -> None:
    """What it has not yet written: vectors, the log of recalls, its note."""
    async with open_memory(home=home) as memory:
        await memory.record_turns([NewTurn(role="user", content="The pump leaks oil.")])
        await memory.recall("What leaks?")
        await anyio.to_thread.run_sync(change, home)
        before = await anyio.to_thread.run_sync(contents, home)
    assert await anyio.to_thread.run_sync(contents, home) == before


async def test_a_home_that_comes_back_is_used_again(settings: Settings, home: Path) -> None:
    async with open_memory(settings) as memory:
        await memory.record_turns([NewTurn(role="user", content="The pump leaks oil.")])
        home.rename(home.with_name("moved"))
        with pytest.raises(HomeGone):
            await memory.recall("What leaks?")
        home.with_name("moved").rename(home)
        assert (await memory.conversation_search("pump")).hits


async def test_a_transaction_that_is_under_way_when_its_home_is_deleted_makes_no_folder(
    settings: Settings, home: Path
) -> None:
    def write_after_removal(store_home: Path) -> None:
        store = open_store(store_home)
        try:
            with pytest.raises(HomeGone):
                store.write("default", lambda tx: (shutil.rmtree(store_home), tx.files.write("a/b.md", b"text")))
        finally:
            store.close()

    await anyio.to_thread.run_sync(write_after_removal, home)
    assert not home.exists()


async def test_a_proxy_passes_results_on_when_the_home_is_gone(settings: Settings, home: Path) -> None:
    keeper = ResultKeeper(lambda: settings, over=100, session=None, folder="work")
    call = ProxiedCall("log", {}, 1, "client")
    async with keeper.hold_open():
        assert await keeper.keep(call, LONG, "expand", late=False) is not None
        await anyio.to_thread.run_sync(shutil.rmtree, home)
        assert await keeper.keep(call, LONG, "expand", late=False) is None
    assert not home.exists()


async def test_the_pages_show_nothing_of_a_home_that_is_gone(home: Path) -> None:
    async with browsing(home) as browser:
        await browser.memory.record_turns([NewTurn(role="user", content="The pump leaks oil.")])
        assert "pump" in (await browser.open("/search?q=pump")).text
        await anyio.to_thread.run_sync(shutil.rmtree, home)
        page = (await browser.open("/search?q=oil")).text
        assert "is gone or was replaced" in page
        assert "The pump leaks" not in page
    assert not home.exists()


def test_a_lock_makes_no_home(home: Path) -> None:
    with sole_holder(home, "client") as free:
        assert free
    assert not home.exists()


@pytest.mark.parametrize("folders", [(), ("run",)])
def test_a_lock_of_a_home_makes_no_file_in_the_home_that_replaced_it(home: Path, folders: tuple[str, ...]) -> None:
    (home / "run").mkdir(parents=True)
    opened = OpenedFolder(home)
    with waiting_lock(home, "copies", opened=opened):
        assert (home / "run" / "copies.lock").exists()
    shutil.rmtree(home)
    home.mkdir()
    for name in folders:
        (home / name).mkdir()
    with waiting_lock(home, "copies", opened=opened), sole_holder(home / "other", "client"):
        assert sorted(path.name for path in home.rglob("*")) == list(folders)
    opened.close()


def test_a_copy_that_is_written_after_its_home_was_deleted_makes_no_folder(tmp_path: Path) -> None:
    spaces = tmp_path / "home" / "spaces"
    with pytest.raises(FileNotFoundError):
        files.write_whole(spaces / "default" / "conversations" / "2026-05-07.jsonl", b"{}", root=spaces)
    assert not any(tmp_path.iterdir())
    spaces.mkdir(parents=True)
    files.write_whole(spaces / "default" / "conversations" / "2026-05-07.jsonl", b"{}", root=spaces)
    assert [path.name for path in spaces.rglob("*.jsonl")] == ["2026-05-07.jsonl"]
