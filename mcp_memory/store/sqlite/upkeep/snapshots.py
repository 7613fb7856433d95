"""Snapshots: a consistent copy of a database that is in use, its checks, and the files that its rows name.

A snapshot is a separate file that no other process has open.

`find_returned` finds rows of a backup that were forgotten after it was made. The tombstone lines of the later state
have ids and keyed digests, without words. A line refers to a row if it has the row's id and a matching digest; for a
row without digests, such as a short turn without a time, the id is enough.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw

from mcp_memory.core.errors import Damaged
from mcp_memory.core.private_files import open_private
from mcp_memory.core.regular_files import is_own, read_own
from mcp_memory.store.forgetting import How
from mcp_memory.store.sql import canvas_rows, digests, page_rows, tombstone_rows
from mcp_memory.store.sql.copies import lines as line_files_of_rows
from mcp_memory.store.sql.transaction import to_ms
from mcp_memory.store.sqlite import unreadable as forms
from mcp_memory.store.sqlite.migrations import SCHEMA
from mcp_memory.store.sqlite.transaction import SqliteTransaction

POINTS_AT_NOTHING = "refers to a missing row"
_COUNTED = {
    "turns": "turn WHERE role <> 'note'",
    "notes": "turn WHERE role = 'note'",
    "statements": "atom",
    "facts": "fact",
    "scene_versions": "scene",
    "results": "ref",
    "records": "record",
    "canvases": "canvas",
    "canvas_versions": "canvas_version",
    "tombstones": "tombstone",
    "calls": "spend",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """Identity (`home`, hexadecimal), schema (and whether it `is_known` here), spaces and row counts of a database."""

    home: str
    schema: str
    is_known: bool
    spaces: tuple[str, ...]
    counts: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedFile:
    """A file that rows name, relative to its space's folder.

    `length`: the valid length of a line file. `sha256`: the hash of the raw bytes of a ref. `content`: set if the file
    is derived from rows.
    """

    space: str
    number: int
    """The number of the space."""
    path: str
    length: int | None = None
    sha256: str | None = None
    content: bytes | None = None


def take(con: apsw.Connection, to: Path) -> None:
    """Copy the database of `con` to a new file. Readers and writers continue meanwhile."""
    open_private(to, "xb").close()  # SQLite would create it with the rights that the umask leaves to others
    copy = apsw.Connection(str(to))
    try:
        with copy.backup("main", con, "main") as copying:
            copying.step()
        copy.execute("PRAGMA journal_mode = DELETE").fetchall()
    finally:
        copy.close()


@contextmanager
def open_database(path: Path, *, write: bool = False) -> Generator[apsw.Connection]:
    """Open a database outside of a home, by default read-only."""
    flags = apsw.SQLITE_OPEN_READWRITE if write else apsw.SQLITE_OPEN_READONLY
    con = apsw.Connection(str(path), flags=flags | apsw.SQLITE_OPEN_URI)
    try:
        con.execute("PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = ON")
        yield con
    finally:
        con.close()


def describe_file(path: Path) -> Description:
    """Describe a database. Raises Damaged if it cannot be read or was not made by this program."""
    try:
        with open_database(path) as con:
            return describe(con)
    except apsw.FullError:
        raise
    except apsw.Error as error:
        raise Damaged(f"its database cannot be read ({error})") from None


def describe(con: apsw.Connection) -> Description:
    applied = [str(name) for (name,) in con.execute("SELECT name FROM migration ORDER BY name")]
    counts = {what: con.execute(f"SELECT count(*) FROM {table}").get for what, table in _COUNTED.items()}
    return Description(
        home=con.execute("SELECT uuid FROM home").get,
        schema=applied[-1],
        is_known=set(applied) <= {name for name, _ in SCHEMA},
        spaces=tuple(str(name) for (name,) in con.execute("SELECT name FROM space ORDER BY name")),
        counts=counts,
    )


def check(path: Path) -> list[str]:
    """Return the problems of a database: its pages, indexes and foreign keys."""
    try:
        with open_database(path) as con:
            problems = [str(line) for (line,) in con.execute("PRAGMA integrity_check") if line != "ok"]
            problems += [f"row {row} of {table} {POINTS_AT_NOTHING}" for table, row, *_ in _foreign(con)]
            return problems
    except apsw.FullError:
        raise
    except apsw.Error as error:
        return [str(error)]


def unreadable(path: Path) -> list[str]:
    """Return a sentence for each value of a whole database that its reader cannot read."""
    with open_database(path) as con:
        return [str(value) for value in forms.unreadable_values(con)]


def leave_out(path: Path) -> list[forms.Unreadable]:
    """Remove unreadable values, or their rows, from a copy of a whole database; return them."""
    with open_database(path, write=True) as con:
        return forms.leave_out(con)


def _foreign(con: apsw.Connection) -> list[Any]:
    return con.execute("PRAGMA foreign_key_check").fetchall()


# --- the files that rows name -----------------------------------------------------------------------


def named_files(con: apsw.Connection) -> Iterator[NamedFile]:
    """Yield every file that rows name, space by space."""
    spaces: Any = con.execute("SELECT id, name FROM space ORDER BY name").fetchall()
    for number, space in spaces:
        rows: Any = con.execute("SELECT path, bytes FROM file WHERE space = ? ORDER BY path", (number,)).fetchall()
        yield from (NamedFile(space=space, number=number, path=path, length=length) for path, length in rows)
        rows = con.execute(
            "SELECT path, sha256 FROM ref WHERE space = ? AND purged_at IS NULL ORDER BY path", (number,)
        ).fetchall()
        yield from (NamedFile(space=space, number=number, path=path, sha256=digest) for path, digest in rows)
        rows = con.execute("SELECT number, label, text FROM canvas WHERE space = ? ORDER BY number", (number,))
        for canvas, label, text in rows:
            yield NamedFile(space=space, number=number, path=canvas_rows.path_of(canvas, label), content=text.encode())
        for path, content in page_rows.scene_files(SqliteTransaction(con, Path(), space)):
            yield NamedFile(space=space, number=number, path=path, content=content)


def lines_of(con: apsw.Connection, file: NamedFile) -> Iterable[bytes]:
    """Return the expected lines of a line file, from the rows."""
    return line_files_of_rows(SqliteTransaction(con, Path(), file.space), file.path)


def line_files(con: apsw.Connection) -> list[tuple[int, str, str]]:
    """Return (number of the space, its name, path) of every line file."""
    rows: Any = con.execute("SELECT f.space, s.name, f.path FROM file f JOIN space s ON s.id = f.space ORDER BY 1, 3")
    return [(int(number), str(space), str(path)) for number, space, path in rows]


# --- rows of a backup that were forgotten since -----------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Returned:
    """The rows of a tombstone that are back in a backup.

    `ids` is empty if the tombstone exists in the backup too, but its rows are not purged there.
    """

    space: str
    tombstone: str
    at: datetime
    reason: str
    how: How
    ids: Sequence[str]
    was_purged: bool


def find_returned(database: Path, spaces: Path) -> list[Returned]:
    """Return the rows of a database that tombstones of a later state name, by tombstone.

    `spaces` is the folder with the folders of spaces of the later state. Raises Damaged if the database cannot be read.
    """
    rows: list[Returned] = []
    try:
        with open_database(database) as con:
            for folder in sorted(path for path in spaces.iterdir() if is_own(path / tombstone_rows.TOMBSTONES_FILE)):
                tx = SqliteTransaction(con, spaces.parent, folder.name)
                if tx.space:
                    rows += _of_space(tx)
    except apsw.FullError:
        raise
    except apsw.Error as error:
        raise Damaged(f"its database cannot be read ({error})") from None
    return rows


def _of_space(tx: SqliteTransaction) -> Iterator[Returned]:
    last: dict[str, bytes] = {}
    for line in read_own(tx.folder / tombstone_rows.TOMBSTONES_FILE).splitlines():
        try:
            last[str(json.loads(line)["tombstone"])] = line
        except (ValueError, KeyError, TypeError):
            continue  # a rebuild names it
    for line in last.values():
        try:
            row = _check_tombstone(tx, json.loads(line))
        except (ValueError, KeyError, TypeError, OverflowError):
            continue
        if row is not None:
            yield row


def _check_tombstone(tx: SqliteTransaction, line: dict[str, Any]) -> Returned | None:
    at, was_purged = datetime.fromisoformat(line["at"]), line["purged_at"] is not None
    if line["undone_at"] is not None:
        return None
    tombstone = tx.one(
        "SELECT undone_at, purged_at FROM tombstone WHERE space = :space AND id = ? AND at = ?",
        *(int(line["tombstone"][1:]), to_ms(at)),
    )
    ids = list[str]()
    if tombstone is None:
        line_digests = {bytes.fromhex(digest) for digest in line["digests"]}
        named = _renamed_refs(tx) if was_purged else {}
        ids = [id for name in line["ids"] if _is_meant(tx, id := named.get(str(name), str(name)), line_digests)]
    is_back = bool(ids) if tombstone is None else was_purged and tombstone == (None, None)
    return (
        Returned(
            space=tx.name,
            tombstone=line["tombstone"],
            at=at,
            reason=str(line["reason"]),
            how=line["how"],
            ids=ids,
            was_purged=was_purged,
        )
        if is_back
        else None
    )


def _renamed_refs(tx: SqliteTransaction) -> dict[str, str]:
    """Return the ids of results by the ids that a purge would give them."""
    key = digests.key_of(tx)
    return {digests.purged_ref(key, id): id for id in tx.column("SELECT id FROM ref WHERE space = :space")}


def _is_meant(tx: SqliteTransaction, id: str, line_digests: set[bytes]) -> bool:
    row_digests = digests.of_row(tx, id)
    return row_digests is not None and (not row_digests or not line_digests.isdisjoint(row_digests))
