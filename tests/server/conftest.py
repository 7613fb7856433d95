"""One server object for a module's tests, over a home of its own, without an embedding model."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from mcp import Client

from mcp_memory.core.config import Settings, load_settings
from mcp_memory.server.mcp_server import MemoryServer


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return load_settings({}, home=tmp_path_factory.mktemp("server") / "home", embedder="none")


@pytest.fixture(scope="module")
async def server(settings: Settings) -> AsyncIterator[MemoryServer]:
    server = MemoryServer(settings)
    async with server.hold_open():
        yield server


@pytest.fixture(params=["auto", "legacy"])
def era(request: pytest.FixtureRequest) -> Any:
    """Both protocol generations: 2026-07-28 where the server speaks it, and the handshake."""
    return request.param


@pytest.fixture
async def client(server: MemoryServer, era: Any) -> AsyncIterator[Client]:
    async with Client(server, mode=era) as client:
        yield client
