"""What only a store with files has, for tests of what every store promises."""

from __future__ import annotations

from mcp_memory.store.protocol import Store
from mcp_memory.store.sqlite.store import SQLiteStore


def problems(store: Store) -> list[str]:
    """Return everything that `doctor` reports of a store with files; nothing for one without."""
    return store.problems() if isinstance(store, SQLiteStore) else []
