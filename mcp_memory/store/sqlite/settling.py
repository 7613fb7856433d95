"""Files brought back into line with the rows, where a transaction that wrote them never committed.

Runs while nobody else writes: what the rows say then is what was acknowledged. Line files are cut to their committed
length; files that were replaced are written from their rows, or deleted where they have none. A file that cannot be
settled now keeps its mark, and is tried again before the next transaction.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import apsw

from mcp_memory.store import files, unsettled
from mcp_memory.store.sql import canvases, scenes
from mcp_memory.store.sql.rows import space_id
from mcp_memory.store.sqlite import linefiles
from mcp_memory.store.sqlite.upkeep import snapshots

__all__ = ["settle"]

logger = logging.getLogger(__name__)


def settle(con: apsw.Connection, home: Path, marks: Sequence[Path]) -> list[Path]:
    """Settle the files that these marks name; return the marks to take away once that is committed."""
    settled: list[Path] = []
    for mark in marks:
        try:
            for path, written in unsettled.paths_of(mark).items():
                _settle(con, home, path, written)
            settled.append(mark)
        except OSError as error:
            logger.warning("a write that was cut short cannot be tidied up yet: %s", error)
    return settled


def _settle(con: apsw.Connection, home: Path, path: PurePosixPath, written: unsettled.Written) -> None:
    target = home / path
    for beside in target.parent.glob(f".{target.name.replace('[', '[[]')}.*.tmp"):
        beside.unlink(missing_ok=True)
    match path.parts:
        case ("spaces", space, "mmds", name):
            canvases.settle_file(con, home / "spaces" / space, space, name)
        case ("spaces", space, "scenes", _):
            if space_id(con, space) is not None:
                scenes.write_files(con, home / "spaces" / space, space)
        case ("spaces", space, "refs", name):
            known = con.execute(
                "SELECT 1 FROM ref WHERE space = ? AND path = ?", (space_id(con, space), f"refs/{name}")
            ).get
            if known is None:
                target.unlink(missing_ok=True)
        case ("spaces", space, *rest) if target.suffix == ".jsonl":
            _settle_lines(con, home / "spaces" / space, space_id(con, space), "/".join(rest), written)
        case _:
            pass  # it is the transaction's that names it, whatever it is: no row says what it should hold


def _settle_lines(con: apsw.Connection, folder: Path, space: int | None, path: str, written: unsettled.Written) -> None:
    held = linefiles.committed(con, space, path)
    # A database that has lost its latest part knows of less than was committed: those lines are evidence.
    committed = max(held or 0, written.length)
    if space is not None and held is not None and written.whole:
        linefiles.rewrite_lines(con, folder, space, path, snapshots.lines_of(con, space, path))
    elif not committed:
        (folder / path).unlink(missing_ok=True)
    elif files.beyond(folder / path, committed):
        files.append(folder / path, (), committed=committed)
