"""The recorded session through real hook processes: what a model would be told, and that nothing is left running."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import anyio
import pytest

from bench.hooks import Run, events, first_prompts, replay, seed, shown, start_resident, summary, table

pytestmark = [pytest.mark.slow, pytest.mark.nightly]

MANY = {"UserPromptSubmit", "Stop"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    """The session once through; of what is done at each of its twenty prompts every fifth will do."""
    folder = tmp_path_factory.mktemp("hooks")
    recorded = events()
    kept = [event for at, event in enumerate(recorded) if event.name not in MANY or at % 5 == 0 or event.asks("slack")]
    anyio.run(partial(seed, folder / "home", 0))
    start_resident(folder / "home")
    return list(replay(folder / "home", folder / "log.jsonl", kept))


def said(runs: list[Run], label: str) -> list[str]:
    return [run.added for run in runs if run.event.label == label and run.added]


def test_a_session_begins_with_what_is_known_and_has_its_task_again_after_a_compaction(runs: list[Run]) -> None:
    [begun], [after] = said(runs, "SessionStart startup"), said(runs, "SessionStart compact")
    for told in (begun, after):
        assert "recorded in memory by itself" in told
        assert "Ines deploys Skerry on Wednesdays only" in told
    assert 'part="canvas"' not in begun
    assert "sh bin/replay" in after


def test_large_outputs_are_replaced_and_small_ones_are_not(runs: list[Run]) -> None:
    replaced = [run.event.told["tool_input"]["command"] for run in runs if run.replaced is not None]
    assert replaced == ["sh bin/replay", "sh bin/check", "sh bin/tides", "sh bin/nightly"]


def test_what_was_agreed_before_the_compaction_is_told_when_it_is_asked_for(runs: list[Run]) -> None:
    [told] = [run.added for run in runs if run.event.asks("slack did we agree")]
    assert "15 minutes of slack for the Petrel" in told


def test_the_figures_name_each_event_once_and_all_tokens(runs: list[Run]) -> None:
    found = summary([runs])
    assert {*found["events"]} == {run.event.label for run in runs}
    assert found["outputs"]["replaced"] == 4
    assert found["outputs"]["after"] < found["outputs"]["before"] / 10
    assert len(list(table(found))) == len(found["events"]) + 4
    assert sum("---" in text for text in shown(runs)) == 4 + sum(bool(run.added) for run in runs)


def test_first_prompts_are_answered_whether_a_resident_runs_or_not(tmp_path: Path, runs: list[Run]) -> None:
    anyio.run(partial(seed, tmp_path / "home", 0))
    first = first_prompts(tmp_path / "home", 1)
    assert [(prompts.answered, len(prompts.took)) for prompts in first] == [(1, 1)] * 4
    assert len(list(table(summary([runs], first)))) == len(list(table(summary([runs])))) + 1 + len(first)


def test_no_resident_is_left(runs: list[Run], tmp_path_factory: pytest.TempPathFactory) -> None:
    assert runs
    assert not list(tmp_path_factory.getbasetemp().glob("hooks*/home/hooks/*.json"))
