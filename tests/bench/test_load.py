"""The load is put on a real server by real clients; what they say becomes a row a minute."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.load import loaded, table
from bench.load_clients import MIX


@pytest.mark.slow
@pytest.mark.nightly
def test_a_few_clients_ask_at_their_pace_and_nothing_goes_wrong(home: Path) -> None:
    found = loaded(home=home, clients=3, minutes=2.5 / 60, rate=8, processes=1, before=40, floor_seconds=0)
    assert (found["errors"], found["log"]) == ([], [])  # the log has the traceback of an error
    assert 15 <= found["all"]["calls"] <= 21
    assert found["tools"].keys() <= MIX.keys()
    assert sum(row["calls"] for row in found["minutes"]) == found["all"]["calls"]
    assert (home / "memory.db").exists()


def test_a_row_says_what_was_asked_how_long_it_took_and_what_the_server_held() -> None:
    figures = {"calls": 600, "errors": 1, "p50_ms": 20.0, "p95_ms": 40.0, "p99_ms": 60.5}
    held = {"resident_mb": 150.0, "files": 60, "threads": 20, "wal_mb": 4.0}
    found = {
        "clients": 50,
        "processes": 3,
        "rate": 10,
        "minutes": [{**figures, **held}, {**figures, **held}, {**figures, **held, "resident_mb": 151.5}],
        "all": figures,
        "floor": figures,
        "tools": {"recall": figures},
        "errors": [("ToolError: no", 1)],
        "log": [],
    }
    lines = [*table(found)]
    assert lines[2].split() == ["1", "600", "1", "20.0", "40.0", "60.5", "150", "60", "20", "4.0"]
    assert lines[-2:] == ["memory from minute 2 to minute 3: +1.5 MB", "1 ×: ToolError: no"]
