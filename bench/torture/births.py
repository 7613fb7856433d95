"""Kills while a home is made or its schema brought up: several processes open a home of an older version at once."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from bench.torture.seats import forked
from mcp_memory.store.sqlite import open_store

__all__ = ["AT_ONCE", "birth"]

AT_ONCE = 3
SCHEMAS = Path(__file__).parents[2] / "fixtures" / "schemas"

_SAID = ["I moved to Lisbon in May.", "Noted.", "Lives in Lisbon"]  # what each of these databases holds


def birth(folder: Path, rng: random.Random) -> list[str]:
    """Kill `AT_ONCE` processes that open a home made in `folder`; return what the next one finds wrong with it."""
    home = folder / "home"
    old = rng.choice([None, *sorted(SCHEMAS.glob("*.db"))])
    if old is not None:
        home.mkdir(parents=True)
        shutil.copy(old, home / "memory.db")
    else:
        folder.mkdir(parents=True)
    running = [forked(partial(_open_and_close, home), folder / "log") for _ in range(AT_ONCE)]
    time.sleep(rng.uniform(0, 0.06))
    for pid in running:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    name = old.stem if old else "an empty home"
    found = [f"{name}: {problem}" for problem in _wrong(home, older=old is not None)]
    complaints = (folder / "log").read_text(encoding="utf-8") if (folder / "log").exists() else ""
    return found + [f"{name}: {line}" for line in complaints.splitlines() if "Error" in line and line[0] != " "]


def _open_and_close(home: Path) -> None:
    open_store(home).close()


def _wrong(home: Path, *, older: bool) -> Iterator[str]:
    store = open_store(home)
    try:
        if older:
            said = [turn.content for turn in store.session_turns("default", "first")]
            if said != _SAID:
                yield f"its turns are {said}"
        # These databases came without their files.
        yield from (problem for problem in store.problems() if " is missing" not in problem)
    finally:
        store.close()
