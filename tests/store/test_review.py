"""What waits for review: held as it is stored, listed until it is decided, out of filtered listings, gone with its row."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from mcp_memory.core.errors import NotFound
from mcp_memory.core.types import NewTurn
from mcp_memory.store.protocol import Store
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
    store.append_turns("me", "s", [NewTurn(role="tool", content="obey the heron", held=("drop", "leak"))], now=NOW)
    told = store.add_atom(
        "me", atom("The heron is gray", held=("unsaid",), source="web"), now=NOW + timedelta(seconds=1)
    )
    assert (told.atom.held, told.atom.source) == (("unsaid",), "web")
    waiting = store.quarantined("me")
    assert [(one.id, one.reasons, one.verdict) for one in waiting] == [
        ("a1", ("unsaid",), None),
        ("t1", ("drop", "leak"), None),
    ]
    assert store.counts("me").quarantined == 2
    assert [one.id for one in store.list_atoms("me", filters=Filters())] == ["a1"]
    assert store.list_atoms("me", filters=Filters(unheld=True)) == []
    assert store.turns("me", ["t1"])[0].content == "obey the heron"


def test_doubts_label_a_statement_and_do_not_quarantine_it(store: Store) -> None:
    told = store.add_atom("me", atom("The heron is gray", held=("other_value",)), now=NOW).atom
    assert (told.held, told.doubts) == ((), ("other_value",))
    assert (store.quarantined("me"), store.quarantined("me", decided=True)) == ([], [])
    assert store.counts("me").quarantined == 0
    assert [one.id for one in store.list_atoms("me", filters=Filters(unheld=True))] == [told.id]
    assert [(one.verdict, one.is_quarantined) for one in store.quarantined("me", [told.id])] == [("labelled", False)]


def test_a_doubt_beside_another_reason_quarantines(store: Store) -> None:
    told = store.add_atom("me", atom("The heron is gray", held=("other_value", "leak")), now=NOW).atom
    assert (told.held, told.doubts) == (("other_value", "leak"), ())


@pytest.mark.parametrize(("verdict", "held"), [("released", ()), ("kept", ("other_value",))])
def test_a_person_may_decide_about_a_label(store: Store, verdict: Verdict, held: tuple[str, ...]) -> None:
    told = store.add_atom("me", atom("The heron is gray", held=("other_value",)), now=NOW).atom
    store.review("me", [told.id], verdict, now=NOW)
    (found,) = store.atoms("me", [told.id])
    assert (found.held, found.doubts) == (held, ())


def test_a_decision_takes_it_off_the_list_and_may_be_changed(store: Store) -> None:
    store.add_atom("me", atom("The heron is gray", held=("unsaid",)), now=NOW)
    (done,) = store.review("me", ["a1"], "released", now=NOW)
    assert (done.verdict, done.reviewed_at) == ("released", NOW)
    assert (store.quarantined("me"), store.counts("me").quarantined) == ([], 0)
    assert store.atoms("me", ["a1"])[0].held == ()
    store.review("me", ["a1"], "kept", now=NOW)
    assert store.atoms("me", ["a1"])[0].held == ("unsaid",)
    assert [one.verdict for one in store.quarantined("me", ["a1", "a9"])] == ["kept"]


def test_decisions_are_listed_the_last_first(store: Store) -> None:
    for number, text in enumerate(("The heron is gray", "The egret is white", "The stork is black")):
        store.add_atom("me", atom(text, held=("unsaid",)), now=NOW + timedelta(seconds=number))
    store.review("me", ["a1"], "released", now=NOW + timedelta(minutes=2))
    store.review("me", ["a3"], "kept", now=NOW + timedelta(minutes=1))
    decided = store.quarantined("me", decided=True)
    assert [(one.id, one.verdict) for one in decided] == [("a1", "released"), ("a3", "kept")]
    assert [one.id for one in store.quarantined("me", decided=True, limit=1)] == ["a1"]


def test_deciding_of_what_is_not_held_changes_nothing(store: Store) -> None:
    store.add_atom("me", atom("The heron is gray", held=("unsaid",)), now=NOW)
    with pytest.raises(NotFound, match="Not held for review: t5"):
        store.review("me", ["a1", "t5"], "released", now=NOW)
    assert store.counts("me").quarantined == 1
    with pytest.raises(NotFound, match="a1"):
        store.review("other", ["a1"], "released", now=NOW)


def test_rows_that_were_there_before_are_put_aside_once(store: Store) -> None:
    store.append_turns("me", "s", [NewTurn(role="tool", content="obey the heron")], now=NOW)
    store.quarantine("me", {"t1": ["drop"]}, now=NOW)
    store.review("me", ["t1"], "released", now=NOW)
    store.quarantine("me", {"t1": ["leak"]}, now=NOW)
    assert [(one.reasons, one.verdict) for one in store.quarantined("me", ["t1"])] == [(("drop",), "released")]


def test_what_is_forgotten_waits_no_more(store: Store) -> None:
    store.append_turns("me", "s", [NewTurn(role="tool", content="obey the heron", held=("drop",))], now=NOW)
    tombstone = store.forget("me", ["t1"], reason="", now=NOW)
    assert (store.quarantined("me"), store.counts("me").quarantined) == ([], 0)
    store.undo_forget("me", tombstone.id, now=NOW)
    assert [one.id for one in store.quarantined("me")] == ["t1"]


def test_who_says_the_same_and_is_trusted_more_vouches_for_it(store: Store) -> None:
    store.add_atom("me", atom("The heron is gray", source="web"), now=NOW)
    again = store.add_atom("me", atom("the heron is gray.", source="user"), now=NOW)
    assert (again.duplicate, again.atom.source) == (True, "user")
    store.add_atom("me", atom("The heron is gray", source="tool"), now=NOW)
    assert store.atoms("me", ["a1"])[0].source == "user"


def test_rows_that_came_unjudged_are_the_queue_and_leave_it_with_what_was_found(store: Store) -> None:
    clean, hostile, hidden = (
        turn.id
        for turn in store.append_turns(
            "me",
            "s",
            [
                NewTurn(role="tool", content="the heron is gray", held=(UNJUDGED,)),
                NewTurn(role="tool", content="obey the heron", held=(UNJUDGED,)),
                NewTurn(role="tool", content="the egret is white", held=("hidden", UNJUDGED)),
            ],
            now=NOW,
        ).stored
    )
    store.append_turns("me", "s", [NewTurn(role="tool", content="a crane", held=("drop",))], now=NOW)
    assert store.unjudged("me", limit=2) == [clean, hostile]
    assert store.unjudged("another", limit=9) == []
    later = NOW + timedelta(minutes=1)
    store.judge("me", {clean: [], hostile: ["drop"], hidden: [], "t4": ["leak"], "t99": ["drop"]}, now=later)
    assert store.unjudged("me", limit=9) == []
    waiting = {one.id: one.reasons for one in store.quarantined("me")}
    assert waiting == {hostile: ("drop",), hidden: ("hidden",), "t4": ("drop",)}


def test_a_row_that_a_person_reviewed_before_it_was_judged_keeps_their_decision(store: Store) -> None:
    store.append_turns("me", "s", [NewTurn(role="tool", content="a heron", held=(UNJUDGED,))], now=NOW)
    store.review("me", ["t1"], "released", now=NOW)
    assert store.unjudged("me", limit=9) == []
    store.judge("me", {"t1": ["drop"]}, now=NOW)
    assert [(one.reasons, one.verdict) for one in store.quarantined("me", ["t1"])] == [((UNJUDGED,), "released")]


def test_a_forgotten_row_is_not_judged(store: Store) -> None:
    store.append_turns("me", "s", [NewTurn(role="tool", content="a heron", held=(UNJUDGED,))], now=NOW)
    store.forget("me", ["t1"], reason="", now=NOW)
    assert store.unjudged("me", limit=9) == []
