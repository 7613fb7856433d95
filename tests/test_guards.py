"""The guards of conftest hold: without them the other tests prove less than they say."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import anyio
import pytest
from blockbuster import BlockingError

from mcp_memory.core.config import load_settings


def test_a_connection_that_leaves_the_machine_is_refused() -> None:
    with socket.socket() as outside, pytest.raises(PermissionError, match="only loopback"):
        outside.connect(("192.0.2.1", 80))


def test_a_name_of_another_machine_is_not_looked_up() -> None:
    with pytest.raises(PermissionError, match="only loopback"):
        socket.getaddrinfo("example.invalid", 80)


def test_a_connection_to_this_machine_is_allowed() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
    ):
        assert client.getpeername() == server.getsockname()


def test_code_that_blocks_the_event_loop_fails(home: Path) -> None:
    home.mkdir()
    (home / "config.toml").write_text("", encoding="utf-8")

    async def read_a_file() -> None:
        load_settings({}, home=home)

    with pytest.raises(BlockingError):
        anyio.run(read_a_file)


def test_the_developers_own_settings_are_out_of_sight() -> None:
    left = sorted(name for name in os.environ if name.startswith("MCP_MEMORY_"))
    assert left == ["MCP_MEMORY_READ_SENTENCES", "MCP_MEMORY_SHARED"]
    # libraries that keep models make a cache in it
    assert {path.name for path in Path.home().iterdir()} <= {".cache"}
