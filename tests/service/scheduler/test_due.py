"""When each stage is due: computed from rows, so that a restart changes nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from mcp_memory.core.config import Settings
from mcp_memory.core.types import Evidence, NewTurn, Stage
from mcp_memory.service.due_stages import FIRST_QUESTIONS, DueStage, due
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import job_rows, stage_outputs, turn_rows
from mcp_memory.store.sqlite.store import open_store
from mcp_memory.store.values import Extraction, Merge, Merging, NewAtom, SceneChanges
from mcp_memory.testing import FixedClock

SPACE, SESSION = "default", "s"


def stage(name: Stage, session: str | None = None) -> DueStage:
    return DueStage(stage=name, session=session, at=FixedClock()())


EXTRACT = stage("extract", SESSION)


def talk(store: Store, clock: FixedClock, *, exchanges: int, session: str = SESSION) -> None:
    for _ in range(exchanges):
        clock.advance(seconds=20)
        turns = [NewTurn(role="user", content=f"At {clock()} I cycle."), NewTurn(role="assistant", content="You do.")]
        store.write(SPACE, turn_rows.append, session, turn_rows.prepare(turns), now=clock())


def now_due(store: Store, clock: FixedClock, **settings: int) -> list[DueStage]:
    return list(due(store, SPACE, Settings(**settings), clock()))


def is_merge_asked(store: Store, clock: FixedClock) -> bool:
    return any(one.stage == "merge" and not one.waiting for one in now_due(store, clock))


def extract(store: Store, clock: FixedClock, *, texts: Sequence[str] = (), session: str = SESSION) -> None:
    """Commit an extraction of all that the session holds, which drew these statements from its last turn."""
    last = store.read(SPACE, turn_rows.last_turns, session, limit=1)[0]
    (waits,) = store.read(SPACE, job_rows.backlog, session=session)
    basis = json.dumps({"parts": [{"session": session, "start": waits.start, "stop": last.position + 1}]})
    work = store.write(
        SPACE, job_rows.lease, "extract", session, basis, holder="h", lease=timedelta(hours=1), now=clock(), eager=True
    )
    assert work is not None
    drafts = [atom(text, last.id, last.content) for text in texts]
    store.write(
        SPACE,
        stage_outputs.commit,
        work.id,
        Extraction(upto={session: last.position + 1}, drafts=drafts, aliases={}),
        outcome={"turns": waits.turns},
        now=clock(),
    )


def atom(text: str, turn: str, content: str) -> NewAtom:
    return NewAtom(
        kind="persona", text=text, priority=70, confidence=0.9, session=SESSION, valid_from=FixedClock()(),
        evidence=(Evidence(turn=turn, span=(0, 3), quote=content[:3]),),
    )  # fmt: skip


def merge(store: Store, clock: FixedClock) -> None:
    """Make atoms of all drafts."""
    drafts = store.read(SPACE, stage_outputs.drafts)
    work = store.write(
        SPACE, job_rows.lease, "merge", None, "{}", holder="h", lease=timedelta(hours=1), now=clock(), eager=True
    )
    assert work is not None
    merged = [Merging(draft=draft.id, atom=draft.atom) for draft in drafts]
    store.write(SPACE, stage_outputs.commit, work.id, Merge(merged=merged), outcome={}, now=clock())


def write_scenes(store: Store, clock: FixedClock) -> None:
    """Commit a writing of scenes that saw all statements."""
    work = store.write(SPACE, job_rows.lease, "scenes", None, "{}", holder="h", lease=timedelta(hours=1), now=clock())
    assert work is not None
    changes = SceneChanges(edits=[], upto=store.totals(SPACE, "atom").newest)
    store.write(SPACE, stage_outputs.commit, work.id, changes, outcome={}, now=clock())


SILENCE = {"seconds": 600}


def test_a_session_is_read_when_it_falls_silent_if_sixteen_turns_of_the_user_are_unread(
    store: Store, clock: FixedClock
) -> None:
    talk(store, clock, exchanges=1)
    extract(store, clock)
    talk(store, clock, exchanges=15)
    clock.advance(**SILENCE)
    assert now_due(store, clock) == []
    talk(store, clock, exchanges=1)
    assert now_due(store, clock) == []
    clock.advance(seconds=599)
    assert now_due(store, clock) == []
    clock.advance(seconds=1)
    assert now_due(store, clock) == [EXTRACT]


def test_turns_of_several_sessions_are_read_together(store: Store, clock: FixedClock) -> None:
    talk(store, clock, exchanges=1)
    extract(store, clock)
    for number in range(5):
        talk(store, clock, exchanges=4, session=f"short {number}")
    clock.advance(**SILENCE)
    assert [one.session for one in now_due(store, clock)] == [f"short {number}" for number in (4, 3, 2, 1, 0)]


def test_the_first_session_is_read_when_it_falls_silent(store: Store, clock: FixedClock) -> None:
    talk(store, clock, exchanges=2)
    clock.advance(**SILENCE)
    assert now_due(store, clock) == [EXTRACT]


def test_a_few_turns_are_read_after_a_week(store: Store, clock: FixedClock) -> None:
    talk(store, clock, exchanges=1)
    extract(store, clock)
    talk(store, clock, exchanges=1)
    clock.advance(days=6)
    assert now_due(store, clock) == []
    clock.advance(days=1)
    assert now_due(store, clock) == [EXTRACT]


def test_a_session_that_fills_a_question_is_read_at_once(store: Store, clock: FixedClock) -> None:
    talk(store, clock, exchanges=19)
    assert now_due(store, clock) == []
    talk(store, clock, exchanges=1)
    assert now_due(store, clock) == [EXTRACT]


def test_a_flushed_session_is_read_at_once_and_only_as_far_as_it_went_then(store: Store, clock: FixedClock) -> None:
    talk(store, clock, exchanges=1)
    extract(store, clock)
    talk(store, clock, exchanges=1)
    store.write(SPACE, job_rows.flush, SESSION)
    assert now_due(store, clock) == [EXTRACT]
    extract(store, clock)
    talk(store, clock, exchanges=1)
    assert now_due(store, clock) == []


def test_there_is_at_most_one_question_for_ten_turns_after_the_first_few_unless_it_is_asked_for(
    store: Store, clock: FixedClock
) -> None:
    asked = 0
    for number in range(40):
        talk(store, clock, exchanges=1, session=f"s{number}")
        clock.advance(days=3)
        for one in now_due(store, clock):
            if one.stage == "extract" and one in now_due(store, clock):
                extract(store, clock, session=str(one.session))
                asked += 1
        assert asked <= FIRST_QUESTIONS + 2 * (number + 1) / 10 + 1
    waiting = [one.session for one in store.read(SPACE, job_rows.backlog)]
    assert waiting
    assert now_due(store, clock) == []
    store.write(SPACE, job_rows.flush, waiting[0])
    assert now_due(store, clock) == [stage("extract", waiting[0])]
    assert len(list(due(store, SPACE, Settings(), clock(), eager=True))) == len(waiting)


def test_what_is_due_survives_a_restart(home: Path, store: Store, clock: FixedClock) -> None:
    talk(store, clock, exchanges=1)
    extract(store, clock)
    talk(store, clock, exchanges=1)
    store.write(SPACE, job_rows.flush, SESSION)
    before = now_due(store, clock)
    store.close()
    again = open_store(home)
    assert list(due(again, SPACE, Settings(), clock())) == before == [EXTRACT]
    again.close()


def test_the_session_that_was_written_to_last_is_read_first(store: Store, clock: FixedClock) -> None:
    for session in ("first", "second"):
        talk(store, clock, exchanges=2, session=session)
    clock.advance(hours=1)
    assert [one.session for one in now_due(store, clock)] == ["second", "first"]
    whole = due(store, SPACE, Settings(), clock(), eager=True)
    assert [one.session for one in whole] == ["first", "second"]  # a history is read as it was lived


def test_a_question_of_merging_waits_for_company_or_a_week(store: Store, clock: FixedClock) -> None:
    talk(store, clock, exchanges=1)
    extract(store, clock, texts=["one"])
    assert stage("merge") in now_due(store, clock)  # which is done at once where it needs no question
    assert not is_merge_asked(store, clock)
    clock.advance(days=7)
    assert is_merge_asked(store, clock)
    talk(store, clock, exchanges=1)
    extract(store, clock, texts=[f"thing {number}" for number in range(23)])
    assert is_merge_asked(store, clock)


def test_merging_that_is_asked_for_does_not_wait(store: Store, clock: FixedClock) -> None:
    talk(store, clock, exchanges=1)
    extract(store, clock, texts=["one"])
    store.write(SPACE, job_rows.request_stage, "merge", "the session is over")
    assert is_merge_asked(store, clock)


def test_scenes_are_written_when_forty_statements_are_new_or_one_has_waited_two_weeks_and_not_too_often(
    store: Store, clock: FixedClock
) -> None:
    def learn(number: int) -> None:
        talk(store, clock, exchanges=1)
        extract(store, clock, texts=[f"{clock()} {place}" for place in range(number)])
        merge(store, clock)

    talk(store, clock, exchanges=100)
    extract(store, clock)

    def scenes_due() -> bool:
        return stage("scenes") in now_due(store, clock)

    learn(39)
    assert not scenes_due()
    learn(1)
    assert scenes_due()
    write_scenes(store, clock)
    assert not scenes_due()
    learn(40)
    assert not scenes_due()  # so soon after the last
    clock.advance(seconds=900)
    assert scenes_due()
    write_scenes(store, clock)
    learn(1)
    clock.advance(days=13)
    assert not scenes_due()
    clock.advance(days=1)
    assert scenes_due()
