"""What a client waits for when it starts the server: little is loaded before it is needed, and the rest soon after."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import numpy as np
from mcp import Client
from mcp.types import Implementation

from mcp_memory.core.config import load_settings
from mcp_memory.core.process_registry import all_processes
from mcp_memory.server.mcp_server import DEFINITIONS_FILE, MemoryServer, definitions_file, read_definitions, warm_up
from mcp_memory.server.tools import TOOLS
from mcp_memory.service.memory import open_memory
from tests.server.answers import WAIT

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Recording:
    """An embedder that notes what it is asked."""

    identity = "recording"
    dimensions = 2

    local = True

    def __init__(self) -> None:
        self.asked = list[str]()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.asked += texts
        return np.zeros((len(texts), 2), np.float32)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        return self.embed([text])[0]


def test_the_file_of_tool_definitions_is_what_the_signatures_say() -> None:
    built = [tool.definition for tool in TOOLS]
    assert DEFINITIONS_FILE.read_bytes() == definitions_file(built), "run python scripts/write_tool_definitions.py"
    assert [*read_definitions()] == built


async def test_a_server_that_is_not_asked_loads_no_model(tmp_path: Path) -> None:
    embedder = Recording()
    async with open_memory(home=tmp_path, embedder=embedder):
        await anyio.to_thread.run_sync(warm_up)
    assert embedder.asked == []
    assert all("model" in vars(tool) for tool in TOOLS)


async def test_a_store_that_was_only_to_be_opened_soon_is_not_opened_by_closing(tmp_path: Path) -> None:
    server = MemoryServer(load_settings({}, home=tmp_path / "home"))
    async with server.hold_open():
        opened = server.memory.open_soon()
    assert opened.cancelled()
    assert not (tmp_path / "home").exists()


async def test_the_name_of_a_client_is_masked_for_other_processes(tmp_path: Path) -> None:
    server = MemoryServer(load_settings({}, home=tmp_path, embedder="none"))
    introduced = Implementation(name="agent ghp_1234567890abcdefghijABCDEFGHIJ123456", version="1")
    async with server.hold_open(), Client(server, mode="legacy", client_info=introduced) as client:
        await client.call_tool("read_persona", {})
        with anyio.fail_after(WAIT):
            while not (named := (await anyio.to_thread.run_sync(all_processes, tmp_path))[0].clients):
                pass
    assert list(named) == ["agent ghp_•••"]
