"""The official conformance suites through `mcp-memory wrap`: check by check, the result is the same as without it.

The suites speak HTTP only, and the proxy standard input and output, so a bridge (`stdio_bridge.py`) stands before
it, and before the server alone for comparison.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.peers.processes import run_peer
from tests.peers.test_conformance import SETS as ALL_SETS

Serve = Callable[[Sequence[str]], str]

pytestmark = [pytest.mark.peers, pytest.mark.timeout(300)]

SETS = {name: ALL_SETS[name] for name in ("2025-11-25", "2026-07-28")}  # a process for each session takes its time
HERE = Path(__file__).parent
BRIDGE = [sys.executable, str(HERE / "stdio_bridge.py")]
SERVER = [sys.executable, str(HERE / "serve_with_fixtures.py")]
WRAP = [str(Path(sys.executable).with_name("mcp-memory")), "wrap"]


@pytest.fixture(scope="module")
def alone(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, list[str]]]:
    """How each check of each set goes without the proxy."""
    url = serve([*BRIDGE, *SERVER, "stdio"])
    return {name: checks(name, url, tmp_path_factory.mktemp("alone")) for name in SETS}


@pytest.fixture(scope="module")
def wrapped_command(serve: Serve) -> str:
    return serve([*BRIDGE, *WRAP, "--", *SERVER, "stdio"])


@pytest.fixture(scope="module")
def wrapped_address(serve: Serve) -> str:
    return serve([*BRIDGE, *WRAP, "--url", serve(SERVER)])


def checks(name: str, url: str, folder: Path) -> dict[str, list[str]]:
    """How each check of a set went; the tasks extension, which nobody scores, is left out."""
    peer, scenarios = SETS[name]
    run_peer(peer, "server", "--url", url, *scenarios, "-o", str(folder), cwd=folder)
    found: dict[str, list[str]] = {}
    for file in sorted(folder.glob("*/checks.json")):
        scenario = file.parent.name.partition("-20")[0]
        listed: list[dict[str, Any]] = json.loads(file.read_bytes())
        for check in listed:
            if "tasks" not in scenario:
                found.setdefault(f"{scenario}: {check['id']}", []).append(check["status"])
    return found


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("through", ["wrapped_command", "wrapped_address"])
def test_the_proxy_changes_no_check(
    name: str, through: str, alone: dict[str, Any], request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    assert len(alone[name]) >= 40
    assert "FAILURE" not in {status for statuses in alone[name].values() for status in statuses}
    assert checks(name, request.getfixturevalue(through), tmp_path) == alone[name]
