"""Line files kept in step with their rows: the journal of turns, the records of a session, canvases, tombstones.

The table `file` holds how long each was at the last commit. A file that has lost lines is set aside and written anew
from the rows, which have them all. Lines that lie behind that length were never committed, or the database has lost
them, as a copy without its WAL has: they are evidence, and are set aside before anything is written in their place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import apsw

from mcp_memory.errors import Damaged
from mcp_memory.store import files

__all__ = ["append_lines", "committed", "problems", "rewrite_lines"]


def append_lines(
    con: apsw.Connection,
    folder: Path,
    space: int,
    path: str,
    lines: Iterable[bytes],
    *,
    rewrite: Callable[[], Iterable[bytes]],
    whole: bool = False,
) -> None:
    """Append to `folder/path` in this transaction; `rewrite` gives every line, these included.

    With `whole` the first write has them all: rows may be older than the file is.
    """
    held = committed(con, space, path)
    target = folder / path
    if whole and held is None:
        lines = rewrite()
    if beyond := files.beyond(target, held or 0):
        files.write_whole(_aside(target, "beyond"), beyond)
    try:
        length = files.append(target, lines, committed=held or 0)
    except Damaged:
        if target.exists():
            target.replace(_aside(target, "damaged"))
        everything = b"".join(rewrite())
        files.write_whole(target, everything)
        length = len(everything)
    con.execute("INSERT OR REPLACE INTO file (space, path, bytes) VALUES (?, ?, ?)", (space, path, length))


def rewrite_lines(con: apsw.Connection, folder: Path, space: int, path: str, lines: Iterable[bytes]) -> None:
    """Write `folder/path` anew in this transaction, with these lines alone: for what is erased from the rows."""
    everything = b"".join(lines)
    files.write_whole(folder / path, everything)
    con.execute("INSERT OR REPLACE INTO file (space, path, bytes) VALUES (?, ?, ?)", (space, path, len(everything)))


def problems(con: apsw.Connection, folder: Path, space: int) -> Iterator[str]:
    """Yield what is wrong with the line files of a space."""
    rows: Any = con.execute("SELECT path, bytes FROM file WHERE space = ?", (space,)).fetchall()
    held = [path for pattern in ("*.jsonl", "conversations/*.jsonl") for path in sorted(folder.glob(pattern))]
    unknown = {path.relative_to(folder).as_posix(): 0 for path in held}
    for path, length in (unknown | dict(rows)).items():
        target = folder / path
        if not target.exists():
            yield f"{path} is missing; the next line written to it brings all of it back."
        elif (size := target.stat().st_size) < length:
            yield f"{path} is torn: {size} of {length} bytes; the next line written mends it."
        elif size > length:
            count = files.beyond(target, length).count(b"\n")
            yield (
                f"{path} has {count} lines that the database lacks, as where it was copied without its -wal file. "
                "`mcp-memory doctor --repair` brings them back; the next line written sets them aside first."
            )


def committed(con: apsw.Connection, space: int | None, path: str) -> int | None:
    """Return how long a line file was at the last commit; None for one that was never written to."""
    return con.execute("SELECT bytes FROM file WHERE space = ? AND path = ?", (space, path)).get


def _aside(path: Path, why: str) -> Path:
    number = 1
    while (aside := path.with_name(f"{path.name}.{why}-{number}")).exists():
        number += 1
    return aside
