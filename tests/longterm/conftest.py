"""A store, a memory and a pyramid on a home of their own, with a clock that stands still and an embedder without a model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from mcp_memory.core.config import Settings
from mcp_memory.longterm.search.search import Search
from mcp_memory.service.memory import Memory, open_memory
from mcp_memory.store.protocol import Store
from mcp_memory.store.sqlite.store import open_store
from mcp_memory.testing import FixedClock, HashEmbedder
from tests.longterm.by_hand import NOON, ByHand


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


@pytest.fixture
def store(home: Path) -> Iterator[Store]:
    opened = open_store(home)
    yield opened
    opened.close()


@pytest.fixture
def search(store: Store) -> Search:
    return Search(store, lambda: NOON)


@pytest.fixture
def hand(store: Store, search: Search) -> ByHand:
    return ByHand(store=store, search=search, settings=Settings())
