"""The log of recalls neither slows a recall nor fails with it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, cast

from mcp_memory.core.errors import NoRoom
from mcp_memory.service.recall_log import RecallLog
from mcp_memory.store.protocol import Store
from mcp_memory.store.values import RecallEntry

ENTRY = RecallEntry(at=datetime(2026, 11, 20, 12, 0, tzinfo=UTC), how="recall", session="s", ids=("a1",), tokens=9)


class Disk:
    """A store that writes when it is let, and whose disk may be full."""

    def __init__(self, *, read_only: str | None = None, full: bool = False) -> None:
        self.read_only = read_only
        self.full = full
        self.written: list[list[str]] = []
        self.free = threading.Event()

    def write_home(self, work: object, entries: Sequence[tuple[str, RecallEntry]]) -> None:
        self.free.wait(5)
        if self.full:
            raise NoRoom("the disk is full")
        self.written.append([space for space, _ in entries])


def log_on(disk: Disk) -> RecallLog:
    return RecallLog(cast("Store", cast("Any", disk)))


def test_a_recall_does_not_wait_for_the_disk_and_closing_does() -> None:
    disk = Disk()
    log = log_on(disk)
    log.note("me", ENTRY)
    log.note("other", ENTRY)
    assert disk.written == []
    disk.free.set()
    log.close()
    assert disk.written == [["me", "other"]]
    log.note("late", ENTRY)
    log.close()
    assert disk.written == [["me", "other"]]


def test_a_full_disk_loses_entries_and_nothing_else() -> None:
    disk = Disk(full=True)
    disk.free.set()
    log = log_on(disk)
    log.note("me", ENTRY)
    log.wait_until_written()
    disk.full = False
    log.note("me", ENTRY)
    log.close()
    assert disk.written == [["me"]]


def test_a_store_that_can_only_be_read_is_not_written_to() -> None:
    disk = Disk(read_only="its folder cannot be written to")
    log = log_on(disk)
    log.note("me", ENTRY)
    log.wait_until_written()
    log.close()
    assert disk.written == []
