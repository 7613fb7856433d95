"""Questions that name a time and nothing else find what was said in that time; and whose words a question asks for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from mcp_memory.core.types import NewTurn
from mcp_memory.longterm.search.query import parse_query, speaker_intent
from mcp_memory.service.memory import Memory
from mcp_memory.testing import FixedClock

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)  # a Friday


@pytest.fixture
async def told(memory: Memory, clock: FixedClock) -> Memory:
    """A memory of the ten days before NOW, a session a day: two turns of the user, a question and a reply."""
    clock.moment = NOW - timedelta(days=10)
    for day in range(10):
        turns = [
            NewTurn(role="user", content=f"The heron of day {day} stood by the pond"),
            NewTurn(role="user", content=f"Is {day} a lucky number?"),
            NewTurn(role="assistant", content=f"Yes, {day} is one"),
            NewTurn(role="user", content="ok thanks"),
        ]
        await memory.record_turns(turns, session=f"day-{day}")
        clock.advance(days=1)
    clock.moment = NOW
    return memory


@pytest.mark.parametrize(
    "question",
    [
        "What happened on Tuesday?",
        "What did we talk about yesterday?",
        "anything from last month?",
        "Was habe ich gestern gemacht?",
        "Was war letzte Woche los?",
        "Qu'est-ce que j'ai fait hier ?",
        "¿De qué hablamos la semana pasada?",
        "Cosa ho fatto ieri?",
        "O que eu fiz ontem?",
        "Что я делал вчера?",
        "我昨天做了什么？",
        "昨日は何をしましたか？",
        "어제 내가 뭐 했어?",
        "what did I do yesterday",
        "yesterday what did we talk about",
        "List everything we did last week",
        "de qué hablamos ayer",
        "o que eu fiz ontem",
        "我昨天做了什么",
    ],
)
def test_a_question_with_a_time_and_no_other_word_is_about_the_time_alone(question: str) -> None:
    assert parse_query(question, NOW).time_only


@pytest.mark.parametrize(
    "text",
    [
        "What happened with the boiler on Tuesday?",
        "How are you today?",
        "What should I do today?",
        "What time is it today?",
        "See you on Tuesday",
        "Was soll ich heute machen?",
        "今天天气怎么样",
        "今天我应该做什么",
        "What happened?",
        "What happened to the 3 cats yesterday?",
        "I was working yesterday",
        "I did it all yesterday.",
        "yesterday I talked about it",
        "We were going on Tuesday",
        "Das habe ich gestern gemacht",
        "Je l'ai fait hier",
        "Dije que ayer había trabajado",
        "我昨天说了",
        "昨日話しました",
    ],
)
def test_other_words_and_questions_about_what_to_do_are_searched_as_ever(text: str) -> None:
    assert not parse_query(text, NOW).time_only


@pytest.mark.parametrize(
    ("question", "days"),
    [
        ("What happened on Tuesday?", {7}),
        ("Was habe ich gestern gemacht?", {9}),
        ("¿Qué pasó el lunes?", {6}),
        ("上周我们聊了什么？", {0, 1, 2, 3, 4, 5}),
    ],
)
async def test_it_finds_the_turns_of_that_time_statements_of_the_user_first(
    told: Memory, question: str, days: set[int]
) -> None:
    found = (await told.conversation_search(question, limit=20)).hits
    first = [hit.turn.content for hit in found[: len(days)]]
    assert first == [f"The heron of day {day} stood by the pond" for day in sorted(days, reverse=True)]
    assert "ok thanks" not in {hit.turn.content for hit in found}
    recalled = await told.recall(question)
    assert days <= {day for day in range(10) if f"heron of day {day}" in recalled.dynamic}


async def test_a_day_leaves_out_all_others(told: Memory) -> None:
    found = await told.conversation_search("What happened on Tuesday?", limit=20)
    assert [hit.turn.session for hit in found.hits] == ["day-7"] * 3
    recalled = await told.recall("What happened on Tuesday?")
    assert [day for day in range(10) if f"heron of day {day}" in recalled.dynamic] == [7]


async def test_the_filters_of_the_search_hold_too(told: Memory) -> None:
    replies = await told.conversation_search("What happened last week?", role="assistant", until="2026-11-11")
    assert [hit.turn.content for hit in replies.hits] == ["Yes, 1 is one", "Yes, 0 is one"]


async def test_what_the_user_tells_of_that_day_on_a_later_one_is_found(told: Memory) -> None:
    await told.record_turns([NewTurn(role="user", content="Yesterday I swam across the lake")], session="today")
    found = await told.conversation_search("What did I do yesterday?")
    assert "Yesterday I swam across the lake" in [hit.turn.content for hit in found.hits]


async def test_of_a_time_without_turns_nothing_is_known(told: Memory) -> None:
    found = await told.conversation_search("What happened in June 2025?")
    assert (found.hits, found.known) == ([], "unlikely")


@pytest.mark.parametrize(
    "question",
    [
        "Where did I park the car?",
        "Can you remind me what my landlord is called?",
        "Do you remember which train we took?",
        "I told you about a café, which one was it?",
        "the user's favourite tea",
        "我上个月去了哪里？",
        "我跟你说过的餐厅叫什么？",
        "先月、私が読んだ本は何ですか",
        "내가 좋아하는 음식은 뭐야?",
        "Wann habe ich den Zahnarzt besucht?",
        "Où est-ce que j'ai garé ma voiture ?",
        "¿Dónde compré mi bicicleta?",
        "Где я купила билеты?",
    ],
)
def test_who_speaks_of_themselves_asks_for_what_they_said(question: str) -> None:
    assert speaker_intent(question) == "user"


@pytest.mark.parametrize(
    "question",
    [
        "Which books did you recommend?",
        "What was your suggestion for the back pain?",
        "what the assistant proposed for the schema",
        "你给我推荐过哪些书？",
        "Welches Buch hast du empfohlen?",
        "Какой фильм ты посоветовал?",
    ],
)
def test_who_addresses_the_assistant_asks_for_what_it_said(question: str) -> None:
    assert speaker_intent(question) == "assistant"


@pytest.mark.parametrize(
    "question", ["", "kettle price", "What did Caroline paint?", "周杰伦", "foo_bar.py", "Лиссабон"]
)
def test_a_question_without_either_person_asks_for_nobody(question: str) -> None:
    assert speaker_intent(question) is None
