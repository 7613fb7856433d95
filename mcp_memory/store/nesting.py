"""Prevents a thread from calling a database from inside a call of the same database.

A call holds a connection while it runs. If calls could nest, threads that each hold one connection and wait for a
second would wait for each other for ever, as soon as there are as many of them as connections.
"""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager


class NestedCall(RuntimeError):
    """A bug of the caller: a function passed to the store called the store again."""


class NestingGuard:
    """Detects nested calls of a database. It is safe to use from any thread."""

    def __init__(self) -> None:
        self._calls = threading.local()

    @contextmanager
    def call(self) -> Generator[None]:
        """Mark this thread as inside a call of the database. Raises NestedCall at once if it already is."""
        if getattr(self._calls, "is_running", False):
            raise NestedCall(
                "This thread is inside a call of the store, and holds its connection. Use the transaction that is "
                "open, or make the second call after the first has returned."
            )
        self._calls.is_running = True
        try:
            yield
        finally:
            self._calls.is_running = False
