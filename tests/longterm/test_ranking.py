"""What speaks for a turn: each signal by itself, on talks small enough to judge by eye."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.ours import until_indexed
from mcp_memory.core.types import NewTurn, Role, TurnHit
from mcp_memory.longterm.search.ranking import SIGNALS, WEIGHTS
from mcp_memory.service.memory import Memory, open_memory

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncGenerator[Memory]:
    async with open_memory(home=tmp_path, embedder="none", now=lambda: NOW) as opened:
        yield opened


async def say(memory: Memory, session: str, *said: str, **more: object) -> None:
    """Record turns by the user and the assistant in turn."""
    roles: tuple[Role, Role] = ("user", "assistant")
    await memory.record_turns(
        [NewTurn(role=roles[place % 2], content=text, **more) for place, text in enumerate(said)],  # pyright: ignore[reportArgumentType]
        session=session,
    )


async def hits(memory: Memory, question: str, **filters: str) -> list[TurnHit]:
    return (await memory.conversation_search(question, **filters)).hits  # pyright: ignore[reportArgumentType]


async def first(memory: Memory, question: str) -> str:
    return (await hits(memory, question))[0].turn.content


async def test_a_turn_is_found_by_what_was_said_around_it(memory: Memory) -> None:
    await say(memory, "a", "Let us talk about the kitchen", "Gladly.", "It leaks since Tuesday.")
    await say(memory, "b", "Let us talk about the garden", "Gladly.", "It blooms since Tuesday.")
    found = {hit.turn.content: hit for hit in await hits(memory, "kitchen")}
    assert list(found) == ["Let us talk about the kitchen", "Gladly.", "It leaks since Tuesday."]
    assert list(found["It leaks since Tuesday."].found_by) == ["context"]


async def test_context_counts_more_for_a_short_turn_than_for_a_long_one(memory: Memory) -> None:
    await say(memory, "a", "About the ferry", "Four euros.")
    await say(memory, "b", "About the ferry", "Four euros. " + "And much else besides, of all kinds. " * 30)
    await say(memory, "c", "Nothing of it", "Nor here.")
    found = [hit.turn for hit in await hits(memory, "ferry") if hit.turn.role == "assistant"]
    assert [turn.session for turn in found] == ["a", "b"]


@pytest.mark.parametrize("embedder", ["none", "bundled"])
async def test_a_word_that_only_a_long_turn_has_finds_it(tmp_path: Path, embedder: str) -> None:
    things = ["kettle", "bicycle", "curtain", "violin", "cellar", "orchard", "harbour", "lantern", "ladder", "blanket"]
    long = " ".join(f"They showed us the {thing} of the {other}." for thing in things[:7] for other in things)
    long = f"{long[:1500]} Then came the Zwölferhorn. {long[1500:]}"
    async with open_memory(home=tmp_path, embedder=embedder, now=lambda: NOW) as memory:
        await say(memory, "a", *(f"I said something about the {a} and the {b}." for a in things for b in things))
        await say(memory, "b", "And the trip?", long)
        await until_indexed(memory)
        found = [hit.turn.content for hit in await hits(memory, "What did I say about the Zwölferhorn?")]
    assert long in found


async def test_context_ends_where_the_session_does(memory: Memory) -> None:
    await say(memory, "a", "The ferry leaves at nine")
    await say(memory, "b", "Four euros")
    assert [hit.turn.content for hit in await hits(memory, "ferry")] == ["The ferry leaves at nine"]


async def test_words_that_mean_nearly_the_same_are_found(memory: Memory) -> None:
    await say(memory, "a", "We put up the tent by the lake", "Lovely.")
    await say(memory, "b", "The printer is broken again", "Sorry to hear it.")
    assert await first(memory, "When did we go camping?") == "We put up the tent by the lake"


async def test_the_word_itself_stands_before_its_relatives(memory: Memory) -> None:
    await say(memory, "a", "We put up the tent by the lake", "Lovely.")
    await say(memory, "b", "We went camping by the sea", "Lovely.")
    assert await first(memory, "camping") == "We went camping by the sea"


async def test_the_answer_to_a_question_that_matches_is_found_by_it(memory: Memory) -> None:
    await say(memory, "a", "Which colour should the fence have?", "Green.")
    await say(memory, "b", "The fence fell over.", "Oh no.")
    found = {hit.turn.content: hit for hit in await hits(memory, "colour of the fence")}
    assert found["Green."].found_by["reply"] > 0.5
    assert "reply" not in found["Oh no."].found_by
    assert list(found).index("Green.") < list(found).index("Oh no.")


async def test_i_asks_for_the_users_words_and_you_for_the_assistants(memory: Memory) -> None:
    await say(memory, "a", "The lentil soup was good", "Lentil soup keeps for days")
    assert await first(memory, "What did I say about lentil soup?") == "The lentil soup was good"
    assert await first(memory, "What did you say about lentil soup?") == "Lentil soup keeps for days"


async def test_a_name_in_the_question_asks_for_what_that_person_said(memory: Memory) -> None:
    said = [
        NewTurn(role="user", name="Ana", content="My favourite soup is lentil"),
        NewTurn(role="assistant", name="小明", content="My favourite soup is tomato"),
    ]
    await memory.record_turns(said, session="a")
    assert await first(memory, "What is Ana's favourite soup?") == "My favourite soup is lentil"
    assert await first(memory, "小明 favourite soup") == "My favourite soup is tomato"


async def test_what_was_said_at_the_time_asked_for_comes_first(memory: Memory) -> None:
    for weeks in (1, 9, 30):
        await say(memory, f"w{weeks}", "We had dinner with the Smiths", "Nice.", said_at=NOW - timedelta(weeks=weeks))
    for question, session in (
        ("dinner last week", "w1"),
        ("dinner nine weeks ago", "w9"),
        ("dinner in April", "w30"),
    ):
        assert (await hits(memory, question))[0].turn.session == session, question


async def test_filters_hold_for_context_too_but_what_does_not_pass_still_speaks(memory: Memory) -> None:
    await say(memory, "a", "What about the ferry?", "It costs four euros.")
    (hit,) = await hits(memory, "ferry", role="assistant")
    assert hit.turn.content == "It costs four euros."


async def test_a_forgotten_turn_is_not_found_by_its_context(memory: Memory) -> None:
    await say(memory, "a", "About the ferry", "Four euros.")
    forgotten = (await hits(memory, "ferry"))[1].turn
    await memory.forget(ids=[forgotten.id], reason="test")
    assert [hit.turn.content for hit in await hits(memory, "ferry")] == ["About the ferry"]


async def test_turns_that_come_late_into_an_old_session_are_beside_what_was_said_there(memory: Memory) -> None:
    await say(memory, "a", "About the ferry")
    await say(memory, "b", "Other things")
    assert len(await hits(memory, "ferry")) == 1
    await say(memory, "a", "Four euros.")
    await say(memory, "c", "More things")
    assert [hit.turn.content for hit in await hits(memory, "ferry")] == ["About the ferry", "Four euros."]


@pytest.mark.parametrize("question", ["the", "the you", "remark"])
async def test_words_that_stand_nearly_everywhere_still_find_something(memory: Memory, question: str) -> None:
    await memory.record_turns([NewTurn(role="user", content=f"the remark {n} is for you") for n in range(1_700)])
    assert len(await hits(memory, question)) == 10


@given(st.lists(st.floats(0, 1), min_size=len(SIGNALS), max_size=len(SIGNALS)))
def test_no_signal_speaks_against_a_row(signals: list[float]) -> None:
    assert all(weight > 0 for weight in WEIGHTS)
    assert sum(w * s for w, s in zip(WEIGHTS, signals, strict=True)) <= sum(WEIGHTS) + 1e-9


async def test_a_name_of_white_space_alone_is_nobodys(memory: Memory) -> None:
    await memory.record_turns([NewTurn(role="user", name=" ", content="The soup was lentil")], session="a")
    assert await first(memory, "the soup") == "The soup was lentil"
