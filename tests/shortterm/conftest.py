"""What the tests of the short-term side share: a real store, and an agent in one session of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from mermaidx.engine import Engine

from mcp_memory.store.protocol import Store
from mcp_memory.store.sqlite.store import open_store
from tests.shortterm.agent import Agent


@pytest.fixture
def store(home: Path) -> Iterator[Store]:
    opened = open_store(home)
    yield opened
    opened.close()


@pytest.fixture
def agent(store: Store) -> Agent:
    return Agent(store)


@pytest.fixture(scope="module")
def mermaid() -> Engine:
    """The real Mermaid."""
    engine = Engine()
    engine.start()
    return engine
