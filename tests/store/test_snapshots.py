"""Snapshots: the reads of a thread see one state, read each row once, and end before a long wait."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pytest

from mcp_memory.core.errors import NotFound
from mcp_memory.store.nesting import NestedCall
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import atom_rows, home_rows, quarantine_rows, ref_rows, tombstone_rows, turn_rows
from tests.store.test_contract import ANY, NOW, append, assistant, atom, user, vectors, words

T = TypeVar("T")


def elsewhere(work: Callable[[], T]) -> T:
    """Call `work` on another thread."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result(20)


def forget(store: Store, id: str) -> None:
    elsewhere(lambda: store.write("me", tombstone_rows.forget, [id], reason="no longer true", now=NOW))


def test_all_reads_of_a_snapshot_see_the_state_of_the_first(store: Store) -> None:
    kept, forgotten = append(store, user("The kettle is red."), assistant("Noted."))

    def look() -> None:
        assert len(store.read("me", turn_rows.session_turns, "s")) == 2
        elsewhere(lambda: append(store, user("And the boat is blue.")))
        forget(store, forgotten)
        assert len(store.read("me", turn_rows.session_turns, "s")) == 2
        assert [turn.id for turn in store.read("me", turn_rows.by_ids, [kept, forgotten])] == [kept, forgotten]
        assert store.totals("me", "turn").rows == 2
        assert words(store, "boat") == []

    store.in_snapshot(look)
    assert [turn.id for turn in store.read("me", turn_rows.session_turns, "s")] == [kept, "t3"]
    assert words(store, "boat") == ["t3"]


def test_a_snapshot_reads_several_spaces_and_the_home_in_turn(store: Store) -> None:
    append(store, user("In mine."), space="me")
    append(store, user("In yours."), space="you")

    def look() -> list[str]:
        said: list[str] = []
        for _ in range(2):
            for space in ("me", "you", "nobody"):
                said += [turn.content for turn in store.read(space, turn_rows.session_turns, "s")]
                assert store.read_home(home_rows.spaces) == ["me", "you"]
        return said

    assert store.in_snapshot(look) == ["In mine.", "In yours."] * 2


def test_a_write_in_a_snapshot_is_refused_and_the_snapshot_goes_on(store: Store) -> None:
    append(store, user("Hello."))

    def look() -> int:
        store.read("me", turn_rows.session_turns, "s")
        with pytest.raises(NestedCall):
            append(store, user("Again."))
        return len(store.read("me", turn_rows.session_turns, "s"))

    assert store.in_snapshot(look) == 1
    append(store, user("Again."))


def test_outside_of_a_snapshot_writes_are_possible_and_afterwards_it_reads_the_present_state(store: Store) -> None:
    (id,) = append(store, user("The kettle is red."))

    def look() -> list[str]:
        assert store.read("me", turn_rows.by_ids, [id])
        with store.outside_snapshot():
            append(store, user("The boat is blue."))
            assert store.read("me", turn_rows.by_ids, ["t2"])
            forget(store, id)
        return [turn.content for turn in store.read("me", turn_rows.by_ids, [id, "t2"])]

    assert store.in_snapshot(look) == ["The boat is blue."]
    with store.outside_snapshot():  # without a snapshot it does nothing
        append(store, user("The moon is new."))


def test_a_snapshot_in_a_snapshot_is_the_same(store: Store) -> None:
    append(store, user("Hello."))

    def look() -> int:
        store.read("me", turn_rows.session_turns, "s")
        elsewhere(lambda: append(store, user("Again.")))
        return len(store.in_snapshot(store.read, "me", turn_rows.session_turns, "s"))

    assert store.in_snapshot(look) == 1


def test_after_an_error_a_snapshot_goes_on(store: Store) -> None:
    append(store, user("Hello."))

    def look() -> int:
        with pytest.raises(NotFound):
            store.read("me", ref_rows.by_id, "r-123456789abc")
        elsewhere(lambda: append(store, user("Again.")))
        return len(store.read("me", turn_rows.session_turns, "s"))

    assert store.in_snapshot(look) == 1


def test_rows_that_a_snapshot_has_read_are_the_same_as_outside(store: Store) -> None:
    ids = append(store, *(user(f"Boat {number} has a kettle.") for number in range(9)))
    append(store, *(user(f"Kettle {number}.") for number in range(3)), session="other")
    stated = [
        store.write("me", atom_rows.add, atom(f"Statement {number}."), now=NOW, vectors=vectors([1.0, number, 0, 0]))
        for number in range(3)
    ]
    atoms = [written.atom.id for written in stated]
    store.write("me", quarantine_rows.quarantine, {ids[3]: ["override"], atoms[1]: ["override"]}, now=NOW)
    store.write("me", tombstone_rows.forget, [ids[5], atoms[2]], reason="no longer true", now=NOW)

    def look() -> list[object]:
        rows: list[object] = []
        for some in (ids[:2], ids[1:7], [*ids, "t99"], [ids[6]], []):
            rows.append(store.read("me", turn_rows.by_ids, some))
            rows += [store.read("me", turn_rows.context_windows, some, around=around) for around in (1, 2, 1, 0)]
            rows.append(store.read("me", quarantine_rows.list_quarantined, [*some, *atoms]))
        for few in (atoms[:1], atoms, [*atoms[::-1], "a99"]):
            rows.append(store.read("me", atom_rows.by_ids, few))
            rows.append(sorted(store.vectors_of("me", "atom", few, "test/4")))
        for terms in (["kettl", "boat"], ["boat", "7"], ["unheard"]):
            read = store.postings("me", "turn", terms, filters=ANY)
            rows.append([(posting.term, posting.rows.tolist(), posting.documents) for posting in read])
        return rows

    assert store.in_snapshot(look) == look()
