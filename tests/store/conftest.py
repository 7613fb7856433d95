"""Every store there is, for the contract tests; add an implementation here and the suite runs against it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mcp_memory.store.postgres.store import open_store as open_postgres
from mcp_memory.store.protocol import EmbeddedStore, Store
from mcp_memory.store.sqlite.store import open_store
from tests.postgres_server import KEY, as_server


@pytest.fixture
def embedded(home: Path) -> Iterator[EmbeddedStore]:
    """The store with files, for what only such a store can do."""
    opened = open_store(home)
    yield opened
    opened.close()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def store(request: pytest.FixtureRequest, home: Path) -> Iterator[Store]:
    match request.param:
        case "sqlite":
            opened: Store = open_store(home)
        case "postgres":
            url = request.getfixturevalue("postgres").create_memory()
            opened = open_postgres(as_server(url), key=KEY)
        case other:
            raise AssertionError(other)
    yield opened
    opened.close()
    if request.param == "postgres":
        request.getfixturevalue("postgres").drop_database(url)
