"""Mined questions: from where their words come, what they leave out, and that chance is only the seed's."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from mcp_memory.cli.evaluation.questions import KINDS, MinedQuestion, Talk, mine, words_of
from tests.cli.evaluation.conftest import SESSIONS, talk_from, talk_of


@pytest.mark.parametrize("kind", KINDS)
def test_the_seed_decides_the_questions(kind: str, talk: Talk) -> None:
    first = mine(talk, kind, 60, seed=0)
    assert len(first) > 30
    assert mine(talk, kind, 60, seed=0) == first
    assert mine(talk, kind, 60, seed=1) != first


@pytest.mark.slow
def test_the_questions_do_not_depend_on_how_this_process_hashes_words() -> None:
    code = (
        "from tests.cli.evaluation.conftest import SESSIONS, talk_from, talk_of\n"
        "from mcp_memory.cli.evaluation.questions import KINDS, mine\n"
        "talk = talk_from([(f's{n}', [turn.content for turn in talk_of(n)]) for n in range(SESSIONS)])\n"
        "print([question.text for kind in KINDS for question in mine(talk, kind, 60, seed=0)])"
    )
    root = Path(__file__).parents[3]
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=root,
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_no_question_is_asked_twice_and_every_session_is_asked_about(kind: str, talk: Talk) -> None:
    questions = mine(talk, kind, 60, seed=0)
    assert len({question.text for question in questions}) == len(questions)
    asked = Counter(question.target.session for question in questions)
    assert len(asked) == SESSIONS
    assert max(asked.values()) <= 6


def test_words_are_some_of_the_turns_own(talk: Talk) -> None:
    for question in mine(talk, "words", 60, seed=0):
        words, there = question.text.split(), set(words_of(question.target.content))
        assert 3 <= len(words) <= 5
        assert set(words) < there
        assert question.left_out == frozenset()


def test_words_that_any_talk_uses_are_not_asked(talk: Talk) -> None:
    asked = {
        word
        for kind in ("words", "dim", "around")
        for one in mine(talk, kind, 60, seed=0)
        for word in words_of(one.text)
    }
    assert asked.isdisjoint({"the", "was", "did", "work", "really", "great", "probably", "feel"})


def test_a_dim_question_is_of_two_words_in_the_other_forms_that_are_known(talk: Talk) -> None:
    said = [turn.content for turn in talk.turns if turn.session == "s0"]
    plurals = ("plurals", [f"{word}s" for word in sorted({word for content in said for word in words_of(content)})])
    told = talk_from([("s0", said), plurals, *((f"x{n}", [f"other{n} talk{n}"]) for n in range(300))])
    asked = mine(told, "dim", 400, seed=0)
    assert asked != []
    for question in asked:
        own = {word.removesuffix("s") for word in question.text.split()}
        assert len(own) == 2
        assert own < set(words_of(question.target.content))
        assert all(word.endswith("s") for word in question.text.split() if len(word) > 4), question


def test_a_dim_question_names_who_said_it_where_that_is_known() -> None:
    told = talk_from([(f"s{n}", [turn.content for turn in talk_of(n)]) for n in range(SESSIONS)], name="Ada")
    assert {question.text.split()[0] for question in mine(told, "dim", 60, seed=0)} == {"Ada"}


def test_words_around_are_not_the_turns_own_but_one_and_its_neighbours_are_left_out(talk: Talk) -> None:
    ids = {turn.id: place for place, turn in enumerate(talk.turns)}
    for question in mine(talk, "around", 60, seed=0):
        place = ids[question.target.id]
        own = set(words_of(question.target.content))
        assert len(set(question.text.split()) & own) == 1
        assert question.left_out == {talk.turns[at].id for at in (place - 1, place + 1) if talk.are_beside(place, at)}


def test_a_reply_is_sought_by_the_question_before_it_which_is_left_out(talk: Talk) -> None:
    ids = {turn.id: place for place, turn in enumerate(talk.turns)}
    for question in mine(talk, "reply", 60, seed=0):
        before = talk.turns[ids[question.target.id] - 1]
        assert question.text in before.content
        assert question.text.endswith("?")
        assert question.left_out == {before.id}


def test_a_reply_that_only_says_the_question_again_is_not_sought(talk: Talk) -> None:
    echoed = [
        (turn.session, [turn.content, turn.content.replace("?", ".").partition(". ")[2] or "nothing"])
        for turn in talk.turns
        if turn.role == "user"
    ]
    assert mine(talk_from(echoed), "reply", 60, seed=0) == []


def test_turns_that_nearly_repeat_another_are_never_sought(talk: Talk) -> None:
    contents = [turn.content for turn in talk.turns if turn.session == "s0"]
    doubled = [("a", contents), ("b", [f"{content} Yes." for content in contents])]
    rest = [(f"x{n}", [f"other{n} talk{n}"]) for n in range(500)]
    assert mine(talk_from([*doubled, *rest]), "words", 540, seed=0) == []


def test_a_turn_of_the_same_words_answers_as_well_as_the_one_sought() -> None:
    told = talk_from([("a", ["The van is booked"]), ("b", ["the van  is BOOKED", "The van is late"])])
    question = MinedQuestion(kind="words", text="van", target=told.turns[0])
    assert [question.finds(turn) for turn in told.turns] == [True, True, False]


def test_small_talk_is_not_worth_asking_for() -> None:
    told = talk_from([("s", ["Hello there!", "Hi, how are you?", "Fine, thanks.", "See you soon!"] * 60)])
    assert [mine(told, kind, 200, seed=0) for kind in KINDS] == [[]] * len(KINDS)
