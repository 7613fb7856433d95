"""What doctor tells of the hooks."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

from mcp_memory.integrations.hooks.daemon_files import (
    DaemonEndpoint,
    Health,
    PendingLog,
    daemon_files,
    health,
    make_folders,
    pending_logs,
)

NOW = datetime(2026, 11, 22, 12, 0)


def test_a_home_without_hooks_has_none(home: Path) -> None:
    log = home / "hooks" / "hooks.log"
    assert health(home, now=NOW) == Health(used=False, residents=0, failures=[], log=log)


def test_failures_of_the_last_week_are_told_and_older_ones_are_not(home: Path) -> None:
    log = home / "hooks" / "hooks.log"
    log.parent.mkdir(parents=True)
    log.write_text(
        "2026-11-01 10:00:00,123 WARNING mcp_memory.daemon.hooks: Stop: The disk was full.\n"
        "2026-11-21 10:00:00,123 ERROR mcp_memory.daemon.hooks: Stop failed, by a fault of this program\n"
        "Traceback (most recent call last):\n"
        "2026-11-22 10:00:00,123 WARNING mcp_memory.integrations.hooks.transcripts: a log was not taken in: It is locked.\n"
    )
    DaemonEndpoint(1, 2, "t", "0").write(log.with_name("0123.json"))
    assert health(home, now=NOW) == Health(
        used=True,
        residents=1,
        failures=[
            "2026-11-21 10:00:00 Stop failed, by a fault of this program",
            "2026-11-22 10:00:00 a log was not taken in: It is locked.",
        ],
        log=log,
    )


def _link_to_zero(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.skipif(sys.platform == "win32", reason="pipes and devices")
@pytest.mark.parametrize("make", [os.mkfifo, _link_to_zero], ids=["a pipe", "a device"])
def test_pipes_and_devices_in_the_place_of_files_of_hooks_are_not_read(
    home: Path, make: Callable[[Path], object]
) -> None:
    place = daemon_files(home, None)
    assert place is not None
    note = PendingLog(log="log", client="claude-code", conversation="1")
    make_folders(place)
    note.save(place)
    for path in (place.log, place.file, place.waiting / "0.json"):
        make(path)
    assert DaemonEndpoint.read(place.file) is None
    assert pending_logs(place) == [note]
    found = health(home, now=NOW)
    assert (found.residents, len(found.failures)) == (0, 1)
    assert "cannot be read: it is not a regular file" in found.failures[0]
