"""A home that can only be read is read: searched, recalled, shown, examined; what would write says what to do."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import apsw
import pytest

from mcp_memory.core.errors import StoreUnavailable
from mcp_memory.core.types import NewTurn
from mcp_memory.service.memory import open_memory
from mcp_memory.store.sqlite.store import open_store
from tests.durability.filling import RESULT, SAID, capture, fill, said

pytestmark = pytest.mark.skipif(os.name == "nt", reason="modes")


@contextmanager
def only_readable(home: Path) -> Iterator[None]:
    """Take the right to write away; from root, who has it whatever modes say, by mounting the home on itself."""
    if os.geteuid() == 0:
        with _mounted(home):
            yield
        return
    paths = [home, *home.rglob("*")]
    modes = {path: path.stat().st_mode for path in paths}
    for path in reversed(paths):
        path.chmod(modes[path] & ~0o222)
    try:
        yield
    finally:
        for path in paths:
            path.chmod(modes[path])


@contextmanager
def _mounted(home: Path) -> Iterator[None]:
    if subprocess.run(["mount", "--bind", home, home], capture_output=True, check=False).returncode:
        pytest.skip("root may write everywhere, and may not mount here")
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", home], check=True)
        yield
    finally:
        subprocess.run(["umount", home], check=True)


@pytest.fixture(params=["closed", "killed"])
def home_to_read(request: pytest.FixtureRequest, home: Path, tmp_path: Path) -> Path:
    """A home that was closed well, and one whose last process was killed: its latest words are in the WAL alone."""
    anyio.run(fill, home)
    if request.param == "closed":
        return home
    store = open_store(home)
    capture(store, "Said last.")
    shutil.copytree(home, tmp_path / "killed")
    store.close()
    (tmp_path / "killed" / "memory.db-shm").unlink()
    return tmp_path / "killed"


async def test_it_is_searched_recalled_shown_and_examined(home_to_read: Path) -> None:
    with only_readable(home_to_read):
        async with open_memory(home=home_to_read) as memory:
            found = await memory.conversation_search("bees")
            bundle = await memory.recall("Where does the user live?")
            (canvas,) = await memory.canvases()
            opened = await memory.expand_node(f"{canvas.number:03}-N1")
            _, data = await memory.ref((await memory.records())[0].ref or "")
            page = await memory.read_persona()
            status = await memory.status()
            problems = await memory.problems()
    assert found.hits[0].turn.content == SAID[0]
    assert "Porto" in bundle.stable + bundle.dynamic
    assert "Porto" in page.text
    assert ("line 0" in opened.text, data) == (True, RESULT)
    assert status["counts"]["turns"] >= 2
    assert problems == []


async def test_what_would_write_says_why_not_and_what_to_do(home_to_read: Path) -> None:
    with only_readable(home_to_read):
        async with open_memory(home=home_to_read) as memory:
            with pytest.raises(StoreUnavailable, match=r"can only be read.*Nothing was written.*MCP_MEMORY_HOME"):
                await memory.record_turns([NewTurn(role="user", content="more")])
            with pytest.raises(StoreUnavailable, match="can only be read"):
                await memory.remember("The user keeps hens.", typed=True)
            with pytest.raises(StoreUnavailable, match="can only be read"):
                await memory.offload_tool_result("bash", RESULT * 2)


def test_what_was_said_before_a_kill_is_read_there_too(home_to_read: Path) -> None:
    with only_readable(home_to_read):
        store = open_store(home_to_read)
        assert said(store) == ([*SAID, "Said last."] if home_to_read.name == "killed" else SAID)
        store.close()


def test_one_that_somebody_else_writes_to_is_read_as_it_is_now(home_to_read: Path) -> None:
    with only_readable(home_to_read):
        reader = open_store(home_to_read)
        before = said(reader)
    writer = open_store(home_to_read)
    capture(writer, "Meanwhile.")
    assert said(reader) == [*before, "Meanwhile."]
    writer.close()
    assert said(reader) == [*before, "Meanwhile."]
    reader.close()


def test_one_of_an_older_schema_says_that_it_has_to_be_copied(home: Path) -> None:
    open_store(home).close()
    con = apsw.Connection(str(home / "memory.db"))
    con.execute("DELETE FROM migration")
    con.close()
    with only_readable(home), pytest.raises(StoreUnavailable, match="Copy the home to a folder that you can write to"):
        open_store(home)
