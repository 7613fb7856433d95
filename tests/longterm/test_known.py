"""Whether a memory knows about a question: one judgement, which every answer gives; and how likely each row answers it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.core.config import Settings
from mcp_memory.core.text import with_speaker
from mcp_memory.core.types import Evidence, NewTurn
from mcp_memory.longterm.search.answerability import (
    AskedWords,
    Judgement,
    judge_question,
    words_with_neighbours,
)
from mcp_memory.longterm.search.question_words import is_echo
from mcp_memory.longterm.search.regressions import QuestionFeatures, Regression, regression
from mcp_memory.longterm.search.search import Search
from mcp_memory.service.memory import Memory
from mcp_memory.store.sql import turn_rows
from mcp_memory.store.sqlite.store import open_store
from tests.longterm.by_hand import SPACE, ByHand

TALK = [
    ("user", "We moved to Lyngby in March, the flat has two balconies."),
    ("assistant", "Congratulations on the flat in Lyngby."),
    ("user", "My sister Ines keeps bees near Porto and sells the honey in July."),
    ("assistant", "Noted: Ines, bees, Porto."),
    ("user", "The dentist is Dr Okafor, I go there every spring."),
    ("assistant", "I will remember Dr Okafor."),
    ("user", "Unser Hund heißt Pepper und darf kein Huhn fressen."),
    ("assistant", "Pepper, kein Huhn."),
]


async def filled(memory: Memory) -> None:
    await memory.record_turns([NewTurn(role=role, content=text) for role, text in TALK], session="before")


@pytest.mark.parametrize(
    "question",
    [
        "what does my sister Ines sell?",
        "what is the name of my dentist?",
        "Wie heißt unser Hund?",
        "when did we move to Lyngby?",
    ],
)
async def test_what_was_said_is_not_called_unlikely_by_any_answer(memory: Memory, question: str) -> None:
    await filled(memory)
    known = (await memory.recall(question)).known
    assert known != "unlikely"
    assert (await memory.conversation_search(question)).known == known
    assert (await memory.memory_search(question)).known == known
    assert (await memory.explain_recall(question)).known == known


@pytest.mark.parametrize(
    "question",
    ["what is 12.5 % of 3480?", "who wrote Moby-Dick?", "写一首关于雨的俳句", "how do I undo the last git commit?"],
)
async def test_what_needs_no_memory_is_called_unlikely_by_every_answer(memory: Memory, question: str) -> None:
    await filled(memory)
    assert (await memory.recall(question)).known == "unlikely"
    assert (await memory.conversation_search(question)).known == "unlikely"
    assert (await memory.memory_search(question)).known == "unlikely"


async def test_a_question_that_was_asked_before_is_not_known_by_that(memory: Memory) -> None:
    await filled(memory)
    question = "Which colour has the bicycle of my neighbour Ulrike?"
    before = (await memory.recall(question)).known
    for day in range(20):
        await memory.record_turns([NewTurn(role="user", content=question)], session=f"day {day}")
    assert (await memory.recall(question)).known == before


async def test_nothing_is_judged_where_nothing_is_asked_or_turns_are_left_out(memory: Memory) -> None:
    await filled(memory)
    assert (await memory.recall()).known is None
    assert (await memory.memory_search("bees", kind="persona")).known is None


FEATURES = st.lists(st.floats(-10, 10), min_size=6, max_size=6)


@given(FEATURES, FEATURES, FEATURES, st.integers(0, 5))
def test_a_feature_that_is_not_known_counts_as_usual(
    means: list[float], weights: list[float], values: list[float], place: int
) -> None:
    model = _model(means, weights)
    known, unknown = list(values), list(values)
    known[place], unknown[place] = means[place], math.nan
    assert model.log_odds(unknown) == pytest.approx(model.log_odds(known))


def _model(means: list[float], weights: list[float]) -> Regression:
    names = QuestionFeatures._fields
    stored = {"means": dict(zip(names, means, strict=True)), "weights": dict(zip(names, weights, strict=True))}
    return regression({**stored, "constant": 0.5}, QuestionFeatures)


@pytest.fixture(scope="module")
def hand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ByHand]:
    home: Path = tmp_path_factory.mktemp("judged") / "home"
    store = open_store(home)
    search = Search(store, lambda: datetime(2026, 11, 20, tzinfo=UTC))
    hand = ByHand(store=store, search=search, settings=Settings())
    talk = ["My boiler leaks", "Since when?", "Since Monday", "Call Otto, he repaired it last year", "Thanks"]
    talk += [
        f"Then we spoke of {what}" for what in ("chess", "the weather", "a film", "roses", "Rome", "tea", "trains")
    ]
    turns = [NewTurn(role="assistant" if i % 2 else "user", content=said) for i, said in enumerate(talk)]
    store.write(SPACE, turn_rows.append, "s", turn_rows.prepare(turns), now=hand.tick())
    hand.tell("Otto repaired the boiler", evidence=[Evidence(turn="t4", span=(0, 9), quote="Call Otto")])
    hand.tell("The user likes chess", evidence=[Evidence(turn="t6", span=(0, 9), quote="Then we s")])
    yield hand
    store.close()


def judged(hand: ByHand, question: str) -> Judgement:
    judgement = judge_question(hand.context(), question)
    assert judgement is not None
    return judgement


@pytest.mark.parametrize(("question", "id"), [("Does the boiler leak?", "t1"), ("Did we speak of roses?", "t9")])
def test_the_row_that_has_the_words_is_the_likeliest_turn(hand: ByHand, question: str, id: str) -> None:
    rows = judged(hand, question).rows
    assert max((row for row in rows if row[0] == "t"), key=lambda row: rows[row]) == id


def test_a_word_that_nobody_said_speaks_against_every_row(hand: ByHand) -> None:
    few, more, most = (
        judged(hand, question).rows["t1"] for question in ("boiler", "boiler submarine", "boiler zebra submarine")
    )
    assert few > more > most


def test_a_statement_is_at_least_as_likely_as_the_turn_that_it_rests_on(hand: ByHand) -> None:
    rows = judged(hand, "Whom did we call, and did he repair the boiler?").rows
    assert rows["a1"] >= rows["t4"]
    assert rows["a1"] > rows.get("a2", 0.0)


def test_what_is_said_close_by_counts_by_how_close_it_is(hand: ByHand) -> None:
    words = words_with_neighbours(
        hand.store, SPACE, ["t1", "t2", "t3", "t4"], AskedWords(hand.store, SPACE, "turn", "boiler")
    )
    (boiler,) = words["t1"]
    assert [words[id].get(boiler, 0.0) for id in words] == [1.0, 0.5, pytest.approx(1 / 3), 0.0]


@pytest.mark.parametrize("common", [1_500, 1])
def test_the_index_tells_the_words_of_a_turn_also_where_it_has_only_the_newest_rows_of_a_word(
    hand: ByHand, monkeypatch: pytest.MonkeyPatch, common: int
) -> None:
    monkeypatch.setattr("mcp_memory.store.sql.postings.COMMON", common)
    monkeypatch.setattr("mcp_memory.store.sqlite.index.term_rows.COMMON", common)
    turns = hand.store.read(SPACE, turn_rows.by_ids, [f"t{number}" for number in range(1, 20)])
    for question in [turn.content for turn in turns]:
        asked = AskedWords(hand.store, SPACE, "turn", f"{question} submarine")
        for turn in turns:
            text = with_speaker(turn.content, turn.name)
            assert asked.in_row(turn.id, text) == asked.in_text(text)


@pytest.mark.parametrize("question", ["what is 12.5 % of 3480?", "写一首关于雨的俳句"])
def test_no_row_is_close_where_the_memory_is_unlikely_to_know(hand: ByHand, question: str) -> None:
    judgement = judged(hand, question)
    assert judgement.known == "unlikely"
    assert not judgement.close


@pytest.mark.parametrize("question", ["", "  \n"])
def test_nothing_asked_is_nothing_to_judge(hand: ByHand, question: str) -> None:
    assert judge_question(hand.context(), question) is None


@given(st.text(min_size=1, max_size=200).filter(str.strip))
def test_any_text_can_be_judged(hand: ByHand, text: str) -> None:
    judgement = judged(hand, text.encode("utf-8", "replace").decode())
    assert all(0 <= chance <= 1 for chance in (judgement.probability, *judgement.rows.values()))
    assert judgement.close <= judgement.rows.keys()


@pytest.mark.parametrize(
    ("said", "text", "echo"),
    [
        ("Run the tests.", "run the tests", True),
        ("Which pump leaks?", "Which pump leaks oil?", True),
        ("Which pump leaks oil?", "Which pump leaks?", False),
        ("The pump leaks oil.", "Which pump leaks oil?", False),
        ("The pump leaks. Which oil?", "Which pump leaks oil?", False),
        ("哪个泵漏油？", "哪个泵漏油", True),
        ("这个泵漏油。是哪个泵？", "哪个泵漏油？", False),
        ("?", "Which pump?", False),
    ],
)
def test_only_what_repeats_the_question_is_an_echo_of_it(said: str, text: str, *, echo: bool) -> None:
    assert is_echo(said, text) is echo
