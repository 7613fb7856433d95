"""What tests of hooks share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mcp_memory.integrations.clients.description import client_names, describe
from mcp_memory.service.memory import Memory, open_memory


@pytest.fixture
async def memory(home: Path) -> AsyncIterator[Memory]:
    async with open_memory(home=home, embedder="none") as opened:
        yield opened


@pytest.fixture(autouse=True, scope="session")
def _read_descriptions() -> None:
    """Read the descriptions of clients before any event loop runs; the daemon parses events in a thread."""
    for name in client_names():
        describe(name)
