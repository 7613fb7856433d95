"""Sets are read as they are, and what is wrong with one is said."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bench.sets import Part, Question, Turn, read_set
from mcp_memory.errors import InvalidInput


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
    with pytest.raises(InvalidInput, match=r"sessions\.jsonl\.gz cannot be read"):
        read_set(tmp_path)


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
