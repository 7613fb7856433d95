"""Scenes before a model has written any: computed from the statements when they are read."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from mcp_memory.core.token_counts import token_counter
from mcp_memory.longterm import persona
from mcp_memory.longterm.recall.blocks import bundle
from mcp_memory.longterm.scene_stage import SCENES
from mcp_memory.longterm.scenes import computed_scenes, find_scene, readable_scenes, rendered_page
from mcp_memory.longterm.search.scenes import resolve_filters
from mcp_memory.longterm.verification.evidence import lines_citing
from mcp_memory.store.sql import atom_rows, page_rows, quarantine_rows
from mcp_memory.store.sqlite.store import open_store
from mcp_memory.store.values import Filters
from tests.longterm.by_hand import SPACE, ByHand, say

NOA = ("Noa is my sister, she takes the photos.", "I pay Noa in mugs.", "The photos by Noa are due in May.")
KILN = (
    "The kiln reaches 1,240 degrees.",
    "I fire the kiln twice a week.",
    "The old kiln needs a new thermocouple.",
)
OTHERS = (
    "We fly to Lisbon in June.",
    "My dentist is in Vigo.",
    "I never eat gluten.",
    "The van is a white Berlingo.",
    "Invoices carry the code of each product.",
    "On Thursdays I teach drawing at school.",
    "Rent goes up by 40 euros next year.",
    "I learnt the bagpipes as a child.",
    "Our cat sleeps on the printer.",
    "I read crime novels at night.",
)


def say_all(hand: ByHand, texts: tuple[str, ...] = (*NOA, *KILN, *OTHERS)) -> list[str]:
    return [say(hand, text, "trait", embedded=True, entities=tuple({"Noa"} & set(text.split()))) for text in texts]


def titles(hand: ByHand) -> list[str]:
    return [scene.title for scene in readable_scenes(hand.store, SPACE)]


def test_statements_about_one_name_are_a_scene_with_a_dated_line_for_each(hand: ByHand) -> None:
    first, second, third = say_all(hand)[:3]
    scene = find_scene({scene.slug: scene for scene in readable_scenes(hand.store, SPACE)}, "Noa")
    assert scene is not None
    assert (scene.slug, scene.heat, scene.version, scene.entities) == ("noa", 3, 1, ("Noa",))
    assert rendered_page(hand.store, SPACE, scene) == (
        "# Noa\n\n"
        f"- 2026-11-20: Noa is my sister, she takes the photos. ({first})\n"
        f"- 2026-11-20: I pay Noa in mugs. ({second})\n"
        f"- 2026-11-20: The photos by Noa are due in May. ({third})\n"
    )


def test_other_statements_are_grouped_by_meaning_and_titled_by_the_statement_that_tells_most(hand: ByHand) -> None:
    ids = say_all(hand)
    scene = next(scene for scene in readable_scenes(hand.store, SPACE) if scene.title != "Noa")
    assert (scene.slug, scene.title) == ("kiln", "The kiln reaches 1,240 degrees")
    assert scene.atoms == tuple(ids[3:6])


def test_the_same_statements_give_the_same_scenes_in_another_process(hand: ByHand, home: Path) -> None:
    say_all(hand)
    again = open_store(home)
    try:
        assert computed_scenes(again, SPACE) == computed_scenes(hand.store, SPACE)
    finally:
        again.close()


def test_a_forgotten_quarantined_or_ended_statement_leaves_its_scene(hand: ByHand) -> None:
    ids = say_all(hand, (*NOA, "Noa has a dog.", "Noa lives in Vigo.", "I call Noa on Sundays."))
    assert readable_scenes(hand.store, SPACE)[0].atoms == tuple(ids)
    hand.forget(ids[0])
    hand.store.write(SPACE, quarantine_rows.quarantine, {ids[1]: ["drop"]}, now=hand.now)
    newer = hand.tell("Noa lives in Porto.", entities=("Noa",), supersedes=[ids[4]])
    assert readable_scenes(hand.store, SPACE)[0].atoms == (ids[2], ids[3], ids[5], newer)


def test_a_statement_in_the_same_words_is_listed_once(hand: ByHand) -> None:
    *_, last = say_all(hand, (*NOA, "I pay Noa in mugs"))
    (scene,) = readable_scenes(hand.store, SPACE)
    assert scene.heat == 3
    assert last in scene.atoms


def test_the_users_own_name_and_explicit_statements_alone_are_no_scene(hand: ByHand) -> None:
    for text in NOA:
        hand.tell(text)
    assert titles(hand) == []


def test_scenes_that_a_model_wrote_replace_the_computed_ones(hand: ByHand) -> None:
    ids = say_all(hand)
    assert "Noa" in titles(hand)
    hand.scene("pottery", f"They fire twice a week ({ids[4]}).", title="Pottery")
    assert titles(hand) == ["Pottery"]


def test_stages_recall_and_evidence_use_stored_scenes_only(hand: ByHand) -> None:
    ids = say_all(hand)
    assert readable_scenes(hand.store, SPACE)
    assert hand.store.read(SPACE, page_rows.scenes) == []
    assert SCENES.plan(hand.context(), session=None, smaller=0) is None
    assert not [one for one in lines_citing(hand.store, SPACE, ids[0]) if one.slug is not None]
    counter = token_counter("cl100k_base")
    found = bundle(hand.context(), "What do I pay Noa?", session=None, counter=counter, budget=2_000)
    assert "scene" not in found.stable + found.dynamic


def test_the_page_lists_computed_scenes_for_its_readers_and_not_in_its_file(hand: ByHand) -> None:
    say_all(hand)
    line = "- noa (heat 3, 2026-11-20): 3 statements, 2026-11-20 to 2026-11-20"
    assert line in persona.whole(hand.store, SPACE, at=datetime(2026, 11, 21, tzinfo=UTC)).splitlines()
    assert line not in persona.whole(hand.store, SPACE).splitlines()


def test_a_search_within_a_computed_scene_lists_its_statements(hand: ByHand) -> None:
    ids = say_all(hand)
    filters, _ = resolve_filters(hand.store, SPACE, Filters(scene="Noa"))
    assert [atom.id for atom in hand.store.read(SPACE, atom_rows.list_atoms, filters=filters)] == ids[:3]
