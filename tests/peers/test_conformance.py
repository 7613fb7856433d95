"""The official conformance suites, over streamable HTTP, against the server as it ships and with fixtures.

Alone, the server passes every scenario that applies to any server; what it cannot pass stands with its reason
in `expected_failures/`, and an entry that passes fails the run. With the suites' own fixtures added to the
same server object, nothing may fail and nothing may warn.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from scripts.install_peers import CONFORMANCE_2025, CONFORMANCE_2026, Peer
from tests.peers.processes import run_peer

Serve = Callable[[Sequence[str]], str]

pytestmark = [pytest.mark.peers, pytest.mark.timeout(300)]

EXPECTED = Path(__file__).with_name("expected_failures")
SETS: dict[str, tuple[Peer, list[str]]] = {
    "0.1.16": (CONFORMANCE_2025, ["--suite", "active"]),
    "2025-11-25": (CONFORMANCE_2026, ["--requirements", "2025-11-25"]),
    "2026-07-28": (CONFORMANCE_2026, ["--requirements", "2026-07-28"]),
}


@pytest.fixture(scope="module")
def server(serve: Serve, server_command: list[str]) -> str:
    return serve([*server_command, "--transport", "http", "--port", "0", "--no-token"])


@pytest.fixture(scope="module")
def server_with_fixtures(serve: Serve) -> str:
    return serve([sys.executable, str(Path(__file__).with_name("serve_with_fixtures.py"))])


def assert_conforms(name: str, url: str, expected: Path, folder: Path) -> None:
    peer, scenarios = SETS[name]
    results = folder / "results"
    options = [*scenarios, "--expected-failures", str(expected), "-o", str(results)]
    run = run_peer(peer, "server", "--url", url, *options, cwd=folder)
    _, _, summary = run.stdout.partition("=== SUMMARY ===")
    print(f"{name}:{summary}")
    assert run.returncode == 0, "\n".join([summary or run.stdout + run.stderr, *complaints(results)])


def complaints(results: Path) -> list[str]:
    """What each check that failed or warned had to say; the tasks extension, which nobody scores, is left out."""
    files = [file for file in sorted(results.glob("*/checks.json")) if not file.match("server-tasks-*/*")]
    found = [check for file in files for check in json.loads(file.read_bytes())]
    wrong = [check for check in found if check["status"] in {"FAILURE", "WARNING"}]
    return [f"{check['status']} {check['id']}: {check.get('errorMessage', '')}" for check in wrong]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.smoke) if name == "2025-11-25" else name for name in SETS]
)
def test_the_server_passes_every_scenario_that_applies_to_any_server(name: str, server: str, tmp_path: Path) -> None:
    assert_conforms(name, server, EXPECTED / f"{name}.yaml", tmp_path)


@pytest.mark.parametrize("name", SETS)
def test_with_the_suites_fixtures_the_scored_set_passes_whole(
    name: str, server_with_fixtures: str, tmp_path: Path
) -> None:
    nothing = tmp_path / "nothing.yaml"
    nothing.write_text("server: []\n", encoding="utf-8")
    assert_conforms(name, server_with_fixtures, nothing, tmp_path)
