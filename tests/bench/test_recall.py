"""The recall command, over the real store."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.recall import KINDS, SYSTEMS, main
from mcp_memory.integrations.hooks import NEEDED_TOKENS


@pytest.mark.slow
def test_the_figures_of_a_small_set_have_the_documented_shape(
    small_set: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = tmp_path / "figures.json"
    main([str(small_set), "--each", "3", "--json", str(written)])
    (found,) = json.loads(written.read_text())
    assert {key: found[key] for key in ("set", "budget", "questions")} == {
        "set": "small",
        "budget": 1_200,
        "questions": {"answerable": 3, "other store": 3, "other set": 0, "chit-chat": 3},
    }
    assert list(found["systems"]) == list(SYSTEMS)
    for system in found["systems"].values():
        assert set(system) == {"evidence", "all_evidence", "brought", "tokens", "latency_ms"}
        assert list(system["brought"]) == list(KINDS[1:])
    recall, search, hook = (found["systems"][name] for name in ("recall", "search", "hook"))
    assert hook["brought"]["chit-chat"]["percent"] == 0.0
    assert hook["brought"]["other set"] is None
    assert recall["evidence"]["percent"] == search["evidence"]["percent"] == 100.0
    assert 0 < hook["tokens"] < NEEDED_TOKENS
    assert "evidence, %" in capsys.readouterr().out
