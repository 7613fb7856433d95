"""Who holds a question, how far each stage has come, and that no order of crashes reads a turn twice or never."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_memory.core.errors import NotFound
from mcp_memory.core.types import NewTurn, Role, Stage
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import atom_rows, home_rows, job_rows, page_rows, stage_outputs, tombstone_rows, turn_rows
from mcp_memory.store.sqlite.store import open_store
from mcp_memory.store.values import (
    Backlog,
    Change,
    Conflict,
    Done,
    Extraction,
    Imported,
    Merge,
    NewAtom,
    PersonaPage,
    SceneChanges,
    StageState,
    Work,
)
from tests.leases import pass_time

T = TypeVar("T")

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
LEASE = timedelta(minutes=2)
NEVER = datetime(1970, 1, 1, tzinfo=UTC)


def minutes(count: float) -> datetime:
    return NOON + timedelta(minutes=count)


def say(store: Store, *roles: Role, session: str = "s", space: str = "me", now: datetime = NOON) -> list[str]:
    new = [NewTurn(role=role, content=role, client_id=uuid4().hex) for role in roles]
    return [turn.id for turn in store.write(space, turn_rows.append, session, turn_rows.prepare(new), now=now).stored]


def tell(store: Store, text: str, session: str = "s") -> None:
    new = NewAtom(kind="persona", text=text, priority=80, confidence=1.0, session=session, valid_from=NOON)
    store.write("me", atom_rows.add, new, now=NOON)


def take(store: Store, stage: Stage = "persona", session: str | None = None, **more: Any) -> Work | None:
    given: dict[str, Any] = {"basis": "{}", "holder": "one", "now": NOON, "lease": LEASE}
    return store.write("me", job_rows.lease, stage, session, **{**given, **more})


def taken(store: Store, stage: Stage = "persona", session: str | None = None, **more: Any) -> Work:
    work = take(store, stage, session, **more)
    assert work is not None
    return work


def part(start: int, stop: int, session: str = "s") -> str:
    return json.dumps({"parts": [{"session": session, "start": start, "stop": stop}]})


def read(store: Store, upto: int, *, session: str = "s", now: datetime = NOON, **counts: int) -> None:
    work = taken(store, "extract", session, now=now)
    store.write(
        "me",
        stage_outputs.commit,
        work.id,
        Extraction(upto={session: upto}, drafts=[], aliases={}),
        outcome={"turns": upto, **counts},
        now=now,
    )


def write_page(store: Store, work: Work, text: str = "page", *, upto: int = 0, now: datetime = NOON) -> int:
    return store.write(
        "me",
        stage_outputs.commit,
        work.id,
        PersonaPage(text=text, reason="due", upto=upto),
        outcome={"characters": 4},
        now=now,
    ).version


# --- what waits to be read --------------------------------------------------------------------------


def test_the_backlog_counts_what_users_and_assistants_said_since_the_cursor(store: Store) -> None:
    say(store, "user", "assistant", "user")
    read(store, 1)
    say(store, "user", now=minutes(3))
    assert store.read("me", job_rows.backlog) == [
        Backlog(session="s", start=1, turns=3, asked=2, batches=1, last=minutes(3), flush=0)
    ]


def test_the_backlog_leaves_out_notes_forgotten_turns_and_what_tools_and_systems_said(store: Store) -> None:
    say(store, "system", "user", "tool", "assistant")
    tell(store, "Maya likes tea")
    (late,) = say(store, "user", now=minutes(1))
    store.write("me", tombstone_rows.forget, [late], reason="", now=NOON)
    say(store, "tool", now=minutes(2))
    (waits,) = store.read("me", job_rows.backlog)
    assert (waits.start, waits.turns, waits.asked, waits.last) == (0, 2, 1, NOON)


def test_a_session_where_only_notes_and_tools_follow_the_cursor_has_no_backlog(store: Store) -> None:
    say(store, "user", "tool")
    tell(store, "Maya likes tea")
    read(store, 1)
    assert store.read("me", job_rows.backlog) == []
    store.write("me", job_rows.flush, "s")
    assert store.read("me", job_rows.backlog) == []


def test_a_turn_brought_back_behind_the_cursor_stays_read(store: Store) -> None:
    (held,) = say(store, "user")
    tombstone = store.write("me", tombstone_rows.forget, [held], reason="", now=NOON).id
    say(store, "user")
    read(store, 2)
    store.write("me", tombstone_rows.undo, tombstone, now=NOON)
    assert store.read("me", job_rows.backlog) == []


def test_the_backlog_starts_with_the_session_written_to_last_and_knows_its_space(store: Store) -> None:
    for session in ("old", "new", "old", "middle"):
        say(store, "user", session=session)
    say(store, "user", space="other")
    say(store, "user", session="new")
    assert [waits.session for waits in store.read("me", job_rows.backlog)] == ["new", "middle", "old"]
    assert [waits.session for waits in store.read("me", job_rows.backlog, limit=2)] == ["new", "middle"]
    assert [(waits.session, waits.turns) for waits in store.read("me", job_rows.backlog, session="old")] == [("old", 2)]
    assert store.read("me", job_rows.backlog, session="s") == store.read("nobody", job_rows.backlog) == []


def test_a_flush_reaches_as_far_as_the_session_did_when_it_was_asked_for(store: Store) -> None:
    say(store, "user", "assistant")
    store.write("me", job_rows.flush, "s")
    say(store, "user")
    assert [(waits.start, waits.flush) for waits in store.read("me", job_rows.backlog)] == [(0, 2)]
    read(store, 2)
    assert [(waits.start, waits.flush) for waits in store.read("me", job_rows.backlog)] == [(2, 2)]


def test_a_flush_of_a_session_without_turns_asks_for_nothing(store: Store) -> None:
    before = store.read("me", home_rows.last_change)
    store.write("me", job_rows.flush, "s")
    store.write("nobody", job_rows.flush, "s")
    assert store.read("me", home_rows.last_change) == before
    assert store.read_home(home_rows.spaces) == []


def test_an_extraction_of_several_sessions_reads_all_of_them_and_replaces_their_unfinished_jobs(store: Store) -> None:
    say(store, "user", session="short")
    say(store, "user", "user")
    died = taken(store, "extract", "short", basis=part(0, 1, "short"), holder="died")
    work = taken(store, "extract", "s")
    store.write(
        "me",
        stage_outputs.commit,
        work.id,
        Extraction(upto={"s": 2, "short": 1}, drafts=[], aliases={}),
        outcome={},
        now=NOON,
    )
    assert (store.read("me", job_rows.backlog), store.read("me", job_rows.list_jobs)) == ([], [])
    with pytest.raises(Conflict):
        store.write(
            "me",
            stage_outputs.commit,
            died.id,
            Extraction(upto={"short": 1}, drafts=[], aliases={}),
            outcome={},
            now=NOON,
        )


# --- stages that were asked for ---------------------------------------------------------------------


def test_a_stage_that_never_ran_has_a_state_once_it_is_wanted(store: Store) -> None:
    assert store.read("me", job_rows.stage_states) == {}
    store.write("me", job_rows.request_stage, "scenes", "somebody asked")
    assert store.read("me", job_rows.stage_states) == {
        "scenes": StageState(position=0, at=NEVER, wanted="somebody asked")
    }
    assert store.read("other", job_rows.stage_states) == {}


def test_a_commit_moves_the_cursor_and_settles_the_wish(store: Store) -> None:
    store.write("me", job_rows.request_stage, "persona", "first")
    store.write("me", job_rows.request_stage, "persona", "second")
    assert write_page(store, taken(store), upto=7, now=minutes(1)) == 1
    assert store.read("me", job_rows.stage_states) == {"persona": StageState(position=7, at=minutes(1), wanted=None)}


def test_a_cursor_never_moves_backwards(store: Store) -> None:
    write_page(store, taken(store), upto=7)
    write_page(store, taken(store), upto=3, now=minutes(1))
    assert store.read("me", job_rows.stage_states) == {"persona": StageState(position=7, at=minutes(1), wanted=None)}


def test_a_wish_made_while_the_question_is_out_outlives_its_answer(store: Store) -> None:
    work = taken(store)
    store.write("me", job_rows.request_stage, "persona", "an atom was forgotten")
    write_page(store, work)
    assert store.read("me", job_rows.stage_states)["persona"].wanted == "an atom was forgotten"
    write_page(store, taken(store))
    assert store.read("me", job_rows.stage_states)["persona"].wanted is None


def test_a_wish_for_a_stage_without_a_cursor_is_settled_too(store: Store) -> None:
    store.write("me", job_rows.request_stage, "merge", "the session ends")
    work = taken(store, "merge")
    store.write("me", stage_outputs.commit, work.id, Merge(merged=[]), outcome={}, now=NOON)
    assert "merge" not in store.read("me", job_rows.stage_states)


# --- taking and giving back -------------------------------------------------------------------------


def test_a_work_that_is_taken_is_open_and_listed_until_it_is_done(store: Store) -> None:
    say(store, "user")
    extract = taken(store, "extract", "s", basis=part(0, 1), holder="h")
    assert extract == Work(
        id="w1",
        stage="extract",
        session="s",
        basis=part(0, 1),
        state="open",
        holder="h",
        until=NOON,
        attempts=0,
        error=None,
        at=NOON,
    )
    persona = taken(store, "persona")
    assert store.read("me", job_rows.list_jobs) == [extract, persona]
    assert store.read("me", job_rows.list_jobs, stage="extract") == [extract]
    assert store.read("me", job_rows.by_id, "w1") == extract
    write_page(store, persona, now=minutes(1))
    assert store.read("me", job_rows.list_jobs) == [extract]
    assert store.read("me", job_rows.by_id, persona.id) == replace(
        persona, state="done", done_at=minutes(1), outcome={"characters": 4}
    )


def test_sessions_are_read_side_by_side_and_one_work_of_each(store: Store) -> None:
    say(store, "user", session="a")
    say(store, "user", session="b")
    taken(store, "extract", "a")
    taken(store, "extract", "b", holder="two")
    assert take(store, "extract", "a", holder="two") is None
    assert take(store, "extract", "b") is None


def test_whoever_asks_again_gets_the_same_question_and_time_for_it(store: Store) -> None:
    work = taken(store)
    assert taken(store) == work
    pass_time(store, timedelta(minutes=1))
    assert taken(store, now=minutes(1)) == work
    assert taken(store, lease=timedelta(seconds=1)) == work
    pass_time(store, timedelta(minutes=1.5))
    assert take(store, holder="two") is None


def test_a_holder_who_plans_anew_gets_a_new_question_in_place_of_the_old(store: Store) -> None:
    old, new = taken(store), taken(store, basis='{"more": 1}')
    assert (new.id, new.basis) == ("w2", '{"more": 1}')
    assert store.read("me", job_rows.list_jobs) == [new]
    with pytest.raises(Conflict):
        write_page(store, old)


def test_what_another_holds_is_not_taken_not_even_eagerly(store: Store) -> None:
    taken(store)
    assert take(store, holder="two") is None
    assert take(store, holder="two", eager=True) is None


def test_a_lease_that_ran_out_is_taken_over_and_the_late_answer_stores_nothing(store: Store) -> None:
    late = taken(store)
    pass_time(store, timedelta(minutes=1))
    assert take(store, holder="two", now=minutes(60)) is None  # by the database's clock, whatever others say
    pass_time(store, timedelta(minutes=1))
    ours = taken(store, holder="two", now=minutes(-60))
    before = store.read("me", home_rows.last_change)
    with pytest.raises(Conflict):
        write_page(store, late, "late")
    with pytest.raises(NotFound, match="ask for the next"):
        store.read("me", job_rows.by_id, late.id)
    assert (
        store.read("me", page_rows.persona),
        store.read("me", job_rows.stage_states),
        store.read("me", home_rows.last_change),
    ) == (None, {}, before)
    assert store.read("me", job_rows.list_jobs) == [ours]


def test_an_answer_after_the_lease_counts_while_nobody_took_over(store: Store) -> None:
    assert write_page(store, taken(store), now=minutes(60)) == 1


def test_a_work_is_answered_once(store: Store) -> None:
    work = taken(store)
    write_page(store, work)
    with pytest.raises(Conflict):
        write_page(store, work, "again")
    assert [version.text for version in store.read("me", page_rows.persona_versions)] == ["page"]


def test_a_work_of_another_space_is_not_found_nor_committed_nor_parked(store: Store) -> None:
    work = taken(store)
    with pytest.raises(NotFound):
        store.read("other", job_rows.by_id, work.id)
    with pytest.raises(Conflict):
        store.write(
            "other", stage_outputs.commit, work.id, PersonaPage(text="page", reason="", upto=0), outcome={}, now=NOON
        )
    store.write("other", job_rows.park, work.id, error="no", wait=LEASE)
    store.write("other", job_rows.release, work.id)
    assert store.read("me", job_rows.list_jobs) == [work]
    assert store.read_home(home_rows.spaces) == ["me"]


def test_a_parked_work_waits_and_carries_its_failures_on(store: Store) -> None:
    first = taken(store)
    store.write("me", job_rows.park, first.id, error="no answer", wait=timedelta(minutes=10))
    assert store.read("me", job_rows.list_jobs) == [replace(first, state="parked", attempts=1, error="no answer")]
    assert timedelta(minutes=9) < (store.read("me", job_rows.next_retry) or timedelta(0)) <= timedelta(minutes=10)
    pass_time(store, timedelta(minutes=9))
    assert take(store) is None
    pass_time(store, timedelta(minutes=1))
    assert store.read("me", job_rows.next_retry) == timedelta(0)
    second = taken(store)
    assert (second.state, second.attempts, second.error) == ("open", 1, "no answer")
    store.write("me", job_rows.park, second.id, error="gibberish", wait=timedelta(hours=1))
    third = taken(store, holder="two", eager=True)
    assert (third.attempts, third.error) == (2, "gibberish")
    write_page(store, third)
    assert store.read("me", job_rows.next_retry) is None
    assert taken(store).attempts == 0


def test_a_parked_work_can_still_be_answered(store: Store) -> None:
    work = taken(store)
    store.write("me", job_rows.park, work.id, error="no answer", wait=LEASE)
    assert write_page(store, work) == 1


def test_a_work_given_back_is_free_at_once_and_keeps_what_it_knows_of_failures(store: Store) -> None:
    work = taken(store)
    store.write("me", job_rows.park, work.id, error="no answer", wait=timedelta(0))
    again = taken(store)
    store.write("me", job_rows.release, again.id)
    assert taken(store, holder="two").attempts == 1


def test_giving_back_or_parking_what_is_gone_or_done_changes_nothing(store: Store) -> None:
    gone = taken(store)
    ours = taken(store, basis='{"more": 1}')
    store.write("me", job_rows.park, gone.id, error="no", wait=LEASE)
    store.write("me", job_rows.release, gone.id)
    assert store.read("me", job_rows.list_jobs) == [ours]
    write_page(store, ours)
    store.write("me", job_rows.park, ours.id, error="no", wait=LEASE)
    assert store.read("me", job_rows.by_id, ours.id).state == "done"
    parked = taken(store)
    store.write("me", job_rows.park, parked.id, error="no", wait=LEASE)
    store.write("me", job_rows.release, parked.id)
    assert take(store) is None


def test_a_plan_is_refused_once_another_has_read_those_turns(store: Store) -> None:
    say(store, "user", "assistant", "user")
    planned = part(0, 3)
    read(store, 2)
    assert take(store, "extract", "s", basis=planned) is None
    assert take(store, "extract", "s", basis=part(2, 3)) is not None


def test_a_plan_of_scenes_is_refused_once_another_has_told_those_atoms(store: Store) -> None:
    work = taken(store, "scenes", basis='{"after": 0}')
    store.write("me", stage_outputs.commit, work.id, SceneChanges(edits=[], upto=4), outcome={}, now=NOON)
    assert take(store, "scenes", basis='{"after": 0}') is None
    assert take(store, "scenes", basis='{"after": 4}') is not None


def test_an_extraction_that_would_not_move_the_cursor_on_stores_nothing(store: Store) -> None:
    say(store, "user", "user")
    read(store, 2)
    with pytest.raises(Conflict):
        read(store, 2)
    assert [work.state for work in store.read("me", job_rows.list_jobs)] == ["open"]
    assert [(done.stage, done.works) for done in store.read("me", job_rows.stage_totals)] == [("extract", 1)]


def test_only_a_session_that_is_there_can_be_read(store: Store) -> None:
    with pytest.raises(NotFound, match="'nowhere'"):
        take(store, "extract", "nowhere")
    with pytest.raises(NotFound, match="w12"):
        store.read("me", job_rows.by_id, "12")


def test_the_log_adds_up_by_stage_in_the_order_of_the_pyramid(store: Store) -> None:
    write_page(store, taken(store), now=minutes(9))
    say(store, "user", "user", "user")
    read(store, 1, atoms=2)
    read(store, 2, atoms=2, refused=1)
    read(store, 3, now=minutes(4))
    assert store.read("me", job_rows.stage_totals) == [
        Done(stage="extract", works=3, asked=3, last=minutes(4), outcome={"atoms": 4, "refused": 1, "turns": 6}),
        Done(stage="persona", works=1, asked=1, last=minutes(9), outcome={"characters": 4}),
    ]
    assert store.read("other", job_rows.stage_totals) == []


def test_whoever_watches_hears_of_every_change_of_what_waits(store: Store) -> None:
    say(store, "user")
    heard: list[set[str]] = []

    def after(change: Callable[[], T]) -> T:
        before = store.read("me", home_rows.last_change)
        result = change()
        heard.append({found.topic for found in store.read("me", home_rows.changes, before)})
        return result

    work = after(lambda: taken(store))
    after(lambda: take(store, holder="two"))
    after(lambda: store.write("me", job_rows.release, work.id))
    after(lambda: store.write("me", job_rows.park, work.id, error="no", wait=LEASE))
    after(lambda: store.write("me", job_rows.request_stage, "scenes", "asked"))
    after(lambda: store.write("me", job_rows.flush, "s"))
    after(lambda: store.write("me", job_rows.flush, "s"))
    after(lambda: write_page(store, work))
    assert heard == [{"work"}, set(), {"work"}, {"work"}, {"work"}, {"work"}, set(), {"work", "persona"}]
    assert Change(space="me", topic="work") in store.read("me", home_rows.changes, 0)


# --- several processes ------------------------------------------------------------------------------


@pytest.fixture
def two(home: Path) -> Iterator[list[Store]]:
    """One home, open twice: what two processes have."""
    stores: list[Store] = [open_store(home), open_store(home)]
    yield stores
    for store in stores:
        store.close()


def at_once(*calls: Callable[[], T]) -> list[T | Conflict]:
    """Start all calls at the same moment, each on a thread of its own, and return what they came to."""
    ready = threading.Barrier(len(calls))
    came: list[Any] = [None] * len(calls)

    def run(place: int, call: Callable[[], T]) -> None:
        ready.wait(timeout=10)
        try:
            came[place] = call()
        except Conflict as error:
            came[place] = error

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    return came


def test_of_two_processes_that_want_one_work_one_gets_it_and_one_answer_is_stored(two: list[Store]) -> None:
    first, second = two
    for version in range(1, 9):
        got = at_once(lambda: take(first, holder="one"), lambda: take(second, holder="two"))
        (work,) = [work for work in got if isinstance(work, Work)]
        assert second.read("me", job_rows.list_jobs) == first.read("me", job_rows.list_jobs) == [work]
        came = at_once(lambda: write_page(first, work), lambda: write_page(second, work))  # noqa: B023
        assert {version, Conflict} == {one if isinstance(one, int) else type(one) for one in came}


def test_of_two_processes_that_find_a_lease_run_out_one_takes_over(two: list[Store]) -> None:
    first, second = two
    lost = taken(first, holder="killed")
    pass_time(first, LEASE)
    got = at_once(lambda: take(first, holder="one"), lambda: take(second, holder="two"))
    (work,) = [work for work in got if isinstance(work, Work)]
    assert [held.id for held in first.read("me", job_rows.list_jobs)] == [work.id]
    assert work.id != lost.id


@dataclass
class Expected:
    """What a session's rows should say, in the plainest words."""

    roles: list[Role] = field(default_factory=list[Role])
    read: int = 0
    batches: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    left: Work | None = None
    until: datetime = NOON

    def unread(self) -> int:
        return sum(role in ("user", "assistant") for role in self.roles[self.read :])

    def may_take(self, plan: tuple[int, int], holder: str, now: datetime, *, eager: bool) -> bool:
        if self.left is not None and self.until > now:
            if self.left.state == "parked" and not eager:
                return False
            if self.left.state == "open" and self.left.holder != holder:
                return False
        return plan[0] >= self.read


