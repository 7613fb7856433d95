"""How long a space keeps what: its policies, when they are due, and the rows that are overdue."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_memory.core.types import Evidence
from mcp_memory.store.forgetting import Keeping, Policy, Purge
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import atom_rows, policy_rows, ref_rows, tombstone_rows
from tests.store.test_contract import NOW, append, atom, new_ref, user

DAY = timedelta(days=1)
LATER = NOW + timedelta(hours=1)
KINDS: tuple[Keeping, ...] = ("turns", "results", "purge")


def test_a_space_has_no_policies_until_they_are_set(store: Store) -> None:
    assert store.read("me", policy_rows.list_policies) == []
    store.write("me", policy_rows.put_policy, "turns", 30, now=NOW)
    store.write("me", policy_rows.put_policy, "purge", 7, now=LATER)
    assert store.read("me", policy_rows.list_policies) == [
        Policy(what="turns", days=30, at=NOW),
        Policy(what="purge", days=7, at=LATER),
    ]
    assert store.read("you", policy_rows.list_policies) == []


def test_a_policy_can_be_changed_and_removed(store: Store) -> None:
    store.write("me", policy_rows.put_policy, "turns", 30, now=NOW)
    store.write("me", policy_rows.start_due, now=NOW)
    store.write("me", policy_rows.note_retained, "turns", 4)
    store.write("me", policy_rows.put_policy, "turns", 60, now=LATER)
    assert store.read("me", policy_rows.list_policies) == [
        Policy(what="turns", days=60, at=LATER, took=4)
    ]  # and it is due again
    store.write("me", policy_rows.put_policy, "results", None, now=LATER)
    store.write("me", policy_rows.put_policy, "turns", None, now=LATER)
    assert store.read("me", policy_rows.list_policies) == []


def test_who_gets_a_policy_runs_it_and_nobody_else_that_day(store: Store) -> None:
    for what in ("purge", "results"):
        store.write("me", policy_rows.put_policy, what, 30, now=NOW)
    due = store.write("me", policy_rows.start_due, now=LATER)
    assert [policy.what for policy in due] == ["results", "purge"]  # rows to purge are forgotten before
    assert {policy.ran_at for policy in due} == {LATER}
    assert store.write("me", policy_rows.start_due, now=LATER + timedelta(hours=2)) == []
    assert len(store.write("me", policy_rows.start_due, now=LATER + timedelta(hours=2), eager=True)) == 2
    assert len(store.write("me", policy_rows.start_due, now=LATER + DAY + timedelta(hours=2))) == 2
    assert store.write("you", policy_rows.start_due, now=NOW, eager=True) == []


def test_a_policy_that_ran_in_the_future_is_due(store: Store) -> None:
    store.write("me", policy_rows.put_policy, "turns", 30, now=NOW)
    store.write("me", policy_rows.start_due, now=NOW + 9 * DAY)
    assert [policy.what for policy in store.write("me", policy_rows.start_due, now=NOW)] == ["turns"]


def test_what_a_policy_took_adds_up(store: Store) -> None:
    store.write("me", policy_rows.put_policy, "turns", 30, now=NOW)
    for took in (3, 0, 4):
        store.write("me", policy_rows.note_retained, "turns", took)
    store.write("me", policy_rows.note_retained, "results", 5)  # there is no such policy
    store.write("you", policy_rows.note_retained, "turns", 5)
    assert [(policy.what, policy.took) for policy in store.read("me", policy_rows.list_policies)] == [("turns", 7)]


# --- rows that are overdue --------------------------------------------------------------------------


def test_turns_are_overdue_by_when_they_were_stored(store: Store) -> None:
    old = append(store, user("stored long ago", said_at=NOW), now=NOW)
    append(store, user("said long ago", said_at=NOW - 99 * DAY), now=NOW + DAY)
    assert store.read("me", policy_rows.overdue, "turns", before=NOW + DAY, limit=9) == old
    assert store.read("me", policy_rows.overdue, "turns", before=NOW, limit=9) == []
    assert store.read("you", policy_rows.overdue, "turns", before=NOW + DAY, limit=9) == []
    assert store.read("me", policy_rows.count_overdue, "turns", before=NOW + 2 * DAY) == (2, 0)


def test_the_oldest_of_many_overdue_rows_come_first(store: Store) -> None:
    ids = append(store, *[user(f"turn {number}") for number in range(12)])
    assert store.read("me", policy_rows.overdue, "turns", before=LATER, limit=5) == ids[:5]
    assert store.read("me", policy_rows.overdue, "turns", before=LATER, limit=0) == []


def test_turns_that_a_statement_is_based_on_stay_until_it_is_forgotten(store: Store) -> None:
    said, other = append(store, user("I play the cello"), user("Nothing else"))
    told = store.write(
        "me",
        atom_rows.add,
        atom("Plays the cello", evidence=[Evidence(turn=said, span=(0, 16), quote="I play the cello")]),
        now=NOW,
    ).atom
    assert told.evidence == said
    assert store.read("me", policy_rows.overdue, "turns", before=LATER, limit=9) == [other]
    assert store.read("me", policy_rows.count_overdue, "turns", before=LATER) == (1, 1)
    store.write("me", tombstone_rows.forget, [told.id], reason="", now=NOW)
    assert store.read("me", policy_rows.overdue, "turns", before=LATER, limit=9) == [said, other]


def test_notes_are_not_overdue_since_they_go_with_their_statements(store: Store) -> None:
    store.write("me", atom_rows.add, atom("Plays the cello"), now=NOW)
    assert store.read("me", policy_rows.overdue, "turns", before=LATER, limit=9) == []
    assert store.read("me", policy_rows.count_overdue, "turns", before=LATER) == (0, 0)


def test_results_are_overdue_by_when_they_were_taken(store: Store) -> None:
    old, new = (
        store.write("me", ref_rows.put, new_ref(data, timestamp=at)).id for data, at in ((b"a", NOW), (b"b", LATER))
    )
    assert store.read("me", policy_rows.overdue, "results", before=LATER, limit=9) == [old]
    assert store.read("me", policy_rows.overdue, "results", before=NOW, limit=9) == []
    assert sorted(store.read("me", policy_rows.overdue, "results", before=LATER + DAY, limit=9)) == sorted([old, new])
    assert store.read("me", policy_rows.count_overdue, "results", before=LATER) == (1, 0)


def test_results_that_a_statement_cites_stay_until_it_is_forgotten(store: Store) -> None:
    cited, other = (store.write("me", ref_rows.put, new_ref(data)).id for data in (b"cited", b"other"))
    told = store.write("me", atom_rows.add, atom("Key 4 is set", cites=[cited]), now=NOW).atom.id
    append(store, user(f"See {other}."))  # a turn that names a result does not keep it
    assert store.read("me", policy_rows.overdue, "results", before=LATER, limit=9) == [other]
    assert store.read("me", policy_rows.count_overdue, "results", before=LATER) == (1, 1)
    store.write("me", tombstone_rows.forget, [told], reason="", now=NOW)
    assert sorted(store.read("me", policy_rows.overdue, "results", before=LATER, limit=9)) == sorted([cited, other])


def test_only_what_a_policy_forgot_is_overdue_for_a_purge(store: Store) -> None:
    ids = append(store, *[user(f"turn {number}") for number in range(5)])
    for number, how in enumerate(("retention", "ids", "retention", "retention", "retention")):
        store.write("me", tombstone_rows.forget, [ids[number]], reason="", now=NOW + number * DAY, how=how)
    store.write("me", tombstone_rows.undo, "x3", now=NOW)
    assert store.read("me", policy_rows.overdue, "purge", before=NOW + 4 * DAY, limit=9) == ["x1", "x4"]
    store.purge("me", Purge(tombstones=["x1"]), now=NOW)
    assert store.read("me", policy_rows.overdue, "purge", before=NOW + 4 * DAY, limit=9) == ["x4"]
    assert store.read("me", policy_rows.count_overdue, "purge", before=NOW + 9 * DAY) == (2, 0)


@pytest.mark.parametrize("what", KINDS)
def test_an_unknown_space_has_nothing_overdue(store: Store, what: Keeping) -> None:
    assert store.read("nobody", policy_rows.overdue, what, before=NOW, limit=9) == []
    assert store.read("nobody", policy_rows.count_overdue, what, before=NOW) == (0, 0)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(stored=st.lists(st.integers(0, 9), max_size=8), cut=st.integers(0, 10))
def test_as_many_rows_are_overdue_as_are_counted(store: Store, stored: list[int], cut: int) -> None:
    space = uuid4().hex  # each example has a space of its own

    def at(minutes: int) -> datetime:
        return NOW + timedelta(minutes=minutes)

    for number, minutes in enumerate(stored):
        append(store, user(f"turn {number}"), space=space, now=at(minutes))
        store.write(space, ref_rows.put, new_ref(f"result {number}".encode(), timestamp=at(minutes)))
    for what in ("turns", "results"):
        found = store.read(space, policy_rows.overdue, what, before=at(cut), limit=99)
        assert len(found) == len(set(found)) == sum(minutes < cut for minutes in stored)
        assert store.read(space, policy_rows.count_overdue, what, before=at(cut)) == (len(found), 0)
