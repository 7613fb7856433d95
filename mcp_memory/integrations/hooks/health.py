"""How the hooks of a home are: whether a resident runs, and what went wrong lately. Reads files, starts nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from mcp_memory.core.regular_files import read_regular
from mcp_memory.integrations.hooks.rendezvous import Rendezvous, log_of, residents_of

__all__ = ["Health", "health"]

_LATELY = timedelta(days=7)
_LARGEST_LOG = 2**24
_ENTRY = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),\d{3} (?:WARNING|ERROR) [\w.]+: (.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """What is found in a home: how many residents say that they run, and failures of the last week, oldest first."""

    used: bool
    residents: int
    failures: list[str]
    log: Path


def health(home: Path, *, now: datetime) -> Health:
    """Return how the hooks of a home are. `now` is the local time, as in the log."""
    log = log_of(home)
    lines, unreadable = list[str](), list[str]()
    try:
        lines = read_regular(log, _LARGEST_LOG).decode(errors="replace").splitlines()
    except FileNotFoundError:
        pass
    except OSError as error:
        unreadable = [f"{now:%Y-%m-%d %H:%M:%S} The log of the hooks cannot be read: {error.strerror}"]
    entries = [entry for entry in map(_ENTRY.fullmatch, lines) if entry]
    failures = [f"{entry[1]} {entry[2]}" for entry in entries if datetime.fromisoformat(entry[1]) > now - _LATELY]
    residents = sum(1 for file in residents_of(home) if Rendezvous.read(file))
    return Health(used=log.parent.is_dir(), residents=residents, failures=[*failures, *unreadable], log=log)
