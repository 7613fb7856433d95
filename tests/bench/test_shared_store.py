"""The bench of a memory in PostgreSQL runs on a small one, and its figures are of what it wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import shared_store

pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.postgres]


def test_a_small_memory_is_filled_searched_and_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(shared_store, "_SIZES", {100: 1})
    monkeypatch.setattr(shared_store, "_SPACES", 4)
    monkeypatch.setattr(shared_store, "_SECONDS", 0.5)
    found = shared_store.measured(None, tmp_path, 600)
    assert (found["spaces"], found["turns"]) == (4, 600)
    assert list(found["search"]) == [100, 200]
    assert [one["lost_percent"][100] for one in found["recall"].values()] == [0.0, 0.0]
    assert all(took["turns_per_s"] for took in found["capture"].values())
    assert len(list(shared_store.lines(found))) == 3 + 2 + 2 + 4 + 1
