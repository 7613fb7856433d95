"""Whether the memory knows anything of what is asked."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.core.config import Settings
from mcp_memory.core.types import NewTurn
from mcp_memory.longterm.recall.relevance import (
    ABOUT,
    NEAR,
    RecallQuery,
    is_echo,
    recall_query,
    terms_of,
    weigh_rows,
    weights_of,
)
from mcp_memory.longterm.search.search import Search
from mcp_memory.store.sqlite.store import open_store
from tests.longterm.by_hand import SPACE, ByHand


@pytest.fixture(scope="module")
def hand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ByHand]:
    home: Path = tmp_path_factory.mktemp("relevance") / "home"
    store = open_store(home)
    search = Search(store, lambda: datetime(2026, 11, 20, tzinfo=UTC))
    hand = ByHand(store=store, search=search, settings=Settings())
    talk = ["My boiler leaks", "Since when?", "Since Monday", "Call Otto, he repaired it last year", "Thanks"]
    talk += [
        f"Then we spoke of {what}" for what in ("chess", "the weather", "a film", "roses", "Rome", "tea", "trains")
    ]
    turns = [NewTurn(role="assistant" if i % 2 else "user", content=said) for i, said in enumerate(talk)]
    store.append_turns(SPACE, "s", turns, now=hand.tick())
    yield hand
    search.close()
    store.close()


def weights(hand: ByHand, *texts: str) -> dict[str, float]:
    wanted = recall_query(hand.desk(), texts)
    assert wanted is not None
    return {row.id: row.weight for row in weigh_rows(wanted, "turn", limit=12)}


def test_a_row_that_has_all_the_words_is_about_the_question(hand: ByHand) -> None:
    assert weights(hand, "Does the boiler leak?")["t1"] >= ABOUT


def test_what_is_said_close_by_counts_by_how_close_it_is(hand: ByHand) -> None:
    words = {"boiler": 1.0}
    rows = {"own": words, "beside": {"boiler": 0.5}, "two away": {"boiler": 1 / 3}, "elsewhere": {}}
    wanted = RecallQuery(desk=hand.desk(), texts=["boiler"])
    found = weights_of(wanted, "turn", rows)
    assert sorted(found, key=lambda id: -found[id]) == list(rows)
    assert found["elsewhere"] == 0
    assert found["beside"] == pytest.approx(found["own"] / 2)
    assert weights(hand, "Did Otto repair the boiler?")["t4"] > NEAR


def test_a_word_that_nobody_said_speaks_against_every_row(hand: ByHand) -> None:
    assert (
        weights(hand, "boiler")["t1"]
        > weights(hand, "boiler submarine")["t1"]
        > weights(hand, "boiler zebra submarine")["t1"]
    )
    assert max(weights(hand, "Is the boiler of the zebra submarine purple?").values(), default=0.0) < ABOUT


def test_who_said_it_counts_where_the_question_asks_for_somebody(hand: ByHand) -> None:
    assert weights(hand, "What did I say about chess leaks?")["t1"] > weights(hand, "Chess leaks?")["t1"]


def test_of_a_passage_rare_words_count_no_more_than_twice(hand: ByHand) -> None:
    words = "boiler leaks monday otto repaired year chess weather film roses rome tea trains"
    rows = {"all": terms_of(words)}
    as_question = weights_of(RecallQuery(desk=hand.desk(), texts=[words]), "turn", rows)
    as_passages = weights_of(RecallQuery(desk=hand.desk(), texts=[words, ""]), "turn", rows)
    assert as_question["all"] > 2.5
    assert as_passages["all"] == pytest.approx(1.5)


def test_several_texts_are_weighed_each_for_itself(hand: ByHand) -> None:
    both = weights(hand, "boiler leaks", "submarines under the polar ice")
    assert both["t1"] >= ABOUT


def test_nothing_asked_is_nothing_to_weigh(hand: ByHand) -> None:
    assert recall_query(hand.desk(), ["", "  \n"]) is None


@given(st.text(max_size=200))
def test_any_text_can_be_weighed(hand: ByHand, text: str) -> None:
    wanted = recall_query(hand.desk(), [text.encode("utf-8", "replace").decode()])
    for layer in ("turn", "atom"):
        assert all(row.weight >= 0 for row in (weigh_rows(wanted, layer, limit=5) if wanted else []))


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
