"""Who holds a home is known while they live, and no longer."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from mcp import Client, StdioServerParameters
from mcp.types import Implementation

from mcp_memory import __version__
from mcp_memory.core import process_registry
from mcp_memory.core.errors import StoreUnavailable
from mcp_memory.core.process_registry import HomeProcess, all_processes, exclusive, other_processes, register
from mcp_memory.service.memory import open_memory

HOLDS = """
import sys
from pathlib import Path
from typing import Any
from mcp_memory.core.process_registry import register
held = register(Path(sys.argv[1]), what="serve stdio", space="work")
held.add_client("an editor")
print("there", flush=True)
sys.stdin.read()
held.close()
"""
HAS_IT_ALONE = """
import sys
from pathlib import Path
from typing import Any
from mcp_memory.core.process_registry import exclusive
with exclusive(Path(sys.argv[1]), "restore"):
    print("there", flush=True)
    sys.stdin.read()
"""


@contextmanager
def another(code: str, home: Path) -> Generator[subprocess.Popen[str]]:
    """A process that has run `code` up to where it waits for its input to end."""
    command = [sys.executable, "-c", code, str(home)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "there\n"
        try:
            yield process
        finally:
            process.kill()


def ended(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(timeout=20) == 0


def test_a_process_that_holds_a_home_is_seen_with_what_it_said_of_itself(tmp_path: Path) -> None:
    with another(HOLDS, tmp_path) as process:
        [there] = other_processes(tmp_path)
        assert (there.pid, there.what, there.space) == (process.pid, "serve stdio", "work")
        assert (there.version, there.clients) == (__version__, ("an editor",))
        assert there.since is not None
        assert str(there) == f"serve stdio for an editor (process {process.pid})"
        ended(process)
    assert other_processes(tmp_path) == []


def test_one_that_was_killed_is_not_there_and_its_note_is_cleared_away(tmp_path: Path) -> None:
    with another(HOLDS, tmp_path) as process:
        process.kill()
        process.wait(timeout=20)
        assert len(list((tmp_path / "run").glob("*.json"))) == 1
        assert other_processes(tmp_path) == []
    assert list((tmp_path / "run").glob("*.json")) == []


def test_this_process_is_among_everyone_and_not_among_the_others(tmp_path: Path) -> None:
    first, second = register(tmp_path, what="one"), register(tmp_path, what="two")
    assert first
    assert second
    assert sorted(one.what for one in all_processes(tmp_path)) == ["one", "two"]
    assert {one.pid for one in all_processes(tmp_path)} == {os.getpid()}
    assert other_processes(tmp_path) == []
    first.close()
    first.close()
    assert [one.what for one in all_processes(tmp_path)] == ["two"]
    second.close()
    assert all_processes(tmp_path) == []


def test_a_note_left_by_a_process_with_our_number_does_not_stand_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / f"{os.getpid()}-0.json").write_text("{torn")
    held = register(tmp_path, what="library")
    assert held
    assert [one.what for one in all_processes(tmp_path)] == ["library"]
    held.close()


COMES_AND_GOES = """
import os, sys
from pathlib import Path
from mcp_memory.core.process_registry import all_processes, register
home, unseen = Path(sys.argv[1]), 0
for number in range(60):
    held = register(home, what=f"{os.getpid()} {number}")
    unseen += not any(one.what == f"{os.getpid()} {number}" for one in all_processes(home))
    held.close()
