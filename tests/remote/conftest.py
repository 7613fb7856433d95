"""What these tests share: one server for the tests of a module, and laptops of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.remote.team_server import TeamServer, team_server


@pytest.fixture
def server(tmp_path: Path) -> Iterator[TeamServer]:
    with team_server(tmp_path / "server") as running:
        yield running
