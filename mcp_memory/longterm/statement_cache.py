"""Caches values that are computed from the statements of a space, until a statement or the day changes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Generic, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from mcp_memory.core.lru import LRU
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import home_rows

T = TypeVar("T")

ALWAYS = datetime.max.replace(tzinfo=UTC)
"""The expiry of a value that depends on statements alone."""
_SPACES = 64


class _Entry(NamedTuple, Generic[T]):
    """A value that is valid from `at` until just before `until`, unless statements have changed since `change`."""

    change: int
    at: datetime
    until: datetime
    value: T


class StatementCache(Generic[T]):
    """Caches one value for each of the last 64 spaces of a store, as long as the store exists. Thread-safe.

    A commit that does not touch a statement (a recorded turn, a recall) leaves the values valid.
    """

    def __init__(self) -> None:
        self._stores: WeakKeyDictionary[Store, LRU[str, _Entry[T]]] = WeakKeyDictionary()

    def get(
        self, store: Store, space: str, compute: Callable[[], tuple[T, datetime]], *, at: datetime | None = None
    ) -> T:
        """Return the cached value; if there is none, compute and cache it.

        `compute` returns the value and the moment at which it expires. `at` is the time of the call, if the value
        depends on it.
        """
        at = at or datetime.min.replace(tzinfo=UTC)
        spaces = self._stores.setdefault(store, LRU(_SPACES))
        entry, change = spaces.get(space), store.read(space, home_rows.last_change)
        if entry is not None and entry.at <= at < entry.until and not _is_changed(store, space, entry.change, change):
            spaces.put(space, entry._replace(change=change))
            return entry.value
        value, until = compute()
        spaces.put(space, _Entry(change, at, until, value))
        return value


def _is_changed(store: Store, space: str, since: int, now: int) -> bool:
    return now != since and any(
        change.topic.startswith("atom:") for change in store.read(space, home_rows.changes, since)
    )
