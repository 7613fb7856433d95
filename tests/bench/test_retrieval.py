"""The retrieval command, over the real store and the real floors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.floors import or_query, spaced
from bench.metrics import METRICS
from bench.retrieval import main


def test_the_figures_of_a_small_set_have_the_documented_shape(
    small_set: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = tmp_path / "figures.json"
    main([str(small_set), "--json", str(written)])
    found = json.loads(written.read_text())
    assert {key: found[key] for key in ("set", "questions", "stores", "turns")} == {
        "set": "small",
        "questions": 5,
        "stores": 3,
        "turns": 11,
    }
    assert list(found["systems"]) == ["ours", "bm25", "dense"]
    assert list(found["difference"]) == ["ours-bm25", "ours-dense"]
    ours = found["systems"]["ours"]
    assert set(ours) == {*METRICS, "ci95", "by_type", "latency_ms", "tokens_returned", "index_s", "without"}
    assert {metric: ours[metric] for metric in METRICS} == dict.fromkeys(METRICS, 100.0)
    assert {kind: figures["questions"] for kind, figures in ours["by_type"].items()} == {"fact": 4, "multi": 1}
    assert set(ours["latency_ms"]) == {"p50", "p95"}
    assert ours["tokens_returned"] > 0
    assert "small: 5 questions" in capsys.readouterr().out


def test_several_sets_become_a_list_and_systems_can_be_chosen(small_set: Path, tmp_path: Path) -> None:
    written = tmp_path / "figures.json"
    main([str(small_set), str(small_set), "--systems", "bm25", "--limit", "2", "--json", str(written)])
    found = json.loads(written.read_text())
    assert [(one["questions"], list(one["systems"]), "difference" in one) for one in found] == [
        (2, ["bm25"], False)
    ] * 2


def test_the_lexical_floor_drops_stop_words_unless_nothing_else_is_said() -> None:
    assert or_query("What is the name of Ana's cello?") == '"name" OR "ana" OR "cello"'
    assert or_query("who is it") == '"who" OR "is" OR "it"'
    assert or_query("?!") == ""


def test_the_lexical_floor_splits_scripts_without_spaces() -> None:
    assert spaced("喝茶 tea").split() == ["喝", "茶", "喝茶", "tea"]
