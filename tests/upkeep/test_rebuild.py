"""What needs no model comes back from the files alone, and the comparison tells when it does not."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from mcp_memory.upkeep.rebuild import rebuild

Lived = Callable[[Path], Path]
NOW = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)


def test_a_home_is_rebuilt_equal(home: Path, lived: Lived) -> None:
    done = rebuild(lived(home), check=True, now=NOW)
    for one in done.compared:
        print(one)
    print(done.passed, done.notes, done.carried, done.lost, done.damage)
    assert done.is_equal
    assert (done.passed, done.notes, done.damage) == ({}, [], [])
