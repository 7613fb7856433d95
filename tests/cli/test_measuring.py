"""`bench`: what people read and programs parse, and that a small memory gets no figures."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from mcp_memory.cli.evaluation import KINDS, questions
from mcp_memory.service.memory import Memory
from tests.cli.evaluation.conftest import SESSIONS, talk_of
from tests.in_memory import in_memory

Run = Callable[..., Result]


@pytest.fixture(scope="module")
def talkative(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A memory that is large enough to be measured."""
    home = tmp_path_factory.mktemp("talkative")

    async def fill(memory: Memory) -> None:
        for number in range(SESSIONS):
            await memory.record_turns(talk_of(number), session=f"s{number}")

    in_memory(home, fill, embedder="bundled")
    return home


def test_the_kinds_that_can_be_asked_for_are_those_there_are() -> None:
    assert tuple(questions.KINDS) == KINDS


@pytest.mark.slow
def test_every_figure_stands_with_its_interval_and_its_floors(run: Run, talkative: Path) -> None:
    result = run("bench", "--questions", "40", "--kind", "words", "--kind", "reply", home=talkative)
    assert result.exit_code == 0, result.output
    assert "240 turns in 12 sessions of space default" in result.stdout
    for row, count in {"hit@1": 4, "hit@10": 4, "MRR": 4, "median ms": 2}.items():
        rows = re.findall(rf"^   {row}  .*$", result.stdout, flags=re.MULTILINE)
        assert len(rows) == count, row
        for line in rows:
            figures = re.findall(r"[+-]?\d+\.\d(?: \[[+-]?\d+\.\d, [+-]?\d+\.\d\])?", line)
            assert len(figures) == (2 if re.search(r"[+-]", line) else 3)
            assert all(figure.endswith("]") for figure in figures)
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert result.stderr == "reading turns …\nmining questions …\nasking …\n"


@pytest.mark.slow
def test_no_text_of_the_memory_is_shown_unless_asked_for(run: Run, talkative: Path) -> None:
    said = {
        word
        for number in range(SESSIONS)
        for turn in talk_of(number)
        for word in turn.content.split()
        if len(word) == 8
    }
    silent = run("bench", "--questions", "30", "--kind", "dim", home=talkative)
    shown = run("bench", "--questions", "30", "--kind", "dim", "--show", "2", home=talkative)
    assert said.isdisjoint(silent.output.split())
    assert not said.isdisjoint(shown.stdout.split())
    assert shown.stdout.count("       rank: ours ") == 2


@pytest.mark.slow
def test_in_json_the_same_stands_for_programs(run: Run, talkative: Path) -> None:
    result = run("bench", "--questions", "30", "--kind", "around", "--json", home=talkative)
    report: dict[str, Any] = json.loads(result.stdout)
    assert list(report) == ["space", "turns", "sessions", "turns_read", "model", "seed", "stopped", "kinds", "examples"]
    [kind] = report["kinds"]
    assert list(kind["systems"]) == ["ours", "bm25", "dense"]
    assert list(kind["systems"]["ours"]) == ["hit1", "hit10", "mrr10", "median_ms"]
    assert list(kind["gaps"]["bm25"]) == ["hit1", "hit10", "mrr10", "differ", "verdict"]
    assert list(kind["systems"]["ours"]["hit1"]) == ["value", "ci95"]


def test_a_small_memory_gets_no_figures_and_a_reason(run: Run) -> None:
    result = run("bench")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: Space 'default' has ")
    assert "figures need 200" in result.stderr


def test_a_rerank_is_left_out_and_that_is_said(run: Run, talkative: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCP_MEMORY_RERANK", "true")
    monkeypatch.setenv("MCP_MEMORY_LLM", "openai/none-such")
    result = run("bench", "--questions", "30", "--kind", "words", home=talkative)
    assert result.exit_code == 0, result.output
    assert "The setting `rerank` is on; it was not used here." in result.stderr
