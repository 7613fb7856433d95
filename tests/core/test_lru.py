"""The one bounded cache."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.core.lru import LRU

KEYS = st.integers(0, 9)


@given(steps=st.lists(st.tuples(st.sampled_from(["put", "get", "pop"]), KEYS, st.integers(1, 5)), max_size=60))
def test_it_keeps_what_was_used_last_within_its_weight(steps: Sequence[tuple[str, int, int]]) -> None:
    kept = LRU[int, int](8, weigh=lambda value: value)
    model: list[tuple[int, int]] = []  # used longest ago first
    for step, key, value in steps:
        known = dict(model).get(key)
        rest = [one for one in model if one[0] != key]
        match step:
            case "put":
                kept.put(key, value)
                model = [*rest, (key, value)]
                while sum(weight for _, weight in model) > 8:
                    model.pop(0)
            case "get":
                assert kept.get(key) == known
                model = [*rest, (key, known)] if known is not None else rest
            case _:
                assert kept.pop(key) == known
                model = rest
    assert [key for key in range(10) if key in kept] == sorted(key for key, _ in model)
    assert len(kept) == len(model)


def test_a_value_heavier_than_all_is_kept_until_the_next() -> None:
    kept = LRU[str, int](8, weigh=lambda value: value)
    kept.put("small", 1)
    kept.put("large", 100)
    assert (len(kept), kept.get("large")) == (1, 100)
    kept.put("next", 1)
    assert (len(kept), kept.get("large")) == (1, None)


def test_threads_that_ask_at_once_get_one_value_of_a_key() -> None:
    kept = LRU[int, object](50)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda number: kept.get_or_put(number % 5, object), range(2_000)))
    assert len({id(value) for value in found}) == 5
