"""Keeps the readable copies of a home up to date: journals, records, canvases, scenes, tombstones, the persona page.

The database is authoritative. A transaction lists the copies that it changes. They are written after its commit, under
a lock of the home, so that all processes write them in the order of their commits. Copies are read only by `rebuild`,
when the database is lost.

A copy is outdated if its writer was killed or the disk was full. An outdated line file is detected by its size, because
the table `file` stores the length of each line file. The table `stale_file` marks copies that have to be written whole;
the mark is kept until their content was verified. An outdated copy is rewritten by the next transaction that changes
it, by any later transaction if it is marked, or when the home is opened. If a line file is longer than its rows, it was
edited, or the database was replaced by an older version; the longer file is then kept as `….beyond-1`.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw

from mcp_memory.core.process_registry import waiting_lock
from mcp_memory.core.regular_files import OpenedFolder, is_own, read_own, remove_own, rename_own
from mcp_memory.store import files
from mcp_memory.store.sql import copies
from mcp_memory.store.sql.line_forms import LINES, is_idle, key_of
from mcp_memory.store.sqlite.transaction import Copy, CopyChanges, SqliteTransaction
from mcp_memory.store.sqlite.unreadable import WRONG

logger = logging.getLogger(__name__)

_BEGUN_WITH_THEIR_ROWS = ("conversations/", "offload-")
"""Prefixes of line files that begin with their oldest row. Canvases and tombstones may be older than their files."""

LOCK = "copies"
"""The name of the lock under which copies are written."""


@dataclass(frozen=True, slots=True)
class _Write:
    """A file to write after the commit.

    `content` becomes the whole file or, with `offset`, follows its first `offset` bytes; None deletes the file.
    `spaces` is a folder above the file; it is not created again if the home was deleted meanwhile.
    """

    spaces: Path
    path: Path
    content: bytes | None
    offset: int | None = None

    def run(self) -> bool:
        """Write or delete the file; return whether this succeeded."""
        try:
            if self.content is None:
                remove_own(self.path)
            elif self.offset is not None:
                files.append(self.path, self.content, offset=self.offset)
            elif files.content_of(self.path) != self.content:
                files.write_whole(self.path, self.content, durable=self.path.suffix == ".jsonl", root=self.spaces)
        except OSError as error:  # the rows are committed; the copy is written later
            logger.warning("%s cannot be written yet: %s", self.path, error.strerror or error)
            return False
        return True


@contextmanager
def commit_with_copies(
    con: apsw.Connection, home: Path, opened: OpenedFolder | None, changes: CopyChanges
) -> Generator[None]:
    """Write the copies that were changed or marked as outdated, after the caller has committed in this context."""
    marked = marked_copies(con)
    if not (changes.appended or changes.outdated or changes.whole or marked):
        yield
        return
    with waiting_lock(home, LOCK, opened=opened):
        writes = _prepare(con, home, changes, marked)
        yield
        for write in writes:
            write.run()


def marked_copies(con: apsw.Connection) -> list[Copy]:
    """Return the copies that have to be written whole, or were written and have not been verified since."""
    if not con.table_exists("main", "stale_file"):
        return []
    rows: Any = con.execute("SELECT s.name, f.path FROM stale_file f JOIN space s ON s.id = f.space ORDER BY 1, 2")
    return [(str(space), str(path)) for space, path in rows]


def _prepare(con: apsw.Connection, home: Path, changes: CopyChanges, marked: list[Copy]) -> list[_Write]:
    """Record in the transaction which files are to be written after the commit, and return these writes.

    Copies that earlier transactions marked and this transaction does not change are written at once.
    """
    outdated = dict(changes.outdated)
    verified = set[Copy]()
    for space, path in marked:
        if (space, path) in outdated:
            continue
        tx = SqliteTransaction(con, home, space)
        with _keeping_mark(path):
            _remove_temporary_files(tx.folder / path)
            if (space, path) in changes.appended:
                is_right = _is_right_so_far(tx, path, changes.appended[space, path])
            else:
                is_right = _plan_whole(tx, path).run()
            if is_right:
                tx.run("DELETE FROM stale_file WHERE space = :space AND path = ?", path)
                verified.add((space, path))
            else:
                outdated[space, path] = None
    spaces = home / "spaces"
    writes = [_Write(spaces, spaces / space / path, content) for (space, path), content in changes.whole.items()]
    outdated |= dict.fromkeys(key for key in marked if key in changes.appended and key not in verified)
    for space, path in outdated:
        tx = SqliteTransaction(con, home, space)
        tx.run("INSERT INTO stale_file (space, path) VALUES (:space, ?) ON CONFLICT DO NOTHING", path)
        with _keeping_mark(path):
            writes.append(_plan_whole(tx, path))
    for (space, path), lines in changes.appended.items():
        if (space, path) not in outdated:
            writes.append(_plan_append(SqliteTransaction(con, home, space), path, lines))
    return writes


@contextmanager
def _keeping_mark(path: str) -> Generator[None]:
    """Suppress and log errors of a file or a damaged row, so that a copy that cannot be written now stays marked."""
    try:
        yield
    except (OSError, *WRONG) as error:
        logger.warning("%s cannot be written yet: %s", path, error)


def _is_right_so_far(tx: SqliteTransaction, path: str, lines: Iterable[bytes]) -> bool:
    """Return whether a line file together with these new lines has the content derived from its rows."""
    content = files.content_of(tx.folder / path)
    return content is not None and b"".join((content, *lines)) == b"".join(copies.content(tx, path) or ())


def forget_files(tx: SqliteTransaction) -> None:
    """Delete what the database notes of the files and terms of a space that is being deleted."""
    for table in ("file", "stale_file", "term_range"):
        tx.run(f"DELETE FROM {table} WHERE space = :space")


def _remove_temporary_files(path: Path) -> None:
    """Remove the temporary files that killed writers of a copy left. The lock excludes other writers."""
    for temporary in path.parent.glob(f".{path.name.replace('[', '[[]')}.*.tmp"):
        remove_own(temporary)


def _plan_whole(tx: SqliteTransaction, path: str) -> _Write:
    """Record the length of a line file, and return the write of a whole copy, or its deletion."""
    parts = copies.content(tx, path)
    content = None if parts is None else b"".join(parts)
    if path.startswith("refs/") and tx.one("SELECT 1 FROM ref WHERE space = :space AND path = ?", path):
        content = files.content_of(tx.folder / path)  # it was stored again: evidence stays
    if copies.is_line_file(path):
        if content is None:
            tx.run("DELETE FROM file WHERE space = :space AND path = ?", path)
        else:
            _record_length(tx, path, len(content))
    return _Write(tx.folder.parent, tx.folder / path, content)


def _plan_append(tx: SqliteTransaction, path: str, lines: Iterable[bytes]) -> _Write:
    """Record the new length of a line file, and return the write of its new lines.

    If the file does not have the length recorded at the last commit, return the write of the whole file instead. A
    longer file, or a file that is not regular, is first renamed.
    """
    content, target = b"".join(lines), tx.folder / path
    length: int | None = tx.get("SELECT bytes FROM file WHERE space = :space AND path = ?", path)
    if length is None and path.startswith(_BEGUN_WITH_THEIR_ROWS) and not files.is_there(target):
        _record_length(tx, path, len(content))
        return _Write(tx.folder.parent, target, content)
    if length is None or _size(target) != length:
        _keep_beside(target, longer_than=length or 0)
        return _plan_whole(tx, path)
    _record_length(tx, path, length + len(content))
    return _Write(tx.folder.parent, target, content, offset=length)


def _record_length(tx: SqliteTransaction, path: str, length: int) -> None:
    tx.run(
        "INSERT INTO file (space, path, bytes) VALUES (:space, ?, ?)"
        " ON CONFLICT (space, path) DO UPDATE SET bytes = excluded.bytes",
        *(path, length),
    )


def _size(path: Path) -> int:
    """Return the size of a regular file; -1 if there is none."""
    return path.stat().st_size if is_own(path) else -1


def _keep_beside(path: Path, *, longer_than: int) -> None:
    """Rename a file with more than `longer_than` bytes, or that is no regular file, so that no content is lost."""
    if not files.is_there(path) or -1 < _size(path) <= longer_than:
        return
    number = 1
    while files.is_there(beside := path.with_name(f"{path.name}.beyond-{number}")):
        number += 1
    with suppress(OSError):
        rename_own(path, beside)
        logger.warning("%s is not the copy that was written: it is kept as %s", path, beside.name)


# --- copies that are behind -------------------------------------------------------------------------


def outdated_copies(con: apsw.Connection, home: Path, *, space: str | None = None) -> list[Copy]:
    """Return the copies to rewrite, by default of all spaces.

    These are marked copies, and line files whose size differs from the length in the table `file`.
    """
    rows: Any = con.execute("SELECT s.name, f.path, f.bytes FROM file f JOIN space s ON s.id = f.space")
    lengths: dict[Copy, int] = {(space, path): length for space, path, length in rows}
    names = [str(name) for (name,) in con.execute("SELECT name FROM space")] if space is None else [space]
    sizes = dict(_line_file_sizes(home, names))
    differing = [key for key in lengths.keys() | sizes.keys() if lengths.get(key) != sizes.get(key)]
    return sorted(key for key in {*differing, *marked_copies(con)} if key[0] in names)


def catch_up(con: apsw.Connection, home: Path) -> None:
    """Mark the outdated copies to be written after this transaction, and rename line files that are too long."""
    marked = set(marked_copies(con))
    for space, path in outdated_copies(con, home):
        row = con.execute(
            "SELECT f.bytes FROM file f JOIN space s ON s.id = f.space WHERE s.name = ? AND f.path = ?", (space, path)
        ).get
        if copies.is_line_file(path) and (space, path) not in marked:  # a marked copy differs because it is behind
            _keep_beside(home / "spaces" / space / path, longer_than=row or 0)
        SqliteTransaction(con, home, space).files.outdate(path)


def _line_file_sizes(home: Path, spaces: Iterable[str]) -> Iterator[tuple[Copy, int]]:
    """Yield the size of each line file of these spaces, −1 if it is no regular file. It only scans folders."""
    for space in spaces:
        for prefix in ("", "conversations/"):
            with suppress(OSError), os.scandir(home / "spaces" / space / prefix) as entries:
                for entry in entries:
                    path = prefix + entry.name
                    if path.endswith(".jsonl") and copies.is_line_file(path):
                        is_file = entry.is_file(follow_symlinks=False)
                        yield (space, path), entry.stat().st_size if is_file else -1


def kept_beside(home: Path, space: str) -> list[Path]:
    """Return the line files of a space that were renamed because they were longer than their rows, or damaged."""
    folder = home / "spaces" / space
    candidates = (path for pattern in copies.LINE_FILES for why in ("beyond", "damaged") for path in
             folder.glob(f"{pattern}.{why}-*"))  # fmt: skip
    return sorted(path for path in candidates if is_own(path))


def problems(tx: SqliteTransaction) -> Iterator[str]:
    """Yield a sentence for each copy of a space that differs from its rows or was renamed. Reads all copies."""
    for path, why in differing_copies(tx).items():
        yield f"{path} {why}; `mcp-memory doctor --repair` writes it from the database."
    for path in kept_beside(tx.home, tx.name):
        count = read_own(path).count(b"\n")
        yield (
            f"{path.relative_to(tx.folder).as_posix()} has {count} lines, some of which the database may lack. "
            "`mcp-memory doctor --repair` adds what is missing."
        )


def differing_copies(tx: SqliteTransaction) -> dict[str, str]:
    """Return the copies of a space that differ from its rows, each with the reason. Reads all copies."""
    paths = dict.fromkeys(copies.paths(tx)) if tx.space else {}
    paths |= dict.fromkeys(path for _, path in outdated_copies(tx.con, tx.home, space=tx.name))
    return {path: why for path in paths if (why := _what_is_wrong(tx, path))}


def _what_is_wrong(tx: SqliteTransaction, path: str) -> str | None:
    parts, target = copies.content(tx, path), tx.folder / path
    if parts is None:
        return "belongs to no row" if files.is_there(target) else None
    try:
        content = files.content_of(target)
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    if content is None:
        return "is not a file" if files.is_there(target) else "is missing"
    is_same = _last_lines(content) == _last_lines(b"".join(parts)) if path.endswith(".jsonl") else [content] == parts
    return None if is_same else "is not what the database has"


def _last_lines(content: bytes) -> dict[object, object]:
    """Map the key of each row to its last line, without the reasons for quarantine, which change later.

    Lines of earlier versions have null for missing fields of turns.
    """
    optional = LINES["turns"].optional
    last: dict[object, object] = {}
    for line in content.splitlines(keepends=True):
        try:
            fields: Any = json.loads(line)
            last[key_of(fields)] = {
                name: value
                for name, value in fields.items()
                if name != "held" and (value is not None or name not in optional)
            }
            if is_idle(fields):  # the rows make no line of it
                del last[key_of(fields)]
        except WRONG:
            last[line] = line
    return last
