"""Turns in and out: what is stored, what is cut out, what is found and how it is paged."""

from __future__ import annotations

import html
import json
from dataclasses import replace

import pytest
from anyio import to_thread
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_memory.core.errors import InvalidInput, NotFound
from mcp_memory.core.types import NewTurn, Recorded
from mcp_memory.longterm.search.search import Search
from mcp_memory.longterm.turns import MAX_TURN_BYTES, admit, recall_block
from mcp_memory.service.memory import Memory
from mcp_memory.service.render import render
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import turn_rows
from mcp_memory.store.values import UNJUDGED, Vectors
from mcp_memory.testing import FixedClock, HashEmbedder
from tests.longterm.by_hand import NOON, search_memories, search_turns


def user(content: str) -> NewTurn:
    return NewTurn(role="user", content=content)


def unjudged(turn: NewTurn) -> NewTurn:
    return replace(turn, held=(UNJUDGED,))


async def test_recorded_turns_are_found_again_at_once(memory: Memory) -> None:
    done = await memory.record_turns([user("The blue kettle leaks"), user("Buy stamps")], session="kitchen")
    assert done == Recorded(session="kitchen", stored=["t1", "t2"], duplicates=0, emptied=0)
    (first, *_) = (await memory.conversation_search("kettle leaking")).hits
    assert (first.turn.content, list(first.found_by)) == ("The blue kettle leaks", ["words", "context", "meaning"])


async def test_when_no_model_reads_record_turns_counts_the_turns_that_distill_would_read(memory: Memory) -> None:
    many = [user(f"Point {i} of the plan") for i in range(20)]
    short = await memory.record_turns(many[:19], session="plan")
    long = await memory.record_turns(many[19:], session="plan")
    assert short.note is None
    assert long.note == "20 turns are not distilled. When the user is done, call distill."
    other = await memory.record_turns([user("Hello there")], session="other")
    assert other.note == "21 turns are not distilled. When the user is done, call distill."
    assert (await memory.distill()).waiting == 21


async def test_without_a_session_one_is_given_for_the_life_of_the_memory(memory: Memory) -> None:
    first = await memory.record_turns([user("a")])
    second = await memory.record_turns([user("b")])
    assert first.session == second.session == memory.session
    assert first.session.startswith("2026-11-20-")


async def test_recalled_text_is_never_stored_again(memory: Memory) -> None:
    block = recall_block("[a1] Likes tea", part="stable")
    done = await memory.record_turns([user(f"{block}What do I like?"), user(block)], session="s")
    assert (len(done.stored), done.emptied) == (1, 1)
    assert [turn.content for turn in await memory.session_turns("s")] == ["What do I like?"]


@given(st.text())
def test_no_text_can_close_the_fence_it_stands_in(text: str) -> None:
    for inside in (text, f"</mcp-memory-recall>{text}", f"< / MCP-MEMORY-RECALL >{text}"):
        block = recall_block(inside, part="dynamic")
        assert admit([user(f"before\n{block}\nafter")]).turns == [unjudged(user("before\nafter"))]


BLOCK = recall_block("[a1] Likes tea", part="stable")


@pytest.mark.parametrize(
    "text",
    [
        html.escape(BLOCK, quote=False),
        json.dumps(BLOCK),
        json.dumps(BLOCK).replace("<", "\\u003c").replace(">", "\\u003e"),
        BLOCK.replace("\n", "\n> "),
    ],
)
def test_recalled_text_that_was_quoted_is_not_stored_again(text: str) -> None:
    admitted = admit([user(f"You said: {text} What do I like?")])
    (kept,) = admitted.turns
    assert admitted.emptied == 0
    assert "tea" not in kept.content
    assert kept.content.startswith("You said: ")
    assert kept.content.endswith("What do I like?")


def test_a_text_of_openings_that_nothing_closes_is_kept_as_it_is() -> None:
    turn = user("<mcp-memory-recall>" * 100_000)  # a pattern with `.*?` takes minutes
    assert admit([turn]).turns == [unjudged(turn)]


@pytest.mark.parametrize(
    ("turns", "problem"),
    [
        ([], "no turns"),
        ([user("a\ud800b")], "lone surrogate"),
        ([user("x" * (MAX_TURN_BYTES + 1))], "larger than 4 MiB.*offload_tool_result"),
        ([user("x")] * 5001, "at most 5000"),
    ],
)
async def test_turns_that_cannot_be_stored_are_refused_and_none_of_them_is(
    memory: Memory, turns: list[NewTurn], problem: str
) -> None:
    with pytest.raises(InvalidInput, match=problem):
        await memory.record_turns(turns, session="s")
    assert (await memory.status())["counts"]["turns"] == 0


@pytest.mark.parametrize("session", ["../../x", "/etc", "CON", "", "a\x00b"])
async def test_a_session_that_is_a_path_is_refused(memory: Memory, session: str) -> None:
    with pytest.raises(InvalidInput, match="The session"):
        await memory.record_turns([user("a")], session=session)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(query=st.text(min_size=1).filter(str.strip))
def test_a_search_never_fails_for_any_text(store: Store, search: Search, query: str) -> None:
    model = HashEmbedder()

    def embed(text: str) -> list[Vectors]:
        return [Vectors(identity=model.identity, data=model.embed([text]))]

    store.write("me", turn_rows.append, "s", turn_rows.prepare([user(query)]), now=NOON, vectors=embed(query)[0])
    said = search_turns(store, search, "me", query, embed=embed, limit=5)
    known = search_memories(store, search, "me", query, embed=embed, limit=5)
    assert {hit.turn.id for hit in known.turns} == {hit.turn.id for hit in said.hits}


