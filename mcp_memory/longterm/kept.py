"""Keeps values that are computed from the statements of a space until a statement or the day changes.

A commit that touches no statement (a recorded turn, a recall) leaves them valid. The values of a store go with it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Generic, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from mcp_memory.core.lru import LRU
from mcp_memory.store.protocol import Store

T = TypeVar("T")

ALWAYS = datetime.max.replace(tzinfo=UTC)
"""The end of a value that depends on statements alone."""
_SPACES = 64


class _Kept(NamedTuple, Generic[T]):
    """A value that is right from `at` to before `until`, unless statements have changed since `change`."""

    change: int
    at: datetime
    until: datetime
    value: T


class KeptValues(Generic[T]):
    """One value for each of the last 64 spaces of a store. Safe to use from any thread."""

    def __init__(self) -> None:
        self._stores: WeakKeyDictionary[Store, LRU[str, _Kept[T]]] = WeakKeyDictionary()

    def get(
        self, store: Store, space: str, compute: Callable[[], tuple[T, datetime]], *, at: datetime | None = None
    ) -> T:
        """Return the kept value; without a valid one, that of `compute`, with the moment from which it is outdated.

        `at` is the time of the call, for a value that depends on it.
        """
        at = at or datetime.min.replace(tzinfo=UTC)
        spaces = self._stores.setdefault(store, LRU(_SPACES))
        kept, change = spaces.get(space), store.last_change(space)
        if kept is not None and kept.at <= at < kept.until and not _is_changed(store, space, kept.change, change):
            spaces.put(space, kept._replace(change=change))
            return kept.value
        value, until = compute()
        spaces.put(space, _Kept(change, at, until, value))
        return value


def _is_changed(store: Store, space: str, since: int, now: int) -> bool:
    return now != since and any(change.topic.startswith("atom:") for change in store.changes(space, since))
