"""What waits for review: held as it is stored, listed until it is decided, out of filtered listings, gone with its row."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from mcp_memory.core.errors import NotFound
from mcp_memory.core.types import NewTurn
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import atom_rows, home_rows, quarantine_rows, tombstone_rows, turn_rows
from mcp_memory.store.values import UNJUDGED, Filters, NewAtom, Verdict

NOW = datetime(2026, 5, 7, 12, 0, tzinfo=UTC)


def atom(text: str, *, held: tuple[str, ...] = (), source: str = "user") -> NewAtom:
    return NewAtom(
        kind="episodic",
        text=text,
        priority=70,
        confidence=1.0,
        session="s",
        valid_from=NOW,
        held=held,
        source=source,  # type: ignore[arg-type]
    )


def test_what_comes_held_is_listed_with_its_reasons_and_found_all_the_same(store: Store) -> None:
    store.write(
        "me",
        turn_rows.append,
        "s",
        turn_rows.prepare([NewTurn(role="tool", content="obey the heron", held=("drop", "leak"))]),
        now=NOW,
    )
    told = store.write(
        "me", atom_rows.add, atom("The heron is gray", held=("unsaid",), source="web"), now=NOW + timedelta(seconds=1)
    )
    assert (told.atom.held, told.atom.source) == (("unsaid",), "web")
    waiting = store.read("me", quarantine_rows.list_quarantined)
    assert [(one.id, one.reasons, one.verdict) for one in waiting] == [
        ("a1", ("unsaid",), None),
        ("t1", ("drop", "leak"), None),
    ]
    assert store.read("me", home_rows.counts).quarantined == 2
    assert [one.id for one in store.read("me", atom_rows.list_atoms, filters=Filters())] == ["a1"]
    assert store.read("me", atom_rows.list_atoms, filters=Filters(unheld=True)) == []
    assert store.read("me", turn_rows.by_ids, ["t1"])[0].content == "obey the heron"


def test_doubts_label_a_statement_and_do_not_quarantine_it(store: Store) -> None:
    told = store.write("me", atom_rows.add, atom("The heron is gray", held=("other_value",)), now=NOW).atom
    assert (told.held, told.doubts) == ((), ("other_value",))
    assert (
        store.read("me", quarantine_rows.list_quarantined),
        store.read("me", quarantine_rows.list_quarantined, decided=True),
    ) == ([], [])
    assert store.read("me", home_rows.counts).quarantined == 0
    assert [one.id for one in store.read("me", atom_rows.list_atoms, filters=Filters(unheld=True))] == [told.id]
    assert [
        (one.verdict, one.is_quarantined) for one in store.read("me", quarantine_rows.list_quarantined, [told.id])
    ] == [("labelled", False)]


def test_a_doubt_beside_another_reason_quarantines(store: Store) -> None:
    told = store.write("me", atom_rows.add, atom("The heron is gray", held=("other_value", "leak")), now=NOW).atom
    assert (told.held, told.doubts) == (("other_value", "leak"), ())


@pytest.mark.parametrize(("verdict", "held"), [("released", ()), ("kept", ("other_value",))])
def test_a_person_may_decide_about_a_label(store: Store, verdict: Verdict, held: tuple[str, ...]) -> None:
    told = store.write("me", atom_rows.add, atom("The heron is gray", held=("other_value",)), now=NOW).atom
    store.write("me", quarantine_rows.review, [told.id], verdict, now=NOW)
    (found,) = store.read("me", atom_rows.by_ids, [told.id])
    assert (found.held, found.doubts) == (held, ())


def test_a_decision_takes_it_off_the_list_and_may_be_changed(store: Store) -> None:
    store.write("me", atom_rows.add, atom("The heron is gray", held=("unsaid",)), now=NOW)
    (done,) = store.write("me", quarantine_rows.review, ["a1"], "released", now=NOW)
    assert (done.verdict, done.reviewed_at) == ("released", NOW)
    assert (store.read("me", quarantine_rows.list_quarantined), store.read("me", home_rows.counts).quarantined) == (
        [],
        0,
    )
    assert store.read("me", atom_rows.by_ids, ["a1"])[0].held == ()
    store.write("me", quarantine_rows.review, ["a1"], "kept", now=NOW)
    assert store.read("me", atom_rows.by_ids, ["a1"])[0].held == ("unsaid",)
    assert [one.verdict for one in store.read("me", quarantine_rows.list_quarantined, ["a1", "a9"])] == ["kept"]


def test_decisions_are_listed_the_last_first(store: Store) -> None:
    for number, text in enumerate(("The heron is gray", "The egret is white", "The stork is black")):
        store.write("me", atom_rows.add, atom(text, held=("unsaid",)), now=NOW + timedelta(seconds=number))
    store.write("me", quarantine_rows.review, ["a1"], "released", now=NOW + timedelta(minutes=2))
    store.write("me", quarantine_rows.review, ["a3"], "kept", now=NOW + timedelta(minutes=1))
    decided = store.read("me", quarantine_rows.list_quarantined, decided=True)
    assert [(one.id, one.verdict) for one in decided] == [("a1", "released"), ("a3", "kept")]
    assert [one.id for one in store.read("me", quarantine_rows.list_quarantined, decided=True, limit=1)] == ["a1"]


def test_deciding_of_what_is_not_held_changes_nothing(store: Store) -> None:
    store.write("me", atom_rows.add, atom("The heron is gray", held=("unsaid",)), now=NOW)
    with pytest.raises(NotFound, match="Not held for review: t5"):
        store.write("me", quarantine_rows.review, ["a1", "t5"], "released", now=NOW)
    assert store.read("me", home_rows.counts).quarantined == 1
    with pytest.raises(NotFound, match="a1"):
        store.write("other", quarantine_rows.review, ["a1"], "released", now=NOW)


def test_rows_that_were_there_before_are_put_aside_once(store: Store) -> None:
    store.write(
        "me", turn_rows.append, "s", turn_rows.prepare([NewTurn(role="tool", content="obey the heron")]), now=NOW
    )
    store.write("me", quarantine_rows.quarantine, {"t1": ["drop"]}, now=NOW)
    store.write("me", quarantine_rows.review, ["t1"], "released", now=NOW)
    store.write("me", quarantine_rows.quarantine, {"t1": ["leak"]}, now=NOW)
    assert [(one.reasons, one.verdict) for one in store.read("me", quarantine_rows.list_quarantined, ["t1"])] == [
        (("drop",), "released")
    ]


def test_what_is_forgotten_waits_no_more(store: Store) -> None:
    store.write(
        "me",
        turn_rows.append,
        "s",
        turn_rows.prepare([NewTurn(role="tool", content="obey the heron", held=("drop",))]),
        now=NOW,
    )
    tombstone = store.write("me", tombstone_rows.forget, ["t1"], reason="", now=NOW)
    assert (store.read("me", quarantine_rows.list_quarantined), store.read("me", home_rows.counts).quarantined) == (
        [],
        0,
    )
    store.write("me", tombstone_rows.undo, tombstone.id, now=NOW)
    assert [one.id for one in store.read("me", quarantine_rows.list_quarantined)] == ["t1"]


def test_who_says_the_same_and_is_trusted_more_vouches_for_it(store: Store) -> None:
    store.write("me", atom_rows.add, atom("The heron is gray", source="web"), now=NOW)
    again = store.write("me", atom_rows.add, atom("the heron is gray.", source="user"), now=NOW)
    assert (again.duplicate, again.atom.source) == (True, "user")
    store.write("me", atom_rows.add, atom("The heron is gray", source="tool"), now=NOW)
    assert store.read("me", atom_rows.by_ids, ["a1"])[0].source == "user"


def test_rows_that_came_unjudged_are_the_queue_and_leave_it_with_what_was_found(store: Store) -> None:
    clean, hostile, hidden = (
        turn.id
        for turn in store.write(
            "me",
            turn_rows.append,
            "s",
            turn_rows.prepare(
                [
                    NewTurn(role="tool", content="the heron is gray", held=(UNJUDGED,)),
                    NewTurn(role="tool", content="obey the heron", held=(UNJUDGED,)),
                    NewTurn(role="tool", content="the egret is white", held=("hidden", UNJUDGED)),
                ]
            ),
            now=NOW,
        ).stored
    )
    store.write(
        "me",
        turn_rows.append,
        "s",
        turn_rows.prepare([NewTurn(role="tool", content="a crane", held=("drop",))]),
        now=NOW,
    )
    assert store.read("me", quarantine_rows.unjudged, limit=2) == [clean, hostile]
    assert store.read("another", quarantine_rows.unjudged, limit=9) == []
    later = NOW + timedelta(minutes=1)
    store.write(
        "me",
        quarantine_rows.judge,
        {clean: [], hostile: ["drop"], hidden: [], "t4": ["leak"], "t99": ["drop"]},
        now=later,
    )
    assert store.read("me", quarantine_rows.unjudged, limit=9) == []
    waiting = {one.id: one.reasons for one in store.read("me", quarantine_rows.list_quarantined)}
    assert waiting == {hostile: ("drop",), hidden: ("hidden",), "t4": ("drop",)}


def test_a_row_that_a_person_reviewed_before_it_was_judged_keeps_their_decision(store: Store) -> None:
    store.write(
        "me",
        turn_rows.append,
        "s",
        turn_rows.prepare([NewTurn(role="tool", content="a heron", held=(UNJUDGED,))]),
        now=NOW,
    )
    store.write("me", quarantine_rows.review, ["t1"], "released", now=NOW)
    assert store.read("me", quarantine_rows.unjudged, limit=9) == []
    store.write("me", quarantine_rows.judge, {"t1": ["drop"]}, now=NOW)
    assert [(one.reasons, one.verdict) for one in store.read("me", quarantine_rows.list_quarantined, ["t1"])] == [
        ((UNJUDGED,), "released")
    ]


def test_a_forgotten_row_is_not_judged(store: Store) -> None:
    store.write(
        "me",
        turn_rows.append,
        "s",
        turn_rows.prepare([NewTurn(role="tool", content="a heron", held=(UNJUDGED,))]),
        now=NOW,
    )
    store.write("me", tombstone_rows.forget, ["t1"], reason="", now=NOW)
    assert store.read("me", quarantine_rows.unjudged, limit=9) == []
