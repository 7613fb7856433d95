"""What atoms rest on, how they follow each other in time, whom they are about, and how drafts become atoms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import apsw
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_memory.core.errors import InvalidInput, NotFound
from mcp_memory.core.types import Atom, Entity, Evidence, Fact, NewTurn, Stage
from mcp_memory.store.protocol import EmbeddedStore, Store
from mcp_memory.store.sql import atom_rows, entity_rows, home_rows, job_rows, stage_outputs, tombstone_rows, turn_rows
from mcp_memory.store.values import (
    Conflict,
    Draft,
    Extraction,
    Filters,
    Merge,
    Merging,
    NewAtom,
    SceneChanges,
    SceneEdit,
    Vectors,
    Work,
    WrittenAtom,
)
from tests.store.embedded import problems

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
ANY = Filters()
HOME = {"entity": "user", "relation": "lives_in", "single_valued": True}


def day(number: float) -> datetime:
    """A day of the year before."""
    return datetime(2025, 1, 1, 9, 0, tzinfo=UTC) + timedelta(days=number)


def say(store: Store, text: str, *, said: datetime = NOON, space: str = "me", session: str | None = None) -> Evidence:
    """Have the user say something, and quote it without its last character."""
    turn = NewTurn(role="user", content=text, said_at=said)
    (stored,) = store.write(space, turn_rows.append, session or uuid4().hex, turn_rows.prepare([turn]), now=NOON).stored
    return Evidence(turn=stored.id, span=(0, len(text) - 1), quote=text[:-1])


def atom(text: str, **more: Any) -> NewAtom:
    given: dict[str, Any] = {"kind": "persona", "priority": 80, "confidence": 0.9, "session": "s", "valid_from": NOON}
    return NewAtom(text=text, **{**given, **more})


def drawn(store: Store, text: str, *, said: datetime | None = None, space: str = "me", **more: Any) -> NewAtom:
    """An atom and the turn that it was drawn from, said when it became true."""
    when = said or more.get("valid_from", NOON)
    return atom(text, evidence=(say(store, f"{text}.", said=when, space=space),), **more)


def add(store: Store, new: NewAtom, *, space: str = "me") -> Atom:
    return store.write(space, atom_rows.add, new, now=NOON).atom


def lives(store: Store, place: str, since: float, **more: Any) -> NewAtom:
    return drawn(store, f"Lives in {place}", value=place, valid_from=day(since), **HOME, **more)


def tell(store: Store, text: str, **more: Any) -> Atom:
    return add(store, atom(text, **{"confidence": 1.0, **more}))


def held(store: Store, when: datetime | None = None, space: str = "me") -> list[str]:
    return [fact.value for fact in store.read(space, atom_rows.facts, filters=Filters(as_of=when))]


def course(store: Store) -> list[tuple[str, datetime, datetime | None, str | None]]:
    """Every value that was stored: since when, until when, and by which atom it was replaced."""
    atoms = [one for one in store.read("me", atom_rows.list_since, 0, limit=99) if one.fact]
    return [(one.fact.value, one.valid_from, one.valid_to, one.superseded_by) for one in atoms if one.fact]


def take(store: Store, stage: Stage, session: str | None = None) -> Work:
    work = store.write("me", job_rows.lease, stage, session, "{}", holder="one", lease=timedelta(hours=1), now=NOON)
    assert work is not None
    return work


def extract(store: Store, *new: NewAtom, aliases: dict[str, Sequence[str]] | None = None) -> list[Draft]:
    session = uuid4().hex
    say(store, "Hello there.", session=session)
    store.write(
        "me",
        stage_outputs.commit,
        take(store, "extract", session).id,
        Extraction(upto={session: 1}, drafts=new, aliases=aliases or {}),
        outcome={},
        now=NOON,
    )
    return store.read("me", stage_outputs.drafts)[-len(new) :] if new else []


def merge(store: Store, *merged: Merging, vectors: Vectors | None = None) -> list[WrittenAtom]:
    return store.write(
        "me", stage_outputs.commit, take(store, "merge").id, Merge(merged=merged, vectors=vectors), outcome={}, now=NOON
    ).atoms


# --- what they rest on ------------------------------------------------------------------------------


def test_an_atom_that_was_drawn_rests_on_the_words_of_its_turns(store: Store) -> None:
    first, second = say(store, "I play the cello!"), say(store, "My cello is old.")
    new = atom("Plays an old cello", evidence=(second, first), entities=("user", "the cello"))
    done = store.write("me", atom_rows.add, new, now=NOON)
    assert done.atom == Atom(
        id="a1",
        kind="persona",
        text="Plays an old cello",
        priority=80,
        confidence=0.9,
        evidence=second.turn,
        span=second.span,
        valid_from=NOON,
        valid_to=None,
        learned_at=NOON,
        entities=("user", "the cello"),
        also=(first,),
    )
    assert store.read("me", atom_rows.evidence, "a1") == [second, first]
    assert (
        store.read("me", atom_rows.list_atoms, filters=ANY) == store.read("me", atom_rows.by_ids, ["a1"]) == [done.atom]
    )
    assert [turn.role for turn in store.read("me", turn_rows.by_ids, ["t1", "t2", "t3"])] == [
        "user",
        "user",
    ]  # no note was made


def test_what_was_told_rests_on_all_of_its_note(store: Store) -> None:
    told = tell(store, "Plays the cello")
    assert store.read("me", atom_rows.evidence, told.id) == [
        Evidence(turn=told.evidence, span=(0, 15), quote="Plays the cello")
    ]
    assert store.read("me", atom_rows.evidence, "a99") == store.read("you", atom_rows.evidence, told.id) == []


@pytest.mark.parametrize("harm", [{"quote": "I play the viola"}, {"turn": "t99"}, {"span": (0, 99)}, {"span": (3, 3)}])
def test_words_that_do_not_stand_in_the_turn_are_no_evidence(store: Store, harm: dict[str, Any]) -> None:
    wrong = replace(say(store, "I play the cello!"), **harm)
    with pytest.raises(InvalidInput, match="does not say"):
        add(store, atom("Plays the cello", evidence=(wrong,)))
    with pytest.raises(InvalidInput, match="does not say"):
        extract(store, atom("Plays the cello", evidence=(wrong,)))
    assert (store.read("me", atom_rows.list_since, 0, limit=9), store.read("me", stage_outputs.drafts)) == ([], [])


def test_a_turn_of_another_space_is_no_evidence(store: Store) -> None:
    theirs = say(store, "I play the cello!", space="you")
    with pytest.raises(InvalidInput, match="does not say"):
        add(store, atom("Plays the cello", evidence=(theirs,)))


def test_the_same_statement_drawn_again_makes_the_first_one_surer(store: Store) -> None:
    first = add(store, drawn(store, "Likes tea", confidence=0.6))
    again = store.write("me", atom_rows.add, drawn(store, "likes  TEA", confidence=0.5), now=NOON)
    assert (again.duplicate, again.atom.id, again.replaced) == (True, first.id, [])
    assert again.atom.confidence == pytest.approx(0.8)
    assert [one.turn for one in store.read("me", atom_rows.evidence, first.id)] == ["t1", "t2"]


def test_saying_it_again_never_makes_it_certain_and_told_stays_told(store: Store) -> None:
    told = tell(store, "Likes tea")
    guess = add(store, drawn(store, "Likes jam"))
    for _ in range(4):
        add(store, drawn(store, "Likes tea"))
        add(store, drawn(store, "Likes jam"))
    assert [one.confidence for one in store.read("me", atom_rows.by_ids, [told.id, guess.id])] == [1.0, 0.99]


def test_the_same_words_drawn_twice_prove_nothing_more(store: Store) -> None:
    new = drawn(store, "Likes tea", confidence=0.6)
    add(store, new)
    assert store.write("me", atom_rows.add, new, now=NOON).atom == store.read("me", atom_rows.by_ids, ["a1"])[0]
    assert store.read("me", atom_rows.by_ids, ["a1"])[0].confidence == 0.6


def test_what_ended_is_not_true_anew_for_being_read_again(store: Store) -> None:
    tea = add(store, drawn(store, "Likes tea", valid_from=day(1)))
    add(store, drawn(store, "Likes no tea any more", valid_from=day(9), supersedes=[tea.id]))
    again = store.write("me", atom_rows.add, drawn(store, "Likes tea", valid_from=day(1)), now=NOON)
    assert (again.duplicate, again.atom.id, again.atom.superseded_by) == (True, tea.id, "a2")
    assert not store.write("me", atom_rows.add, drawn(store, "Likes tea", valid_from=day(20)), now=NOON).duplicate


# --- in time ----------------------------------------------------------------------------------------


def test_an_earlier_value_that_comes_late_is_history_and_the_holder_stays(store: Store) -> None:
    rome = add(store, lives(store, "Rome", 100))
    late = store.write("me", atom_rows.add, lives(store, "Berlin", 10), now=NOON)
    assert (late.atom.valid_to, late.atom.superseded_by, late.replaced) == (day(100), rome.id, [])
    assert late.atom.fact == Fact(
        atom="a2", entity="user", relation="lives_in", value="Berlin", valid_from=day(10), valid_to=day(100)
    )
    assert (held(store), held(store, day(50)), held(store, day(5))) == (["Rome"], ["Berlin"], [])


def test_a_value_between_two_others_ends_the_earlier_one_where_it_begins(store: Store) -> None:
    for place, since in (("Berlin", 10), ("Rome", 100), ("Turin", 50)):
        add(store, lives(store, place, since))
    assert course(store) == [
        ("Berlin", day(10), day(50), "a3"),
        ("Rome", day(100), None, None),
        ("Turin", day(50), day(100), "a2"),
    ]
    assert [one.id for one in store.read("me", atom_rows.superseded_by, ["a2", "a3"])] == ["a1", "a3"]


def test_a_value_of_the_same_day_that_was_said_later_corrects_the_first(store: Store) -> None:
    for place, said in (("Turin", 12), ("Rome", 13), ("Berlin", 11)):
        add(store, lives(store, place, 10, said=day(said)))
    assert (held(store), held(store, day(11))) == (["Rome"], ["Rome"])


def test_a_value_said_again_later_keeps_its_place_in_time(store: Store) -> None:
    for place, since in (("Rome", 10), ("Rome", 100), ("Berlin", 50)):
        add(store, lives(store, place, since))
    assert [held(store, when) for when in (day(20), day(60), day(120), None)] == [
        ["Rome"], ["Berlin"], ["Rome"], ["Rome"],
    ]  # fmt: skip


def test_a_stay_that_is_known_to_have_ended_ends_nothing(store: Store) -> None:
    add(store, lives(store, "Lisbon", 10))
    stay = add(store, lives(store, "Paris", 100, valid_to=day(160)))
    assert (stay.valid_to, stay.superseded_by) == (day(160), None)
    assert [held(store, when) for when in (day(90), day(120), None)] == [
        ["Lisbon"],
        ["Paris", "Lisbon"][::-1],
        ["Lisbon"],
    ]
    add(store, lives(store, "Berlin", 5))
    assert (held(store), held(store, day(7))) == (["Lisbon"], ["Berlin"])


def test_an_end_that_is_yet_to_come_leaves_a_statement_open(store: Store) -> None:
    assert add(store, drawn(store, "Is on leave until May", valid_to=NOON + timedelta(days=160))).valid_to is None


def test_what_was_told_is_the_latest_word_whatever_was_drawn(store: Store) -> None:
    add(store, lives(store, "Rome", 100))
    told = tell(store, "Lives in Oslo", value="Oslo", valid_from=day(50), **HOME)
    assert (held(store), told.valid_to) == (["Oslo"], None)
    add(store, lives(store, "Berlin", 10))
    assert (held(store), held(store, day(20))) == (["Oslo"], ["Berlin"])


def test_several_values_of_a_relation_that_has_several_stay_open_in_any_order(store: Store) -> None:
    for value, since in (("tea", 10), ("jam", 1), ("cake", 5)):
        add(store, drawn(store, f"Likes {value}", entity="user", relation="likes", value=value, valid_from=day(since)))
    assert held(store) == ["jam", "cake", "tea"]


Dated = tuple[int, int, int, int | None]
DATED = st.lists(
    st.tuples(st.integers(0, 9), st.integers(0, 4), st.integers(0, 400), st.none() | st.integers(1, 9)),
    min_size=1,
    max_size=6,
    unique_by=(lambda fact: fact[:2], lambda fact: fact[2]),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(facts=DATED, data=st.data())
def test_whatever_order_dated_facts_come_in_the_same_is_held_true_at_any_time(
    store: Store, facts: list[Dated], data: st.DataObject
) -> None:
    space = uuid4().hex  # each example has a store of its own
    for since, value, said, lasted in data.draw(st.permutations(facts)):
        ended = None if lasted is None else day(since + lasted)
        new = drawn(store, f"Lives in {value}", space=space, value=str(value), said=day(said),
                    valid_from=day(since), valid_to=ended, **HOME)  # fmt: skip
        add(store, new, space=space)
        assert len(held(store, space=space)) <= 1

    for when in range(20):
        begun = [fact for fact in facts if fact[3] is None and fact[0] <= when]
        lasting = [max(begun, key=lambda fact: (fact[0], fact[2]))] if begun else []
        stays = [fact for fact in facts if fact[3] is not None and fact[0] <= when < fact[0] + fact[3]]
        expected = sorted(str(fact[1]) for fact in (*lasting, *stays))
        assert sorted(held(store, day(when), space)) == expected
    assert problems(store) == []


def test_an_update_by_what_was_said_before_is_history_itself(store: Store) -> None:
    days = add(store, drawn(store, "Works days", said=day(90), valid_from=day(90)))
    late = store.write(
        "me", atom_rows.add, drawn(store, "Works nights", valid_from=day(9), supersedes=[days.id]), now=NOON
    )
    assert (late.atom.valid_to, late.atom.superseded_by, late.replaced) == (day(90), days.id, [])
    assert [one.text for one in store.read("me", atom_rows.list_atoms, filters=ANY)] == ["Works days"]


def test_an_update_by_what_was_said_later_closes_and_says_why(store: Store) -> None:
    nights = add(store, drawn(store, "Works nights", valid_from=day(9)))
    new = drawn(store, "Works days", valid_from=day(90), supersedes=[nights.id], because="the shift changed")
    (closed,) = store.write("me", atom_rows.add, new, now=NOON).replaced
    assert closed == replace(nights, valid_to=day(90), superseded_by="a2", closed_because="the shift changed")


def test_an_update_is_compared_with_the_last_that_was_said_of_its_target(store: Store) -> None:
    days = add(store, drawn(store, "Works days", valid_from=day(9)))
    add(store, drawn(store, "works days", valid_from=day(90)))
    between = add(store, drawn(store, "Works nights", valid_from=day(50), supersedes=[days.id]))
    assert between.superseded_by == days.id
    assert store.read("me", atom_rows.by_ids, [days.id])[0].valid_to is None


def test_a_fact_that_is_taken_over_has_one_value_still(store: Store) -> None:
    rome = add(store, lives(store, "Rome", 10))
    fuller = drawn(store, "Lives in Rome by the river", entity="User", relation="lives_in", value="Rome")
    add(store, replace(fuller, valid_from=day(10), supersedes=[rome.id]))
    add(store, lives(store, "Oslo", 90))
    assert (held(store), held(store, day(50))) == (["Oslo"], ["Rome"])
    add(store, lives(store, "Turin", 50))
    assert [(one.text, one.valid_to) for one in store.read("me", atom_rows.superseded_by, ["a4"])] == [
        ("Lives in Rome by the river", day(50))
    ]


def test_adding_an_atom_by_hand_names_what_cannot_be_superseded(store: Store) -> None:
    old = tell(store, "Works nights")
    tell(store, "Works days", supersedes=[old.id])
    with pytest.raises(InvalidInput, match="replaced already by a2"):
        add(store, drawn(store, "Works never", supersedes=[old.id]))
    with pytest.raises(NotFound, match="no atom a99"):
        add(store, drawn(store, "Works never", supersedes=["a99"]))


# --- in order ---------------------------------------------------------------------------------------


def test_atoms_stored_since_a_moment_are_listed_by_it(store: Store) -> None:
    for text, hours in (("A", 0), ("B", 1), ("C", 2)):
        store.write("me", atom_rows.add, drawn(store, text), now=NOON + timedelta(hours=hours))
    since = NOON + timedelta(hours=1)
    assert [one.text for one in store.read("me", atom_rows.list_since, 0, limit=9, learned_since=since)] == ["B", "C"]


def test_atoms_since_a_number_come_oldest_first_closed_ones_too(store: Store) -> None:
    for text, more in (("A", {}), ("B", {"supersedes": ["a1"]}), ("C", {}), ("D", {})):
        tell(store, text, **more)
    store.write("me", tombstone_rows.forget, ["a3"], reason="", now=NOON)
    assert [one.text for one in store.read("me", atom_rows.list_since, 0, limit=9)] == ["A", "B", "D"]
    assert [one.text for one in store.read("me", atom_rows.list_since, 1, limit=1)] == ["B"]
    assert (
        store.read("you", atom_rows.list_since, 0, limit=9)
        == store.read("you", atom_rows.superseded_by, ["a2"])
        == store.read("me", atom_rows.superseded_by, [])
        == []
    )
    assert [one.text for one in store.read("me", atom_rows.superseded_by, ["a2", "a4"])] == ["A"]


# --- whom they are about ----------------------------------------------------------------------------


def test_an_entity_is_one_however_it_is_called(store: Store) -> None:
    extract(store, aliases={"John Smith": ["Johnny", "ＪＳ"]})
    one = add(store, drawn(store, "John runs", entities=("johnny",)))
    two = add(store, drawn(store, "JS swims", entity="js", relation="does", value="swimming"))
    assert (one.entities, two.entities, two.fact and two.fact.entity) == (("John Smith",),) * 2 + ("John Smith",)
    for name in ("JOHN  SMITH", "Ｊohnny", "js"):
        found = store.read("me", atom_rows.list_atoms, filters=Filters(entity=name))
        assert [atom.id for atom in found] == [one.id, two.id]
        assert [fact.value for fact in store.read("me", atom_rows.facts, filters=Filters(entity=name))] == ["swimming"]
    assert store.read("me", atom_rows.list_atoms, filters=Filters(entity="John")) == []
    assert store.read("me", entity_rows.list_entities) == [
        Entity(name="John Smith", aliases=("Johnny", "ＪＳ"), atoms=2)
    ]


def test_a_name_that_another_entity_has_stays_with_it(store: Store) -> None:
    extract(store, aliases={"Anna Meier": ["Anna"]})
    extract(store, aliases={"Anna Schmidt": ["Anna", "Annie"]})
    assert store.read("me", entity_rows.list_entities) == [
        Entity(name="Anna Meier", aliases=("Anna",), atoms=0),
        Entity(name="Anna Schmidt", aliases=("Annie",), atoms=0),
    ]


def test_a_fuller_name_of_an_entity_that_is_known_is_its_name_too(store: Store) -> None:
    add(store, drawn(store, "Maya paints", entities=("Maya",)))
    extract(store, aliases={"Maya Lopez": ["Maya"]})
    assert store.read("me", entity_rows.list_entities, prefix="maya l") == [
        Entity(name="Maya", aliases=("Maya Lopez",), atoms=1)
    ]


@pytest.mark.parametrize("aliases", [{"user": ["Maya"]}, {"USER": ["Maya"]}, {"Maya": ["user"]}])
def test_the_users_own_name_is_the_user(store: Store, aliases: dict[str, Sequence[str]]) -> None:
    extract(store, aliases=aliases)
    told = tell(store, "Lives in Rome", value="Rome", **{**HOME, "entity": "maya"})
    assert (told.entities, told.fact and told.fact.entity) == (("user",), "user")
    tell(store, "Lives in Oslo", value="Oslo", **{**HOME, "entity": "User"})
    assert held(store) == ["Oslo"]
    assert store.read("me", entity_rows.list_entities) == [Entity(name="user", aliases=("Maya",), atoms=1)]


def test_names_without_letters_and_names_of_nothing_else_are_left_out(store: Store) -> None:
    extract(store, aliases={" ": ["Ann"], "Bob": [" ", "bob"]})
    assert add(store, drawn(store, "Sings", entities=(" ", "Cleo", "cleo"))).entities == ("Cleo",)
    assert [entity.name for entity in store.read("me", entity_rows.list_entities)] == ["Cleo", "Bob"]


def test_entities_are_found_by_how_any_name_begins_those_of_most_current_atoms_first(store: Store) -> None:
    for text, names in (("One", ("Rome", "Ann")), ("Two", ("Ann",)), ("Three", ("Rob", "Rome"))):
        add(store, drawn(store, text, entities=names))
    add(store, drawn(store, "Four", entities=("Ann",), supersedes=["a2"]))
    extract(store, aliases={"Ann": ["Roberta"]})
    found = [(entity.name, entity.atoms) for entity in store.read("me", entity_rows.list_entities, prefix=" RO")]
    assert found == [("Ann", 2), ("Rome", 2), ("Rob", 1)]
    assert [entity.name for entity in store.read("me", entity_rows.list_entities, limit=1)] == ["Ann"]
    assert store.read("me", home_rows.counts).entities == 3
    assert store.read("you", entity_rows.list_entities) == []


def test_an_entity_goes_when_all_that_was_said_of_it_is_forgotten(store: Store) -> None:
    add(store, drawn(store, "Has a secret friend", entities=("Cleo",)))
    tombstone = store.write("me", tombstone_rows.forget, ["a1"], reason="", now=NOON)
    assert (store.read("me", entity_rows.list_entities), store.read("me", home_rows.counts).entities) == ([], 0)
    store.write("me", tombstone_rows.undo, tombstone.id, now=NOON)
    assert [entity.name for entity in store.read("me", entity_rows.list_entities)] == ["Cleo"]


# --- scenes -----------------------------------------------------------------------------------------


def test_atoms_of_a_scene_are_those_its_newest_version_rests_on(store: Store) -> None:
    for text in ("A", "B", "C"):
        tell(store, text)

    def edit(action: Any, *atoms: str) -> None:
        page = SceneEdit(action=action, slug="work", reason="", title="Work", body="x", atoms=atoms)
        store.write("me", stage_outputs.commit, None, SceneChanges(edits=[page], upto=0), outcome={}, now=NOON)

    found: list[list[str]] = []
    for action, atoms in (("create", ("a1", "a2")), ("update", ("a2", "a3")), ("delete", ("a2",))):
        edit(action, *atoms)
        found.append([one.id for one in store.read("me", atom_rows.list_atoms, filters=Filters(scene="work"))])
    assert found == [["a1", "a2"], ["a2", "a3"], []]
    assert store.read("me", atom_rows.list_atoms, filters=Filters(scene="nowhere")) == []


def test_atoms_of_a_scene_that_is_not_stored_are_those_given(store: Store) -> None:
    for text in ("A", "B", "C"):
        tell(store, text)
    filters = Filters(scene="computed", scene_atoms=("a1", "a3"))
    assert [one.id for one in store.read("me", atom_rows.list_atoms, filters=filters)] == ["a1", "a3"]
    assert store.read("me", atom_rows.list_atoms, filters=Filters(scene="computed", scene_atoms=())) == []


# --- drafts -----------------------------------------------------------------------------------------


def test_a_draft_waits_as_it_was_extracted(store: Store) -> None:
    new = lives(
        store,
        "Rome",
        3,
        valid_to=day(200),
        supersedes=("a7",),
        because="moved",
        entities=("user", "Rome"),
    )
    other = drawn(store, "Likes tea")
    assert extract(store, new, other) == [Draft(id="d1", atom=new, job="w1"), Draft(id="d2", atom=other, job="w1")]
    assert store.read("me", stage_outputs.drafts, limit=1) == [Draft(id="d1", atom=new, job="w1")]
    assert store.read("you", stage_outputs.drafts) == []
    assert store.read("me", atom_rows.list_since, 0, limit=9) == []


def test_a_draft_without_evidence_is_refused_and_the_work_stays_open(store: Store) -> None:
    with pytest.raises(InvalidInput, match="has no evidence"):
        extract(store, atom("Likes tea"))
    assert [work.stage for work in store.read("me", job_rows.list_jobs)] == ["extract"]
    (draft,) = extract(store, drawn(store, "Likes tea"))
    with pytest.raises(InvalidInput, match="has no evidence"):
        merge(store, Merging(draft=draft.id, atom=atom("Likes tea")))
    with pytest.raises(InvalidInput, match="surrogate"):
        merge(store, Merging(draft=draft.id, atom=replace(draft.atom, text="Likes \ud83c")))
    assert store.read("me", stage_outputs.drafts) == [draft]


def test_merging_turns_drafts_into_atoms_with_their_vectors(store: Store) -> None:
    tea = tell(store, "Likes tea")
    one, two, three = extract(store, drawn(store, "Likes TEA"), drawn(store, "Paints"), drawn(store, "Sings"))
    vectors = Vectors(identity="m", data=np.eye(3, dtype=np.float32))
    done = merge(
        store,
        Merging(draft=one.id, atom=one.atom),
        Merging(draft=two.id, atom=two.atom),
        Merging(draft=three.id, atom=replace(three.atom, text="Sings bass")),
        vectors=vectors,
    )
    assert [(made.atom.id, made.atom.text, made.duplicate) for made in done] == [
        (tea.id, "Likes tea", True), ("a2", "Paints", False), ("a3", "Sings bass", False),
    ]  # fmt: skip
    assert store.read("me", stage_outputs.drafts) == []
    for row, id in ((1, "a2"), (2, "a3")):
        query = Vectors(identity="m", data=vectors.data[row : row + 1])
        assert store.nearest("me", "atom", query, filters=ANY, limit=1)[0].id == id
    assert [one.sha256 for one in store.read("me", turn_rows.by_ids, [done[1].atom.evidence])] != []


def test_a_draft_that_says_nothing_new_makes_what_is_held_surer(store: Store) -> None:
    tea = add(store, drawn(store, "Likes tea", confidence=0.6))
    (draft,) = extract(store, drawn(store, "Is fond of tea", confidence=0.5))
    assert merge(store, Merging(draft=draft.id, atom=None, onto=[tea.id, "a99"])) == []
    (surer,) = store.read("me", atom_rows.by_ids, [tea.id])
    assert surer == replace(tea, confidence=surer.confidence, also=tuple(draft.atom.evidence))
    assert surer.confidence == pytest.approx(0.8)
    assert store.read("me", stage_outputs.drafts) == []


def test_a_draft_that_says_what_ended_meanwhile_is_asked_about_again(store: Store) -> None:
    tea = tell(store, "Likes tea")
    (draft,) = extract(store, drawn(store, "Is fond of tea"))
    tell(store, "Likes no tea", supersedes=[tea.id])
    merge(store, Merging(draft=draft.id, atom=None, onto=[tea.id]))
    assert store.read("me", stage_outputs.drafts) == [draft]
    store.write("me", tombstone_rows.forget, [tea.id], reason="", now=NOON)
    merge(store, Merging(draft=draft.id, atom=None, onto=[tea.id]))
    assert store.read("me", stage_outputs.drafts) == []


def test_what_a_draft_would_supersede_and_is_closed_or_gone_is_passed_over(store: Store) -> None:
    for text in ("A", "B", "C"):
        add(store, drawn(store, text, valid_from=day(1)))
    add(store, drawn(store, "A too", valid_from=day(2), supersedes=["a1"]))
    store.write("me", tombstone_rows.forget, ["a2"], reason="", now=NOON)
    (draft,) = extract(store, drawn(store, "D"))
    (made,) = merge(store, Merging(draft=draft.id, atom=replace(draft.atom, supersedes=["a1", "a2", "a3", "a99"])))
    assert [old.id for old in made.replaced] == ["a3"]
    assert store.read("me", atom_rows.by_ids, ["a1"])[0].superseded_by == "a4"


def test_a_draft_is_merged_once(store: Store) -> None:
    (draft,) = extract(store, drawn(store, "Paints"))
    merging = Merging(draft=draft.id, atom=draft.atom)
    work = take(store, "merge")
    store.write("me", stage_outputs.commit, work.id, Merge(merged=[merging]), outcome={}, now=NOON)
    with pytest.raises(Conflict):
        store.write("me", stage_outputs.commit, work.id, Merge(merged=[merging]), outcome={}, now=NOON)
    assert merge(store, merging) == []
    assert [one.text for one in store.read("me", atom_rows.list_since, 0, limit=9)] == ["Paints"]


def test_a_batch_may_update_what_it_has_itself_made_older(store: Store) -> None:
    first, second = extract(store, lives(store, "Rome", 100), lives(store, "Berlin", 10))
    merge(store, *(Merging(draft=draft.id, atom=draft.atom) for draft in (first, second)))
    assert (held(store), held(store, day(20))) == (["Rome"], ["Berlin"])


# --- forgetting -------------------------------------------------------------------------------------


def test_forgetting_a_turn_takes_what_rests_on_it_alone_and_undoing_brings_it_back(store: Store) -> None:
    alone, both = add(store, lives(store, "Rome", 1)), add(store, drawn(store, "Paints"))
    both = add(store, drawn(store, "paints"))
    gone = store.write("me", tombstone_rows.forget, [alone.evidence, both.evidence], reason="", now=NOON)
    assert set(gone.ids) == {alone.evidence, both.evidence, alone.id}
    assert (store.read("me", atom_rows.by_ids, [alone.id]), held(store)) == ([], [])
    (left,) = store.read("me", atom_rows.by_ids, [both.id])
    assert left == replace(both, evidence=both.also[0].turn, also=())
    assert store.read("me", atom_rows.evidence, both.id) == list(both.also)
    assert store.write("me", tombstone_rows.undo, gone.id, now=NOON).ids == gone.ids
    assert store.read("me", atom_rows.by_ids, [alone.id, both.id]) == [alone, both]
    assert held(store) == ["Rome"]
    (posting,) = store.postings("me", "atom", ["rome"], filters=ANY)
    assert posting.rows.tolist() == [1]


def test_an_atom_goes_with_the_last_turn_it_rests_on(store: Store) -> None:
    add(store, drawn(store, "Paints"))
    both = add(store, drawn(store, "paints"))
    first, second = (one.turn for one in store.read("me", atom_rows.evidence, both.id))
    assert store.write("me", tombstone_rows.forget, [first], reason="", now=NOON).ids == [first]
    last = store.write("me", tombstone_rows.forget, [second], reason="", now=NOON)
    assert last.ids == [second, both.id]
    store.write("me", tombstone_rows.undo, last.id, now=NOON)
    assert [one.turn for one in store.read("me", atom_rows.evidence, both.id)] == [second]


def test_forgetting_a_note_takes_what_was_told_by_it(store: Store) -> None:
    told = tell(store, "Paints")
    assert store.write("me", tombstone_rows.forget, [told.evidence], reason="", now=NOON).ids == [told.id]


def test_a_note_that_another_atom_rests_on_too_stays(store: Store) -> None:
    told = tell(store, "Paints")
    (draft,) = extract(store, drawn(store, "Paints in oil"))
    words = (*draft.atom.evidence, *store.read("me", atom_rows.evidence, told.id))
    (made,) = merge(store, Merging(draft=draft.id, atom=replace(draft.atom, evidence=words, supersedes=[told.id])))
    store.write("me", tombstone_rows.forget, [told.id], reason="", now=NOON)
    assert store.read("me", atom_rows.evidence, made.atom.id) == list(words)
    store.write("me", tombstone_rows.forget, [made.atom.id], reason="", now=NOON)
    assert store.read("me", turn_rows.by_ids, [told.evidence]) == []


def test_an_atom_cannot_come_back_while_all_it_rests_on_is_forgotten(store: Store) -> None:
    paints = add(store, drawn(store, "Paints"))
    atom_gone = store.write("me", tombstone_rows.forget, [paints.id], reason="", now=NOON)
    turn_gone = store.write("me", tombstone_rows.forget, [paints.evidence], reason="", now=NOON)
    with pytest.raises(InvalidInput, match=f"under {turn_gone.id}"):
        store.write("me", tombstone_rows.undo, atom_gone.id, now=NOON)
    store.write("me", tombstone_rows.undo, turn_gone.id, now=NOON)
    store.write("me", tombstone_rows.undo, atom_gone.id, now=NOON)
    assert store.read("me", atom_rows.by_ids, [paints.id]) == [paints]


def test_a_draft_of_a_forgotten_turn_is_not_there_until_that_is_undone(store: Store) -> None:
    kept, gone = extract(store, drawn(store, "Paints"), drawn(store, "Has a secret"))
    tombstone = store.write("me", tombstone_rows.forget, [gone.atom.evidence[0].turn], reason="", now=NOON)
    assert store.read("me", stage_outputs.drafts) == [kept]
    assert merge(store, Merging(draft=gone.id, atom=gone.atom)) == []
    store.write("me", tombstone_rows.undo, tombstone.id, now=NOON)
    assert store.read("me", stage_outputs.drafts) == [kept, gone]


def test_a_statement_is_asked_about_again_when_words_it_was_merged_from_are_forgotten_meanwhile(store: Store) -> None:
    secret = add(store, drawn(store, "Paints a secret"))
    (draft,) = extract(store, drawn(store, "Paints in oil"))
    merged = replace(draft.atom, text="Paints a secret in oil", supersedes=[secret.id])
    merged = replace(merged, evidence=(*draft.atom.evidence, *store.read("me", atom_rows.evidence, secret.id)))
    store.write("me", tombstone_rows.forget, [secret.evidence], reason="", now=NOON)
    assert merge(store, Merging(draft=draft.id, atom=merged)) == []
    assert (store.read("me", stage_outputs.drafts), store.read("me", atom_rows.list_since, 0, limit=9)) == ([draft], [])


# --- problems ---------------------------------------------------------------------------------------


def test_quotes_that_no_longer_stand_in_their_turn_are_told(embedded: EmbeddedStore, home: Path) -> None:
    for text in ("Paints", "Sings"):
        add(embedded, drawn(embedded, text))
    assert embedded.problems() == []
    con = apsw.Connection(str(home / "memory.db"))
    con.execute(
        "UPDATE evidence SET span_end = span_end + 20 WHERE atom = 1;"
        "UPDATE atom SET span_end = span_end + 20 WHERE id = 1; DELETE FROM evidence WHERE atom = 2"
    )
    con.close()
    assert [line.partition(". ")[0] for line in embedded.problems()] == [
        "me: Atom a1 quotes words that t1 does not contain",
        "me: The first evidence of a2 is lost",
    ]
