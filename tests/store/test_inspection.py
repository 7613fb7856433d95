"""What the verbs of inspection read: a contract of every store."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from mcp_memory.core.types import Evidence, NewTurn
from mcp_memory.store.forgetting import Purge
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import atom_rows, entity_rows, quarantine_rows, saving_rows, tombstone_rows, turn_rows
from mcp_memory.store.values import Filters, NewAtom, Saving, SavingKind

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def atom(text: str, **more: Any) -> NewAtom:
    given: dict[str, Any] = {"kind": "persona", "priority": 80, "confidence": 1.0, "session": "s", "valid_from": NOON}
    return NewAtom(text=text, **{**given, **more})


def add(store: Store, text: str, *, space: str = "me", **more: Any) -> str:
    return store.write(space, atom_rows.add, atom(text, **more), now=NOON).atom.id


def test_ended_statements_are_listed_and_counted_where_they_are_asked_for(store: Store) -> None:
    old = add(store, "Lives in Oslo.", entity="user", relation="lives_in", value="Oslo")
    new = add(store, "Lives in Bergen.", supersedes=[old], entity="user", relation="lives_in", value="Bergen")
    ended = Filters(ended=True)
    assert [one.id for one in store.read("me", atom_rows.list_atoms, filters=ended)] == [old, new]
    assert [one.value for one in store.read("me", atom_rows.facts, filters=ended)] == ["Oslo", "Bergen"]
    assert (store.read("me", atom_rows.count, filters=ended), store.read("me", atom_rows.count, filters=Filters())) == (
        2,
        1,
    )
    assert store.read("me", atom_rows.count, filters=Filters(ended=True, as_of=NOON - timedelta(days=1))) == 0
    assert store.read("elsewhere", atom_rows.count, filters=ended) == 0


def test_with_a_moment_statements_that_end_after_it_are_listed_and_counted(store: Store) -> None:
    old = add(store, "Lives in Oslo.")
    new = add(store, "Lives in Bergen.", supersedes=[old], valid_from=NOON + timedelta(days=9))
    for days, expected in ((8, [old, new]), (9, [new])):
        filters = Filters(at=NOON + timedelta(days=days))
        assert [one.id for one in store.read("me", atom_rows.list_atoms, filters=filters)] == expected
        assert store.read("me", atom_rows.count, filters=filters) == len(expected)
    assert [one.id for one in store.read("me", atom_rows.list_atoms, filters=Filters())] == [new]


def test_statements_are_found_by_the_turns_that_they_are_based_on(store: Store) -> None:
    turn = store.write(
        "me", turn_rows.append, "s", turn_rows.prepare([NewTurn(role="user", content="I keep bees.")]), now=NOON
    ).stored[0]
    bees = add(store, "Keeps bees.", evidence=[Evidence(turn=turn.id, span=(0, 12), quote="I keep bees.")])
    told = add(store, "Likes honey.")
    honey = add(store, "Sells honey.", evidence=[Evidence(turn=turn.id, span=(0, 12), quote="I keep bees.")])
    (note,) = (one.evidence for one in store.read("me", atom_rows.by_ids, [told]))

    def based(*turns: str, space: str = "me") -> dict[str, list[str]]:
        return {id: [one.id for one in made] for id, made in store.read(space, atom_rows.based_on, turns).items()}

    assert based(note, "t99", turn.id) == {note: [told], "t99": [], turn.id: [bees, honey]}
    assert based() == {}
    store.write("me", tombstone_rows.forget, [bees, honey], reason="wrong", now=NOON)
    assert based(turn.id) == based(turn.id, space="elsewhere") == {turn.id: []}


def test_entities_are_related_by_the_current_statements_that_mention_both(store: Store) -> None:
    old = add(store, "Ana met Bo.", entities=["Ana", "Bo"])
    add(store, "Ana met Cy.", entities=["Ana", "Cy"])
    add(store, "Ana and Cy sail.", entities=["Ana", "Cy"], supersedes=[old])
    add(store, "Ana lives in Oslo.", entities=["Oslo"], entity="Ana", relation="lives_in", value="Oslo")
    add(store, "Ana met Di.", space="other", entities=["Ana", "Di"])

    def related(name: str, *, limit: int = 60) -> list[tuple[str, int]]:
        return [(other, many) for _, other, many in store.read("me", entity_rows.find_related, name, limit=limit)]

    assert related("ana") == [("Cy", 2), ("Oslo", 1)]
    assert related("Ana", limit=1) == [("Cy", 2)]
    assert related("nobody") == []
    found = store.read("me", entity_rows.find_related, "Ana", limit=60)
    names = store.read("me", entity_rows.names_by_number, [number for number, _, _ in found])
    assert [names[number] for number, _, _ in found] == ["Cy", "Oslo"]


def test_words_of_forgotten_rows_are_read_until_they_are_back(store: Store) -> None:
    (turn,) = store.write(
        "me", turn_rows.append, "s", turn_rows.prepare([NewTurn(role="user", content="I keep bees.")]), now=NOON
    ).stored
    bees, honey = add(store, "Keeps bees."), add(store, "Likes honey.")
    gone = store.write("me", tombstone_rows.forget, [turn.id, bees], reason="", now=NOON).id
    later = store.write("me", tombstone_rows.forget, [honey], reason="", now=NOON).id
    assert store.read("me", tombstone_rows.words_under, gone, limit=9) == [
        (bees, "Keeps bees."),
        (turn.id, "I keep bees."),
    ]
    assert store.read("me", tombstone_rows.words_under, gone, limit=1) == [(bees, "Keeps bees.")]
    assert store.read("other", tombstone_rows.words_under, gone, limit=9) == []
    assert (
        store.read("me", tombstone_rows.count_restorable),
        store.read("other", tombstone_rows.count_restorable),
    ) == (3, 0)
    store.write("me", tombstone_rows.undo, gone, now=NOON)
    store.purge("me", Purge(tombstones=[later]), now=NOON)
    assert (
        store.read("me", tombstone_rows.words_under, gone, limit=9)
        == store.read("me", tombstone_rows.words_under, later, limit=9)
        == []
    )
    assert store.read("me", tombstone_rows.count_restorable) == 0


def test_savings_between_moments_add_up_to_all_of_them(store: Store) -> None:
    days = [NOON + timedelta(days=day) for day in range(3)]
    for at, saved in ((days[0], 100), (days[0] + timedelta(hours=1), 40), (days[2], 7), (days[2], 0)):
        store.write("me", saving_rows.add_saving, Saving(session="s", at=at, kind="offload", saved=saved))
    store.write(
        "me", saving_rows.add_saving, Saving(session="s", at=days[0] - timedelta(hours=1), kind="offload", saved=1_000)
    )
    first, second, third = ([(one.times, one.saved, one.saved_later) for one in kinds]
                            for kinds in store.read("me", saving_rows.savings_between, days))  # fmt: skip
    assert (first, second, third) == ([(2, 140, 100 * 2 + 40)], [], [(2, 7, 0)])
    (whole,) = store.read("me", saving_rows.savings, since=days[0])
    assert (whole.times, whole.saved, whole.saved_later) == (4, 147, 240)
    assert store.read("me", saving_rows.savings_between, []) == []


def test_savings_are_summed_for_each_session_the_newest_first(store: Store) -> None:
    hours = [NOON + timedelta(hours=hour) for hour in range(4)]
    events: list[tuple[str, datetime, SavingKind, int, int]] = [
        ("long ago", NOON - timedelta(hours=1), "offload", 9, 1),
        ("b", hours[0], "offload", 100, 5),
        ("a", hours[1], "offload", 30, 3),
        ("b", hours[3], "expand", 0, 40),
    ]
    for name, at, kind, saved, spent in events:
        store.write("me", saving_rows.add_saving, Saving(session=name, at=at, kind=kind, saved=saved, spent=spent))
    found = [
        (name, at, [(one.kind, one.saved, one.spent, one.saved_later) for one in kinds])
        for name, at, kinds in store.read("me", saving_rows.savings_of_sessions, since=NOON)
    ]
    assert found == [
        ("b", hours[3], [("expand", 0, 40, 0), ("offload", 100, 5, 100)]),
        ("a", hours[1], [("offload", 30, 3, 0)]),
    ]
    assert store.read("other", saving_rows.savings_of_sessions, since=NOON) == []


def test_all_names_are_mapped_to_chief_names_without_those_of_forgotten_or_quarantined_statements(store: Store) -> None:
    add(store, "Ines keeps bees.", entities=["Ines"])
    gone = add(store, "Bo keeps goats.", entities=["Bo"])
    held = add(store, "Eve keeps geese.", entities=["Eve"])
    store.write("me", quarantine_rows.quarantine, {held: ["leak"]}, now=NOON)
    assert store.read("me", entity_rows.all_names) == {"Ines": "Ines", "Bo": "Bo"}
    store.write("me", tombstone_rows.forget, [gone], reason="wrong", now=NOON)
    assert store.read("me", entity_rows.all_names) == {"Ines": "Ines"}
    assert store.read("me", entity_rows.names, ["Ines", "Bo", "Eve"]) == {
        "Ines": ("Ines",),
        "Eve": ("Eve",),
    }  # a search finds Eve's
    assert store.read("elsewhere", entity_rows.all_names) == {}
