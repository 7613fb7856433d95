"""A bounded map that evicts the least recently used entries. Every cache with user-supplied keys uses it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import RLock
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class LRU(Generic[K, V]):
    """Keeps values up to a total weight of `most`, and the newest value whatever it weighs. Thread-safe."""

    def __init__(self, most: int, *, weigh: Callable[[V], int] = lambda value: 1) -> None:
        """`weigh` returns the weight of a value. By default each weighs 1, so `most` is the number of values."""
        self._most, self._weigh = most, weigh
        self._values = OrderedDict[K, tuple[V, int]]()
        self._weight = 0
        self._lock = RLock()

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, key: K) -> bool:
        return key in self._values

    def get(self, key: K) -> V | None:
        """Return the value of a key and mark it as used; None if it is missing."""
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key][0]

    def put(self, key: K, value: V) -> V:
        """Store a value, replacing any older value of the key, and return it."""
        with self._lock:
            self.pop(key)
            weight = self._weigh(value)
            self._values[key] = value, weight
            self._weight += weight
            while self._weight > self._most and len(self._values) > 1:
                self._weight -= self._values.popitem(last=False)[1][1]
            return value

    def get_or_put(self, key: K, make: Callable[[], V]) -> V:
        """Return the value of a key; if it is missing, make and store it. Concurrent callers get the same value."""
        with self._lock:
            value = self.get(key)
            return self.put(key, make()) if value is None else value

    def pop(self, key: K) -> V | None:
        """Remove a key and return its value; None if it is missing."""
        with self._lock:
            value, weight = self._values.pop(key, (None, 0))
            self._weight -= weight
            return value
