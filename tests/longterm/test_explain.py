"""What is said of a search is what the search does."""

from __future__ import annotations

import pytest

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.types import NewTurn
from mcp_memory.service.memory import Memory

SAID = [
    ("user", "The night boat to Hellesund sails at half past two."),
    ("assistant", "Noted: the night boat sails at 02:30."),
    ("user", "My sister keeps three beehives on the roof."),
    ("assistant", "How many of the hives came through the winter?"),
    ("user", "Two of them. The boat brings the sugar for the bees."),
    ("user", "The bakery opens at six."),
]


@pytest.fixture
async def told(memory: Memory) -> Memory:
    turns = [NewTurn(role=role, content=text) for role, text in SAID]  # pyright: ignore[reportArgumentType]
    await memory.record_turns(turns, session="s")
    await memory.remember("The user's sister keeps bees.", typed=True)
    await memory.remember("The night boat sails at 02:30.", typed=True)
    return memory


@pytest.mark.parametrize("query", ["night boat", "When does the boat sail?", "bees of my sister", "sugar"])
@pytest.mark.parametrize("limit", [1, 3, 10])
async def test_what_is_shown_is_what_a_search_shows_and_its_points_make_its_score(
    told: Memory, query: str, limit: int
) -> None:
    found = await told.memory_search(query, limit=limit)
    shown = {hit.atom.id: hit.score for hit in found.atoms} | {hit.turn.id: hit.score for hit in found.turns}
    search = await told.explain(query, limit=limit)
    assert {row.id: row.score for row in search.shown} == shown
    for row in (*search.shown, *search.missed):
        assert sum(part.points for part in row.parts) == pytest.approx(row.score, abs=1e-3)
        assert row.text
    assert not {row.id for row in search.missed} & shown.keys()


async def test_what_just_missed_is_what_the_next_page_begins_with(told: Memory) -> None:
    first = await told.memory_search("night boat", limit=2)
    after = await told.memory_search("night boat", limit=2, cursor=first.cursor)
    search = await told.explain("night boat", limit=2)
    following = {hit.atom.id for hit in after.atoms} | {hit.turn.id for hit in after.turns}
    assert {row.id for row in search.missed[:2]} == following


async def test_each_leg_and_word_is_counted(told: Memory) -> None:
    search = await told.explain("when does the night boat sail")
    legs = {leg.layer: leg for leg in search.legs}
    assert {"night", "boat", "sail"} <= set(search.words)
    assert {word: legs["turn"].words[word] for word in ("night", "boat")} == {"night": 2, "boat": 3}
    assert legs["turn"].by_words == 3
    assert {word: legs["atom"].words[word] for word in ("night", "boat")} == {"night": 1, "boat": 1}
    best = search.shown[0]
    assert set(best.holds) >= {"night", "boat"}
    assert next(part for part in best.parts if part.signal == "words").place == 1


async def test_a_leg_counts_what_passes_the_filters(told: Memory) -> None:
    search = await told.explain("night boat", until="2001-01-01")
    assert [(leg.by_words, leg.by_meaning) for leg in search.legs] == [(0, 0), (0, 0)]
    assert search.shown == ()


async def test_a_turn_that_an_atom_before_it_rests_on_says_so_where_it_would_be_shown(told: Memory) -> None:
    search = await told.explain("The night boat sails at 02:30.", limit=10)
    ids = [row.id for row in (*search.shown, *search.missed)]
    for row in search.left_out:
        assert row.id not in ids
        assert row.left_out


async def test_what_a_filter_takes_out_is_named(told: Memory) -> None:
    search = await told.explain("night boat", kind="instruction")
    assert search.shown == ()
    reasons = {row.id: row.left_out for row in search.left_out}
    assert reasons
    assert set(reasons.values()) == {"the filters leave it out"}


async def test_recall_says_of_every_row_why_it_comes_or_not(told: Memory) -> None:
    recall = await told.explain_recall("When does the night boat sail?")
    verdicts = {one.id: one for one in recall.verdicts}
    bundle = await told.recall("When does the night boat sail?")
    assert recall.brought == bundle.dynamic
    assert {id for id, one in verdicts.items() if one.brought} == {id for id in verdicts if f"[{id}" in bundle.dynamic}
    assert "may be about something else" in verdicts["t6"].why
    assert all(one.why for one in recall.verdicts)


async def test_of_a_question_about_nothing_that_is_known_all_that_is_brought_is_said_to_be_unsure(told: Memory) -> None:
    recall = await told.explain_recall("Which quarterly tax form is due?")
    assert "About this" not in recall.brought
    assert all("may be about something else" in one.why for one in recall.verdicts if one.brought)


async def test_an_empty_query_is_refused(told: Memory) -> None:
    with pytest.raises(InvalidInput, match="query is empty"):
        await told.explain("  ")


@pytest.mark.parametrize("query", ['AND OR "', "%s {}", "\x00", "。" * 400, "a" * 20_000, "🌊"])
async def test_any_text_can_be_explained(told: Memory, query: str) -> None:
    search, recall = await told.explain(query), await told.explain_recall(query)
    assert len(search.query) <= 300
    assert recall.tokens >= 0
