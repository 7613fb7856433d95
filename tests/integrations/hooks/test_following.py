"""Logs that are read in the background of the hooks: one that cannot be read costs the others nothing."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import anyio
import pytest

from mcp_memory.integrations.hooks import following
from mcp_memory.integrations.hooks.daemon_files import DaemonFiles, PendingLog, make_folders, pending_logs
from mcp_memory.integrations.hooks.following import LogFollower
from mcp_memory.integrations.importers import log_file
from mcp_memory.service.memory import Memory
from tests.in_memory import in_memory
from tests.integrations.importers.agents import TALK, claude, data, followed, turns, written

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pipes and devices have other names there")


def read(home: Path, *logs: Path) -> list[PendingLog]:
    """Have a resident read logs, each once; return what is noted as still to be read."""
    place = DaemonFiles(home, None, "key")
    make_folders(place)

    async def visit(memory: Memory) -> None:
        async def opened() -> Memory:
            return memory

        reading = LogFollower(opened, place)
        for log in logs:
            await reading.schedule(PendingLog(log=str(log), client="claude-code", conversation="c"), (0.0,))
        reading.finish()
        with anyio.fail_after(60):
            await reading.run()

    in_memory(home, visit)
    return pending_logs(place)


def test_a_log_that_never_ends_is_passed_over_and_said_and_the_next_one_is_stored(
    home: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    device, pipe, gone = tmp_path / "device.jsonl", tmp_path / "pipe.jsonl", tmp_path / "gone.jsonl"
    device.symlink_to("/dev/zero")
    os.mkfifo(pipe)
    good = written(tmp_path, "claude-code")
    assert read(home, device, pipe, gone, Path(f"{gone}\0"), good) == []
    assert len(turns(home)) == 1
    said = [record.getMessage() for record in caplog.records if "passed over" in record.getMessage()]
    assert [sum(why in one for one in said) for why in ("it is not a regular file", "null byte")] == [2, 1]


def test_a_long_log_is_left_after_a_while_and_read_on_next_time(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "_PASS_S", 0.0)
    monkeypatch.setattr(log_file, "_LINES", 4)
    log = written(tmp_path, "claude-code", TALK)
    runs = 1
    while read(home, log):
        runs += 1
    assert runs > 2
    ((_, stored),) = turns(home).items()
    assert len(stored) == 6


def test_a_line_that_is_too_long_is_one_bad_line_and_is_not_read_again(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_file, "_MAX_LINE", 3_000)
    lines = data(claude(TALK[:2])).splitlines(keepends=True)
    log = tmp_path / "log.jsonl"
    whole = b"".join(lines[:3]) + b'{"x": "' + b"y" * 10_000 + b'"}\n' + b"".join(lines[3:])
    log.write_bytes(whole)
    (done,) = followed(home, log, client="claude-code")
    assert (done.bad, done.stored, done.torn, done.offset) == (1, 2, False, len(whole))
    log.write_bytes(whole + b"z" * 10_000)
    (done,) = followed(home, log, client="claude-code")
    assert (done.bad, done.torn, done.offset) == (1, False, len(whole) + 10_000)
