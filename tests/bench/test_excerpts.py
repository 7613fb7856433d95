"""The excerpts command, over the real store."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from bench.excerpts import main


@pytest.mark.slow
def test_an_answer_counts_if_its_words_are_in_the_excerpts(
    small_set: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = {"q1": "On Thursday evening", "q3": "Straps from a saddler", "q5_abs": "A spaniel"}
    questions = small_set / "questions.jsonl.gz"
    asked = [json.loads(line) for line in gzip.decompress(questions.read_bytes()).splitlines()]
    given = [json.dumps(line | ({"answer": answers[line["id"]]} if line["id"] in answers else {})) for line in asked]
    questions.write_bytes(gzip.compress("\n".join(given).encode()))
    written = tmp_path / "figures.json"
    main([str(small_set), "--json", str(written)])
    (found,) = json.loads(written.read_text())
    assert {name: found[name] for name in ("set", "answers", "whole", "share")} == {
        "set": "small", "answers": 2, "whole": 1, "share": 75.0,
    }  # fmt: skip
    assert 0 < found["words_tokens_a_hit"] < found["tokens_a_hit"]
    assert capsys.readouterr().out.startswith("small ")
