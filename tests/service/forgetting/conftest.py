"""A store, a memory on it, and what a test of forgetting asks of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from mcp_memory.service.memory import Memory, open_memory
from mcp_memory.store.protocol import Store
from mcp_memory.store.sqlite.store import open_store
from mcp_memory.testing import FixedClock


@pytest.fixture
def store(home: Path) -> Iterator[Store]:
    opened = open_store(home)
    yield opened
    opened.close()


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
async def memory(home: Path, clock: FixedClock) -> AsyncIterator[Memory]:
    async with open_memory(home=home, now=clock, embedder="none") as opened:
        yield opened
