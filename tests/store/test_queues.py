"""Which spaces are due in a queue, and that of many workers one has claimed each."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_memory.core.types import NewTurn
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import queues, ref_rows, space_rows, tombstone_rows, turn_rows
from mcp_memory.store.sql.measures import measure
from mcp_memory.store.sql.word_index import index_queue
from mcp_memory.store.values import DISTIL, Claim, NewRef, Vectors
from tests.leases import pass_time

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)


def write(store: Store, space: str) -> None:
    store.write(space, turn_rows.append, "s", turn_rows.prepare([NewTurn(role="user", content=uuid4().hex)]), now=NOW)


def claim(store: Store, space: str | None = None) -> Claim | None:
    return queues.claim_space(store, DISTIL, lease=MINUTE, space=space)


def claimed(store: Store, space: str | None = None) -> Claim:
    found = claim(store, space)
    assert found is not None
    return found


def test_a_queue_that_is_opened_has_every_space_and_then_those_that_are_written_to(store: Store) -> None:
    write(store, "old")
    assert claim(store) is None
    store.write_home(queues.open_queue, DISTIL)
    assert claimed(store).space == "old"
    assert claim(store) is None
    write(store, "new")
    assert claimed(store).space == "new"
    store.write_home(queues.open_queue, DISTIL)
    assert claim(store) is None


def test_the_space_that_has_been_due_longest_is_claimed_first_by_one_worker(store: Store) -> None:
    store.write_home(queues.open_queue, DISTIL)
    for space in ("one", "two", "three"):
        write(store, space)
        pass_time(store, MINUTE)
    write(store, "one")
    claims = [claimed(store) for _ in range(3)]
    assert [one.space for one in claims] == ["one", "two", "three"]
    assert len({one.token for one in claims}) == 3
    assert claim(store) is None


def test_a_released_space_is_due_after_a_while_or_when_it_is_written_to(store: Store) -> None:
    store.write_home(queues.open_queue, DISTIL)
    write(store, "me")
    store.write_home(queues.release, claimed(store), again=10 * MINUTE)
    pass_time(store, 9 * MINUTE)
    assert claim(store) is None
    pass_time(store, MINUTE)
    store.write_home(queues.release, claimed(store), again=DAY)
    write(store, "me")
    assert claimed(store).space == "me"


def test_a_space_that_was_written_to_during_a_claim_is_due_again_behind_it(store: Store) -> None:
    store.write_home(queues.open_queue, DISTIL)
    write(store, "me")
    ours = claimed(store)
    write(store, "me")
    assert claim(store) is None
    store.write_home(queues.release, ours, again=DAY)
    assert claimed(store).space == "me"


def test_the_space_of_a_worker_that_died_is_claimed_after_its_lease_and_a_late_release_changes_nothing(
    store: Store,
) -> None:
    store.write_home(queues.open_queue, DISTIL)
    write(store, "me")
    late = claimed(store)
    assert claim(store, "me") is None
    pass_time(store, MINUTE)
    ours = claimed(store)
    assert (ours.space, ours.token != late.token) == ("me", True)
    store.write_home(queues.release, late, again=timedelta(0))
    assert claim(store) is None
    store.write_home(queues.release, ours, again=timedelta(0))
    assert claimed(store).space == "me"


def test_a_worker_that_opens_its_queue_again_ends_its_claim_and_no_other(store: Store) -> None:
    def work(worker: str) -> str | None:
        found = queues.claim_space(store, DISTIL, lease=MINUTE, worker=worker)
        return found and found.space

    store.write_home(queues.open_queue, DISTIL)
    for space in ("ours", "theirs"):
        write(store, space)
        pass_time(store, MINUTE)
    assert [work("we"), work("they"), work("we")] == ["ours", "theirs", None]
    store.write_home(queues.open_queue, DISTIL, worker="we")
    assert [work("they"), work("they")] == ["ours", None]


def test_a_deleted_space_is_due_in_no_queue(store: Store) -> None:
    store.write_home(queues.open_queue, DISTIL)
    write(store, "me")
    store.write_home(space_rows.retire, "me")
    store.write_home(queues.open_queue, "index of another model")
    assert store.read_home(lambda tx: tx.all("SELECT * FROM due")) == []


def test_spaces_are_measured_in_the_queues_of_the_process_alone(store: Store) -> None:
    for model in ("m", "former"):
        store.write_home(queues.open_queue, index_queue(model))
    write(store, "me")
    (backlog,) = store.read_home(measure, queues=[index_queue("m")]).backlogs
    assert (backlog.kind, backlog.spaces) == ("index", 1)
    assert index(store, "m") == "me"
    (backlog,) = store.read_home(measure, queues=[index_queue("m")]).backlogs
    assert (backlog.spaces, backlog.oldest) == (0, 0.0)


def test_a_claim_of_a_clock_that_was_set_back_has_ended(store: Store) -> None:
    store.write_home(queues.open_queue, DISTIL)
    write(store, "me")
    claimed(store)
    pass_time(store, -300 * DAY)
    assert claim(store) is None
    write(store, "me")
    assert claimed(store).space == "me"


def test_one_space_can_be_claimed_whether_it_is_due_or_not(store: Store) -> None:
    write(store, "me")  # the queue was never opened
    ours = claimed(store, "me")
    assert claim(store, "me") is None
    store.write_home(queues.release, ours, again=DAY)
    assert claimed(store, "me").space == "me"
    assert claim(store, "nobody") is None


def test_of_many_workers_that_ask_at_once_each_gets_another_space(store: Store) -> None:
    store.write_home(queues.open_queue, DISTIL)
    spaces = [f"space-{number}" for number in range(6)]
    for space in spaces:
        write(store, space)

    def work(_: int) -> list[str]:
        got: list[str] = []
        while (found := claim(store)) is not None:
            got.append(found.space)
        return got

    with ThreadPoolExecutor(8) as pool:
        got = [space for found in pool.map(work, range(8)) for space in found]
    assert sorted(got) == spaces


def index(store: Store, identity: str) -> str | None:
    found = queues.claim_space(store, index_queue(identity), lease=MINUTE)
    if found is None:
        return None
    store.write_home(queues.release, found, again=DAY)
    return found.space


def test_a_space_is_due_for_the_models_that_have_not_embedded_what_was_written(store: Store) -> None:
    for model in ("m", "other"):
        store.write_home(queues.open_queue, index_queue(model))
    write(store, "me")
    assert [index(store, "m"), index(store, "m"), index(store, "other")] == ["me", None, "me"]
    ours = Vectors(identity="m", data=np.array([[1, 0, 0, 0]], np.float32))
    new = [NewTurn(role="user", content="embedded")]
    store.write("me", turn_rows.append, "s", turn_rows.prepare(new), now=NOW, vectors=ours)
    assert [index(store, "m"), index(store, "other")] == [None, "me"]
    store.drop_vector_index("m")
    assert [index(store, "m"), index(store, "other")] == ["me", None]


def test_a_space_is_due_for_indexing_when_a_result_or_something_forgotten_comes_to_it(store: Store) -> None:
    store.write_home(queues.open_queue, index_queue("m"))
    write(store, "me")
    index(store, "m")
    gone = store.write("me", tombstone_rows.forget, ["t1"], reason="", now=NOW)
    assert index(store, "m") is None
    store.write("me", tombstone_rows.undo, gone.id, now=NOW)
    assert index(store, "m") == "me"
    result = NewRef(
        tool="Read",
        arguments={},
        tool_call_id=None,
        session="s",
        timestamp=NOW,
        data=b"beta",
        content_type="text/plain",
    )
    store.write("me", ref_rows.put, result)
    assert store.read_home(queues.count_waiting, index_queue("m")) == 1
    assert index(store, "m") == "me"
    assert store.read_home(queues.count_waiting, index_queue("m")) == 0


EVENTS = st.lists(st.tuples(st.sampled_from(("claim", "release", "wait")), st.integers(0, 3)), max_size=30)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(events=EVENTS)
def test_whatever_happens_a_space_has_one_worker_at_a_time(store: Store, events: list[tuple[str, int]]) -> None:
    space, lease = uuid4().hex, 2 * MINUTE
    write(store, space)
    claims = list[Claim]()
    left = 0  # minutes of the last claim
    for event, number in events:
        match event:
            case "claim":
                found = queues.claim_space(store, DISTIL, lease=lease, space=space)
                assert (found is None) == (left > 0)
                if found is not None:
                    claims.append(found)
                    left = 2
            case "release" if claims:
                released = claims[-1 - number % len(claims)]
                store.write_home(queues.release, released, again=DAY)
                left = 0 if released is claims[-1] else left
            case _:
                pass_time(store, number * MINUTE)
                left = max(0, left - number)
