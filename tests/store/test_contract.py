"""What `store.protocol` promises, of every implementation."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_memory.core.errors import Damaged, InvalidInput, NotFound
from mcp_memory.core.text import with_speaker
from mcp_memory.core.types import CanvasRow, Fact, Group, NewTurn, PersonaVersion, Record, SessionInfo
from mcp_memory.language.words import index_terms
from mcp_memory.store.protocol import EmbeddedStore, Store
from mcp_memory.store.sql import (
    atom_rows,
    canvas_rows,
    home_rows,
    job_rows,
    page_rows,
    record_rows,
    ref_rows,
    stage_outputs,
    tombstone_rows,
    turn_rows,
    word_index,
)
from mcp_memory.store.values import (
    Change,
    Conflict,
    Filters,
    IndexProgress,
    NearestQuery,
    NewAtom,
    NewRef,
    PersonaPage,
    TakenStep,
    VectorIndex,
    Vectors,
)

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
ANY = Filters()


def user(content: str, **more: Any) -> NewTurn:
    return NewTurn(role="user", content=content, **more)


def assistant(content: str, **more: Any) -> NewTurn:
    return NewTurn(role="assistant", content=content, **more)


def append(store: Store, *turns: NewTurn, session: str = "s", space: str = "me", now: datetime = NOW) -> list[str]:
    return [turn.id for turn in store.write(space, turn_rows.append, session, turn_rows.prepare(turns), now=now).stored]


def atom(text: str, **more: Any) -> NewAtom:
    given: dict[str, Any] = {"kind": "persona", "priority": 80, "confidence": 1.0, "session": "s", "valid_from": NOW}
    return NewAtom(text=text, **{**given, **more})


def vectors(*rows: list[float], identity: str = "test/4") -> Vectors:
    return Vectors(identity=identity, data=np.array(rows, dtype=np.float32))


def words(store: Store, text: str, *, filters: Filters = ANY, space: str = "me") -> list[str]:
    """Return the turns that hold a term of the text and pass, those with most of them first, then the newest."""
    found = [
        row
        for posting in store.postings(space, "turn", index_terms(text), filters=filters)
        for row in posting.rows.tolist()
    ]
    held = Counter(store.turn_metadata(space, np.array(found, np.int64), filters=filters).passing(found))
    return [f"t{row}" for row in sorted(held, key=lambda row: (-held[row], -row))]


# --- turns ------------------------------------------------------------------------------------------


def test_turns_come_back_verbatim_in_order_with_positions(store: Store) -> None:
    said = [user("  Hallo Welt \x00 ∂🎉\r\n", name="Ann"), assistant("ok", said_at=NOW - timedelta(days=3))]
    stored = store.write("me", turn_rows.append, "s", turn_rows.prepare(said), now=NOW).stored
    assert stored == store.read("me", turn_rows.session_turns, "s")
    assert [(t.position, t.role, t.name, t.content, t.said_at, t.learned_at) for t in stored] == [
        (0, "user", "Ann", "  Hallo Welt \x00 ∂🎉\r\n", NOW, NOW),
        (1, "assistant", None, "ok", NOW - timedelta(days=3), NOW),
    ]


def test_the_hash_of_a_turn_depends_on_every_field_the_client_gave(store: Store) -> None:
    base = user("same", said_at=NOW)
    others = [assistant("same", said_at=NOW), replace(base, name="x"), replace(base, content="same "), user("same")]
    hashes = {
        t.sha256 for t in store.write("me", turn_rows.append, "s", turn_rows.prepare([base, *others]), now=NOW).stored
    }
    assert len(hashes) == 5


def test_a_growing_history_sent_again_and_again_is_stored_once(store: Store) -> None:
    history = [user("one"), assistant("two"), user("one"), assistant("four")]
    counts = [store.write("me", turn_rows.append, "s", turn_rows.prepare(history[:end]), now=NOW) for end in (2, 4, 4)]
    assert [(len(done.stored), done.duplicates) for done in counts] == [(2, 0), (2, 2), (0, 4)]
    assert [t.content for t in store.read("me", turn_rows.session_turns, "s")] == ["one", "two", "one", "four"]


def test_a_window_that_overlaps_the_end_adds_only_what_is_new(store: Store) -> None:
    append(store, user("a"), assistant("b"), user("c"))
    assert len(append(store, assistant("b"), user("c"), assistant("d"))) == 1


def test_an_earlier_call_tried_again_late_adds_nothing(store: Store) -> None:
    append(store, user("a"), assistant("b"))
    append(store, user("c"), assistant("d"))
    assert append(store, user("a"), assistant("b")) == []


def test_a_lone_message_said_again_later_is_kept(store: Store) -> None:
    append(store, user("yes"), assistant("Done."))
    assert len(append(store, user("yes"))) == 1


def test_a_client_id_tells_a_repeat_from_a_retry(store: Store) -> None:
    append(store, user("yes", client_id="m1"))
    again = store.write(
        "me",
        turn_rows.append,
        "s",
        turn_rows.prepare([user("yes", client_id="m1"), user("yes", client_id="m2")]),
        now=NOW,
    )
    assert (len(again.stored), again.duplicates) == (1, 1)


def test_an_edited_message_is_kept_beside_the_first_one(store: Store) -> None:
    append(store, user("teh cat", client_id="m1"))
    append(store, user("the cat", client_id="m1"))
    assert [t.content for t in store.read("me", turn_rows.session_turns, "s")] == ["teh cat", "the cat"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cuts=st.lists(st.integers(2, 12), min_size=1, max_size=6))
def test_however_a_conversation_is_cut_and_resent_it_is_stored_once(store: Store, cuts: list[int]) -> None:
    space = uuid4()  # each example has a store of its own
    history = [(user if i % 2 == 0 else assistant)(f"message {i}") for i in range(12)]
    for end in [*cuts, 12]:
        append(store, *history[: max(cuts[0], end)], space=str(space))
    assert [t.content for t in store.read(str(space), turn_rows.session_turns, "s")] == [t.content for t in history]


def test_the_surroundings_of_several_turns_hold_each_turn_once_by_session_in_order(store: Store) -> None:
    ids = append(store, *[user(str(i)) for i in range(9)])
    (other,) = append(store, user("elsewhere"), session="other")
    store.write("me", tombstone_rows.forget, [ids[5]], reason="", now=NOW)
    around = store.read("me", turn_rows.context_windows, [other, ids[7], ids[2], ids[4]], around=1)
    assert [t.content for t in around] == ["1", "2", "3", "4", "6", "7", "8", "elsewhere"]
    assert store.read("nobody", turn_rows.context_windows, ids, around=1) == []
    assert store.read("me", turn_rows.context_windows, [], around=1) == []


def test_a_search_can_be_held_to_the_rows_that_were_there_before(store: Store) -> None:
    (held,) = append(store, user("green kettle"))
    told = store.write("me", atom_rows.add, atom("Owns a green kettle"), now=NOW).atom.id
    upto = {"turn": store.totals("me", "turn").newest, "atom": store.totals("me", "atom").newest}
    append(store, user("another green kettle"))
    store.write("me", atom_rows.add, atom("Owns another green kettle"), now=NOW)
    assert words(store, "kettle", filters=Filters(upto=upto["turn"])) == [held]
    (posting,) = store.postings("me", "atom", ["kettl"], filters=Filters(upto=upto["atom"]))
    assert [f"a{row}" for row in posting.rows.tolist()] == [told]
    assert [a.id for a in store.read("me", atom_rows.list_atoms, filters=Filters(upto=upto["atom"]))] == [told]


def test_the_last_turns_are_the_newest_of_their_roles_oldest_first(store: Store) -> None:
    append(store, user("u1"), assistant("a1"), user("u2"), assistant("a2"), NewTurn(role="tool", content="t"))
    last = store.read("me", turn_rows.last_turns, "s", limit=3, roles=("user", "assistant"))
    assert [t.content for t in last] == ["a1", "u2", "a2"]


def test_turns_are_listed_by_the_time_they_were_said_newest_first(store: Store) -> None:
    days = (3, 1, 2, 3)
    said = [NewTurn(role="user", content=f"t{n}", said_at=NOW + timedelta(days=day)) for n, day in enumerate(days)]
    append(store, *said, NewTurn(role="assistant", content="reply", said_at=NOW))
    store.write("me", atom_rows.add, atom("Owns a green kettle"), now=NOW)
    assert [t.content for t in store.read("me", turn_rows.list_turns, filters=Filters())] == [
        "t3",
        "t0",
        "t2",
        "t1",
        "reply",
    ]
    first, second = store.read("me", turn_rows.list_turns, filters=Filters(role="user"), limit=2)
    rest = store.read(
        "me", turn_rows.list_turns, filters=Filters(role="user", since=NOW + timedelta(days=2)), after=second.id
    )
    assert [t.content for t in (first, second, *rest)] == ["t3", "t0", "t2"]


def test_sessions_are_listed_by_their_latest_writing(store: Store) -> None:
    append(store, user("x"), session="a")
    append(store, user("y"), session="b", now=NOW + timedelta(hours=1))
    append(store, user("z"), session="a", now=NOW + timedelta(hours=2))
    assert store.read("me", turn_rows.sessions) == [
        SessionInfo(session="a", turns=2, first=NOW, last=NOW + timedelta(hours=2)),
        SessionInfo(session="b", turns=1, first=NOW + timedelta(hours=1), last=NOW + timedelta(hours=1)),
    ]
    assert [info.session for info in store.read("me", turn_rows.sessions, prefix="b")] == ["b"]


def test_the_journal_has_a_line_for_each_turn_and_each_thing_told(embedded: EmbeddedStore) -> None:
    append(embedded, user("Grüße\u2028zwei"), session="s", now=NOW)
    embedded.write("me", atom_rows.add, atom("Likes tea"), now=NOW)
    lines = (embedded.folder("me") / "conversations" / "2026-11-20.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["content"] for line in lines] == ["Grüße\u2028zwei", "Likes tea"]
    assert json.loads(lines[1])["told"]["kind"] == "persona"


def test_a_journal_that_lost_lines_is_written_whole_by_the_next_turn(embedded: EmbeddedStore) -> None:
    append(embedded, user("first"), assistant("second"))
    journal = embedded.folder("me") / "conversations" / "2026-11-20.jsonl"
    whole = journal.read_bytes()
    journal.write_bytes(whole[:50])
    assert embedded.problems() == [
        "me: conversations/2026-11-20.jsonl is not what the database has; `mcp-memory doctor --repair` writes it from "
        "the database."
    ]
    append(embedded, user("third"))
    assert journal.read_bytes().startswith(whole)
    assert len(journal.read_bytes().splitlines()) == 3
    assert embedded.problems() == []


def test_a_journal_that_is_longer_than_its_rows_is_kept_beside_and_written_whole(embedded: EmbeddedStore) -> None:
    append(embedded, user("first"))
    journal = embedded.folder("me") / "conversations" / "2026-11-20.jsonl"
    with journal.open("ab") as file:
        file.write(b'{"turn":"t2","cont\n')
    longer = journal.read_bytes()
    append(embedded, user("second"))
    assert [json.loads(line)["content"] for line in journal.read_bytes().splitlines()] == ["first", "second"]
    assert embedded.kept_beside("me") == [beside := journal.with_name(f"{journal.name}.beyond-1")]
    assert beside.read_bytes() == longer
    assert embedded.problems() == [
        "me: conversations/2026-11-20.jsonl.beyond-1 has 2 lines, some of which the database may lack. "
        "`mcp-memory doctor --repair` adds what is missing."
    ]


# --- spaces -----------------------------------------------------------------------------------------


def test_no_verb_sees_another_space(store: Store) -> None:
    (turn,) = append(store, user("secret garden"), space="mine")
    told = store.write(
        "mine", atom_rows.add, atom("Owns a garden", entity="user", relation="owns", value="garden"), now=NOW
    )
    ref = store.write("mine", ref_rows.put, new_ref(b"data"))
    store.write("mine", record_rows.commit_step, record=record(), canvas=canvas(), expected=0)
    tomb = store.write("mine", tombstone_rows.forget, [ref.id], reason="", now=NOW)
    append(store, user("mine is bare"), space="theirs")
    theirs = "theirs"
    assert [one.content for one in store.read(theirs, turn_rows.by_ids, [turn, "t2"])] == [
        "mine is bare"
    ]  # of the same number
    assert store.read(theirs, turn_rows.session_turns, "s")[0].content == "mine is bare"
    assert [one.content for one in store.read(theirs, turn_rows.context_windows, [turn], around=5)] == ["mine is bare"]
    assert store.read(theirs, atom_rows.by_ids, [told.atom.id]) == []
    assert store.read(theirs, atom_rows.facts, filters=ANY) == []
    assert words(store, "secret garden", space=theirs) == []
    assert store.read(theirs, canvas_rows.list_canvases) == []
    assert store.read(theirs, record_rows.list_records) == []
    assert store.read(theirs, canvas_rows.active_canvas) is None
    for unknown in (
        lambda: store.read(theirs, ref_rows.by_id, ref.id),
        lambda: store.read(theirs, canvas_rows.canvas, 1),
        lambda: store.write(theirs, tombstone_rows.forget, ["t2"], reason="", now=NOW),
        lambda: store.write(theirs, tombstone_rows.undo, tomb.id, now=NOW),
    ):
        with pytest.raises(NotFound):
            unknown()
    assert store.read_home(home_rows.spaces) == ["mine", "theirs"]


def test_rows_are_numbered_within_their_space_without_gaps(store: Store) -> None:
    for text in ("one", "two"):
        for space in ("mine", "theirs"):
            append(store, user(text), space=space)
        with pytest.raises(NotFound):
            store.write("mine", atom_rows.add, atom("x", supersedes=("a9",)), now=NOW)
    assert [turn.id for turn in store.read("mine", turn_rows.session_turns, "s")] == ["t1", "t2"]
    assert [turn.id for turn in store.read("theirs", turn_rows.session_turns, "s")] == ["t1", "t2"]
    assert store.write("mine", atom_rows.add, atom("x"), now=NOW).atom.id == "a1"


# --- search -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("I was walking the dogs", "walk dog"),
        ("我喜欢喝绿茶", "绿茶"),
        ("我喜欢喝绿茶", "茶"),
        ("ฉันชอบกินข้าว", "ข้าว"),
        ("서울에서 만났어요", "서울"),
        ("Я купила новые книги", "книга"),
        ("el café de mañana", "cafe manana"),
        ("ＦＵＬＬ ｗｉｄｔｈ", "full width"),
        ("see foo_bar.py line 3", "foo_bar.py"),
        ("see foo_bar.py line 3", "bar"),
        ("set maxConnections=5", "connections"),
        ("PR#4831 was merged", "4831"),
        ("written in C++ and C#", "C++"),
        ("party 🎉 tonight", "🎉"),
    ],
)
def test_words_are_found_in_any_script(store: Store, text: str, query: str) -> None:
    append(store, user("something else entirely"), assistant("nothing here"))
    (wanted,) = append(store, user(text))
    assert words(store, query) == [wanted]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text())
def test_a_search_never_raises_for_any_text(store: Store, text: str) -> None:
    store.postings("me", "turn", index_terms(text), filters=ANY)
    store.postings("me", "atom", [text], filters=ANY, also=[text, text])


def test_postings_name_the_terms_that_no_row_has_if_asked(store: Store) -> None:
    append(store, user("The ferry leaves at noon."))
    found = store.postings("me", "turn", ["submarin", "ferri"], filters=ANY, absent=True)
    assert [(posting.term, posting.documents, len(posting.rows)) for posting in found] == [
        ("ferri", 1, 1),
        ("submarin", 0, 0),
    ]
    assert [posting.term for posting in store.postings("me", "turn", ["submarin", "ferri"], filters=ANY)] == ["ferri"]


def test_a_term_of_which_most_was_forgotten_is_rare_again(store: Store) -> None:
    many = [NewTurn(role="user", content=f"ferry {i}", client_id=f"{i}") for i in range(1_500)]
    stored = store.write("me", turn_rows.append, "s", turn_rows.prepare(many), now=NOW).stored
    store.write(
        "me", turn_rows.append, "s", turn_rows.prepare([NewTurn(role="user", content="apples, pears")]), now=NOW
    )

    def terms() -> set[str]:
        found = store.postings("me", "turn", index_terms("ferry apples pears"), filters=ANY)
        return {posting.term for posting in found}

    rare = set(index_terms("apples pears"))
    assert terms() == rare
    store.write("me", tombstone_rows.forget, [turn.id for turn in stored[3:]], reason="", now=NOW)
    assert terms() == rare.union(index_terms("ferry"))


@pytest.mark.parametrize("query", ['"', "a AND b", "NEAR(x y)", "terms:a", "x*", "-a", "^b", "(", "a OR"])
def test_search_syntax_is_taken_for_words(store: Store, query: str) -> None:
    (wanted,) = append(store, user(f"say {query} loudly ab"))
    assert words(store, query) == [wanted] or index_terms(query) == []


def test_filters_apply_before_ranking(store: Store) -> None:
    append(store, *[user("apple pie " * 3) for _ in range(40)], session="loud")
    (old,) = append(store, user("an apple", said_at=NOW - timedelta(days=30)), session="quiet")
    (new,) = append(store, assistant("one apple"), session="quiet")
    day = timedelta(days=1)
    for filters, ids in [
        (Filters(session="quiet"), {old, new}),
        (Filters(role="assistant"), {new}),
        (Filters(until=NOW - day), {old}),
        (Filters(session="quiet", since=NOW - day), {new}),
        (Filters(session="nowhere"), set[str]()),
    ]:
        assert set(words(store, "apple", filters=filters)) == ids


def test_the_mark_of_rules_in_turns_that_an_earlier_version_indexed_changes_no_answer(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = [user("Never use the kettle in the office"), user("A rule: \ue000rule"), assistant("The kettle leaks")]

    def indexed(content: str, name: str | None) -> list[str]:
        return [*index_terms(with_speaker(content, name)), "\ue000rule"]

    append(store, *said, space="new")
    monkeypatch.setattr(word_index, "terms_of_turn", indexed)
    append(store, *said, space="old")
    monkeypatch.undo()
    gone = {space: store.write(space, tombstone_rows.forget, ["t1"], reason="", now=NOW).id for space in ("new", "old")}
    store.write("old", tombstone_rows.undo, gone["old"], now=NOW)
    store.write("new", tombstone_rows.undo, gone["new"], now=NOW)
    for query in ("kettle", "rule", "\ue000rule", "\ue000"):
        assert words(store, query, space="old") == words(store, query, space="new")
    assert words(store, "\ue000rule", space="old") == ["t2"]
    assert store.totals("old", "turn") == store.totals("new", "turn")
    assert store.index_progress().stale_terms == 0
    assert store.problems() == []


def test_the_nearest_rows_come_first_within_filters(store: Store) -> None:
    data = vectors([1, 0, 0, 0], [0.9, 0.1, 0, 0], [0, 1, 0, 0])
    stored = store.write(
        "me", turn_rows.append, "s", turn_rows.prepare([user("a"), assistant("b"), user("c")]), now=NOW, vectors=data
    ).stored
    a, b, c = (turn.id for turn in stored)
    near = store.nearest("me", "turn", vectors([1, 0, 0, 0]), filters=ANY, limit=3)
    assert [hit.id for hit in near] == [a, b, c]
    assert near[0].score == pytest.approx(1.0, abs=0.02)
    only = store.nearest("me", "turn", vectors([1, 0, 0, 0]), filters=Filters(role="assistant"), limit=3)
    assert [hit.id for hit in only] == [b]


def test_queries_with_different_filters_are_answered_together_though_one_allows_no_row(store: Store) -> None:
    data = vectors([1, 0, 0, 0])
    store.write("me", turn_rows.append, "s", turn_rows.prepare([user("a")]), now=NOW, vectors=data)
    asked = [NearestQuery(data, Filters(role=role), 3) for role in ("user", "assistant")]
    found, of_nobody = store.nearest_to_each("me", "turn", asked)
    assert ([hit.id for hit in found], of_nobody) == (["t1"], [])


def test_the_vectors_of_rows_are_those_that_were_stored(store: Store) -> None:
    data = vectors([1, 0, 0, 0], [0.6, 0.8, 0, 0])
    a, b = (
        turn.id
        for turn in store.write(
            "me", turn_rows.append, "s", turn_rows.prepare([user("a"), user("b")]), now=NOW, vectors=data
        ).stored
    )
    found = store.vectors_of("me", "turn", [a, b, "t99"], data.identity)
    assert set(found) == {a, b}
    assert found[b] == pytest.approx([0.6, 0.8, 0, 0], abs=0.02)
    assert store.vectors_of("others", "turn", [a], data.identity) == {}
    assert store.vectors_of("me", "turn", [a], "another model") == {}


def test_many_rows_are_searched_as_exactly_as_few(store: Store) -> None:
    rng = np.random.default_rng(7)
    data = rng.normal(size=(6_000, 64)).astype(np.float32)
    data[4_321] = data[17] + 0.05
    store.write(
        "me",
        turn_rows.append,
        "s",
        turn_rows.prepare([user(f"n{i}") for i in range(6_000)]),
        now=NOW,
        vectors=Vectors(identity="test/64", data=data),
    )
    query = Vectors(identity="test/64", data=data[17:18])
    assert [hit.id for hit in store.nearest("me", "turn", query, filters=ANY, limit=2)] == ["t18", "t4322"]


def test_an_unknown_model_finds_nothing_and_a_zero_vector_too(store: Store) -> None:
    store.write("me", turn_rows.append, "s", turn_rows.prepare([user("a")]), now=NOW, vectors=vectors([0, 0, 0, 0]))
    assert store.nearest("me", "turn", vectors([1, 0, 0, 0], identity="other"), filters=ANY, limit=3) == []
    assert store.nearest("me", "turn", vectors([0, 0, 0, 0]), filters=ANY, limit=3) == []


def test_equal_scores_are_ordered_newest_first(store: Store) -> None:
    ids = append(store, *[user("same words", client_id=str(i)) for i in range(3)])
    assert words(store, "same") == ids[::-1]


# --- vector indexes ---------------------------------------------------------------------------------


@pytest.mark.parametrize("query", [[1, 0], [1, 0, 0, 0, 0, 0, 0, 0]])
def test_a_model_that_changed_its_width_behind_its_name_finds_nothing(store: Store, query: list[float]) -> None:
    store.write("me", turn_rows.append, "s", turn_rows.prepare([user("near")]), now=NOW, vectors=vectors([1, 0, 0, 0]))
    assert store.nearest("me", "turn", vectors(query), filters=ANY, limit=3) == []


def test_rows_without_vectors_are_the_queue_of_each_model(store: Store) -> None:
    append(store, user("one", name="Ann"), assistant("two"))
    written = store.write("me", atom_rows.add, atom("three"), now=NOW).atom
    assert store.unembedded("me", "m", limit=10) == [
        (written.id, "three"),
        ("t1", "one"),
        ("t2", "two"),
    ]
    assert store.index_progress().embeddable == 3
    store.put_vectors([("me", "t2"), ("me", written.id)], vectors([1, 0, 0, 0], [0, 1, 0, 0], identity="m"))
    assert store.unembedded("me", "m", limit=10) == [("t1", "one")]
    store.put_vectors([("me", "t1"), ("me", "t2")], vectors([0, 0, 1, 0], [0, 0, 0, 1], identity="m"))
    assert store.index_progress() == IndexProgress(
        embeddable=3,
        vectors=[VectorIndex(identity="m", dimensions=4, embedded=3)],
        stale_terms=0,
        unindexed_refs=0,
    )
    (hit,) = store.nearest("me", "turn", vectors([1, 0, 0, 0], identity="m"), filters=ANY, limit=1)
    assert hit.id == "t2"  # the vector that came first stays
    store.drop_vector_index("m")
    assert store.index_progress().vectors == []


def test_one_model_cannot_have_two_widths(store: Store) -> None:
    append(store, user("one"), assistant("two"))
    store.put_vectors([("me", "t1")], vectors([1, 0, 0, 0], identity="m"))
    with pytest.raises(InvalidInput, match="vectors of 8 numbers"):
        store.put_vectors([("me", "t2")], vectors([1, 0, 0, 0, 0, 0, 0, 0], identity="m"))


def test_rows_that_lose_their_vectors_are_in_the_queue_again(store: Store) -> None:
    append(store, user("one"), assistant("two"))
    store.put_vectors([("me", "t1"), ("me", "t2")], vectors([1, 0, 0, 0], [0, 1, 0, 0], identity="m"))
    assert store.unembedded("me", "m", limit=10) == []
    forgotten = store.write("me", tombstone_rows.forget, ["t1"], reason="", now=NOW)
    assert store.unembedded("me", "m", limit=10) == []
    store.write("me", tombstone_rows.undo, forgotten.id, now=NOW)
    assert store.unembedded("me", "m", limit=10) == [("t1", "one")]
    store.drop_vector_index("m")
    assert store.unembedded("me", "m", limit=10) == [("t1", "one"), ("t2", "two")]


def test_vectors_of_any_width_are_kept(store: Store) -> None:
    stored = store.write(
        "me",
        turn_rows.append,
        "s",
        turn_rows.prepare([user("a"), user("b")]),
        now=NOW,
        vectors=vectors([1, 0, 0], [0, 0, 1], identity="three"),
    ).stored
    hits = store.nearest("me", "turn", vectors([0, 0, 1], identity="three"), filters=ANY, limit=1)
    assert [hit.id for hit in hits] == [stored[1].id]


# --- atoms ------------------------------------------------------------------------------------------


def test_an_atom_rests_on_a_note_of_the_same_words(store: Store) -> None:
    held = store.write("me", atom_rows.add, atom("Plays the cello"), now=NOW).atom
    (note,) = store.read("me", turn_rows.by_ids, [held.evidence])
    assert (note.role, note.content[slice(*held.span)]) == ("note", "Plays the cello")


def test_a_single_valued_fact_closes_the_one_before_and_keeps_it(store: Store) -> None:
    fact = {"entity": "user", "relation": "lives_in", "single_valued": True}
    berlin = store.write("me", atom_rows.add, atom("Lives in Berlin", value="Berlin", **fact), now=NOW).atom
    later = NOW + timedelta(days=9)
    done = store.write("me", atom_rows.add, atom("Lives in Rome", value="Rome", valid_from=later, **fact), now=later)
    assert [(old.id, old.valid_to, old.superseded_by) for old in done.replaced] == [(berlin.id, later, done.atom.id)]
    assert [fact.value for fact in store.read("me", atom_rows.facts, filters=Filters(entity="USER"))] == ["Rome"]
    then = Filters(as_of=NOW + timedelta(days=1))
    assert [fact.value for fact in store.read("me", atom_rows.facts, filters=then)] == ["Berlin"]
    assert [a.id for a in store.read("me", atom_rows.list_atoms, filters=then)] == [berlin.id]


def test_a_relation_with_many_values_keeps_them_all(store: Store) -> None:
    for value in ("tea", "coffee"):
        store.write("me", atom_rows.add, atom(f"Likes {value}", entity="user", relation="likes", value=value), now=NOW)
    assert store.read("me", atom_rows.facts, filters=ANY, relation="likes") == [
        Fact(atom="a1", entity="user", relation="likes", value="tea", valid_from=NOW),
        Fact(atom="a2", entity="user", relation="likes", value="coffee", valid_from=NOW),
    ]


def test_what_an_atom_supersedes_is_closed_never_deleted(store: Store) -> None:
    old = store.write("me", atom_rows.add, atom("Works nights"), now=NOW).atom
    done = store.write("me", atom_rows.add, atom("Works days", supersedes=[old.id]), now=NOW + timedelta(days=1))
    assert [a.superseded_by for a in store.read("me", atom_rows.by_ids, [old.id])] == [done.atom.id]
    with pytest.raises(InvalidInput, match="replaced already by a2"):
        store.write("me", atom_rows.add, atom("Works never", supersedes=[old.id]), now=NOW)
    with pytest.raises(NotFound, match="no atom a99"):
        store.write("me", atom_rows.add, atom("Works never", supersedes=["a99"]), now=NOW)
    assert store.read("me", home_rows.counts).atoms == 2


def test_the_same_statement_twice_is_one_atom(store: Store) -> None:
    first = store.write("me", atom_rows.add, atom("Likes tea."), now=NOW)
    again = store.write("me", atom_rows.add, atom("likes  TEA"), now=NOW)
    assert (again.duplicate, again.atom) == (True, first.atom)
    assert not store.write(
        "me", atom_rows.add, atom("Likes tea", entity="user", relation="likes", value="tea"), now=NOW
    ).duplicate


def test_a_statement_told_again_to_supersede_another_is_held_once(store: Store) -> None:
    old, new = (
        store.write("me", atom_rows.add, atom(text), now=NOW).atom
        for text in ("Allergic to sesame", "Allergic to cashew")
    )
    done = store.write("me", atom_rows.add, atom("allergic to cashew.", supersedes=[old.id]), now=NOW)
    assert [replaced.id for replaced in done.replaced] == [old.id, new.id]
    assert [held.id for held in store.read("me", atom_rows.list_atoms, filters=ANY)] == [done.atom.id]


def test_nothing_ends_before_it_began(store: Store) -> None:
    old = store.write("me", atom_rows.add, atom("A", valid_from=NOW), now=NOW).atom
    early = atom("B", supersedes=[old.id], valid_from=NOW - timedelta(days=99))
    assert [a.valid_to for a in store.write("me", atom_rows.add, early, now=NOW).replaced] == [NOW]


def test_standing_rules_are_listed_first_then_by_priority_then_age(store: Store) -> None:
    for text, priority in [("low", 10), ("high", 90), ("rule", -1), ("high too", 90)]:
        store.write("me", atom_rows.add, atom(text, priority=priority), now=NOW)
    listed = store.read("me", atom_rows.list_atoms, filters=ANY)
    assert [a.text for a in listed] == ["rule", "high", "high too", "low"]
    assert store.read("me", atom_rows.list_atoms, filters=ANY, after=listed[1].id) == listed[2:]


def test_the_persona_is_versioned_and_the_same_text_changes_nothing(store: Store) -> None:
    assert store.read("me", page_rows.persona) is None
    versions = [
        store.write("me", stage_outputs.commit, None, PersonaPage(text=text), outcome={}, now=NOW).version
        for text in ("# A", "# A", "# B")
    ]
    assert versions == [1, 1, 2]
    assert store.read("me", page_rows.persona) == PersonaVersion(
        version=2, text="# B", at=NOW, by_model=False, reason=""
    )
    assert [page.text for page in store.read("me", page_rows.persona_versions)] == ["# B", "# A"]


def test_a_page_without_a_model_takes_no_place_of_a_models_page_that_was_written_meanwhile(store: Store) -> None:
    store.write("me", stage_outputs.commit, None, PersonaPage(text="# listed"), outcome={}, now=NOW)
    work = store.write("me", job_rows.lease, "persona", None, "{}", holder="a", lease=timedelta(hours=1), now=NOW)
    assert work is not None
    store.write("me", stage_outputs.commit, work.id, PersonaPage(text="# by a model"), outcome={}, now=NOW)
    store.write("me", stage_outputs.commit, None, PersonaPage(text="# listed later"), outcome={}, now=NOW)
    page = store.read("me", page_rows.persona)
    assert page is not None
    assert (page.version, page.text, page.by_model) == (2, "# by a model", True)


def test_the_file_of_the_persona_is_its_page(embedded: EmbeddedStore) -> None:
    embedded.write("me", stage_outputs.commit, None, PersonaPage(text="# B"), outcome={}, now=NOW)
    embedded.write_persona_file("me", "# B\n\n- work\n")
    assert (embedded.folder("me") / "persona.md").read_text() == "# B\n\n- work\n"


# --- forgetting -------------------------------------------------------------------------------------


def test_what_is_forgotten_is_in_no_search_or_listing_until_it_is_undone(store: Store) -> None:
    done = store.write(
        "me",
        turn_rows.append,
        "s",
        turn_rows.prepare([user("buried treasure")]),
        now=NOW,
        vectors=vectors([1, 0, 0, 0]),
    )
    turn = done.stored[0].id
    held = store.write(
        "me", atom_rows.add, atom("Buried it", entity="user", relation="buried", value="it"), now=NOW
    ).atom
    ref = store.write("me", ref_rows.put, new_ref(b"map"))
    tomb = store.write("me", tombstone_rows.forget, [turn, held.id, ref.id], reason="asked", now=NOW)
    assert set(tomb.ids) == {turn, held.id, ref.id}
    assert words(store, "treasure") == []
    assert store.nearest("me", "turn", vectors([1, 0, 0, 0]), filters=ANY, limit=5) == []
    assert (
        store.read("me", turn_rows.by_ids, [turn]),
        store.read("me", turn_rows.session_turns, "s"),
        store.read("me", atom_rows.by_ids, [held.id]),
    ) == ([], [], [])
    assert store.read("me", atom_rows.facts, filters=ANY) == []
    with pytest.raises(NotFound):
        store.read("me", ref_rows.read_bytes, ref.id)
    store.write("me", tombstone_rows.undo, tomb.id, now=NOW)
    assert words(store, "treasure") == [turn]
    assert store.unembedded("me", "test/4", limit=9) == [(held.id, "Buried it"), (turn, "buried treasure")]
    assert store.read("me", ref_rows.read_bytes, ref.id) == b"map"
    assert store.read("me", atom_rows.by_ids, [held.id]) == [held]


def test_forgetting_is_all_or_nothing(store: Store) -> None:
    (turn,) = append(store, user("stay"))
    with pytest.raises(NotFound, match="t99"):
        store.write("me", tombstone_rows.forget, [turn, "t99"], reason="", now=NOW)
    assert words(store, "stay") == [turn]


def test_undoing_cannot_make_two_truths_of_one(store: Store) -> None:
    fact = {"entity": "user", "relation": "lives_in", "single_valued": True}
    old = store.write("me", atom_rows.add, atom("In Berlin", value="Berlin", **fact), now=NOW).atom
    tomb = store.write("me", tombstone_rows.forget, [old.id], reason="", now=NOW)
    store.write("me", atom_rows.add, atom("In Rome", value="Rome", **fact), now=NOW)
    with pytest.raises(InvalidInput, match="Rome"):
        store.write("me", tombstone_rows.undo, tomb.id, now=NOW)


# --- refs, records, canvases ------------------------------------------------------------------------


def new_ref(data: bytes, **more: Any) -> NewRef:
    given: dict[str, Any] = {
        "tool": "bash",
        "arguments": {"cmd": "ls"},
        "tool_call_id": "c1",
        "session": "s",
        "timestamp": NOW,
        "content_type": "text/plain",
    }
    return NewRef(data=data, **{**given, **more})


def record(node: str = "001-N1", **more: Any) -> Record:
    given: dict[str, Any] = {
        "timestamp": NOW,
        "node_id": node,
        "tool_call": "bash ls",
        "summary": "3 files",
        "result_ref": "refs/x.md",
        "tool_call_id": "c1",
        "offloaded": True,
        "session": "s",
        "score": 5,
        "tokens_raw": 100,
        "tokens_kept": 10,
        "ref": "r-000000000000",
    }
    return Record(**{**given, **more})


def canvas(number: int = 1, **more: Any) -> CanvasRow:
    given: dict[str, Any] = {
        "number": number,
        "label": "fix-login",
        "session": "s",
        "text": "flowchart TD\n",
        "status": "doing",
        "updated": NOW,
        "version": 0,
    }
    return CanvasRow(**{**given, **more})


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    data=st.binary(),
    tool=st.text(max_size=60),
    arguments=st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.dictionaries(st.text(), inner)
    ),
)
def test_a_ref_reads_back_byte_for_byte_whatever_is_in_it(store: Store, data: bytes, tool: str, arguments: Any) -> None:
    ref = store.write("me", ref_rows.put, new_ref(data, tool=tool, arguments=arguments))
    assert store.read("me", ref_rows.read_bytes, ref.id) == data
    assert store.read("me", ref_rows.by_id, ref.id[2:]) == ref


def test_the_same_bytes_are_kept_once_in_a_space(store: Store) -> None:
    first = store.write("me", ref_rows.put, new_ref(b"abc"))
    assert store.write("me", ref_rows.put, new_ref(b"abc", tool="cat")) == first
    assert store.read("me", home_rows.counts).refs == 1
    assert store.write("you", ref_rows.put, new_ref(b"abc", tool="cat")).tool == "cat"


def test_the_same_bytes_are_one_file(embedded: EmbeddedStore) -> None:
    for tool in ("bash", "cat"):
        embedded.write("me", ref_rows.put, new_ref(b"abc", tool=tool))
    assert len(list((embedded.folder("me") / "refs").iterdir())) == 1


def test_a_ref_file_is_front_matter_then_the_bytes(embedded: EmbeddedStore) -> None:
    import yaml

    data = b"---\nraw \xff\x00 bytes"
    ref = embedded.write("me", ref_rows.put, new_ref(data, tool="web fetch!"))
    content = (embedded.folder("me") / ref.path).read_bytes()
    head, body = content[4:].split(b"\n---\n", 1)
    assert (content[:4], body) == (b"---\n", data)
    assert yaml.safe_load(head) == {
        "ref": ref.id,
        "tool": "web fetch!",
        "arguments": {"cmd": "ls"},
        "tool_call_id": "c1",
        "session": "s",
        "timestamp": "2026-11-20T12:00:00.000+00:00",
        "bytes": len(data),
        "sha256": ref.sha256,
        "content_type": "text/plain",
    }
    assert ref.path == f"refs/2026-11-20-web-fetch-{ref.id[2:]}.md"


@pytest.mark.parametrize("harm", ["flip", "cut", "remove", "front", "unreadable"])
def test_a_ref_whose_bytes_changed_is_damaged_and_left_as_it_is(embedded: EmbeddedStore, harm: str) -> None:
    ref = embedded.write("me", ref_rows.put, new_ref(b"important words"))
    path = embedded.folder("me") / ref.path
    whole = path.read_bytes()
    match harm:
        case "flip":
            path.write_bytes(whole.replace(b"important", b"impotent "))
        case "cut":
            path.write_bytes(whole[:-3])
        case "front":
            path.write_bytes(b"nothing")
        case "unreadable":
            path.unlink()
            path.symlink_to(path.name)
        case _:
            path.unlink()
    with pytest.raises(Damaged, match=ref.id):
        embedded.read("me", ref_rows.read_bytes, ref.id)
    assert [line for line in embedded.problems() if ref.id in line]
    assert embedded.write("me", ref_rows.put, new_ref(b"important words")).id == ref.id  # the same bytes again mend it
    assert embedded.read("me", ref_rows.read_bytes, ref.id) == b"important words"


def test_a_step_is_a_record_and_a_canvas_together(store: Store) -> None:
    store.write("me", record_rows.commit_step, record=record(), canvas=canvas(), expected=0)
    step = record("001-N2", tool_call="bash pwd")
    store.write("me", record_rows.commit_step, record=step, canvas=canvas(text="flowchart TD\n    x\n"), expected=1)
    assert store.read("me", record_rows.list_records, node="001-N2") == [step]
    assert [r.node_id for r in store.read("me", record_rows.list_records, node="001")] == ["001-N1", "001-N2"]
    assert store.read("me", canvas_rows.active_canvas, "s") == canvas(text="flowchart TD\n    x\n", version=2)


def test_records_are_listed_from_a_time_on_and_before_another(store: Store) -> None:
    for number in range(3):
        step = replace(record(f"001-N{number}"), timestamp=NOW + timedelta(seconds=number))
        store.write("me", record_rows.commit_step, record=step, canvas=canvas(), expected=number)
    after = store.read("me", record_rows.list_records, session="s", since=NOW + timedelta(seconds=1))
    before = store.read("me", record_rows.list_records, session="s", until=NOW + timedelta(seconds=2))
    assert [one.node_id for one in after] == ["001-N1", "001-N2"]
    assert [one.node_id for one in before] == ["001-N0", "001-N1"]


def test_the_files_of_a_step_are_a_line_and_a_drawing(embedded: EmbeddedStore) -> None:
    embedded.write("me", record_rows.commit_step, record=record(), canvas=canvas(), expected=0)
    step = record("001-N2", tool_call="bash pwd")
    embedded.write("me", record_rows.commit_step, record=step, canvas=canvas(text="flowchart TD\n    x\n"), expected=1)
    lines = (embedded.folder("me") / "offload-s.jsonl").read_text().splitlines()
    assert list(json.loads(lines[1])) == [
        "timestamp",
        "node_id",
        "tool_call",
        "summary",
        "result_ref",
        "tool_call_id",
        "offloaded",
        "session",
        "score",
        "tokens_raw",
        "tokens_kept",
        "ref",
        "summary_by",
        "record",
        "step",
    ]
    assert (embedded.folder("me") / "mmds/001-fix-login.mmd").read_text() == "flowchart TD\n    x\n"


def test_a_canvas_that_moved_on_is_a_conflict_and_nothing_is_written(store: Store) -> None:
    store.write("me", record_rows.commit_step, record=record(), canvas=canvas(), expected=0)
    for expected in (0, 2):
        with pytest.raises(Conflict):
            store.write(
                "me", record_rows.commit_step, record=record("001-N2"), canvas=canvas(text="other"), expected=expected
            )
    assert len(store.read("me", record_rows.list_records)) == 1
    assert store.read("me", canvas_rows.canvas, 1).text == "flowchart TD\n"


def test_each_change_of_a_canvas_is_a_version_that_can_be_read_again(store: Store) -> None:
    groups = {"001-F1": Group(("001-N1",), "é")}
    rows = [
        canvas(text="flowchart TD\n    a\n"),
        canvas(text="flowchart TD\n    a\n", folded=True, groups=groups),
        canvas(text="flowchart TD\n    b\n    c", label="other", groups=groups),
        canvas(text="flowchart TD\n    a\n"),
    ]
    store.write("me", record_rows.commit_step, record=record(), canvas=rows[0], expected=0, step="s1")
    store.write("me", canvas_rows.save, rows[1], expected=1, kind="folded")
    store.write("me", record_rows.commit_step, record=record("001-N2"), canvas=rows[2], expected=2)
    with pytest.raises(Conflict):
        store.write("me", canvas_rows.save, canvas(), expected=2)
    store.write("me", canvas_rows.save, rows[3], expected=3, kind="undone", detail="2")
    for version, row in enumerate(rows, start=1):
        assert store.read("me", canvas_rows.canvas, 1, version=version) == replace(row, version=version)
    versions = store.read("me", canvas_rows.versions, 1)
    assert [(each.number, each.kind, each.detail, each.label) for each in versions] == [
        (1, "step", "", "fix-login"),
        (2, "folded", "", "fix-login"),
        (3, "step", "", "other"),
        (4, "undone", "2", "fix-login"),
    ]
    assert store.read("me", record_rows.canvas_steps, 1) == [
        TakenStep(record=record(), step="s1"),
        TakenStep(record=record("001-N2"), step=None),
    ]
    assert [store.read("me", record_rows.last_step, node) for node in ("001-N1", "001-N2", "001-N3")] == [
        "s1",
        None,
        None,
    ]
    assert (
        store.read("me", canvas_rows.versions, 2)
        == store.read("you", canvas_rows.versions, 1)
        == store.read("me", record_rows.canvas_steps, 2)
        == []
    )
    with pytest.raises(NotFound, match="Version 5 of canvas 001"):
        store.read("me", canvas_rows.canvas, 1, version=5)


def test_groups_keep_their_words(store: Store) -> None:
    groups = {"001-F1": Group(("001-N1", "001-N2"), 'Look "about"', "found é"), "001-F2": Group(("001-F1",))}
    store.write("me", record_rows.commit_step, record=record(), canvas=canvas(groups=groups), expected=0)
    assert store.read("me", canvas_rows.canvas, 1).groups == groups


def test_each_session_has_its_own_active_canvas(store: Store) -> None:
    store.write("me", record_rows.commit_step, record=record(), canvas=canvas(1), expected=0)
    store.write(
        "me",
        record_rows.commit_step,
        record=record("002-N1", session="t"),
        canvas=canvas(2, session="t", label="b"),
        expected=0,
    )
    active = [store.read("me", canvas_rows.active_canvas, session) for session in ("s", "t", None, "nobody")]
    assert [row.number if row else None for row in active] == [1, 2, 2, None]
    store.write("me", canvas_rows.activate, "s", 1, now=NOW)
    store.write("me", canvas_rows.activate, "t", None, now=NOW)
    active = [store.read("me", canvas_rows.active_canvas, session) for session in ("s", "t", None)]
    assert [row.number if row else None for row in active] == [1, None, 1]
    assert store.read("me", canvas_rows.next_number) == 3


# --- the change feed --------------------------------------------------------------------------------


def test_every_write_shows_in_the_change_feed_once(store: Store) -> None:
    assert store.read("me", home_rows.last_change) == 0
    append(store, user("first"))
    seen = store.read("me", home_rows.last_change)
    append(store, user("a"))
    append(store, user("b"))
    store.write("me", stage_outputs.commit, None, PersonaPage(text="# P"), outcome={}, now=NOW)
    assert store.read("me", home_rows.changes, seen) == [
        Change(space="me", topic="session:s"),
        Change(space="me", topic="persona"),
    ]
    assert store.read("me", home_rows.changes, store.read("me", home_rows.last_change)) == []
    assert store.read("you", home_rows.changes, 0) == []
    assert store.read_home(home_rows.last_changes, ["you", "me"]) == {
        "me": store.read("me", home_rows.last_change),
        "you": 0,
    }


def test_one_who_has_seen_more_than_the_store_has_is_told_everything(store: Store) -> None:
    append(store, user("a"))
    store.write("me", stage_outputs.commit, None, PersonaPage(text="# P"), outcome={}, now=NOW)
    changes = store.read("me", home_rows.changes, store.read("me", home_rows.last_change) + 1)
    assert {change.topic for change in changes} == {"session:s", "persona"}


def test_a_sound_store_is_sound_however_often_it_is_asked_between_writes(embedded: EmbeddedStore) -> None:
    for number in range(20):
        append(embedded, user(f"word {number}"))
        assert embedded.problems() == []


def test_growth_counts_what_came_since_a_moment_and_nothing_of_other_spaces(store: Store) -> None:
    first = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
    later = first + timedelta(minutes=1)
    store.write("me", turn_rows.append, "s", turn_rows.prepare([NewTurn(role="user", content="One.")]), now=first)
    store.write(
        "other", turn_rows.append, "s", turn_rows.prepare([NewTurn(role="user", content="Not mine.")]), now=first
    )
    store.write(
        "me",
        turn_rows.append,
        "s",
        turn_rows.prepare([NewTurn(role="user", content=text) for text in ("Two.", "Three.")]),
        now=later,
    )
    moments = (first, later, later + timedelta(seconds=1))
    assert [store.read("me", home_rows.grown, since=since).turns for since in moments] == [3, 2, 0]
    assert (store.read("me", home_rows.counts).turns, store.read("me", home_rows.counts).sessions) == (3, 1)
