"""What doctor tells of the hooks."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from mcp_memory.hooks.health import Health, health
from mcp_memory.hooks.rendezvous import Rendezvous

NOW = datetime(2026, 11, 22, 12, 0)


def test_a_home_without_hooks_has_none(home: Path) -> None:
    log = home / "hooks" / "hooks.log"
    assert health(home, now=NOW) == Health(used=False, residents=0, failures=[], log=log)


def test_failures_of_the_last_week_are_told_and_older_ones_are_not(home: Path) -> None:
    log = home / "hooks" / "hooks.log"
    log.parent.mkdir(parents=True)
    log.write_text(
        "2026-11-01 10:00:00,123 WARNING mcp_memory.hooks.resident: Stop: The disk was full.\n"
        "2026-11-21 10:00:00,123 ERROR mcp_memory.hooks.resident: Stop failed, by a fault of this program\n"
        "Traceback (most recent call last):\n"
        "2026-11-22 10:00:00,123 WARNING mcp_memory.hooks.following: a log was not taken in: It is locked.\n"
    )
    Rendezvous(1, 2, "t", "0").write(log.with_name("0123.json"))
    assert health(home, now=NOW) == Health(
        used=True,
        residents=1,
        failures=[
            "2026-11-21 10:00:00 Stop failed, by a fault of this program",
            "2026-11-22 10:00:00 a log was not taken in: It is locked.",
        ],
        log=log,
    )
