"""A store and the clock of what is done with it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

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
