"""What a page about a large memory asks for: counts and states of rows, without the words of the rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from mcp_memory.core.types import NewTurn, Spend
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import atom_rows, entity_rows, home_rows, tombstone_rows, turn_rows
from mcp_memory.store.values import NewAtom

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def say(store: Store, *texts: str, session: str = "s", space: str = "me") -> None:
    store.write(
        space,
        turn_rows.append,
        session,
        turn_rows.prepare([NewTurn(role="user", content=text) for text in texts]),
        now=NOON,
    )


def atom(text: str, *, session: str = "s", **more: Any) -> NewAtom:
    given: dict[str, Any] = {"kind": "persona", "priority": 50, "confidence": 0.9, "valid_from": NOON}
    return NewAtom(text=text, session=session, **{**given, **more})


def tell(store: Store, text: str, **more: Any) -> str:
    return store.write("me", atom_rows.add, atom(text, **more), now=NOON).atom.id


def test_notes_and_forgotten_turns_are_counted_neither_as_turns_nor_as_sessions_nor_as_unread(store: Store) -> None:
    say(store, "One.", "Two.", "Three.")
    say(store, "Elsewhere.", space="you")
    say(store, "Gone.", session="gone")
    tell(store, "Likes tea")
    tell(store, "Likes rain", session="only notes")
    forgotten = tell(store, "Likes snow")
    store.write("me", tombstone_rows.forget, ["t4", "t1", forgotten], reason="", now=NOON)
    counts = store.read("me", home_rows.counts)
    assert (counts.turns, counts.sessions, store.read("me", home_rows.count_unread)) == (2, 1, (2, 1))
    assert (counts.atoms, counts.current) == (2, 2)
    assert store.read("me", home_rows.grown, since=NOON).turns == 4
    assert store.index_progress().embeddable == 2 + 1 + 2
    assert store.read("nowhere", home_rows.count_unread) == (0, 0)


def test_sessions_are_listed_from_any_one_on_the_one_written_to_last_first(store: Store) -> None:
    for session in ("a", "b", "c", "a"):
        say(store, f"{session} {len(store.read('me', turn_rows.sessions))}", session=session)
    tell(store, "Likes tea", session="b")
    assert [(one.session, one.turns) for one in store.read("me", turn_rows.sessions)] == [("a", 2), ("c", 1), ("b", 1)]
    assert [one.session for one in store.read("me", turn_rows.sessions, start=1, limit=1)] == ["c"]
    assert store.read("me", turn_rows.sessions, start=3) == []


def test_the_standing_of_statements_is_whether_they_are_there_and_current(store: Store) -> None:
    old, other, gone = tell(store, "Lives in Rome"), tell(store, "Likes tea"), tell(store, "Likes snow")
    later = NOON + timedelta(days=1)
    store.write("me", atom_rows.add, atom("Lives in Oslo", valid_from=later, supersedes=[old]), now=later)
    store.write("me", tombstone_rows.forget, [gone], reason="", now=NOON)
    assert store.read("me", atom_rows.are_current, [other, gone, old, "a99"]) == {old: False, other: True}


def test_an_entity_is_called_by_all_its_names_whichever_is_asked_for(store: Store) -> None:
    tell(store, "Ann sings", entities=("Ann",))
    tell(store, "Rob sings", entities=("Rob",))
    assert store.read("me", entity_rows.names, ["ann", "ANN", "Rob", "Bob"]) == {
        "ann": ("Ann",),
        "ANN": ("Ann",),
        "Rob": ("Rob",),
    }
    assert store.read("you", entity_rows.names, ["Ann"]) == {}


def test_what_models_cost_is_summed_from_each_moment_to_the_next(store: Store) -> None:
    moments = [NOON + timedelta(days=day) for day in range(3)]
    for at in (*moments, NOON - timedelta(days=1)):
        store.write_home(
            home_rows.add_spend,
            Spend(at=at, purpose="extract", model="m", prompt_tokens=5, completion_tokens=1, cost=None),
        )
    assert [[one.calls for one in share] for share in store.read_home(home_rows.spent_between, moments)] == [[1], [1]]
    assert store.read_home(home_rows.spent_between, []) == []
