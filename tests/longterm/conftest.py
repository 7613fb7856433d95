"""A memory on a home of its own, with a clock that stands still and an embedder without a model."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mcp_memory.service.memory import Memory, open_memory
from mcp_memory.testing import FixedClock, HashEmbedder


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
def embedder() -> HashEmbedder:
    return HashEmbedder()


@pytest.fixture
async def memory(home: Path, clock: FixedClock, embedder: HashEmbedder) -> AsyncIterator[Memory]:
    async with open_memory(home=home, now=clock, embedder=embedder) as opened:
        yield opened