print(unseen)
"""


def test_many_that_come_and_go_at_once_are_each_seen_while_they_are_there(tmp_path: Path) -> None:
    processes = [
        subprocess.Popen([sys.executable, "-c", COMES_AND_GOES, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    assert [process.communicate(timeout=60)[0] for process in processes] == ["0\n"] * 4
    assert all_processes(tmp_path) == []


def test_the_latest_eight_clients_are_named_each_once_and_on_one_line(tmp_path: Path) -> None:
    held = register(tmp_path, what="serve http")
    assert held
    for number in range(10):
        held.add_client(f"client\n{number}")
        held.add_client("client 9")
    [there] = all_processes(tmp_path)
    assert len(there.clients) == 8
    assert set(there.clients) <= {f"client {number}" for number in range(10)}
    held.close()
    held.add_client("too late")


def test_who_has_a_home_alone_keeps_all_out_until_it_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_registry, "_WAITS_S", 0.05)
    with another(HAS_IT_ALONE, tmp_path) as process:
        said = rf"restore \(process {process.pid}\) has exclusive access to the home"
        with pytest.raises(StoreUnavailable, match=said):
            register(tmp_path, what="library")
        with pytest.raises(StoreUnavailable, match="exclusive access"), exclusive(tmp_path, "purge"):
            pass
        ended(process)
    held = register(tmp_path, what="library")
    assert held
    held.close()


def test_who_was_killed_while_it_had_the_home_alone_keeps_nobody_out(tmp_path: Path) -> None:
    with another(HAS_IT_ALONE, tmp_path) as process:
        process.kill()
        process.wait(timeout=20)
    with exclusive(tmp_path, "purge"):
        pass


def test_nobody_has_a_home_alone_that_others_hold(tmp_path: Path) -> None:
    with another(HOLDS, tmp_path) as process:
        with (
            pytest.raises(StoreUnavailable, match=rf"is in use by serve stdio for an editor \(process {process.pid}\)"),
            exclusive(tmp_path, "restore"),
        ):
            pass
        ended(process)
    with exclusive(tmp_path, "restore"):
        pass


def seen_from_within(home: Path, **options: Any) -> list[HomeProcess]:
    """Who is there while this process has a memory of the home open."""

    async def visit() -> list[HomeProcess]:
        async with open_memory(home=home, embedder="none", **options):
            return await anyio.to_thread.run_sync(all_processes, home)

    return anyio.run(visit)


def test_who_has_a_home_alone_may_open_it(tmp_path: Path) -> None:
    with exclusive(tmp_path, "rebuild"):
        assert [one.what for one in seen_from_within(tmp_path, what="rebuild")] == ["rebuild"]


def test_an_open_memory_is_noted_until_it_is_closed(tmp_path: Path) -> None:
    [there] = seen_from_within(tmp_path, space="work")
    assert (there.pid, there.what, there.space) == (os.getpid(), "library", "work")
    assert all_processes(tmp_path) == []


def test_a_home_that_cannot_be_opened_is_not_held(tmp_path: Path) -> None:
    (tmp_path / "memory.db").write_bytes(b"this is no database" * 100)
    with pytest.raises(StoreUnavailable, match="damaged"):
        seen_from_within(tmp_path)
    assert all_processes(tmp_path) == []


@pytest.mark.skipif(os.name == "nt" or not os.getuid(), reason="rights do not bind this user")
def test_nothing_is_noted_where_nothing_can_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        assert register(tmp_path, what="library") is None
        with pytest.raises(StoreUnavailable, match="cannot be locked exclusively"), exclusive(tmp_path, "purge"):
            pass
    finally:
        tmp_path.chmod(0o700)


def test_what_cannot_be_a_home_is_left_for_the_store_to_refuse(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert register(tmp_path / "file", what="library") is None


@pytest.mark.slow
async def test_a_server_says_how_it_serves_and_whom(tmp_path: Path) -> None:
    environment = {**os.environ, "MCP_MEMORY_HOME": str(tmp_path), "MCP_MEMORY_EMBEDDER": "none"}
    server = StdioServerParameters(command=sys.executable, args=["-m", "mcp_memory", "serve"], env=environment)
    with anyio.fail_after(30):
        async with Client(server, mode="legacy", client_info=Implementation(name="an editor", version="1")) as client:
            await client.call_tool("recall", {"query": ""})
            there: list[HomeProcess] = []
            while not (there and there[0].clients):  # it is written down beside the answer
                there = await anyio.to_thread.run_sync(other_processes, tmp_path)
            assert [(one.what, one.clients) for one in there] == [("serve stdio", ("an editor",))]
