"""What a forgetting would take, what it took, and what a purge leaves of it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_memory.core.errors import InvalidInput, NotFound, Refused
from mcp_memory.core.types import FORGOTTEN
from mcp_memory.language.words import base_terms
from mcp_memory.store.forgetting import Purge, Purged, Reach, Which
from mcp_memory.store.protocol import Store
from mcp_memory.store.row_types import Row
from mcp_memory.store.sql import (
    atom_rows,
    canvas_rows,
    home_rows,
    page_rows,
    quarantine_rows,
    record_rows,
    ref_rows,
    stage_outputs,
    tombstone_rows,
    turn_rows,
    word_index,
)
from mcp_memory.store.values import (
    CanvasChange,
    Filters,
    NewChunk,
    PersonaPage,
    SceneChanges,
    SceneEdit,
    Tombstone,
)
from tests.store.test_contract import ANY, NOW, append, assistant, atom, canvas, new_ref, record, user, words

DAY = timedelta(days=1)
LATER = NOW + timedelta(hours=1)


def remember(store: Store, text: str, *, space: str = "me", **more: object) -> str:
    return store.write(space, atom_rows.add, atom(text, **more), now=NOW).atom.id


def take_result(store: Store, data: bytes, *, session: str = "s", at: datetime = NOW, space: str = "me") -> str:
    """Store a result and its lines in the word index; return its id."""
    ref = store.write(space, ref_rows.put, new_ref(data, session=session, timestamp=at))
    lines = NewChunk(lines=(1, 1), span=(0, len(data)), text=data.decode())
    assert store.write(
        space, word_index.put_chunks, ref.id, [lines], word_index.terms_of_chunks([lines]), start=0, complete=True
    )
    return ref.id


# --- the rows that match ----------------------------------------------------------------------------


def which(text: str = "", **more: object) -> Which:
    return Which(terms=base_terms(text), **more)  # type: ignore[arg-type]


def test_rows_match_by_all_words_in_turns_statements_and_results(store: Store) -> None:
    red, _ = append(store, user("The red kettle leaks"), user("A green kettle"))
    owns = remember(store, "Owns a red kettle")
    ref = take_result(store, b"one red kettle, in stock")
    take_result(store, b"a red bus")
    assert store.read("me", tombstone_rows.matching, which("kettle red")) == [red, owns, ref]
    assert store.read("me", tombstone_rows.matching, which("kettle purple")) == []
    assert store.read("you", tombstone_rows.matching, which("kettle red")) == []


def test_rows_of_a_session_are_what_was_said_told_and_done_in_it(store: Store) -> None:
    (here,) = append(store, user("here"), session="here")
    append(store, user("there"), session="there")
    told = remember(store, "Told here", session="here")
    remember(store, "Told there", session="there")
    ref = take_result(store, b"taken here", session="here")
    other = take_result(store, b"used here", session="there")
    store.write(
        "me",
        record_rows.commit_step,
        record=record(ref=other, session="here"),
        canvas=canvas(session="here"),
        expected=0,
    )
    assert store.read("me", tombstone_rows.matching, Which(session="here")) == [here, told, *sorted([ref, other])]
    assert store.read("me", tombstone_rows.matching, Which(session="nowhere")) == []


def test_rows_of_a_time_are_those_from_a_moment_on_and_before_another(store: Store) -> None:
    moments = [NOW - DAY, NOW, NOW + DAY]
    said = append(store, *[user(f"turn {at}", said_at=at) for at in moments], session="said")
    refs = [take_result(store, f"result {at}".encode(), at=at) for at in moments]
    assert store.read("me", tombstone_rows.matching, Which(since=NOW, until=NOW + DAY)) == [said[1], refs[1]]
    assert store.read("me", tombstone_rows.matching, Which(since=NOW)) == [*said[1:], *refs[1:]]
    assert store.read("me", tombstone_rows.matching, Which(until=NOW)) == [said[0], refs[0]]


def test_a_result_matches_to_the_millisecond(store: Store) -> None:
    at = datetime(2026, 11, 20, 12, 0, 0, 123_000, tzinfo=UTC)
    ref = take_result(store, b"words", at=at)
    one = timedelta(milliseconds=1)
    assert store.read("me", tombstone_rows.matching, Which(since=at, until=at + one)) == [ref]
    assert (
        store.read("me", tombstone_rows.matching, Which(since=at + one))
        == store.read("me", tombstone_rows.matching, Which(until=at))
        == []
    )


def test_what_is_forgotten_matches_no_more(store: Store) -> None:
    (turn,) = append(store, user("a red kettle"))
    ids = [turn, remember(store, "Owns a red kettle"), take_result(store, b"red kettle")]
    assert store.read("me", tombstone_rows.matching, which("red kettle")) == ids
    tombstone = store.write("me", tombstone_rows.forget, ids, reason="", now=NOW)
    assert (
        store.read("me", tombstone_rows.matching, which("red kettle"))
        == store.read("me", tombstone_rows.matching, Which())
        == []
    )
    store.write("me", tombstone_rows.undo, tombstone.id, now=NOW)
    assert store.read("me", tombstone_rows.matching, Which()) == ids


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(minutes=st.lists(st.integers(-3, 3), max_size=6), cut=st.integers(-4, 4))
def test_each_row_is_before_a_moment_or_since_it(store: Store, minutes: list[int], cut: int) -> None:
    space = uuid4().hex  # each example has a space of its own
    said = [NOW + timedelta(minutes=at) for at in minutes]
    turns = [user(f"turn {number}", said_at=at) for number, at in enumerate(said)]
    append(store, *turns, space=space)
    for number, at in enumerate(said):
        take_result(store, f"result {number}".encode(), at=at, space=space)
    moment = NOW + timedelta(minutes=cut)
    halves = [store.read(space, tombstone_rows.matching, one) for one in (Which(until=moment), Which(since=moment))]
    assert sorted([*halves[0], *halves[1]]) == sorted(store.read(space, tombstone_rows.matching, Which()))
    assert len(halves[0]) == 2 * sum(at < moment for at in said)


# --- reach ------------------------------------------------------------------------------------------


def reached(**rows: list[str] | int) -> Reach:
    """Return a reach to these rows and no others."""
    lists = ("turns", "atoms", "refs", "notes", "along", "scenes", "said_in")
    return Reach(**{**{name: [] for name in lists}, **rows})  # type: ignore[arg-type]


def test_an_explicit_statement_reaches_to_its_note_and_its_fact(store: Store) -> None:
    told = remember(store, "Lives in Oslo", entity="user", relation="lives_in", value="Oslo")
    assert store.read("me", tombstone_rows.reach_of, [told]) == reached(atoms=[told], notes=["t1"], facts=1)


def test_a_result_reaches_to_the_records_that_name_it(store: Store) -> None:
    ref = take_result(store, b"data")
    store.write("me", record_rows.commit_step, record=record(ref=ref), canvas=canvas(), expected=0)
    assert store.read("me", tombstone_rows.reach_of, [ref]) == reached(refs=[ref], records=1)


def test_a_statement_reaches_to_the_scenes_that_name_it(store: Store) -> None:
    told, other = remember(store, "Has asthma"), remember(store, "Walks")
    edits = [
        SceneEdit(action="create", slug=slug, reason="r", title=slug, body=f"- It ({id}).", atoms=(id,))
        for slug, id in (("health", told), ("sport", other))
    ]
    store.write("me", stage_outputs.commit, None, SceneChanges(edits=edits), outcome={}, now=NOW)
    assert store.read("me", tombstone_rows.reach_of, [told]).scenes == ["health"]


@pytest.mark.parametrize(
    ("ids", "error"),
    [
        ([], InvalidInput),
        (["kettle"], InvalidInput),
        (["t١"], InvalidInput),
        (["t99"], NotFound),
        (["t1", "a99999999999999999999"], NotFound),
        (["r-000000000000"], NotFound),
        (["r-\x00"], NotFound),
    ],
)
def test_what_cannot_be_forgotten_has_no_reach_and_nothing_is_done(
    store: Store, ids: list[str], error: type[Exception]
) -> None:
    append(store, user("stays"))
    before = store.read("me", home_rows.last_change)
    for verb in (
        lambda: store.read("me", tombstone_rows.reach_of, ids),
        lambda: store.write("me", tombstone_rows.forget, ids, reason="", now=NOW),
    ):
        with pytest.raises(error):
            verb()
    assert (store.read("me", home_rows.last_change), store.read("me", tombstone_rows.tombstones)) == (before, [])
    assert words(store, "stays") == ["t1"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(chosen=st.sets(st.integers(0, 8), min_size=1))
def test_a_forgetting_takes_what_its_reach_says_and_an_undo_restores_all_of_it(store: Store, chosen: set[int]) -> None:
    space = uuid4().hex
    said = append(store, *[user(f"turn {number}") for number in range(3)], space=space)
    told = [remember(store, f"Told {number}", space=space, entity=f"e{number}", relation="is", value="v")
            for number in range(3)]  # fmt: skip
    refs = [take_result(store, f"result {number}".encode(), space=space) for number in range(3)]
    ids = [*said, *told, *refs]

    def state() -> object:
        return (
            store.read(space, turn_rows.session_turns, "s"),
            store.read(space, atom_rows.by_ids, told),
            store.read(space, atom_rows.facts, filters=ANY),
            store.read(space, tombstone_rows.matching, Which()),
            store.read(space, home_rows.counts),
        )

    before, reach = state(), store.read(space, tombstone_rows.reach_of, [ids[number] for number in chosen])
    assert state() == before
    tombstone = store.write(space, tombstone_rows.forget, [ids[number] for number in chosen], reason="r", now=NOW)
    assert sorted(tombstone.ids) == sorted(reach.ids)
    assert set(store.read(space, tombstone_rows.matching, Which())) == set(ids) - set(reach.ids)
    undone = store.write(space, tombstone_rows.undo, tombstone.id, now=LATER)
    assert (undone.undone, sorted(undone.ids)) == (True, sorted(reach.ids))
    assert state() == before


# --- what was forgotten -----------------------------------------------------------------------------


def test_tombstones_are_listed_oldest_first_undone_ones_too(store: Store) -> None:
    first, second = append(store, user("first"), user("second"))
    store.write("me", tombstone_rows.forget, [second], reason="asked \x00", now=NOW, how="query")
    store.write("me", tombstone_rows.forget, [first], reason="", now=LATER)
    store.write("me", tombstone_rows.undo, "x1", now=LATER)
    assert store.read("me", tombstone_rows.tombstones) == [
        Tombstone(id="x1", ids=[], reason="asked \x00", at=NOW, how="query", undone=True),
        Tombstone(id="x2", ids=[first], reason="", at=LATER),
    ]
    assert store.read("you", tombstone_rows.tombstones) == []


def test_turns_that_would_be_refused_are_counted_and_nothing_is_written(store: Store) -> None:
    long = "The garden gate is open on Sundays, they said."
    (turn,) = append(store, user(long, said_at=NOW))
    again = [user(long, said_at=NOW), user("something new"), user(f"  {long.upper()}", said_at=NOW)]
    assert store.read("me", turn_rows.count_forgotten, "s", again) == 0
    store.write("me", tombstone_rows.forget, [turn], reason="", now=LATER)
    before = store.read("me", home_rows.last_change)
    assert store.read("me", turn_rows.count_forgotten, "s", again) == 2
    assert store.read("you", turn_rows.count_forgotten, "s", again) == 0
    assert store.read("me", home_rows.last_change) == before
    assert [
        one.content for one in store.write("me", turn_rows.append, "s", turn_rows.prepare(again), now=LATER).stored
    ] == ["something new"]


def test_a_forgotten_result_is_refused_or_left_forgotten(store: Store) -> None:
    ref = take_result(store, b"secret")
    store.write("me", tombstone_rows.forget, [ref], reason="", now=NOW)
    with pytest.raises(Refused):
        store.write("me", ref_rows.put, new_ref(b"secret"))
    assert store.write("me", ref_rows.put, new_ref(b"secret"), refuse=False).id == ref
    with pytest.raises(NotFound):
        store.read("me", ref_rows.by_id, ref)


# --- purging ----------------------------------------------------------------------------------------


def exported(store: Store, space: str = "me") -> str:
    """Return everything that a space exports, as text."""
    rows: list[Row] = []
    store.export_rows([space], lambda _, row: rows.append(row))
    return repr(rows)


def purge(store: Store, *tombstones: str, space: str = "me") -> Purged:
    return store.purge(space, Purge(tombstones=tombstones), now=LATER)


def test_a_purge_erases_the_words_of_a_tombstone_and_says_which(store: Store) -> None:
    (turn, _) = append(store, user("The passphrase is heron", name="Ann"), assistant("Noted."))
    told = remember(store, "Has a heron", entity="user", relation="has", value="heron")
    ref = take_result(store, b"heron heron")
    ids = [turn, told, ref]
    tombstone = store.write("me", tombstone_rows.forget, ids, reason="", now=NOW)
    done = purge(store, tombstone.id)
    assert (done.tombstones, done.turns, done.atoms, done.refs) == (["x1"], 2, 1, 1)  # the note is a turn too
    assert {b"The passphrase is heron", b"Ann", b"Has a heron", b"heron", b"heron heron"} <= set(done.texts)
    (kept,) = store.read("me", tombstone_rows.tombstones)
    assert (kept.purged, kept.undone, len(kept.ids)) == (True, False, 3)
    assert {turn, told} <= set(kept.ids)
    assert ref not in kept.ids  # it is a hash of what was erased
    assert [one.content for one in store.read("me", turn_rows.session_turns, "s")] == ["Noted."]
    with pytest.raises(NotFound, match="purged"):
        store.write("me", tombstone_rows.undo, tombstone.id, now=LATER)


def test_what_was_purged_is_still_recognised_and_its_number_stays_taken(store: Store) -> None:
    long = user("The garden gate is open on Sundays, they said.", said_at=NOW)
    (turn,) = append(store, long)
    told, ref = remember(store, "Has a heron"), take_result(store, b"heron")
    purge(store, store.write("me", tombstone_rows.forget, [turn, told, ref], reason="", now=LATER).id)
    assert store.write("me", turn_rows.append, "s", turn_rows.prepare([long]), now=LATER).stored == []
    assert append(store, user("the next one")) == ["t3"]
    with pytest.raises(Refused):
        store.write("me", atom_rows.add, atom("has a HERON"), now=NOW)
    with pytest.raises(Refused):
        store.write("me", ref_rows.put, new_ref(b"heron"))


@pytest.mark.parametrize("wrong", ["x2", "x9", "t1", "\x00"])
def test_a_purge_of_what_cannot_be_purged_changes_nothing(store: Store, wrong: str) -> None:
    first, second = append(store, user("first"), user("second"))
    store.write("me", tombstone_rows.forget, [first], reason="", now=NOW)
    store.write("me", tombstone_rows.forget, [second], reason="", now=NOW)
    store.write("me", tombstone_rows.undo, "x2", now=NOW)
    with pytest.raises(NotFound):
        purge(store, "x1", wrong)
    with pytest.raises(NotFound):
        purge(store, "x1", space="you")
    assert [one.purged for one in store.read("me", tombstone_rows.tombstones)] == [False, False]
    assert purge(store, "x1").texts == [b"first"]
    with pytest.raises(NotFound):
        purge(store, "x1")


def test_a_purge_rewrites_the_pages_that_quoted_the_words(store: Store) -> None:
    told, other = remember(store, "Has asthma"), remember(store, "Walks")
    for version, body in ((0, f"- Has asthma ({told}).\n- Walks ({other})."), (1, f"- Walks a lot ({other}).")):
        edit = SceneEdit(
            action="update" if version else "create",
            slug="health", reason="r", title="Health", summary="Has asthma", body=body, atoms=(told, other),
        )  # fmt: skip
        store.write("me", stage_outputs.commit, None, SceneChanges(edits=[edit]), outcome={}, now=NOW)
    store.write("me", stage_outputs.commit, None, PersonaPage(text="Has asthma. Walks."), outcome={}, now=NOW)
    tombstone = store.write("me", tombstone_rows.forget, [told], reason="", now=NOW)
    store.purge("me", Purge(tombstones=[tombstone.id], personas={1: "Walks."}), now=LATER)
    bodies = [scene.body for scene in store.read("me", page_rows.scene_versions, "health")]
    assert ["asthma" in body for body in bodies] == [False, False]
    assert ["Walks" in body for body in bodies] == [True, True]
    assert [page.text for page in store.read("me", page_rows.persona_versions)] == ["Walks."]
    assert "asthma" not in exported(store)


def test_a_purge_of_a_result_erases_its_record_and_the_history_of_its_canvas(store: Store) -> None:
    ref = take_result(store, b"heron")
    store.write(
        "me",
        record_rows.commit_step,
        record=record(ref=ref, summary="a heron"),
        canvas=canvas(text="heron"),
        expected=0,
    )
    redrawn = CanvasChange(row=canvas(text="flowchart TD\n", version=1), kind="forgotten", detail=f'["{ref}"]')
    tombstone = store.write("me", tombstone_rows.forget, [ref], reason="", now=NOW, redrawn=[redrawn])
    assert [step.record.summary for step in store.read("me", record_rows.canvas_steps, 1)] == ["a heron"]
    purge(store, tombstone.id)
    assert [step.record.summary for step in store.read("me", record_rows.canvas_steps, 1)] == [FORGOTTEN]
    assert store.read("me", canvas_rows.canvas, 1).text == "flowchart TD\n"
    assert [version.is_erased for version in store.read("me", canvas_rows.versions, 1)] == [True, False]
    with pytest.raises(NotFound):
        store.read("me", canvas_rows.canvas, 1, version=1)
    assert "heron" not in exported(store)


def test_a_purge_of_a_result_erases_the_name_of_its_step(store: Store) -> None:
    ref, step = take_result(store, b"log"), '{"title":"call the heron"}'
    store.write("me", record_rows.commit_step, record=record(ref=ref), canvas=canvas(), expected=0, step=step)
    gone = store.write("me", tombstone_rows.forget, [ref], reason="", now=NOW)
    assert b"call the heron" in purge(store, gone.id).texts
    assert [taken.step for taken in store.read("me", record_rows.canvas_steps, 1)] == [None]


def test_a_forgotten_task_can_be_forgotten_again_after_it_changed(store: Store) -> None:
    store.write("me", canvas_rows.save, canvas(), expected=0)
    bare = CanvasChange(row=canvas(label=FORGOTTEN, version=1), kind="forgotten", detail='["001"]')
    store.write("me", tombstone_rows.forget, ["001"], reason="", now=NOW, redrawn=[bare])
    with pytest.raises(NotFound, match="001"):
        store.read("me", tombstone_rows.reach_of, ["001"])
    store.write("me", canvas_rows.save, canvas(label=FORGOTTEN, text="heron"), expected=2, kind="patched")
    assert store.read("me", tombstone_rows.reach_of, ["001"]).tasks == ("001",)


def test_a_purge_leaves_other_spaces_alone(store: Store) -> None:
    for space in ("me", "you"):
        append(store, user("The passphrase is heron"), space=space)
        store.write(space, tombstone_rows.forget, ["t1"], reason="", now=NOW)
    purge(store, "x1")
    store.write("you", tombstone_rows.undo, "x1", now=LATER)
    assert words(store, "heron", space="you") == ["t1"]
    assert store.read("you", turn_rows.by_ids, ["t1"])[0].content == "The passphrase is heron"


WORDS = ("heron", "kettle", "garden", "Porto", "cello")


@pytest.mark.timeout(600)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(gone=st.sets(st.sampled_from(WORDS), min_size=1))
def test_after_a_purge_no_answer_has_a_word_of_it(store: Store, gone: set[str]) -> None:
    space = uuid4().hex
    ids = dict(zip(WORDS, append(store, *[user(f"About {word}") for word in WORDS], space=space), strict=True))
    told = {word: remember(store, f"Knows {word}", space=space) for word in WORDS}
    refs = {word: take_result(store, word.encode(), space=space) for word in WORDS}
    tombstones = [
        store.write(space, tombstone_rows.forget, [ids[word], told[word], refs[word]], reason="", now=NOW).id
        for word in sorted(gone)
    ]
    purge(store, *tombstones, space=space)
    everything = _everything(store, space, [*ids.values(), *told.values()])
    assert {word for word in WORDS if word in everything} == set(WORDS) - gone


def _everything(store: Store, space: str, ids: Sequence[str]) -> str:
    answers = (
        store.read(space, turn_rows.session_turns, "s"),
        store.read(space, turn_rows.by_ids, [id for id in ids if id[0] == "t"]),
        store.read(space, atom_rows.by_ids, [id for id in ids if id[0] == "a"]),
        store.read(space, atom_rows.list_atoms, filters=Filters()),
        store.read(space, quarantine_rows.list_quarantined, ids),
        store.read(space, turn_rows.context_windows, [id for id in ids if id[0] == "t"], around=9),
    )
    return repr(answers) + exported(store, space)


# --- undoing a correction ---------------------------------------------------------------------------


def live_in(store: Store, place: str, **more: Any) -> str:
    return remember(
        store, f"Lives in {place}", entity="user", relation="lives_in", value=place, single_valued=True, **more
    )


def places(store: Store) -> list[tuple[str, bool]]:
    facts = store.read("me", atom_rows.facts, filters=Filters(entity="user", ended=True))
    return [(fact.value, fact.valid_to is None) for fact in facts]


def test_a_correction_that_is_undone_is_forgotten_and_what_it_replaced_holds_again(store: Store) -> None:
    old = live_in(store, "Bergen")
    before = store.read("me", atom_rows.by_ids, [old])
    new = live_in(store, "Oslo", supersedes=[old], because="moved")
    assert places(store) == [("Bergen", False), ("Oslo", True)]
    tombstone = store.write("me", tombstone_rows.forget, [new], reason="", how="correction", now=LATER)
    assert (tombstone.ids, tombstone.how) == ([new], "correction")
    assert (store.read("me", atom_rows.by_ids, [old, new]), places(store)) == (before, [("Bergen", True)])


def test_a_correction_that_is_brought_back_replaces_the_same_statements_again(store: Store) -> None:
    old = live_in(store, "Bergen")
    new = live_in(store, "Oslo", supersedes=[old], because="moved")
    then = store.read("me", atom_rows.by_ids, [old, new])
    tombstone = store.write("me", tombstone_rows.forget, [new], reason="", how="correction", now=LATER)
    store.write("me", tombstone_rows.undo, tombstone.id, now=LATER)
    assert (store.read("me", atom_rows.by_ids, [old, new]), places(store)) == (
        then,
        [("Bergen", False), ("Oslo", True)],
    )


def test_a_correction_cannot_be_undone_once_it_was_replaced_or_where_it_replaced_nothing(store: Store) -> None:
    old = live_in(store, "Bergen")
    new = live_in(store, "Oslo", supersedes=[old])
    newest = live_in(store, "Paris", supersedes=[new])
    for id, why in ((new, f"{new} was replaced since by {newest}"), (old, f"by {new}")):
        with pytest.raises(InvalidInput, match=why):
            store.write("me", tombstone_rows.forget, [id], reason="", how="correction", now=LATER)
    with pytest.raises(InvalidInput, match="no correction to undo"):
        store.write(
            "me", tombstone_rows.forget, [remember(store, "Owns a kettle")], reason="", how="correction", now=LATER
        )
    assert places(store) == [("Bergen", False), ("Oslo", False), ("Paris", True)]
    assert store.read("me", tombstone_rows.tombstones) == []


def test_undoing_a_correction_never_makes_two_values_of_one_fact_hold(store: Store) -> None:
    old = live_in(store, "Bergen")
    new = remember(store, "Left Bergen", supersedes=[old])
    live_in(store, "Oslo")
    with pytest.raises(InvalidInput, match="only one such fact can hold"):
        store.write("me", tombstone_rows.forget, [new], reason="", how="correction", now=LATER)
    assert places(store) == [("Bergen", False), ("Oslo", True)]
    assert store.read("me", atom_rows.by_ids, [new])
