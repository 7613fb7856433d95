"""Checks: the numbers of a space, its changes, and every inconsistency of rows and files."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw

from mcp_memory.core.errors import Damaged
from mcp_memory.core.regular_files import read_own
from mcp_memory.core.text import one_line
from mcp_memory.core.types import NewTurn
from mcp_memory.store import files
from mcp_memory.store.evidence import evidence_hash
from mcp_memory.store.sql import digests, pages
from mcp_memory.store.sql.canvases import path_of as canvases_path
from mcp_memory.store.sql.entities import key as entity_key
from mcp_memory.store.sql.transaction import counters_behind, from_ms
from mcp_memory.store.sql.word_index import INDEXED
from mcp_memory.store.sqlite import home as homes
from mcp_memory.store.sqlite import line_files
from mcp_memory.store.sqlite import unreadable as forms
from mcp_memory.store.sqlite.index import vectors
from mcp_memory.store.sqlite.index.rowids import ID_BITS
from mcp_memory.store.sqlite.transaction import SqliteTransaction

_AT_WORK_S = 600.0


def unreadable(con: apsw.Connection) -> list[str]:
    """Return a line for each unreadable value. Reads all rows."""
    return [f"{one} {forms.NEXT_STEP}" for one in forms.unreadable(con)]


def problems(con: apsw.Connection) -> list[str]:
    """Return the problems of the rows. Reads all of them, so it takes time in proportion to the store."""
    for layer in ("turn", "atom", "chunk"):
        # A query refreshes this connection's view of the FTS5 table. The integrity check alone uses a stale view, and
        # reports blocks that were merged away since as corrupt.
        con.execute(f"SELECT 1 FROM {layer}_terms WHERE rowid = 0").fetchall()
    found = [str(line) for (line,) in con.execute("PRAGMA integrity_check") if line != "ok"]
    found += [
        f"Row {rowid or ''} of {table} points at nothing."
        for table, rowid, *_ in con.execute("PRAGMA foreign_key_check")
    ]
    names: dict[Any, Any] = dict(con.execute("SELECT id, name FROM space"))
    for of_rows in (_turn_problems, _quote_problems, _statement_problems):
        found += [f"{names.get(space, f'space {space}')}: {problem}" for space, problem in of_rows(con)]
    for layer, wanted in {**INDEXED, "chunk": "TRUE"}.items():
        missing = f"space << {ID_BITS} | id NOT IN (SELECT id FROM {layer}_terms_docsize)"
        if lacking := con.execute(f"SELECT count(*) FROM {layer} WHERE {wanted} AND {missing}").get:
            found.append(f"{lacking} {layer}s are not in the word index.")
    for name in names.values():
        for table in counters_behind(SqliteTransaction(con, Path(), name)):
            found.append(
                f"{name}: the last number of {table} rows is lost. `mcp-memory doctor --repair` finds it again."
            )
    found += vectors.problems(con)
    return found


def page_problems(con: apsw.Connection, home: Path) -> list[str]:
    """Return the problems of files that change: line files, canvases and scenes. Block writers meanwhile."""
    path = home / homes.IDENTITY
    found = _of_spaces(con, home, _page_problems)
    if files.is_there(path) and homes.identity(home) is None:  # one that is missing is written when a home is opened
        found.append(f"{path.name} is no file, or cannot be read. `mcp-memory doctor --repair` writes it anew.")
    return found


def ref_problems(con: apsw.Connection, home: Path) -> list[str]:
    """Return the problems of the files of results, which never change. Hashes all of them."""
    return _of_spaces(con, home, _ref_problems)


def _of_spaces(
    con: apsw.Connection, home: Path, problems: Callable[[apsw.Connection, Path, int], Iterator[str]]
) -> list[str]:
    spaces = {str(name): number for number, name in con.execute("SELECT id, name FROM space")}
    lost = {path.name: 0 for path in sorted((home / "spaces").glob("*")) if path.is_dir()}  # where no row knows them
    return [
        f"{name}: {found}"
        for name, number in (lost | spaces).items()
        for found in problems(con, home / "spaces" / name, number)
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


_ROW = "`mcp-memory rebuild --accept` takes what the journal says, and keeps this database."


def _quote_problems(con: apsw.Connection) -> Iterator[tuple[int, str]]:
    rows: Any = con.execute(
        "SELECT e.space, e.atom, e.turn, e.span_start, e.span_end, e.quote, t.content"
        " FROM evidence e JOIN turn t ON t.space = e.space AND t.id = e.turn"
        " JOIN atom a ON a.space = e.space AND a.id = e.atom"
        " WHERE t.purged_at IS NULL AND a.purged_at IS NULL"
    )
    for space, atom, turn, start, end, quote, content in rows:
        if content[start:end] != quote or end - start != len(quote):
            yield space, f"Atom a{atom} quotes words of t{turn} that do not stand there. {_AS_IT_WAS}"
    bare: Any = con.execute(f"SELECT a.space, a.id FROM atom a WHERE {WITHOUT_WORDS}")
    for space, atom in bare:
        yield space, f"The words that a{atom} rests on first are lost. {_AS_IT_WAS}"


WITHOUT_WORDS = (
    "NOT EXISTS (SELECT 1 FROM evidence e WHERE e.space = a.space AND e.atom = a.id"
    " AND (e.turn, e.span_start, e.span_end) = (a.evidence, a.span_start, a.span_end))"
)
"""That the row which an atom `a` names as its first evidence is not there."""


def _statement_problems(con: apsw.Connection) -> Iterator[tuple[int, str]]:
    """Compare redundant columns of statements: a change outside this program usually changes only one of them."""
    rows: Any = con.execute("SELECT space, id, text, folded FROM atom WHERE purged_at IS NULL")
    for space, number, text, folded in rows:
        if folded != digests.folded(text):
            yield space, f"The text of a{number} was changed outside this program. {_AS_IT_WAS}"
    rows = con.execute(
        "SELECT f.space, f.atom, f.entity, f.entity_key, (f.valid_from, f.valid_to, f.tombstone)"
        " IS NOT (a.valid_from, a.valid_to, a.tombstone) FROM fact f"
        " JOIN atom a ON a.space = f.space AND a.id = f.atom WHERE a.purged_at IS NULL"
    )
    for space, number, entity, key, differs in rows:
        if differs or key != entity_key(entity):
            yield space, f"The fact of a{number} does not fit it: one was changed outside this program. {_AS_IT_WAS}"


_AS_IT_WAS = "`mcp-memory rebuild --check` shows what the files say; else restore a backup: `mcp-memory backup --list`."


def _ref_problems(con: apsw.Connection, folder: Path, space: int) -> Iterator[str]:
    refs: Any = con.execute("SELECT id, path, sha256 FROM ref WHERE space = ? AND tombstone IS NULL", (space,))
    for id, path, digest in refs:
        try:
            fields, _ = files.read_ref_file(read_own(folder / path))
        except FileNotFoundError:
            yield f"The file of {id} is missing: {path}. {_from_a_backup(id)}"
        except OSError as error:
            yield f"The file of {id} cannot be read ({error.strerror}): {path}. {_from_a_backup(id)}"
        except Damaged as error:
            yield f"The file of {id} is damaged: {error}: {path}. {_from_a_backup(id)}"
        else:
            if fields.get("ref", id) != id:
                yield f"{path} is the file of {one_line(str(fields['ref']), 20)}, which its row calls {id}. {_ROW}"
            if fields["sha256"] != digest:
                yield f"The file of {id} holds other bytes than were stored: {path}. {_from_a_backup(id)}"
    known = {str(path) for (path,) in con.execute("SELECT path FROM ref WHERE space = ?", (space,))}
    for path in sorted((folder / "refs").glob("*.md")):
        if f"refs/{path.name}" in known:
            continue
        try:
            files.read_ref_file(read_own(path))
        except FileNotFoundError:
            continue  # gone since it was listed
        except OSError as error:
            yield f"refs/{path.name} is of no result in the database, and unreadable: {error.strerror}. Move it away."
        except Damaged as error:
            yield f"refs/{path.name} is no result that the database has, and damaged: {error}. Move it away."


def _from_a_backup(id: str) -> str:
    return f"`mcp-memory doctor --repair` brings it back where a backup has it; else `mcp-memory forget {id}`."


def _page_problems(con: apsw.Connection, folder: Path, space: int) -> Iterator[str]:
    yield from line_files.problems(con, folder, space)
    canvases: Any = con.execute("SELECT number, label, text FROM canvas WHERE space = ?", (space,))
    for number, label, text in canvases:
        path = canvases_path(number, label)
        held = files.content_of(folder / path)
        if held is None:
            yield f"{path} is missing, or no file; `mcp-memory show canvas {number} --rebuild` writes it anew."
        elif held != text.encode():
            yield f"{path} is torn or was edited; `mcp-memory show canvas {number} --rebuild` writes it anew."
    yield from _scene_problems(SqliteTransaction(con, folder.parent.parent, folder.name))
    for path in stray_canvases(con, folder, space):
        yield f"mmds/{path.name} is of no canvas; `mcp-memory doctor --repair` sets it aside."
    if folder.exists():
        for stray in left_behind(folder):
            yield f"{stray.relative_to(folder)} is left from a write that was cut short; it can be deleted."


def _scene_problems(tx: SqliteTransaction) -> Iterator[str]:
    for path, due in pages.scene_files(tx):
        content = tx.files.read(path)
        if due is None and content is not None:
            yield f"{path} is left of a scene that was deleted; the next writing of scenes removes it."
        elif due is not None and content is None:
            yield f"{path} is missing; the next writing of scenes brings it back."
        elif content != due:
            yield f"{path} is not the scene that was stored; the next writing of scenes writes it anew."
    for path in stray_scenes(tx):
        yield f"scenes/{path.name} is of no scene, as a write that was cut short leaves it; it can be deleted."


def stray_scenes(tx: SqliteTransaction) -> list[Path]:
    """Return the files in the format of scenes that belong to no scene."""
    due = dict(pages.scene_files(tx))
    return [
        path
        for path in sorted((tx.folder / "scenes").glob("*.md"))
        if f"scenes/{path.name}" not in due and files.is_scene_file(files.content_of(path) or b"")
    ]


def stray_canvases(con: apsw.Connection, folder: Path, space: int) -> list[Path]:
    """Return the files with the name of a canvas that belong to no canvas."""
    rows: Any = con.execute("SELECT number, label FROM canvas WHERE space = ?", (space,))
    known = {folder / canvases_path(number, label) for number, label in rows}
    return sorted(path for path in (folder / "mmds").glob("[0-9][0-9][0-9]*-*.mmd") if path not in known)


def left_behind(folder: Path) -> Iterator[Path]:
    """Yield temporary files of interrupted writes; a recent one may still be in use and is left out."""
    for stray in sorted(folder.rglob(".*.tmp")):
        try:
            age = time.time() - stray.stat().st_mtime
        except FileNotFoundError:
            continue
        if age > _AT_WORK_S:
            yield stray
