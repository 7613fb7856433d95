"""The week_one command, over the real store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.week_one import main
from tests.bench.conftest import write_lines


@pytest.fixture
def folder_of_sets(small_set: Path) -> Path:
    """A folder that holds the small set, with alternatives and prompts for which nothing should be brought."""
    questions = [
        question("moved", "When is the cello lesson?", ["ana:1/0"]),
        question("one of two", "When is the cello lesson?", ["ana:1/0", "ana:2/3"], [["ana:1/0", "ana:2/3"], ["ana:1/0"]]),
        question("needs both", "When is the cello lesson?", ["ana:1/0", "ben:1/1"]),
        question("no evidence", "When is the cello lesson?", []),
    ]  # fmt: skip
    write_lines(small_set / "questions.jsonl.gz", questions)
    write_lines(small_set / "nothing.jsonl.gz", [{"id": "n1", "prompt": "What is 17 times 23?"}])
    return small_set.parent


def question(name: str, text: str, evidence: list[str], alternatives: list[list[str]] | None = None) -> dict[str, Any]:
    return {
        "id": name,
        "type": name,
        "question": text,
        "answer": "Thursday evening",
        "asked_at": "2024-05-07T08:00:00",
        "haystack": [{"session_id": one, "started_at": "2024-05-06T07:00:00"} for one in ("ana:1", "ana:2", "ben:1")],
        "evidence_turns": evidence,
        "evidence_sessions": [],
    } | ({"alternatives": alternatives} if alternatives else {})


def test_a_question_is_found_if_all_turns_of_one_sufficient_set_are_named(
    folder_of_sets: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = tmp_path / "figures.json"
    main([str(folder_of_sets), "--systems", "recall,hook,nothing", "--json", str(written)])
    figures = json.loads(written.read_text())
    outcomes = {(one["system"], one["id"]): one["found"] for one in figures["questions"]}
    for system in ("recall", "hook"):  # the budget holds all of so small a memory
        assert outcomes[system, "moved"]
        assert outcomes[system, "one of two"]
    assert figures["systems"]["recall"]["all"]["found"]["percent"] == 100.0
    assert figures["systems"]["hook"]["injected"]["percent"] == 0.0
    assert not any(outcomes["nothing", id] for id in ("moved", "one of two", "needs both"))
    nothing = figures["systems"]["nothing"]["all"]
    assert (nothing["found"]["percent"], nothing["empty"]["percent"], nothing["tokens"]) == (0.0, 100.0, 0)
    assert not any(id == "no evidence" for _, id in outcomes)
    assert "injected, nothing prompts" in capsys.readouterr().out


def test_the_search_shows_ten_hits_as_its_tool_does(folder_of_sets: Path, tmp_path: Path) -> None:
    written = tmp_path / "figures.json"
    main([str(folder_of_sets), "--systems", "search", "--json", str(written)])
    search = json.loads(written.read_text())["systems"]["search"]
    assert search["all"]["found"]["percent"] == 100.0
    assert search["injected"]["percent"] == 100.0


def test_an_unknown_system_is_named(small_set: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([str(small_set), "--systems", "recall,grep"])
    assert "unknown system grep; choose from recall, pyramid, search, hook, nothing" in capsys.readouterr().err
