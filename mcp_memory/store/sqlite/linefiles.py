"""Line files kept in step with their rows: the journal of turns and the records of a session.

The table `file` holds how long each was at the last commit. A file that has lost lines is set aside and
written anew from the rows, which have them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import apsw

from mcp_memory.errors import Damaged
from mcp_memory.store import files

__all__ = ["append_lines"]


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
    committed = con.execute("SELECT bytes FROM file WHERE space = ? AND path = ?", (space, path)).get
    target = folder / path
    if whole and committed is None:
        lines = rewrite()
    try:
        length = files.append(target, lines, committed=committed or 0)
    except Damaged:
        if target.exists():
            target.replace(_aside(target))
        length = files.append(target, rewrite(), committed=0)
    con.execute("INSERT OR REPLACE INTO file (space, path, bytes) VALUES (?, ?, ?)", (space, path, length))


def _aside(path: Path) -> Path:
    number = 1
    while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    return aside
