"""Ledger of a process: its intended and acknowledged operations, one JSON line each, outside of the home.

A line is one write to a file opened for appending: it survives the death of its process. A kill may truncate the last
line, which then does not count.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(slots=True)
class Entry:
    """An operation: its kind, its arguments, and the answer, or None."""

    kind: str
    doing: dict[str, Any]
    answer: dict[str, Any] | None = None


@dataclass(slots=True)
class Ledger:
    """The ledger of one seat, open for writing; a restarted process opens it again and continues."""

    path: Path
    entries: dict[int, Entry] = field(default_factory=dict[int, Entry])
    _file: int = -1

    def __post_init__(self) -> None:
        whole = _whole(self.path)
        self.entries = _entries(whole)
        self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.ftruncate(self._file, len(whole))

    def next(self) -> int:
        """Return the number of the next operation: the last one again if it was not acknowledged."""
        last = max(self.entries, default=-1)
        return last if last >= 0 and self.entries[last].answer is None else last + 1

    def doing(self, number: int, kind: str, what: dict[str, Any]) -> None:
        self.entries[number] = Entry(kind, what)
        self._write({"n": number, "kind": kind, "doing": what})

    def done(self, number: int, answer: dict[str, Any]) -> None:
        self.entries[number].answer = answer
        self._write({"n": number, "done": answer})

    def _write(self, line: dict[str, Any]) -> None:
        os.write(self._file, json.dumps(line).encode() + b"\n")

    def close(self) -> None:
        os.close(self._file)


def read(path: Path) -> dict[int, Entry]:
    """Return the operations of a seat by number."""
    return _entries(_whole(path))


def _whole(path: Path) -> bytes:
    data = path.read_bytes() if path.exists() else b""
    return data[: data.rfind(b"\n") + 1]


def _entries(whole: bytes) -> dict[int, Entry]:
    entries: dict[int, Entry] = {}
    for line in whole.splitlines():
        held: dict[str, Any] = json.loads(line)
        if "doing" in held:
            entries[held["n"]] = Entry(held["kind"], held["doing"])
        else:
            entries[held["n"]].answer = held["done"]
    return entries
