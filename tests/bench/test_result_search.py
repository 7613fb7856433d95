"""The command that measures the search of offloaded results, over an invented run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.output_questions import mine, outputs
from bench.result_search import main
from bench.trajectories import read_runs


def call(number: int, result: str, said: str = "") -> list[dict[str, Any]]:
    return [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": f"c{number}", "name": "shell", "arguments": '{"command": "x"}'}],
        },
        {"role": "tool", "tool_call_id": f"c{number}", "content": result},
        {"role": "assistant", "content": said},
    ]


CODE = "\n\n".join(
    f'def convert_row_{i}(row):\n    """Return the row {i} with every empty field filled from its neighbour."""\n    return row'
    for i in range(20)
)
LOG = "\n".join(f"INFO took request {i}" for i in range(60)) + "\nValueError: the harbour gate has no key for ship 7\n"
ROWS = json.dumps([{"flight_number": f"HAT{i:03}", "origin": "ATL", "price": 100 + i} for i in range(40)])


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    messages = [
        {"role": "user", "content": "Go on"},
        *call(1, CODE, "I see that `convert_row_7` returns the row as it came, which is wrong."),
        *call(2, LOG),
        *call(3, ROWS),
    ]
    file = tmp_path / "runs.jsonl"
    file.write_text(json.dumps({"instance_id": "one", "messages": messages}) + "\n")
    return file


def test_each_question_knows_where_its_answer_stands(runs: Path) -> None:
    questions = mine(outputs(read_runs(runs), at_least=1_000), each=100)
    assert {one.kind for one in questions} == {"error", "name", "words", "said", "value"}
    by_kind = {one.kind: one for one in questions}
    for kind, begins in {"error": "ValueError: the harbour", "name": "def convert_row_", "value": '"'}.items():
        ((text, at),) = by_kind[kind].places
        assert text[at:].startswith(begins)


@pytest.mark.slow
def test_the_figures_have_the_documented_shape(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = tmp_path / "figures.json"
    main([str(runs), "--each", "3", "--json", str(written)])
    found = json.loads(written.read_text())
    assert set(found) == {"results", "runs_of_lines", "questions", "hit5", "latency_ms", "elsewhere"}
    assert (found["results"], found["elsewhere"]) == (3, None)
    assert list(found["hit5"]) == ["ours", "lines", "bm25", "dense", "fused"]
    assert found["hit5"]["ours"]["error"]["percent"] == found["hit5"]["lines"]["error"]["percent"] == 100.0
    assert "right among the first 5" in capsys.readouterr().out
