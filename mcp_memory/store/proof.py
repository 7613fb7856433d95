"""The proof of a purge: every file of a home is searched for traces of what was erased.

Files of three kinds may have one. The store's own are made of its rows: a trace in one is a fault, and is told. Logs
and what was set aside of line files lose the lines that have one. Anything else is a copy, such as a backup: it is
named, and deleted only where that is asked for.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mcp_memory.core.regular_files import read_regular
from mcp_memory.store import files
from mcp_memory.store.traces import Traces

__all__ = ["Proof", "prove"]

_LOGS = ("hooks", "logs")
_NEEDED = ("spaces", "run", "unsettled", "config.toml", "identity.json")
"""What is no copy, and is never deleted, whatever stands in it."""
_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What was searched and what was found: `found` has a line for each file of the store that has a trace."""

    files: int
    bytes: int
    texts: int
    pieces: int
    found: list[str]
    cleared: list[str]
    """Logs that lost lines."""
    copies: list[str]
    """Files that have it still: backups and whatever else lies in the home."""
    deleted: list[str]
    """Copies that were deleted."""
    also_in: list[str]
    """What was kept and says some of the same, such as `t9`: pieces that stand there prove nothing."""
    unread: list[str]


def prove(home: Path, traces: Traces, *, texts: int, also_in: list[str], delete_copies: bool) -> Proof:
    """Search every file below the home, and deal with those that have a trace."""
    count = size = 0
    found, cleared, copies, deleted, unread = (list[str]() for _ in range(5))
    for path in _below(home):
        name = path.relative_to(home).as_posix()
        try:
            places, read = traces.in_file(path)
        except FileNotFoundError:
            continue  # a mark or a lock that came and went
        except OSError as error:
            unread.append(f"{name}: {error.strerror or error}")
            continue
        count, size = count + 1, size + read
        if not places:
            continue
        if _is_log(home, path):
            _clear(path, traces)
            cleared.append(name)
        elif _is_copy(home, path):
            if delete_copies:
                path.unlink(missing_ok=True)
                deleted.append(name)
            else:
                copies.append(name)
        else:
            more = f" and {len(places) - _SHOWN} more" if len(places) > _SHOWN else ""
            found.append(f"{name} {', '.join(places[:_SHOWN])}{more}")
    return Proof(
        files=count,
        bytes=size,
        texts=texts,
        pieces=len(traces),
        found=found,
        cleared=cleared,
        copies=copies,
        deleted=deleted,
        also_in=also_in,
        unread=unread,
    )


def _below(home: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(home):
        for name in sorted(names):
            path = Path(folder) / name
            if path.is_file():
                yield path


def _is_log(home: Path, path: Path) -> bool:
    """Tell whether a file is one of lines that nothing else depends on."""
    parts = path.relative_to(home).parts
    set_aside = parts[0] == "spaces" and ".jsonl." in path.name
    return set_aside or parts[0] in _LOGS or (len(parts) == 1 and ".log" in path.name)


def _is_copy(home: Path, path: Path) -> bool:
    parts = path.relative_to(home).parts
    return parts[0] not in _NEEDED and not parts[0].startswith("memory.db")


def _clear(path: Path, traces: Traces) -> None:
    lines = read_regular(path).splitlines(keepends=True)
    files.write_whole(path, b"".join(line for line in lines if not traces.of(line)))
