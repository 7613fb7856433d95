"""Writers at once, in one space and in several: nothing is lost, numbers have no gaps, and each answer is of one state."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from functools import partial
from threading import Barrier, Event
from typing import TypeVar

import pytest

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.types import CanvasRow
from mcp_memory.store.forgetting import Purge
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import (
    atom_rows,
    canvas_rows,
    entity_rows,
    home_rows,
    job_rows,
    page_rows,
    record_rows,
    ref_rows,
    stage_outputs,
    tombstone_rows,
    turn_rows,
)
from mcp_memory.store.values import Change, Conflict, PersonaPage
from tests.store.test_contract import ANY, NOW, append, atom, canvas, new_ref, record, user, vectors
from tests.store.test_home import LAPTOP

T = TypeVar("T")
WRITERS = 6
TIMES = 12


def at_once(work: Callable[[int], T], writers: int = WRITERS) -> list[T]:
    """Run `work(0)`, `work(1)`, … on threads that begin together; return their results, or raise the first error."""
    ready = Barrier(writers)

    def run(number: int) -> T:
        ready.wait(20)
        return work(number)

    with ThreadPoolExecutor(writers) as pool:
        return list(pool.map(run, range(writers)))


def meanwhile(look: Callable[[], T], work: Callable[[int], object]) -> list[T]:
    """Return what `look` returned, again and again, while writers were at work, and once after they ended."""
    done = Event()

    def looking() -> list[T]:
        seen = list[T]()
        while not done.is_set():
            seen.append(look())
        return [*seen, look()]

    with ThreadPoolExecutor(1) as pool:
        seen = pool.submit(looking)
        try:
            at_once(work)
        finally:
            done.set()
        return seen.result(60)


def numbers(ids: Sequence[str]) -> list[int]:
    return [int(id[1:]) for id in ids]


@pytest.mark.parametrize("sessions", [1, WRITERS])
def test_turns_of_many_writers_are_all_stored_under_numbers_without_gaps(store: Store, sessions: int) -> None:
    def write(writer: int) -> list[list[str]]:
        session = f"s{writer % sessions}"
        turns = [[user(f"{writer} {time} {part}") for part in "ab"] for time in range(TIMES)]
        return [append(store, *pair, session=session) for pair in turns]

    given = [numbers(ids) for pairs in at_once(write) for ids in pairs]
    assert sorted(number for pair in given for number in pair) == list(range(1, 2 * WRITERS * TIMES + 1))
    assert all(second == first + 1 for first, second in given)  # one call's turns are next to each other
    for session in range(sessions):
        turns = store.read("me", turn_rows.session_turns, f"s{session}", limit=999)
        assert [turn.position for turn in turns] == list(range(2 * WRITERS * TIMES // sessions))
        assert numbers([turn.id for turn in turns]) == sorted(numbers([turn.id for turn in turns]))
    assert store.read("me", home_rows.counts).turns == 2 * WRITERS * TIMES


def test_a_reader_never_sees_a_number_before_all_smaller_ones(store: Store) -> None:
    def look() -> list[int]:
        return numbers([turn.id for turn in store.read("me", turn_rows.session_turns, "s", limit=999)])

    def write(writer: int) -> None:
        for time in range(TIMES):
            append(store, user(f"{writer} {time}"))

    seen = meanwhile(look, write)
    assert all(ids == list(range(1, len(ids) + 1)) for ids in seen)
    assert list(map(len, seen)) == sorted(map(len, seen))
    assert len(seen[-1]) == WRITERS * TIMES


def test_one_who_follows_the_change_feed_misses_no_change(store: Store) -> None:
    found = Counter[Change]()
    last = {"space0": 0, "space1": 0}

    def follow() -> None:
        nonlocal last
        upto = store.read_home(home_rows.last_changes, last)
        for space in last:
            found.update(store.read(space, home_rows.changes, last[space]))
        last = upto

    def write(writer: int) -> None:
        for time in range(TIMES):
            append(store, user("x"), session=f"{writer} {time}", space=f"space{writer % 2}")

    meanwhile(follow, write)
    follow()
    assert set(found) == {
        Change(space=f"space{writer % 2}", topic=f"session:{writer} {time}")
        for writer in range(WRITERS)
        for time in range(TIMES)
    }


def test_spaces_that_are_made_at_once_are_each_made_once(store: Store) -> None:
    def write(writer: int) -> None:
        for time in range(TIMES):
            append(store, user(f"{writer} {time}"), space=f"space{(writer + time) % 4}")

    at_once(write)
    assert store.read_home(home_rows.spaces) == [f"space{number}" for number in range(4)]
    for space in store.read_home(home_rows.spaces):
        ids = [turn.id for turn in store.read(space, turn_rows.session_turns, "s", limit=999)]
        assert numbers(ids) == list(range(1, len(ids) + 1))
    assert (
        sum(store.read(space, home_rows.counts).turns for space in store.read_home(home_rows.spaces)) == WRITERS * TIMES
    )


def test_the_same_turn_from_many_writers_is_stored_once(store: Store) -> None:
    stored = at_once(lambda _: len(append(store, user("yes", client_id="m1"), user("no", client_id="m2"))))
    assert sorted(stored) == [0] * (WRITERS - 1) + [2]


def test_a_fact_of_one_value_has_one_value_whoever_states_it_last(store: Store) -> None:
    def write(writer: int) -> None:
        for time in range(4):
            place = f"Place {writer} {time}"
            told = atom(f"Lives in {place}", entity="user", relation="lives_in", value=place, single_valued=True)
            store.write("me", atom_rows.add, told, now=NOW)

    at_once(write)
    assert [fact.atom for fact in store.read("me", atom_rows.facts, filters=ANY)] == [f"a{4 * WRITERS}"]
    assert (store.read("me", home_rows.counts).atoms, store.read("me", home_rows.counts).current) == (4 * WRITERS, 1)


def test_the_same_statement_from_many_writers_is_one(store: Store) -> None:
    told = at_once(lambda _: store.write("me", atom_rows.add, atom("Likes tea", entities=["Maya"]), now=NOW))
    assert {one.atom.id for one in told} == {"a1"}
    assert sorted(one.duplicate for one in told) == [False] + [True] * (WRITERS - 1)
    assert [entity.name for entity in store.read("me", entity_rows.list_entities)] == ["Maya"]


def test_the_same_bytes_from_many_writers_are_one_result(store: Store) -> None:
    refs = at_once(lambda writer: store.write("me", ref_rows.put, new_ref(b"data", tool=f"tool{writer}")))
    assert len(set(map(repr, refs))) == 1
    assert store.read("me", ref_rows.read_bytes, refs[0].id) == b"data"


def test_steps_of_many_writers_are_all_on_the_canvas(store: Store) -> None:
    store.write(
        "me", record_rows.commit_step, record=record("001-N0", tool_call_id="first"), canvas=canvas(), expected=0
    )

    def write(writer: int) -> None:
        for time in range(4):
            while not step(f"{writer}-{time}"):
                pass  # another was first: read again

    def step(call: str) -> bool:
        row: CanvasRow = store.read("me", canvas_rows.canvas, 1)
        text = f"{row.text}    {call}\n"
        try:
            store.write(
                "me",
                record_rows.commit_step,
                record=record(f"001-N{row.version}", tool_call_id=call),
                canvas=replace(row, text=text),
                expected=row.version,
            )
        except Conflict:
            return False
        return True

    at_once(write)
    row = store.read("me", canvas_rows.canvas, 1)
    calls = [one.tool_call_id for one in store.read("me", record_rows.list_records, limit=999)]
    assert row.version == len(calls) == 4 * WRITERS + 1
    assert row.text.split()[2:] == calls[1:]
    assert [version.number for version in store.read("me", canvas_rows.versions, 1)] == list(range(1, row.version + 1))


def test_a_job_is_leased_to_one_of_many_and_committed_once(store: Store) -> None:
    append(store, user("x"))

    def take(writer: int) -> str | None:
        work = store.write(
            "me", job_rows.lease, "persona", None, json.dumps({}), holder=f"{writer}", lease=timedelta(hours=1), now=NOW
        )
        return None if work is None else work.id

    (id,) = {id for id in at_once(take) if id is not None}

    def commit(writer: int) -> bool:
        try:
            store.write("me", stage_outputs.commit, id, PersonaPage(text=f"# {writer}"), outcome={}, now=NOW)
        except Conflict:
            return False
        return True

    assert sorted(at_once(commit)) == [False] * (WRITERS - 1) + [True]
    assert len(store.read("me", page_rows.persona_versions)) == 1


def test_of_many_tokens_with_one_name_one_is_added(store: Store) -> None:
    def add(writer: int, name: str) -> bool:
        try:
            store.write_home(home_rows.add_token, replace(LAPTOP, id=f"{name}-{writer}", name=name))
        except InvalidInput:
            return False
        return True

    for number in range(8):
        assert sorted(at_once(partial(add, name=f"n{number}"))) == [False] * (WRITERS - 1) + [True]
    assert sorted(token.name for token in store.read_home(home_rows.tokens)) == [f"n{number}" for number in range(8)]


def test_vectors_of_many_writers_make_one_index(store: Store) -> None:
    for space in range(WRITERS):
        append(store, user("x"), space=f"space{space}")
    at_once(lambda writer: store.put_vectors([(f"space{writer}", "t1")], vectors([1, 0, 0, 0])))
    (index,) = store.index_progress().vectors
    assert (index.identity, index.embedded) == ("test/4", WRITERS)
    assert store.unembedded("me", "test/4", limit=9) == []


def test_forgetting_undoing_and_purging_while_others_write_loses_nothing(store: Store) -> None:
    spaces = [f"space{number}" for number in range(3)]
    for space in spaces:
        append(store, *[user(f"secret {number} of all spaces") for number in range(2 * TIMES)], space=space)

    def write(writer: int) -> None:
        space = spaces[writer % 3]
        for time in range(TIMES):
            if writer < 3:
                append(store, user(f"new {time}"), session="new", space=space)
                store.write(space, job_rows.request_stage, "persona", f"secret {time} of all spaces")
                continue
            gone = store.write(space, tombstone_rows.forget, [f"t{2 * time + 1}"], reason="", now=NOW)
            back = store.write(space, tombstone_rows.forget, [f"t{2 * time + 2}"], reason="", now=NOW)
            store.purge(space, Purge(tombstones=[gone.id]), now=NOW)
            store.write(space, tombstone_rows.undo, back.id, now=NOW)

    at_once(write)
    for space in spaces:
        assert len(store.read(space, turn_rows.session_turns, "s", limit=99)) == TIMES
        assert len(store.read(space, turn_rows.session_turns, "new", limit=99)) == TIMES
        assert numbers([one.id for one in store.read(space, tombstone_rows.tombstones)]) == list(
            range(1, 2 * TIMES + 1)
        )
        assert Counter((one.purged, one.undone) for one in store.read(space, tombstone_rows.tombstones)) == {
            (True, False): TIMES,
            (False, True): TIMES,
        }
