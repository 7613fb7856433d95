"""How likely each row of a search is to be part of an answer."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.core.config import Settings
from mcp_memory.core.types import Evidence, NewTurn
from mcp_memory.longterm.search.answerability import Judgement, is_echo, judge_question, terms_with_neighbours
from mcp_memory.longterm.search.search import Search
from mcp_memory.store.sql import turn_rows
from mcp_memory.store.sqlite.store import open_store
from tests.longterm.by_hand import SPACE, ByHand


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
    search.close()
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
    terms = terms_with_neighbours(hand.store, SPACE, ["t1", "t2", "t3", "t4"])
    (boiler,) = (term for term in terms["t1"] if term.startswith("boiler"))
    assert [terms[id].get(boiler, 0.0) for id in terms] == [1.0, 0.5, pytest.approx(1 / 3), 0.0]


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
