"""One store for all tests of compression; each list is compressed in a space of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest

from mcp_memory.core.token_counts import token_counter
from mcp_memory.service.compression.compress import Compressed, compress_list
from mcp_memory.service.compression.plan import CompressionRules, Level
from mcp_memory.store.protocol import Store
from mcp_memory.store.sqlite.store import open_store
from tests.service.compression.lists import Messages

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
_SPACES = count()


class Program:
    """A program that compresses its lists, in a new space; a minute passes from call to call."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.space = f"space-{next(_SPACES)}"
        self.calls = 0

    def compress(
        self, messages: Messages, window: int, *, level: Level | None = None, overhead: int = 0, **rules: Any
    ) -> Compressed:
        self.calls += 1
        return compress_list(
            self.store,
            self.space,
            messages,
            rules=CompressionRules(window=window, **{"keep_calls": 2, **rules}),
            counter=token_counter("cl100k_base"),
            now=self.now,
            level=level,
            overhead=overhead,
        )

    def now(self) -> datetime:
        return NOON + timedelta(minutes=self.calls)

    def stored(self) -> str:
        """The raw text of all refs."""
        files = (self.store.folder(self.space) / "refs").glob("*.md")
        return "\n".join(path.read_bytes().decode("utf-8", "surrogatepass") for path in files)


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    opened = open_store(tmp_path_factory.mktemp("compression"))
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def new_program(store: Store) -> Callable[[], Program]:
    return lambda: Program(store)


@pytest.fixture
def program(store: Store) -> Program:
    return Program(store)
