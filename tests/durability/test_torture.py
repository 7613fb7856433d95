"""The short form of `python -m bench.torture`: kills at random, and nothing acknowledged is lost."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="processes are forked")
def test_what_was_acknowledged_before_thirty_kills_is_there_once_after_them(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    done = subprocess.run(
        [sys.executable, "-m", "bench.torture", "--kills", "30", "--json", str(figures)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(figures.read_text(encoding="utf-8"))
    assert (found["kills"], found["at_births"], found["well"]) == (30, 3, True)
    assert found["acknowledged"]["turns"] > 0
