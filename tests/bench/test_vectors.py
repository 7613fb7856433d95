"""The command that measures what indexes of vectors lose, end to end on a small set: too small for any."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.vectors import AT, main


@pytest.mark.parametrize("store", ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def test_too_few_rows_for_an_index_lose_nothing(
    small_set: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], store: str
) -> None:
    main([str(small_set), "--store", store, "--json", str(tmp_path / "found.json")])
    found = json.loads((tmp_path / "found.json").read_text())
    assert (found["indexed"], found["lost_percent"]) == (False, {str(k): 0.0 for k in AT})
    assert "every search is exact" in capsys.readouterr().out