async def test_without_a_query_turns_are_listed_by_time_newest_first_in_pages(
    memory: Memory, clock: FixedClock
) -> None:
    for day in range(5):
        await memory.record_turns([user(f"day {day}"), NewTurn(role="assistant", content=f"noted {day}")], session="s")
        clock.advance(days=1)
    listed: list[str] = []
    cursor = None
    while cursor is not None or not listed:
        page = await memory.conversation_search(" ", role="user", limit=2, cursor=cursor)
        listed += [hit.turn.content for hit in page.hits]
        cursor = page.cursor
    assert listed == ["day 4", "day 3", "day 2", "day 1", "day 0"]
    assert "turns (*), newest first. " in await to_thread.run_sync(render, await memory.conversation_excerpts(limit=3))
    since = await memory.conversation_search(since="2026-11-21", until="2026-11-22", session="s")
    assert [hit.turn.content for hit in since.hits] == ["noted 2", "day 2", "noted 1", "day 1"]


@pytest.mark.parametrize("cursor", ["nonsense", "", "WzEwLCJmZmZmIl0", "…"])
async def test_a_cursor_of_another_question_is_refused(memory: Memory, cursor: str) -> None:
    await memory.record_turns([user("report")], session="s")
    with pytest.raises(InvalidInput, match="cursor"):
        await memory.conversation_search("report", cursor=cursor)


async def test_neighbours_come_in_order_around_a_hit(memory: Memory) -> None:
    await memory.record_turns([user(f"line {word}") for word in ("one", "two", "three", "four")], session="s")
    (hit,) = (await memory.conversation_search("two", neighbours=1, limit=1)).hits
    assert [turn.content for turn in hit.neighbours] == ["line one", "line three"]


async def test_a_hit_among_the_neighbours_of_better_ones_takes_no_place(memory: Memory) -> None:
    for session in ("one", "two"):
        await memory.record_turns([user(f"harbour {word}") for word in ("crane", "light", "wall")], session=session)
    page = await memory.conversation_search("harbour light", neighbours=1, limit=2)
    assert len({hit.turn.session for hit in page.hits[:2]}) == 2, "the two places"
    shown = {turn.id for hit in page.hits for turn in (hit.turn, *hit.neighbours)}
    assert len(page.hits) == 3, "less than twice as many"
    assert shown == {turn.id for hit in page.hits[:2] for turn in (hit.turn, *hit.neighbours)}
    rest = await memory.conversation_search("harbour light", neighbours=1, limit=20, cursor=page.cursor)
    assert len({hit.turn.id for hit in (*page.hits, *rest.hits)}) == len(page.hits) + len(rest.hits) == 6


async def test_wrong_ranges_and_unknown_sessions_say_what_is_allowed(memory: Memory) -> None:
    with pytest.raises(InvalidInput, match="limit is 0; it can be 1 to 50"):
        await memory.conversation_search("x", limit=0)
    with pytest.raises(InvalidInput, match="neighbours is 99"):
        await memory.conversation_search("x", neighbours=99)
    with pytest.raises(NotFound, match="no session 'nowhere'"):
        await memory.conversation_search("x", session="nowhere")
    with pytest.raises(NotFound, match="no session 'nowhere'"):
        await memory.session_turns("nowhere")


async def test_search_goes_on_by_words_when_the_model_fails(memory: Memory, embedder: HashEmbedder) -> None:
    await memory.record_turns([user("the blue kettle")], session="s")
    embedder.failing = True
    results = await memory.conversation_search("kettle")
    assert [list(hit.found_by) for hit in results.hits] == [["words", "context"]]
    assert results.note is not None
    assert "hash/64 does not answer" in results.note


async def test_a_turn_is_stored_even_when_the_model_fails(memory: Memory, embedder: HashEmbedder) -> None:
    embedder.failing = True
    assert (await memory.record_turns([user("kept all the same")], session="s")).stored == ["t1"]


@pytest.mark.parametrize("blank", ["", " \n", "\u200b\u2060\ufeff"])
async def test_a_turn_without_a_visible_character_is_left_out_and_the_answer_counts_it(
    memory: Memory, blank: str
) -> None:
    done = await memory.record_turns([user(blank), user("Hi"), user(blank)], session="s")
    assert (done.stored, done.emptied) == (["t1"], 2)
    assert "2 left out" in render(done)
    alone = await memory.record_turns([user(blank)], session="s")
    assert (alone.stored, alone.emptied) == ([], 1)


RANGES = [("2026-11-21", "2026-11-20"), ("last week", "2 weeks ago"), ("2026-11-20T10:00", "2026-11-20T10:00")]


@pytest.mark.parametrize(("since", "until"), RANGES)
async def test_a_range_with_nothing_between_is_said_as_it_was_understood(
    memory: Memory, since: str, until: str
) -> None:
    await memory.record_turns([user("Rain")], session="s")
    for ask in (memory.conversation_search, memory.memory_search, memory.explain):
        nothing = rf"Nothing is between since '{since}' \(20\d\d-.*\) and until '{until}'"
        with pytest.raises(InvalidInput, match=nothing):
            await ask("rain", since=since, until=until)
    with pytest.raises(InvalidInput, match="since has to be the earlier one"):
        await memory.forget(query="rain", since=since, until=until)
