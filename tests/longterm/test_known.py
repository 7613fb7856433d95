"""What a memory search finds beside atoms: facts at a time, entities by any name, scenes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from mcp_memory.core.config import Settings
from mcp_memory.core.errors import NotFound
from mcp_memory.core.token_counts import token_counter
from mcp_memory.core.types import MemoryResults
from mcp_memory.longterm.search import pages
from mcp_memory.longterm.search.search import Search
from mcp_memory.service.excerpts import ExcerptRequest, shown_memories
from mcp_memory.service.render import render
from mcp_memory.store.sqlite.store import open_store
from mcp_memory.store.values import Extraction, Filters
from tests.longterm.by_hand import SPACE, ByHand


@pytest.fixture
def hand(home: Path) -> Iterator[ByHand]:
    store = open_store(home)
    search = Search(store, lambda: datetime(2026, 11, 20, tzinfo=UTC))
    yield ByHand(store=store, search=search, settings=Settings())
    search.close()
    store.close()


def search(
    hand: ByHand, query: str = "", *, limit: int = 10, cursor: str | None = None, **filters: Any
) -> MemoryResults:
    return pages.search_memories(
        hand.store,
        hand.search,
        SPACE,
        query,
        embed=lambda _: [],
        filters=Filters(**filters),
        limit=limit,
        cursor=cursor,
        at=hand.now,
    )


def slugs(results: MemoryResults) -> list[str]:
    return [hit.scene.slug for hit in results.scenes]


@pytest.fixture
def told(hand: ByHand) -> ByHand:
    """Three scenes, two of them about Anna Moreau, who is called Annie."""
    anna = hand.draw("Anna Moreau grows roses", entities=["Anna Moreau"])
    boiler = hand.draw("The boiler was repaired by Otto", kind="episodic")
    hand.scene("garden", f"- Anna grows roses behind the house. ({anna})", heat=3, summary="Roses and a hedge.")
    hand.scene("house", f"- The boiler was repaired by Otto. ({boiler})\n- Roses stand in the hall. ({anna})", heat=2)
    hand.scene("work", "- The report is due on Friday.", heat=9)
    return hand


def test_scenes_are_found_by_their_words_the_best_first(told: ByHand) -> None:
    assert slugs(search(told, "Who repaired the boiler?")) == ["house"]
    assert slugs(search(told, "roses")) == ["garden", "house"]
    assert slugs(search(told, "submarine")) == []
    assert slugs(search(told)) == []


def test_scenes_stand_on_the_first_page_alone(told: ByHand) -> None:
    first = search(told, "roses boiler", limit=1)
    assert slugs(first)
    assert first.cursor
    assert slugs(search(told, "roses boiler", limit=1, cursor=first.cursor)) == []


def test_a_search_within_a_scene_shows_its_page_and_what_it_rests_on(told: ByHand) -> None:
    found = search(told, "roses", scene="house")
    assert slugs(found) == ["house"]
    assert [hit.atom.text for hit in found.atoms] == ["Anna Moreau grows roses"]
    assert found.turns == []
    assert [hit.atom.id for hit in search(told, scene="house").atoms] == ["a1", "a2"]
    assert slugs(search(told, scene=" House.md ")) == ["house"]


def test_an_unknown_scene_is_told_the_names_that_are_near(told: ByHand) -> None:
    with pytest.raises(NotFound, match=r"no scene 'gardn' in this space\. Did you mean garden\?"):
        search(told, "roses", scene="gardn")
    with pytest.raises(NotFound, match=r"Scenes: work, garden, house\."):
        search(told, scene="zzz")


def test_filters_that_no_page_knows_leave_scenes_out(told: ByHand) -> None:
    assert slugs(search(told, "roses", kind="persona")) == []
    assert slugs(search(told, "roses", as_of=told.now)) == []
    assert slugs(search(told, "roses", since=told.now - timedelta(days=9))) == []


def test_an_entity_is_found_by_any_of_its_names(hand: ByHand) -> None:
    hand.tell("Anna works for the council", entity="Anna Moreau", relation="works_for", value="the council")
    hand.store.commit(
        SPACE,
        hand.work("extract", "told").id,
        Extraction(upto={"told": 1}, drafts=[], aliases={"Anna Moreau": ["Annie"]}),
        outcome={},
        now=hand.tick(),
    )
    hand.scene("council", "- Anna works there. (a1)")
    by_name, by_alias = search(hand, entity="anna moreau"), search(hand, entity="Annie")
    assert [fact.value for fact in by_name.facts] == ["the council"]
    assert (by_alias.atoms, by_alias.facts, by_alias.scenes) == (by_name.atoms, by_name.facts, by_name.scenes)
    assert [fact.value for fact in search(hand, "Where is Annie employed?").facts] == ["the council"]


def test_the_facts_of_a_time_are_those_that_held_then_and_say_until_when(hand: ByHand) -> None:
    then = hand.now
    at: dict[str, Any] = {"entity": "Anna", "relation": "lives_in", "single_valued": True}
    hand.tell("Anna lives in Porto", value="Porto", valid_from=then, **at)
    hand.tell("Anna lives in Turin", value="Turin", valid_from=then + timedelta(days=30), **at)
    now, past = search(hand, entity="Anna"), search(hand, entity="Anna", as_of=then + timedelta(days=3))
    assert [(fact.value, fact.valid_to) for fact in now.facts] == [("Turin", None)]
    assert [(fact.value, fact.valid_to) for fact in past.facts] == [("Porto", then + timedelta(days=30))]
    asking = ExcerptRequest(query="", detail="concise", counter=token_counter("o200k_base"))
    text = render(shown_memories(past, asking))
    assert "> Anna · lives_in · Porto (since 2026-11-20 until 2026-12-20; a1)" in text
    assert "until 2026-12-20, replaced by a2" in text
