"""What is counted of a stand-in: the facts that it has, those that its floors have, and what would be false."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.outputs import head_and_tail, head_matching_and_tail, kept_facts, main, read, score

TEXT = "".join(f"2026-05-01 10:00:{n % 60:02} INFO worker {n} ready\n" for n in range(400)) + "done\n"
BROKEN = TEXT.replace("INFO worker 200 ready", "ERROR worker 200 lost its lease")


def item(**changed: object) -> dict[str, object]:
    return {
        "id": "log-1",
        "kind": "log",
        "tool": "bash",
        "arguments": {"command": "cat worker.log"},
        "text": BROKEN,
        "facts": [{"any": ["lost its lease"]}, {"any": ["^nowhere", r"\b401\b lines"]}],
        "misleading": ["no errors"],
        **changed,
    }


def written(folder: Path, *items: dict[str, object]) -> Path:
    path = folder / "outputs.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in items))
    return path


def test_a_fact_is_kept_if_one_of_its_patterns_is_found_whatever_colours_and_blanks(tmp_path: Path) -> None:
    [output] = read(written(tmp_path, item()))
    assert kept_facts(output, "worker 200 \x1b[31mLOST\x1b[0m  its   lease") == [True, False]
    assert kept_facts(output, "of 401 lines one") == [False, True]
    assert output.hard == [True, True]


def test_what_would_be_false_is_named(tmp_path: Path) -> None:
    [output] = read(written(tmp_path, item()))
    assert score(output, "401 lines, No errors").misleading == ["no errors"]


def test_floors_have_the_same_length_and_only_one_sees_the_middle() -> None:
    ends, matching = head_and_tail(BROKEN, 600), head_matching_and_tail(BROKEN, 600)
    assert max(len(ends), len(matching)) <= 600
    assert "lease" not in ends
    assert "lost its lease" in matching


def test_the_command_prints_ours_beside_both_floors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "figures.json"
    main([str(written(tmp_path, item())), "--kinds", "--json", str(out)])
    shown = capsys.readouterr().out
    assert all(name in shown for name in ("ours", "head and tail", "1 outputs"))
    figures = json.loads(out.read_text())
    assert figures["ours"]["facts"] == [2, 2]
    assert figures["head and tail"]["facts"] == [0, 2]
