"""Writes that wait for each other are committed together, and each gets its own result or error."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest

from mcp_memory.core.errors import StoreUnavailable
from mcp_memory.service.grouped_writes import GroupedWrites
from mcp_memory.store.protocol import Store


class SlowStore:
    """A store whose first write lasts until it is let go; it keeps how many writes each transaction had."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.sizes: list[int] = []
        self.began, self.goes_on = threading.Event(), threading.Event()

    def write(self, space: str, work: Callable[[Any], list[Any]]) -> list[Any]:
        self.began.set()
        self.goes_on.wait(10)
        if self.error is not None:
            raise self.error
        results = work(None)
        self.sizes.append(len(results))
        return results


def run_behind(store: SlowStore, works: list[Callable[[Any], Any]]) -> list[Any]:
    """Run these works while a first one is committed; return their results and errors."""
    grouped = GroupedWrites(cast("Store", cast("Any", store)))
    with ThreadPoolExecutor(len(works) + 1) as threads:
        first = threads.submit(grouped.write, "me", lambda _: "first")
        assert store.began.wait(10)
        waiting = [threads.submit(grouped.write, "me", work) for work in works]
        while len(grouped._waiting["me"]) < len(works):  # pyright: ignore[reportPrivateUsage]
            threading.Event().wait(0.01)
        store.goes_on.set()
        if store.error is None:
            assert first.result(10) == "first"
        return [one.exception(10) or one.result() for one in waiting]


def test_writes_that_wait_are_committed_together() -> None:
    store = SlowStore()
    assert run_behind(store, [lambda _, number=number: number for number in range(7)]) == [*range(7)]
    assert store.sizes == [1, 7]


def test_a_write_that_fails_does_not_fail_the_others() -> None:
    def fail(_: object) -> None:
        raise ValueError("mine")

    store = SlowStore()
    one, error, other = run_behind(store, [lambda _: 1, fail, lambda _: 2])
    assert (one, str(error), other) == (1, "mine", 2)


def test_all_that_wait_learn_that_the_store_failed() -> None:
    store = SlowStore()
    store.error = StoreUnavailable("It is unknown whether that was stored.")
    assert run_behind(store, [lambda _: 1, lambda _: 2]) == [store.error, store.error]


@pytest.mark.parametrize("count", [50])
def test_more_writes_than_fit_into_a_transaction_are_all_done(count: int) -> None:
    store = SlowStore()
    assert run_behind(store, [lambda _, number=number: number for number in range(count)]) == [*range(count)]
    assert max(store.sizes) == 20
    assert sum(store.sizes) == count + 1
