"""Whether a memory knows about a question: one judgement, which every answer gives."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.core.types import NewTurn
from mcp_memory.longterm.search.answerability import QuestionFeatures, Regression, regression
from mcp_memory.service.memory import Memory

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
