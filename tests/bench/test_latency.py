"""The latency command end to end on a small conversation: shape and bookkeeping, no timings."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import anyio
import pytest

from bench import latency
from bench.bed import Bed, filled
from bench.latency import main, measure, table
from bench.servers import HEAVY


@pytest.mark.slow
@pytest.mark.nightly
def test_every_figure_has_its_floor_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fewer = {"QUERIES": 12, "WARM_QUERIES": 1, "RECALL_QUERIES": 3, "SERVER_QUERIES": 4, "ONE_BY_ONE": 9, "MIB": 2**16}
    for name, few in fewer.items():
        monkeypatch.setattr(latency, name, few)
    first = anyio.run(partial(measure, pairs=1, offloads=1), Bed(folder=tmp_path, turns=120))
    assert set(first) == {"turns", "machine", "disk", "start", "capture", "search", "offload", "server", "answers"}
    figures = {
        "capture": "floor_turns_per_s",
        "offload": "file_ms",
        "search": "fts5",
        "server": "bare",
        "start": "bare_ms",
    }
    assert [name for name, floor in figures.items() if floor not in first[name]] == []
    assert set(first["start"]["heavy"]) & {"litellm", "model2vec", "numpy", "tiktoken"} == set()
    assert set(HEAVY) >= set(first["start"]["heavy"])
    assert set(first["disk"]["bytes"]) >= {"memory.db", "conversations"}
    assert first["disk"]["a_turn"]["alone"] > first["disk"]["text"] / first["turns"]
    lines = [*table(first)]
    assert lines[0].startswith("120 turns")


@pytest.mark.slow
def test_a_folder_that_is_filled_is_used_again(tmp_path: Path) -> None:
    bed = Bed(folder=tmp_path, turns=120)
    capture = anyio.run(filled, bed)
    assert json.loads((tmp_path / "filled.json").read_text()) == {"turns": 120, "capture": capture}
    written = bed.home.stat().st_mtime_ns
    assert anyio.run(filled, bed) == capture
    assert bed.home.stat().st_mtime_ns == written


def test_a_folder_with_another_number_of_turns_is_refused(tmp_path: Path) -> None:
    (tmp_path / "filled.json").write_text('{"turns": 500, "capture": {}}')
    with pytest.raises(SystemExit, match=r"holds 500 turns, not 120: name another folder"):
        main(["--turns", "120", "--pairs", "1", "--home", str(tmp_path)])


def test_a_folder_left_half_filled_is_refused(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    with pytest.raises(SystemExit, match="half filled"):
        main(["--turns", "120", "--pairs", "1", "--home", str(tmp_path)])
