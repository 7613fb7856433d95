"""The faults of a team's memory that take a minute or less, on real servers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import faults
from bench.fleet import Call, fleet

pytestmark = [pytest.mark.postgres, pytest.mark.slow]


@pytest.mark.nightly
@pytest.mark.timeout(600)
@pytest.mark.parametrize("fault", [*faults.FAULTS])
def test_a_fault_loses_nothing_doubles_nothing_and_says_so(fault: str) -> None:
    done = faults.happen(fault)
    if done.skipped:
        pytest.skip(done.skipped)
    assert done.wrong == []


def test_the_bench_counts_what_is_lost_and_doubled_and_how_long_a_client_waits() -> None:
    done = faults.Outcome("none", "nothing happens")
    with fleet(standby=False) as team, team.writing("quiet") as calls:
        calls.wait(0, acknowledged=True)
        calls.stopped = True
        sent = calls.acknowledged[0]
        calls.made.append(Call("writer-0", "never sent", 0.0, faults.DEADLINE + 9, None))
        team.call("record_turns", {"turns": [{"role": "user", "content": sent}], "session": "again"}, space="writer-1")
        done.note_calls(calls, team.primary)
    assert (done.lost, done.doubled) == (1, 1)
    assert done.known_s == faults.DEADLINE + 9
    assert len(done.wrong) == 3


def test_a_fault_that_nobody_knows_is_refused_with_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        faults.main(["flood"])
    assert ended.value.code == 2
    assert "unknown: flood" in capsys.readouterr().err


@pytest.mark.nightly
def test_the_command_prints_an_outcome_and_writes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures = tmp_path / "figures.json"
    with pytest.raises(SystemExit) as ended:
        faults.main(["newer-schema", "--json", str(figures)])
    (outcome,) = json.loads(figures.read_text())
    assert ended.value.code == bool(outcome["wrong"])
    assert capsys.readouterr().out.startswith(f"newer-schema: {outcome['acknowledged']} acknowledged, 0 lost")
