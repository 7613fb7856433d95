"""Every store there is, for the contract tests; add an implementation here and the suite runs against it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mcp_memory.store.protocol import Store
from mcp_memory.store.sqlite import open_store


@pytest.fixture(params=["sqlite"])
def store(request: pytest.FixtureRequest, home: Path) -> Iterator[Store]:
    match request.param:
        case "sqlite":
            opened: Store = open_store(home)
        case other:
            raise AssertionError(other)
    yield opened
    opened.close()