WHO = st.sampled_from((0, 1))
EVENTS = st.one_of(
    st.tuples(st.just("say"), WHO, st.lists(st.sampled_from(("user", "assistant", "tool")), min_size=1, max_size=4)),
    st.tuples(st.just("wait"), WHO, st.sampled_from((1, 3))),
    st.tuples(st.just("plan"), WHO, st.integers(1, 3)),
    st.tuples(st.just("take"), WHO, st.booleans()),
    st.tuples(st.sampled_from(("commit", "park", "release")), WHO, st.sampled_from((0, 0, 0, 1, 2))),
)


class Life:
    """Two processes at one session, which plan, take, answer, fail, give back and die, and what should come of it.

    A process that dies says nothing, so to die is to do nothing more until the lease has run out. It may also be
    only slow, and answer when its work is another's: `commit` reaches back to works that it held before.
    """

    def __init__(self, stores: list[Store]) -> None:
        self.stores = stores
        self.space = uuid4().hex  # each example has a store of its own
        self.now = NOON
        self.plans: list[tuple[int, int] | None] = [None, None]
        self.held: list[list[Work]] = [[], []]
        self.expected = Expected()

    def live(self, event: str, who: int, value: Any) -> None:
        match event:
            case "say":
                say(self.stores[who], *value, space=self.space, now=self.now)
                self.expected.roles += value
            case "wait":
                self.wait(timedelta(minutes=value))
            case "plan":
                self.plan(who, value)
            case "take":
                self.take(who, eager=value)
            case _:
                answer = {"commit": self.commit, "park": self.park, "release": self.release}[event]
                for work in self.held[who][::-1][value : value + 1]:
                    answer(who, work)
        self.compare()

    def wait(self, span: timedelta) -> None:
        self.now += span
        pass_time(self.stores[0], span)

    def plan(self, who: int, size: int) -> None:
        found = self.stores[who].read(self.space, job_rows.backlog, session="s")
        self.plans[who] = (found[0].start, min(found[0].start + size, len(self.expected.roles))) if found else None

    def take(self, who: int, *, eager: bool) -> None:
        plan, holder = self.plans[who], f"process {who}"
        if plan is None:
            return
        may = self.expected.may_take(plan, holder, self.now, eager=eager)
        work = self.stores[who].write(
            self.space, job_rows.lease, "extract", "s", basis=part(*plan),
            holder=holder, lease=LEASE, now=self.now, eager=eager,
        )  # fmt: skip
        assert (work is not None) == may
        if work is not None:
            is_same = self.expected.left is not None and self.expected.left.id == work.id
            self.expected.until = max(self.expected.until, self.now + LEASE) if is_same else self.now + LEASE
            self.expected.left = work
            self.held[who].append(work)

    def commit(self, who: int, work: Work) -> None:
        (basis,) = json.loads(work.basis)["parts"]
        current = self.expected.left is not None and self.expected.left.id == work.id
        try:
            self.stores[who].write(
                self.space,
                stage_outputs.commit,
                work.id,
                Extraction(upto={"s": basis["stop"]}, drafts=[], aliases={}),
                outcome={"turns": basis["stop"] - basis["start"]},
                now=self.now,
            )
        except Conflict:
            assert not current
            return
        assert current
        self.expected.batches.append((basis["start"], basis["stop"]))
        self.expected.read, self.expected.left = basis["stop"], None

    def park(self, who: int, work: Work) -> None:
        wait = timedelta(minutes=3)
        self.stores[who].write(self.space, job_rows.park, work.id, error="failed", wait=wait)
        left = self.expected.left
        if left is not None and left.id == work.id:
            self.expected.left = replace(left, state="parked", attempts=left.attempts + 1, error="failed")
            self.expected.until = self.now + wait

    def release(self, who: int, work: Work) -> None:
        self.stores[who].write(self.space, job_rows.release, work.id)
        left = self.expected.left
        if left is not None and left.id == work.id and left.state == "open":
            self.expected.until = self.now

    def compare(self) -> None:
        for store in self.stores:
            assert store.read(self.space, job_rows.list_jobs) == (
                [] if self.expected.left is None else [self.expected.left]
            )
            found = [(waits.start, waits.turns) for waits in store.read(self.space, job_rows.backlog)]
            assert found == ([(self.expected.read, self.expected.unread())] if self.expected.unread() else [])

    def finish(self) -> None:
        """Both processes are gone; another comes and does the rest."""
        self.wait(timedelta(hours=1))
        self.held[1] = []
        for _ in self.expected.roles:
            self.live("plan", 1, 2)
            self.live("take", 1, False)
            self.live("commit", 1, 0)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(events=st.lists(EVENTS, max_size=40))
