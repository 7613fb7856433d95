"""Recall for questions about many things: what recognises them, and the overview that answers them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.core.token_counts import token_counter
from mcp_memory.core.types import NewTurn, Role
from mcp_memory.longterm.recall.blocks import automatic_lines, bundle
from mcp_memory.longterm.recall.overview import Candidate, asks_for_overview, choose
from mcp_memory.models.embed.classifiers import asks_for_many_things
from mcp_memory.store.sql import atom_rows, turn_rows
from tests.longterm.by_hand import SPACE, ByHand

PROMPTS = Path(__file__).parents[2] / "fixtures/prompts/many/test.jsonl"
COUNTER = token_counter("o200k_base")
HEADING = "Over time, oldest first:"
TRIPS = "List all the trips with the canoe, in order."


def say(hand: ByHand, session: str, *turns: tuple[Role, str]) -> list[str]:
    new = [NewTurn(role=role, content=content) for role, content in turns]
    return [
        turn.id
        for turn in hand.store.write(SPACE, turn_rows.append, session, turn_rows.prepare(new), now=hand.tick()).stored
    ]


def trips(hand: ByHand, count: int) -> list[str]:
    """Store `count` conversations, each about another trip, and return the ids of the user's turns."""
    asides = "The weather was fine and we had packed far too much food for everybody, as always. " * 4
    return [
        say(hand, f"trip-{number}", ("user", f"Canoe trip number {number} went down river R{number * 7}. {asides}"))[0]
        for number in range(1, count + 1)
    ]


def recall(hand: ByHand, question: str, budget: int = 1_200) -> str:
    return bundle(hand.context(), question, session=None, counter=COUNTER, budget=budget).dynamic


def shown(text: str) -> list[str]:
    return re.findall(r"(?m)^\[(\w+)", text)


def overview(text: str) -> str:
    """Return the part of a block that is an overview."""
    _, found, part = text.partition(f"{HEADING}\n")
    assert found
    return re.split(r"(?m)^(?:About this|Closest).*:$", part)[0]


# --- recognition ------------------------------------------------------------------------------------


def test_questions_it_never_saw_are_told_apart() -> None:
    rows = [json.loads(line) for line in PROMPTS.read_text(encoding="utf-8").splitlines()]
    asked = [row for row in rows if asks_for_overview(row["text"])]
    right = sum(row["many"] for row in asked)
    assert right / len(asked) >= 0.9
    assert right / sum(row["many"] for row in rows) >= 0.6


@pytest.mark.parametrize(
    "question",
    [
        "In welcher Reihenfolge haben wir die Möbel gekauft?",
        "¿Qué países he visitado hasta ahora?",
        "总结一下我们关于搬家的谈话",
        "これまでに読んだ本を全部教えて",
        "Summarise everything about the kitchen.",
    ],
)
def test_a_question_about_many_things_is_recognised_in_its_language(question: str) -> None:
    assert asks_for_overview(question)


@pytest.mark.parametrize(
    "question",
    [
        "When did I last see the vet?",
        "Wie heißt mein Arzt?",
        "¿Quién es Lucía?",
        "我的房租是多少？",
        "",
        "  ",
        "x" * 401,
    ],
)
def test_a_question_for_one_fact_or_a_passage_is_not(question: str) -> None:
    assert not asks_for_overview(question)


@given(st.text(max_size=100) | st.text(st.characters(codec=None), max_size=20))
def test_any_text_is_judged(question: str) -> None:
    assert asks_for_many_things(question) in (True, False)


# --- the overview -----------------------------------------------------------------------------------


def test_every_event_gets_a_line_and_the_oldest_comes_first(hand: ByHand) -> None:
    ids = trips(hand, 20)
    text = recall(hand, TRIPS)
    assert shown(overview(text)) == ids


def test_what_does_not_fit_is_counted_and_the_budget_holds(hand: ByHand) -> None:
    ids = trips(hand, 60)
    text = recall(hand, TRIPS, budget=600)
    (omitted,) = re.findall(r"(?m)^(\d+) more about this were left out\.$", text)
    listed = shown(overview(text))
    assert len(listed) + int(omitted) == len(ids)
    assert listed == sorted(listed, key=ids.index)
    assert COUNTER.count(text) <= 600


def test_a_user_turn_stands_for_the_reply_to_it(hand: ByHand) -> None:
    trips(hand, 5)
    asked, reply = say(
        hand, "a", ("user", "And the trip to Lake Orta?"), ("assistant", "A trip to Lake Orta needs good ropes.")
    )
    listed = shown(overview(recall(hand, TRIPS)))
    assert asked in listed
    assert reply not in listed


def test_a_line_of_a_long_turn_is_its_sentence_about_the_question_and_no_code(hand: ByHand) -> None:
    code = "```\ncanoe = Trip(canoe, river, order)\n```"
    aside = "Nothing else happened that week and we all slept rather well. " * 5
    said = f"{aside}Our canoe trip to Lake Orta was cold. {aside}{code}"
    trips(hand, 30)
    (long,) = say(hand, "long", ("user", said))
    (line,) = [line for line in overview(recall(hand, TRIPS)).splitlines() if line.startswith(f"[{long}")]
    assert "Our canoe trip to Lake Orta was cold." in line
    assert "Trip(" not in line


def test_a_statement_and_its_turn_are_one_event(hand: ByHand) -> None:
    atom = hand.draw("The canoe trip to Lake Orta took three days.")
    trips(hand, 3)
    (said,) = [found.evidence for found in hand.store.read(SPACE, atom_rows.by_ids, [atom])]
    assert len({atom, said} & set(shown(overview(recall(hand, TRIPS))))) == 1


def test_the_best_hit_of_a_question_for_one_fact_remains(hand: ByHand) -> None:
    trips(hand, 40)
    (said,) = say(hand, "hut", ("user", "The hut at the canoe landing costs 85 euros a night. " + "We liked it. " * 30))
    text = recall(hand, "List everything about the hut at the canoe landing, with the cost.")
    assert said in shown(text)
    assert "85 euros" in text


def test_a_question_for_one_fact_has_no_overview(hand: ByHand) -> None:
    trips(hand, 5)
    assert HEADING not in recall(hand, "Which river was canoe trip number 3 on?")


def test_automatic_recall_has_no_overview(hand: ByHand) -> None:
    trips(hand, 5)
    assert all(line.group != "overview" for line in automatic_lines(hand.context(), TRIPS, shown="", in_context=()))


def candidate(turn: int, statement: int | None, relevance: float) -> Candidate:
    id = f"t{turn}" if statement is None else f"a{turn}{statement}"
    return Candidate(id=id, turn=f"t{turn}", relevance=relevance)


CANDIDATES = st.builds(candidate, st.integers(0, 9), st.none() | st.integers(0, 2), st.floats(0, 1))


@given(st.lists(CANDIDATES, unique_by=lambda row: row.id))
def test_each_turn_is_chosen_itself_or_by_its_statements(rows: list[Candidate]) -> None:
    chosen = choose(rows)
    turn_of = {row.id: row.turn for row in rows}
    assert len(set(chosen)) == len(chosen)
    assert {turn_of[id] for id in chosen} == set(turn_of.values())
    assert all(turn_of[other] != id for id in chosen for other in chosen if other != id)
