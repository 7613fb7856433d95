"""Sets are read as they are, and what is wrong with one is said."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bench.sets import Part, Prompt, Question, Turn, read_set, read_sets
from mcp_memory.core.errors import InvalidInput
from tests.bench.conftest import QUESTIONS, write_lines


def test_questions_of_one_haystack_share_it(small_set: Path) -> None:
    data = read_set(small_set)
    assert data.name == "small"
    assert [
        ([session.id for session in haystack.sessions], [question.id for question in haystack.questions])
        for haystack in data.haystacks
    ] == [(["ana:1", "ana:2"], ["q1", "q3", "q5_abs"]), (["ben:1"], ["q2"]), (["汉:1"], ["q4"])]


def test_a_line_becomes_what_it_says(small_set: Path) -> None:
    haystack = read_set(small_set).haystacks[1]
    moment = datetime(2024, 5, 6, 7, tzinfo=UTC)
    assert haystack.sessions[0].started_at == moment
    assert haystack.sessions[0].turns[0] == Turn(id="ben:1/0", role="user", content="I am allergic to hazelnuts.")
    assert haystack.questions == (
        Question(
            id="q2",
            type="fact",
            question="What is Ben allergic to?",
            haystack=(Part(session_id="ben:1", started_at=moment),),
            evidence_turns=frozenset({"ben:1/0"}),
            evidence_sessions=frozenset({"ben:1"}),
        ),
    )


def test_a_limit_spreads_over_the_file(small_set: Path) -> None:
    assert {question.id for question in read_set(small_set, limit=2).questions} == {"q1", "q3"}
    assert len(read_set(small_set, limit=99).questions) == 5


def test_a_folder_without_a_set_is_named(tmp_path: Path) -> None:
    for read in (read_set, read_sets):
        with pytest.raises(InvalidInput, match=r"sessions\.jsonl\.gz cannot be read"):
            read(tmp_path)


def test_a_line_that_does_not_fit_is_named(small_set: Path) -> None:
    with gzip.open(small_set / "questions.jsonl.gz", "at", encoding="utf-8") as file:
        file.write('{"id": "q6"}\n')
    with pytest.raises(InvalidInput, match=r"questions\.jsonl\.gz, line 6: type Field required"):
        read_set(small_set)


def test_a_session_that_is_missing_is_named(small_set: Path) -> None:
    with gzip.open(small_set / "sessions.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write('{"session_id": "ana:1", "turns": []}\n')
    with pytest.raises(InvalidInput, match="sessions it does not hold, such as 'ana:2'"):
        read_set(small_set)


def test_the_evidence_is_the_one_sufficient_set_where_no_alternatives_are_named(small_set: Path) -> None:
    questions = {question.id: question for question in read_set(small_set).questions}
    assert questions["q3"].alternatives == (frozenset({"ana:2/0", "ana:2/3"}),)
    assert questions["q3"].is_covered_by({"ana:2/0", "ana:2/3", "ana:1/0"})
    assert not questions["q3"].is_covered_by({"ana:2/0"})
    assert questions["q5_abs"].alternatives == ()
    assert not questions["q5_abs"].is_covered_by({"ana:2/0"})


def test_any_alternative_is_sufficient(small_set: Path) -> None:
    line = QUESTIONS[2] | {"alternatives": [["ana:2/0", "ana:2/3"], ["ana:1/1"]], "answer": "A strap."}
    write_lines(small_set / "questions.jsonl.gz", [line])
    (question,) = read_set(small_set).questions
    assert question.answer == "A strap."
    assert question.is_covered_by({"ana:1/1"})
    assert not question.is_covered_by({"ana:2/3"})


def test_an_alternative_without_turns_is_refused(small_set: Path) -> None:
    write_lines(small_set / "questions.jsonl.gz", [QUESTIONS[0] | {"alternatives": [[]]}])
    with pytest.raises(InvalidInput, match=r"questions\.jsonl\.gz, line 1: alternatives\.0"):
        read_set(small_set)


def test_prompts_for_nothing_are_read_where_there_are_any(small_set: Path) -> None:
    assert read_set(small_set).nothing == ()
    write_lines(small_set / "nothing.jsonl.gz", [{"id": "n1", "prompt": "Why is the sky blue?"}])
    assert read_set(small_set).nothing == (Prompt(id="n1", prompt="Why is the sky blue?"),)


def test_a_folder_of_sets_yields_each_by_name(small_set: Path) -> None:
    small_set.rename(small_set.parent / "b")
    other = small_set.parent / "a"
    other.mkdir()
    for file in (small_set.parent / "b").iterdir():
        (other / file.name).write_bytes(file.read_bytes())
    assert [one.name for one in read_sets(small_set.parent)] == ["a", "b"]
    assert [one.name for one in read_sets(other)] == ["a"]
