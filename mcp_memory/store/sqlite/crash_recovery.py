"""Crash recovery: restore the files of a transaction that wrote them but never committed.

Runs while no other transaction writes, so the rows have exactly the acknowledged state. Line files are cut to their
committed length; files that were replaced are written from their rows, or deleted if they have none. A file that
cannot be restored now keeps its mark and is tried again before the next transaction.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import apsw

from mcp_memory.store import files, write_intents
from mcp_memory.store.sql import canvases, pages
from mcp_memory.store.sql.line_files import lines_of
from mcp_memory.store.sqlite import line_files
from mcp_memory.store.sqlite.transaction import SqliteTransaction

__all__ = ["settle"]

logger = logging.getLogger(__name__)


def settle(con: apsw.Connection, home: Path, marks: Sequence[Path]) -> list[Path]:
    """Restore the files that these marks name; return the marks to delete after the commit."""
    settled: list[Path] = []
    for mark in marks:
        try:
            for path, written in write_intents.paths_of(mark).items():
                _settle(con, home, path, written)
            settled.append(mark)
        except OSError as error:
            logger.warning("a write that was cut short cannot be tidied up yet: %s", error)
    return settled


def _settle(con: apsw.Connection, home: Path, path: PurePosixPath, written: write_intents.Written) -> None:
    target = home / path
    for beside in target.parent.glob(f".{target.name.replace('[', '[[]')}.*.tmp"):
        beside.unlink(missing_ok=True)
    match path.parts:
        case ("spaces", space, "mmds", name):
            _settle_canvas(SqliteTransaction(con, home, space), name)
        case ("spaces", space, "scenes", _):
            tx = SqliteTransaction(con, home, space)
            if tx.space:
                pages.write_scene_files(tx)
        case ("spaces", space, "refs", name):
            tx = SqliteTransaction(con, home, space)
            if tx.one("SELECT 1 FROM ref WHERE space = :space AND path = ?", f"refs/{name}") is None:
                target.unlink(missing_ok=True)
        case ("spaces", space, *rest) if target.suffix == ".jsonl":
            _settle_lines(SqliteTransaction(con, home, space), "/".join(rest), written)
        case _:
            pass  # no row has its content: leave it


def _settle_canvas(tx: SqliteTransaction, name: str) -> None:
    """Write the file of a canvas from its row, and delete its files under other names; `name` is one of them."""
    number = name.partition("-")[0]
    row = tx.one(
        "SELECT label, text FROM canvas WHERE space = :space AND number = ?", int(number) if number.isdecimal() else 0
    )
    due = None if row is None else tx.folder / canvases.path_of(int(number), row[0])
    for path in (tx.folder / "mmds").glob(f"{number}-*.mmd"):
        if path != due:
            path.unlink(missing_ok=True)
    if row is not None and due is not None:
        files.write_whole(due, row[1].encode())


def _settle_lines(tx: SqliteTransaction, path: str, written: write_intents.Written) -> None:
    known = line_files.committed(tx.con, tx.space, path)
    # A database that has lost its latest part knows of less than was committed: those lines are evidence.
    committed = max(known or 0, written.length)
    if tx.space and known is not None and written.whole:
        tx.files.rewrite(path, lines_of(tx, path))
    elif not committed:
        (tx.folder / path).unlink(missing_ok=True)
    elif files.beyond(tx.folder / path, committed):
        files.append(tx.folder / path, (), committed=committed)
