"""How often and how much: requests a minute, wrong tokens, requests at once. It knows no transport and no clock."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Generator
from contextlib import contextmanager
from math import ceil

__all__ = ["AtOnce", "Rate"]

_MOST_KEYS = 10_000


class Rate:
    """A bucket for each key: it holds `a_minute`, one goes with each take, and they come back evenly."""

    def __init__(self, a_minute: int) -> None:
        self._a_minute = a_minute
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, key: str, now: float) -> int:
        """Take one at `now`, in seconds. 0 when there was one, else the seconds until there will be."""
        left = self._now_left(key, now)
        if left < 1:
            return self._wait(left)
        self._left[key] = (left - 1, now)
        self._left.move_to_end(key)
        while len(self._left) > _MOST_KEYS:  # the one that was quiet longest has most of its bucket again
            self._left.popitem(last=False)
        return 0

    def _now_left(self, key: str, now: float) -> float:
        left, then = self._left.get(key, (float(self._a_minute), now))
        return min(float(self._a_minute), left + max(0.0, now - then) * self._a_minute / 60)

    def _wait(self, left: float) -> int:
        return max(1, ceil((1 - left) * 60 / self._a_minute))


class AtOnce:
    """How many requests of each key are being answered, streams included."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._held = Counter[str]()

    @contextmanager
    def one(self, key: str) -> Generator[bool]:
        """Hold one while the block runs; False where there are as many as there may be, and none is held."""
        if self._held[key] >= self._most:
            yield False
            return
        self._held[key] += 1
        try:
            yield True
        finally:
            self._held[key] -= 1
            if not self._held[key]:
                del self._held[key]
