"""Consistency checks of rows, their copies in files, and the files of results."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw

from mcp_memory.core.errors import Damaged
from mcp_memory.core.regular_files import read_own
from mcp_memory.core.types import NewTurn
from mcp_memory.store import files
from mcp_memory.store.evidence import evidence_hash
from mcp_memory.store.sql import copies as copies_of_rows
from mcp_memory.store.sql import digests
from mcp_memory.store.sql.entity_rows import key as entity_key
from mcp_memory.store.sql.ref_rows import find as find_ref
from mcp_memory.store.sql.transaction import counters_behind, from_ms
from mcp_memory.store.sql.word_index import INDEXED
from mcp_memory.store.sqlite import copies
from mcp_memory.store.sqlite import home as homes
from mcp_memory.store.sqlite import unreadable as forms
from mcp_memory.store.sqlite.index.rowids import ID_BITS
from mcp_memory.store.sqlite.transaction import SqliteTransaction

_AT_WORK_S = 600.0


def unreadable(con: apsw.Connection) -> list[str]:
    """Return a line for each unreadable value. Reads all rows."""
    return [f"{value} {forms.NEXT_STEP}" for value in forms.unreadable_values(con)]


def problems(con: apsw.Connection) -> list[str]:
    """Return the problems of the rows and their indexes. Reads all rows."""
    for layer in ("turn", "atom", "chunk"):
        # A query refreshes this connection's view of the FTS5 table. The integrity check alone uses a stale view, and
        # reports blocks that were merged away since as corrupt.
        con.execute(f"SELECT 1 FROM {layer}_terms WHERE rowid = 0").fetchall()
    problems_found = [str(line) for (line,) in con.execute("PRAGMA integrity_check") if line != "ok"]
    problems_found += [
        f"Row {rowid or ''} of {table} refers to a missing row."
        for table, rowid, *_ in con.execute("PRAGMA foreign_key_check")
    ]
    names: dict[Any, Any] = dict(con.execute("SELECT id, name FROM space"))
    for of_rows in (_turn_problems, _quote_problems, _statement_problems):
        problems_found += [f"{names.get(space, f'space {space}')}: {problem}" for space, problem in of_rows(con)]
    for layer, condition in {**INDEXED, "chunk": "TRUE"}.items():
        missing = f"r.space << {ID_BITS} | r.id NOT IN (SELECT id FROM {layer}_terms_docsize)"
        if layer == "turn":  # new turns are indexed later
            missing += (
                " AND EXISTS (SELECT 1 FROM term_range g WHERE g.space = r.space AND g.layer = 'turn'"
                " AND r.id BETWEEN g.first AND g.last)"
            )
        if lacking := con.execute(f"SELECT count(*) FROM {layer} r WHERE {condition} AND {missing}").get:
            problems_found.append(f"{lacking} {layer}s are not in the word index.")
    for name in names.values():
        for table in counters_behind(SqliteTransaction(con, Path(), name)):
            problems_found.append(
                f"{name}: the last number of {table} rows is lost. `mcp-memory doctor --repair` finds it again."
            )
    return problems_found


def copy_problems(con: apsw.Connection, home: Path) -> list[str]:
    """Return the problems of the copies of rows and of the identity file. The caller must have locked `copies.LOCK`."""
    path = home / homes.IDENTITY
    problems_found = _of_spaces(con, home, _copy_problems)
    if files.is_there(path) and homes.identity(home) is None:  # a missing file is written when a home is opened
        problems_found.append(
            f"{path.name} is not a file, or cannot be read. `mcp-memory doctor --repair` rewrites it."
        )
    return problems_found


def ref_problems(con: apsw.Connection, home: Path) -> list[str]:
    """Return the problems of the files of results. Reads and hashes all of them."""
    return _of_spaces(con, home, _ref_problems)


def _of_spaces(
    con: apsw.Connection, home: Path, problems: Callable[[apsw.Connection, Path, int], Iterator[str]]
) -> list[str]:
    spaces = {str(name): number for number, name in con.execute("SELECT id, name FROM space")}
    lost = {path.name: 0 for path in sorted((home / "spaces").glob("*")) if path.is_dir()}  # folders without a row
    return [
        f"{name}: {problem}"
        for name, number in (lost | spaces).items()
        for problem in problems(con, home / "spaces" / name, number)
    ]


def _turn_problems(con: apsw.Connection) -> Iterator[tuple[int, str]]:
    rows: Any = con.execute(
        "SELECT space, id, role, name, content, said_at, dated, sha256 FROM turn WHERE purged_at IS NULL"
    )
    for space, number, role, name, content, said_at, dated, digest in rows:
        turn = NewTurn(role=role, name=name, content=content, said_at=from_ms(said_at) if dated else None)
        if evidence_hash(turn) != bytes(digest):
            problem = f"Turn t{number} does not match its hash: its words were changed outside this program. {_ROW}"
            yield space, problem


_ROW = "`mcp-memory doctor --repair` takes the words that its journal proves, and keeps this database."


def _quote_problems(con: apsw.Connection) -> Iterator[tuple[int, str]]:
    rows: Any = con.execute(
        "SELECT e.space, e.atom, e.turn, e.span_start, e.span_end, t.content"
        " FROM evidence e JOIN turn t ON t.space = e.space AND t.id = e.turn"
        " JOIN atom a ON a.space = e.space AND a.id = e.atom"
        " WHERE t.purged_at IS NULL AND a.purged_at IS NULL"
    )
    for space, atom, turn, start, end, content in rows:
        if not 0 <= start < end <= len(content):
            yield space, f"Atom a{atom} quotes words that t{turn} does not contain. {_AS_IT_WAS}"
    bare: Any = con.execute(f"SELECT a.space, a.id FROM atom a WHERE {WITHOUT_WORDS}")
    for space, atom in bare:
        yield space, f"The first evidence of a{atom} is lost. {_AS_IT_WAS}"


WITHOUT_WORDS = (
    "NOT EXISTS (SELECT 1 FROM evidence e WHERE e.space = a.space AND e.atom = a.id"
    " AND (e.turn, e.span_start, e.span_end) = (a.evidence, a.span_start, a.span_end))"
)
"""The condition that the row with the first evidence of an atom `a` is missing."""


def _statement_problems(con: apsw.Connection) -> Iterator[tuple[int, str]]:
    """Yield a problem for each statement or fact whose redundant columns disagree after a change by another program."""
    rows: Any = con.execute("SELECT space, id, text, folded FROM atom WHERE purged_at IS NULL")
    for space, number, text, folded in rows:
        if folded != digests.statement_key(text):
            yield space, f"The text of a{number} was changed outside this program. {_AS_IT_WAS}"
    rows = con.execute(
        "SELECT f.space, f.atom, f.entity, f.entity_key, (f.valid_from, f.valid_to, f.tombstone)"
        " IS NOT (a.valid_from, a.valid_to, a.tombstone) FROM fact f"
        " JOIN atom a ON a.space = f.space AND a.id = f.atom WHERE a.purged_at IS NULL"
    )
    for space, number, entity, key, differs in rows:
        if differs or key != entity_key(entity):
            yield space, f"The fact of a{number} differs from it: it was changed outside this program. {_AS_IT_WAS}"


_AS_IT_WAS = "`mcp-memory rebuild --check` shows what the files say; else restore a backup: `mcp-memory backup --list`."


def _ref_problems(con: apsw.Connection, folder: Path, space: int) -> Iterator[str]:
    tx = SqliteTransaction(con, folder.parent.parent, folder.name)
    refs: Any = con.execute("SELECT id, path, sha256 FROM ref WHERE space = ? AND tombstone IS NULL", (space,))
    for id, path, digest in refs:
        try:
            content = read_own(folder / path)
            fields, data = files.read_ref_file(content)
        except FileNotFoundError:
            yield f"The file of {id} is missing: {path}. {_from_a_backup(id)}"
        except OSError as error:
            yield f"The file of {id} cannot be read ({error.strerror}): {path}. {_from_a_backup(id)}"
        except Damaged as error:
            yield f"The file of {id} is damaged: {error}: {path}. {_from_a_backup(id)}"
        else:
            row = find_ref(tx, id)
            if fields["sha256"] != digest or row is None:
                yield f"The file of {id} has other bytes than were stored: {path}. {_from_a_backup(id)}"
            elif files.ref_file(row, data) != content:
                yield f"The front matter of {path} differs from its row; `mcp-memory doctor --repair` rewrites it."


def _from_a_backup(id: str) -> str:
    return f"`mcp-memory doctor --repair` restores it from a backup; else `mcp-memory forget {id}`."


def _copy_problems(con: apsw.Connection, folder: Path, space: int) -> Iterator[str]:
    tx = SqliteTransaction(con, folder.parent.parent, folder.name)
    if space:
        yield from copies.problems(tx)
    elif any(folder.rglob("*.jsonl")):
        yield "The database has no such space. Rename the folder back; `mcp-memory rebuild` adds it as a new one."
    for path in stray_files(tx):
        name = path.relative_to(folder).as_posix()
        yield f"{name} belongs to no row; `mcp-memory doctor --repair` moves it to quarantine."


def stray_files(tx: SqliteTransaction) -> list[Path]:
    """Return files of a space that belong to no row: canvases, scenes, results and temporary files of killed writers.

    Files changed in the last ten minutes are excluded, because they may be in use.
    """
    expected = (
        set(copies_of_rows.paths(tx)) | {str(path) for path in tx.column("SELECT path FROM ref WHERE space = :space")}
        if tx.space
        else set[str]()
    )
    named = (*tx.folder.glob("mmds/[0-9][0-9][0-9]*-*.mmd"), *tx.folder.glob("refs/*.md"))
    scenes = (path for path in tx.folder.glob("scenes/*.md") if files.is_scene_file(files.content_of(path) or b""))
    strays = [path for path in (*named, *scenes) if path.relative_to(tx.folder).as_posix() not in expected]
    return sorted(path for path in (*strays, *tx.folder.rglob(".*.tmp")) if not _is_recent(path))


def _is_recent(path: Path) -> bool:
    try:
        return time.time() - path.lstat().st_mtime < _AT_WORK_S
    except FileNotFoundError:
        return True  # deleted since it was listed