def test_every_turn_is_in_exactly_one_batch_whatever_happens_to_those_who_read_it(
    two: list[Store], events: list[tuple[str, int, Any]]
) -> None:
    life = Life(two)
    life.live("say", 0, ["user", "assistant", "user"])
    for event in events:
        life.live(*event)
    life.finish()
    read = [position for start, stop in life.expected.batches for position in range(start, stop)]
    assert read == list(range(life.expected.read))
    assert life.expected.unread() == 0
    (logged,) = two[0].read(life.space, job_rows.stage_totals)
    assert (logged.works, logged.outcome) == (len(life.expected.batches), {"turns": len(read)})


# --- the pause, imports ------------------------------------------------------------------------------


def test_a_pause_holds_for_every_process_until_it_is_ended(two: list[Store]) -> None:
    first, second = two
    assert second.read_home(home_rows.paused) is None
    first.write_home(home_rows.pause, "too dear", now=NOON)
    second.write_home(home_rows.pause, "far too dear", now=minutes(1))
    assert first.read_home(home_rows.paused) == ("far too dear", minutes(1))
    second.write_home(home_rows.resume)
    second.write_home(home_rows.resume)
    assert first.read_home(home_rows.paused) is None


def test_imported_files_are_known_by_their_content_the_last_first(store: Store) -> None:
    chats = Imported(path="chats.jsonl", sha256="aa", modified=1, turns=40, at=NOON)
    notes = Imported(path="notes.jsonl", sha256="bb", modified=2, turns=3, at=minutes(1))
    store.write("me", turn_rows.note_imported_file, chats)
    store.write("me", turn_rows.note_imported_file, notes)
    assert store.read("me", turn_rows.imported_files) == [notes, chats]
    moved = replace(chats, path="old/chats.jsonl", modified=9, turns=0, at=minutes(2))
    store.write("me", turn_rows.note_imported_file, moved)
    changed = replace(notes, sha256="cc", modified=5, at=minutes(3))
    store.write("me", turn_rows.note_imported_file, changed)
    assert store.read("me", turn_rows.imported_files) == [changed, moved, notes]
    assert store.read("other", turn_rows.imported_files) == []
