"""Kills processes while several of them open a new home at once."""

from __future__ import annotations

import os
import random
import signal
import time
from functools import partial
from pathlib import Path

from bench.torture.seats import forked
from mcp_memory.store.sqlite.store import open_store

AT_ONCE = 3


def birth(folder: Path, rng: random.Random) -> list[str]:
    """Kill `AT_ONCE` processes that open a new home in `folder`; return the problems that the next one finds."""
    home = folder / "home"
    folder.mkdir(parents=True)
    running = [forked(partial(_open_and_close, home), folder / "log") for _ in range(AT_ONCE)]
    time.sleep(rng.uniform(0, 0.06))
    for pid in running:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    found = _problems(home)
    complaints = (folder / "log").read_text(encoding="utf-8") if (folder / "log").exists() else ""
    return found + [line for line in complaints.splitlines() if "Error" in line and line[0] != " "]


def _open_and_close(home: Path) -> None:
    open_store(home).close()


def _problems(home: Path) -> list[str]:
    store = open_store(home)
    try:
        return store.problems()
    finally:
        store.close()
