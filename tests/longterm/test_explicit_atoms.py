"""Explicit statements (`remember`): atoms, facts, the persona page, search over them, forgetting."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

from mcp_memory.core.config import Settings
from mcp_memory.core.errors import InvalidInput, NotFound
from mcp_memory.core.types import NewTurn
from mcp_memory.service.memory import Memory
from mcp_memory.service.render import render
from mcp_memory.testing import FixedClock


async def test_a_told_atom_is_certain_and_rests_on_its_own_words(memory: Memory) -> None:
    atom = (await memory.remember("Allergic to peanuts", session="s", typed=True)).atom
    assert (atom.id, atom.kind, atom.confidence, atom.priority, atom.span) == ("a1", "persona", 1.0, 80, (0, 19))
    assert [turn.content for turn in await memory.session_turns("s")] == ["Allergic to peanuts"]
    assert (await memory.remember("Answer in German", kind="instruction", typed=True)).atom.priority == -1


async def test_a_fact_of_one_value_replaces_the_one_before(memory: Memory, clock: FixedClock) -> None:
    await memory.remember("Lives in Berlin", entity="user", relation="lives in", value="Berlin", typed=True)
    clock.advance(days=10)
    done = await memory.remember("Moved to Rome", entity="User", relation="livesIn", value="Rome", typed=True)
    assert [(old.id, old.superseded_by) for old in done.replaced] == [("a1", "a2")]
    now = await memory.memory_search(entity="user")
    then = await memory.memory_search(entity="user", as_of="2026-11-22")
    assert [fact.value for fact in now.facts] == ["Rome"]
    assert [fact.value for fact in then.facts] == ["Berlin"]


async def test_what_may_repeat_or_contradict_is_shown_and_left(memory: Memory) -> None:
    fact = {"entity": "user", "relation": "likes", "typed": True}
    await memory.remember("Likes tea in the morning", value="tea", **fact)
    done = await memory.remember("Likes coffee at noon", value="coffee", **fact)
    assert (done.replaced, [atom.id for atom in done.similar], done.contradicting) == ([], ["a1"], [])
    assert "supersedes=[" not in await anyio.to_thread.run_sync(render, done)
    again = await memory.remember("likes TEA in the morning.", typed=True)
    assert (again.duplicate, again.atom.id) == (True, "a1")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The pilot is due 27 November", "Pilot starts on 4 December"),
        ("We use MySQL 8", "Production runs on PostgreSQL 17"),
        ("Rent is 1,340", "Miete jetzt 1.400"),
        ("Lives in Porto", "Moved to Leeds"),
    ],
)
async def test_a_contradiction_is_named_even_in_other_words(memory: Memory, old: str, new: str) -> None:
    for text in ("The cat is called Miso", old, "Flour costs 1.20 a kilo"):
        await memory.remember(text, typed=True)
    done = await memory.remember(new, typed=True)
    assert [atom.id for atom in done.similar] == [*done.contradicting, *done.unsure] == ["a2"]
    assert "Similar" not in await anyio.to_thread.run_sync(render, done)


MET = {"kind": "episodic", "relation": "met", "typed": True}


async def test_a_correction_is_about_what_the_corrected_ones_are_about_and_of_their_kind(memory: Memory) -> None:
    for name in ("Ines", "Ben"):
        await memory.remember(f"The pilot met {name}", entity=name, value="the pilot", **MET)
    done = await memory.remember("The pilot met Ines and Ben in Oslo", supersedes=["a1", "a2"], typed=True)
    assert (done.atom.kind, done.atom.entities) == ("episodic", ("Ines", "Ben", "Oslo"))
    assert [atom.id for atom in (await memory.statements(entity="Ines")).atoms] == ["a3"]


async def test_a_correction_with_an_entity_and_a_kind_of_its_own_has_those(memory: Memory) -> None:
    await memory.remember("Ines met the pilot", entity="Ines", value="the pilot", **MET)
    own = {**MET, "kind": "persona", "entity": "Ben", "value": "the pilot"}
    done = await memory.remember("Ben met the pilot", supersedes=["a1"], **own)
    assert (done.atom.kind, done.atom.entities) == ("persona", ("Ben",))


async def test_a_correction_keeps_the_fact_whose_entity_and_value_stand_in_it(memory: Memory) -> None:
    fact: dict[str, Any] = {"entity": "user", "relation": "sibling", "value": "Adaeze"}
    await memory.remember("My sister Adaeze lands on 12 November", **fact, typed=True)
    kept = (await memory.remember("My sister ADAEZE lands on 13 November", supersedes=["a1"], typed=True)).atom.fact
    assert kept is not None
    assert (kept.atom, kept.entity, kept.relation, kept.value) == ("a2", *fact.values())
    assert [one.atom for one in await memory.facts_about("user") if one.valid_to is None] == ["a2"]


@pytest.mark.parametrize(
    ("fact", "entities"),
    [({}, {"Oslo", "user"}), ({"entity": "user", "relation": "lives in", "value": "Oslo"}, {"Oslo", "user"})],
    ids=["without a fact", "with the new value of the fact"],
)
async def test_a_correction_drops_a_fact_and_entities_that_it_does_not_name(
    memory: Memory, fact: dict[str, Any], entities: set[str]
) -> None:
    await memory.remember("Bergen is far from Ulm", entity="Bergen", relation="far from", value="Ulm", typed=True)
    home: dict[str, Any] = {"entity": "user", "relation": "lives in", "value": "Bergen"}
    await memory.remember("Lives in Bergen", supersedes=["a1"], **home, typed=True)
    assert (await memory.atom("a2")).entities == ("Bergen", "user")
    done = (await memory.remember("Lives in Oslo", supersedes=["a2"], **fact, typed=True)).atom
    assert (done.fact and done.fact.value, set(done.entities)) == (fact.get("value"), entities)


async def test_facts_about_two_entities_do_not_contradict(memory: Memory) -> None:
    await memory.remember("Lives in Porto", entity="Ines", relation="lives in", value="Porto", typed=True)
    done = await memory.remember("Moved to Leeds", entity="Ben", relation="lives in", value="Leeds", typed=True)
    assert (done.replaced, done.similar, done.contradicting) == ([], [], [])
    assert "Nothing similar was known." in await anyio.to_thread.run_sync(render, done)


async def test_an_older_statement_can_be_told_later(memory: Memory) -> None:
    done = await memory.remember("Studied in Leeds", kind="episodic", valid_from="2015", typed=True)
    assert done.atom.valid_from == datetime(2015, 1, 1).astimezone()


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"text": " "}, "text is empty"),
        ({"text": "\u200b\ufeff\u2060\u3164"}, "no visible character"),
        ({"text": "x" * 2001}, "at most 2000"),
        ({"text": "a\ud800"}, "lone surrogate"),
        ({"text": "The key of the staging box is sk-live-9aF3kQ77LmZ0pXw2RtYb"}, "looks like a key or password"),
        ({"text": "x", "entity": "box", "relation": "login", "value": "password=hunter22"}, "looks like a key"),
        ({"text": "x", "entity": "user"}, "add relation and value"),
        ({"text": "x", "valid_from": "soon"}, "valid_from 'soon' is not a date"),
    ],
)
async def test_what_cannot_be_told_is_refused_and_nothing_is_stored(
    memory: Memory, arguments: dict[str, str], problem: str
) -> None:
    with pytest.raises(InvalidInput, match=problem):
        await memory.remember(**arguments, typed=True)  # pyright: ignore[reportArgumentType]
    assert (await memory.status())["counts"]["atoms"] == 0


async def test_superseding_what_is_not_there_stores_nothing(memory: Memory) -> None:
    with pytest.raises(NotFound, match="no atom a7"):
        await memory.remember("x", supersedes=["a7"], typed=True)
    assert (await memory.status())["counts"]["atoms"] == 0


async def test_a_memory_search_fills_up_with_what_was_said(memory: Memory) -> None:
    await memory.record_turns([NewTurn(role="user", content="My cello teacher is Ines")], session="s")
    await memory.remember("Plays the cello", typed=True)
    results = await memory.memory_search("cello")
    assert [hit.atom.text for hit in results.atoms] == ["Plays the cello"]
    assert [hit.turn.content for hit in results.turns] == ["My cello teacher is Ines"]


async def test_filters_of_atoms_leave_turns_out(memory: Memory) -> None:
    await memory.record_turns([NewTurn(role="user", content="cello")], session="s")
    await memory.remember("Plays the cello", typed=True)
    assert (await memory.memory_search("cello", kind="instruction")).turns == []


async def test_without_a_query_what_was_told_is_listed(memory: Memory) -> None:
    await memory.remember("Plays the cello", typed=True)
    await memory.remember("Be brief", kind="instruction", typed=True)
    results = await memory.memory_search()
    assert [hit.atom.text for hit in results.atoms] == ["Be brief", "Plays the cello"]


async def test_an_unknown_scene_is_not_found(memory: Memory) -> None:
    with pytest.raises(NotFound, match="No scenes have been made"):
        await memory.memory_search("x", scene="work")


@pytest.mark.files
async def test_the_persona_lists_what_was_told_and_nothing_else(memory: Memory, home: Path) -> None:
    assert (await memory.read_persona()).version == 0
    await memory.record_turns([NewTurn(role="user", content="Be brief, please.")], session="s")
    await memory.remember("Plays the cello", typed=True)
    await memory.remember("Be brief", kind="instruction", typed=True)
    await memory.remember("Moved to Rome", kind="episodic", valid_from="2026-05-01", typed=True)
    page = await memory.read_persona()
    assert page.text == (
        "# Persona\n\n## Rules\n\n- Be brief (a2)\n\n## About the user and their work\n\n- Plays the cello (a1)\n\n"
        "## What happened\n\n- 2026-05-01: Moved to Rome (a3)\n"
    )
    assert page.text == (home / "spaces" / "default" / "persona.md").read_text()
    assert page.sections == ["Rules", "About the user and their work", "What happened"]
    section = await memory.read_persona("about the user AND their work")
    assert section.text == "## About the user and their work\n\n- Plays the cello (a1)\n"
    with pytest.raises(NotFound, match="Sections: Rules, About the user and their work, What happened"):
        await memory.read_persona("Hobbies")


async def test_a_long_life_still_fits_the_page(memory: Memory) -> None:
    for i in range(40):
        await memory.remember(f"Fact {i} about a rather eventful life full of detail", kind="persona", typed=True)
    text = (await memory.read_persona()).text
    assert len(text) <= 2000
    assert "more: memory_search kind=persona" in text


async def test_forgetting_by_id_takes_it_out_of_the_persona_and_undo_brings_it_back(memory: Memory) -> None:
    await memory.remember("Plays the cello", typed=True)
    done = await memory.forget(["a1"], reason="asked")
    assert (done.ids, done.dry_run, done.tombstone) == (["a1"], False, "x1")
    assert "cello" not in (await memory.read_persona()).text
    assert (await memory.memory_search("cello")).atoms == []
    back = await memory.forget(undo="x1")
    assert (back.undone, back.ids) == (True, ["a1"])
    assert "cello" in (await memory.read_persona()).text
    assert [hit.atom.id for hit in (await memory.memory_search("cello")).atoms] == ["a1"]


async def test_forgetting_by_query_first_shows_what_it_would_take(memory: Memory) -> None:
    said = ("My password hint is a blue whale", "A whale!")
    await memory.record_turns([NewTurn(role="user", content=text) for text in said], session="s")
    shown = await memory.forget(query="blue whale")
    assert (shown.dry_run, shown.tombstone, shown.previews) == (True, None, [f"t1: {said[0]}"])
    done = await memory.forget(query="blue whale", dry_run=False)
    assert (done.ids, done.tombstone) == (["t1"], "x1")


@pytest.mark.parametrize(("arguments", "said"), [({}, "Say what"), ({"ids": ["a1"], "undo": "x1"}, "not both")])
async def test_forgetting_wants_to_be_told_what(memory: Memory, arguments: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        await memory.forget(**arguments)  # pyright: ignore[reportArgumentType]


async def test_unknown_ids_are_named_and_nothing_is_forgotten(memory: Memory) -> None:
    await memory.remember("Plays the cello", typed=True)
    with pytest.raises(NotFound, match="a9"):
        await memory.forget(["a1", "a9"])
    with pytest.raises(NotFound, match="There is no atom a9"):
        await memory.atom("a9")
    with pytest.raises(InvalidInput, match="Ids look like"):
        await memory.forget(["everything"])
    with pytest.raises(NotFound, match="x4"):
        await memory.forget(undo="x4")
    assert (await memory.atom("a1")).text == "Plays the cello"


@pytest.mark.parametrize("space", ["../../x", "/abs", "NUL", "a/b", "", " "])
async def test_a_space_that_is_a_path_is_refused_before_anything_is_made(
    home: Path, tmp_path: Path, space: str
) -> None:
    from mcp_memory.service.memory import open_memory

    with pytest.raises(InvalidInput, match="The space"):
        async with open_memory(Settings(home=home, space=space)):
            raise AssertionError("it opened")
    assert list(tmp_path.iterdir()) == []
