"""Turn metadata on every engine: the turns asked for, those around them, and which follow each other."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest

from mcp_memory.core.types import NewTurn
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import tombstone_rows
from mcp_memory.store.turn_metadata import TurnMetadata
from mcp_memory.store.values import Filters
from tests.store.test_contract import ANY, NOW, append, assistant, user


def metadata(store: Store, *rows: int, filters: Filters = ANY, reach: int = 0) -> TurnMetadata:
    return store.turn_metadata("me", np.array(rows, np.int64), filters=filters, reach=reach)


def stretches(turns: TurnMetadata) -> list[list[int]]:
    """Return the rows of each stretch, in order."""
    runs = dict[int, list[int]]()
    for row, stretch in zip(turns.rows.tolist(), turns.stretches.tolist(), strict=True):
        runs.setdefault(stretch, []).append(row)
    return list(runs.values())


def talk(store: Store, turns: int, *, session: str = "s", first: int = 0) -> None:
    append(store, *(user(f"turn {number}") for number in range(first, first + turns)), session=session)


def test_columns_hold_the_turns_asked_for_by_session_and_position(store: Store) -> None:
    append(store, user("Hé", name="Ann", said_at=NOW), assistant("What?"), session="b")
    append(store, user("other"), session="a")
    append(store, user("last", name="Ann"), session="b")
    turns = metadata(store, 4, 3, 1, 99)
    assert turns.rows.tolist() == [1, 4, 3]
    assert turns.sizes.tolist() == [3, 4, 5]
    assert turns.asks.tolist() == [False, False, False]
    assert metadata(store, 2).asks.tolist() == [True]
    assert [turns.who[speaker] for speaker in turns.speakers.tolist()] == [
        ("user", "Ann"),
        ("user", "Ann"),
        ("user", None),
    ]
    assert turns.said_at[0] == NOW.timestamp() * 1000
    assert turns.sessions[0] == turns.sessions[1] != turns.sessions[2]


def test_a_question_counts_near_the_end_and_before_the_first_nul(store: Store) -> None:
    append(store, user("why?" + " so" * 40), user("why?" + " so" * 39), user("why? \0 so"), user("so \0 why?"))
    assert metadata(store, 1, 2, 3, 4).asks.tolist() == [False, True, True, False]


def test_a_reach_adds_the_turns_before_and_after_in_the_session(store: Store) -> None:
    talk(store, 9, session="a")
    talk(store, 3, session="b", first=9)
    assert stretches(metadata(store, 5, reach=2)) == [[3, 4, 5, 6, 7]]
    assert stretches(metadata(store, 9, 10, reach=2)) == [[7, 8, 9], [10, 11, 12]]


def test_turns_around_several_are_there_once_and_a_gap_ends_a_stretch(store: Store) -> None:
    talk(store, 20)
    assert stretches(metadata(store, 4, 6, 14, reach=2)) == [[2, 3, 4, 5, 6, 7, 8], [12, 13, 14, 15, 16]]


def test_notes_are_left_out_and_do_not_count_as_turns_between(store: Store) -> None:
    notes = [NewTurn(role="note", content=f"note {number}") for number in range(9)]
    append(store, user("one"), *notes, user("two"), notes[0], user("three"))
    assert stretches(metadata(store, 11, reach=1)) == [[1, 11, 13]]
    assert metadata(store, 5).rows.tolist() == []
    assert store.totals("me", "turn").rows == 3


def test_turns_that_may_not_be_returned_are_there_and_do_not_pass(store: Store) -> None:
    append(store, user("one"), assistant("two"), user("three"), user("four"))
    store.write("me", tombstone_rows.forget, ["t3"], reason="wrong", now=NOW)
    turns = metadata(store, 2, filters=Filters(role="user", upto=3), reach=9)
    assert dict(zip(turns.rows.tolist(), turns.passes.tolist(), strict=True)) == {1: True, 2: False, 3: False, 4: False}
    assert turns.passing([4, 1]) == [1]


@pytest.mark.parametrize(
    ("filters", "passing"),
    [
        (Filters(since=NOW), [2]),
        (Filters(until=NOW), [1, 3]),
        (Filters(session="b"), [3]),
        (Filters(session="nowhere"), []),
    ],
)
def test_each_filter_says_which_turns_pass(store: Store, filters: Filters, passing: list[int]) -> None:
    append(store, user("old", said_at=NOW - timedelta(days=1)), user("new", said_at=NOW), session="a")
    append(store, user("elsewhere", said_at=NOW - timedelta(days=1)), session="b")
    assert metadata(store, 1, 2, 3, filters=filters).passing([1, 2, 3]) == passing


def test_sizes_are_bytes_of_what_was_said_with_nul_and_noncharacters(store: Store) -> None:
    append(store, user("\0\0?\0"), user("\U0010fffe0\0"), user("\U0010fffe1"))
    assert metadata(store, 1, 2, 3).sizes.tolist() == [4, 6, 5]


def test_rows_find_their_places(store: Store) -> None:
    talk(store, 2, session="a")
    talk(store, 2, session="b", first=2)
    talk(store, 2, session="a", first=4)
    turns = metadata(store, 1, 3, 5)
    asked = np.array([5, 4, 3, 700, 1], np.int64)
    assert turns.has(asked).tolist() == [True, False, True, False, True]
    assert turns.places(asked).tolist() == [1, 2, 0]
    assert metadata(store).has(asked).tolist() == [False] * 5


def test_totals_of_turns_count_what_was_appended_since(store: Store) -> None:
    nothing = store.totals("me", "turn")
    assert (nothing.rows, nothing.newest, nothing.sessions, nothing.mean_size, nothing.names) == (0, 0, 0, 0.0, ())
    append(store, user("four", name="Ann"), assistant("12345678"), session="a")
    first = store.totals("me", "turn")
    assert (first.rows, first.sessions, first.mean_size, first.names) == (2, 1, 6.0, ("Ann",))
    append(store, user("four", name="Bo"), session="a")
    append(store, user("four"), session="b")
    append(store, NewTurn(role="note", content="a note"), session="c")
    then = store.totals("me", "turn")
    assert (then.rows, then.newest, then.sessions, then.mean_size, then.names) == (4, 4, 2, 5.0, ("Ann", "Bo"))
    append(store, user("12345678"), session="c")
    assert store.totals("me", "turn").sessions == 3
    assert store.totals("another", "turn").rows == 0
