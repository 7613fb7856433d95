"""The spaces of one open store: one is open from the start, the others from when somebody first asks for them.

What they share (the file, the models, the index, one background thread for the stages) costs the same for one space
or a thousand. A space that others have pushed out is opened anew when it is asked for again; whoever holds it goes on.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["Spaces"]

T = TypeVar("T")

MOST = 256
"""Spaces open beside the first. One that is not does all but the work that its model does in the background."""


class Spaces(Generic[T]):
    """What is open of each space, those that were asked for last. Any thread may ask."""

    def __init__(self, name: str, first: T, *, opened: Callable[[str], T], closed: Callable[[T], None]) -> None:
        self._name, self._first = name, first
        self._opened, self._closed = opened, closed
        self._others: OrderedDict[str, T] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, name: str) -> T:
        if name == self._name:
            return self._first
        with self._lock:
            if name not in self._others:
                self._others[name] = self._opened(name)
            self._others.move_to_end(name)
            while len(self._others) > MOST:
                self._closed(self._others.popitem(last=False)[1])
            return self._others[name]
