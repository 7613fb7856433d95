"""What `checks` finds and rows can mend: indexes and files that are made of rows are made of them again.

Rows are not changed. What is damaged on disk is handed to `set_aside` before something else takes its place. Done twice
in a row, the second time finds nothing to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw

from mcp_memory.core.regular_files import read_regular
from mcp_memory.store import files
from mcp_memory.store.protocol import Layer
from mcp_memory.store.sql import canvases, chunks, scenes, tombstones
from mcp_memory.store.sql.line_files import lines_of
from mcp_memory.store.sql.terms import INDEXED, of_row
from mcp_memory.store.sqlite import checks
from mcp_memory.store.sqlite.index import sketch, terms
from mcp_memory.store.sqlite.rows import from_ms
from mcp_memory.store.sqlite.transaction import SqliteTransaction
from mcp_memory.store.sqlite.upkeep import derived_rows
from mcp_memory.store.sqlite.upkeep.snapshots import line_files

__all__ = ["mend", "words"]

SetAside = Callable[[Path], object]


def mend(con: apsw.Connection, home: Path, set_aside: SetAside, *, everything: bool) -> list[str]:
    """See `Store.repair`."""
    return [
        *_quotes(con),
        *words(con),
        *derived_rows.made_again(con),
        *_sketches(con),
        *_line_files(con, home, set_aside, everything=everything),
        *_pages(con, home, set_aside),
    ]


# --- indexes ----------------------------------------------------------------------------------------


def _quotes(con: apsw.Connection) -> Iterator[str]:
    """Give statements that lost their first evidence the one that their own rows name."""
    bare: Any = con.execute(
        "INSERT INTO evidence (space, atom, turn, span_start, span_end, quote)"
        " SELECT a.space, a.id, t.id, a.span_start, a.span_end,"
        " substr(t.content, a.span_start + 1, a.span_end - a.span_start)"
        " FROM atom a JOIN turn t ON t.space = a.space AND t.id = a.evidence"
        f" WHERE {checks.WITHOUT_WORDS} AND t.purged_at IS NULL AND 0 <= a.span_start"
        " AND a.span_start < a.span_end AND a.span_end <= length(t.content) RETURNING atom"
    ).fetchall()
    if bare:
        yield f"What {', '.join(f'a{atom}' for (atom,) in bare)} rest on is their evidence again."


def words(con: apsw.Connection) -> Iterator[str]:
    layers: tuple[Layer, ...] = ("turn", "atom")
    for layer in layers:
        columns = "content, name" if layer == "turn" else "text, NULL"
        lacking: Any = con.execute(
            f"SELECT id, space, {columns} FROM {layer} WHERE {INDEXED[layer]}"
            f" AND id NOT IN (SELECT id FROM {layer}_terms_docsize)"
        ).fetchall()
        for number, space, text, name in lacking:
            terms.insert(con, layer, space, [(number, of_row(layer, text, name))])
        surplus: Any = con.execute(
            f"SELECT id FROM {layer}_terms_docsize WHERE id NOT IN (SELECT id FROM {layer} WHERE {INDEXED[layer]})"
        ).fetchall()
        for (number,) in surplus:
            terms.delete(con, layer, number)
        if lacking:
            yield f"{len(lacking)} {layer}s are in the word index again."
        if surplus:
            yield f"{len(surplus)} {layer}s that were forgotten are out of the word index."
    torn: Any = con.execute(
        "SELECT DISTINCT space, ref FROM chunk WHERE id NOT IN (SELECT id FROM chunk_terms_docsize)"
    ).fetchall()
    for space, ref in torn:
        chunks.forget(derived_rows.transaction_on(con, space), ref)
    if torn:
        yield f"{len(torn)} results are indexed anew in the background."


def _sketches(con: apsw.Connection) -> Iterator[str]:
    rows: Any = con.execute("SELECT id, identity FROM vector_index").fetchall()
    layers: tuple[Layer, ...] = ("turn", "atom")
    for index, identity in rows:
        for layer in layers:
            if sketch.missing(con, layer, index):
                sketch.drop(con, layer, index)
                yield f"The sketches of {layer}s by {identity} are made anew in the background."


# --- line files -------------------------------------------------------------------------------------


def _line_files(con: apsw.Connection, home: Path, set_aside: SetAside, *, everything: bool) -> Iterator[str]:
    rows: Any = con.execute("SELECT space, path, bytes FROM file").fetchall()
    lengths: dict[tuple[int, str], int] = {(space, path): length for space, path, length in rows}
    found = {(number, path): name for number, name, path in line_files(con)}
    if everything:
        found = {**found, **_due(con)}
    for (number, path), space in sorted(found.items()):
        target = home / "spaces" / space / path
        size = target.stat().st_size if target.is_file() else -1
        if not everything and size >= lengths[number, path]:
            continue
        content = b"".join(lines_of(SqliteTransaction(con, home, space), path))
        if size >= 0 and read_regular(target) == content:
            why = ""
        elif size >= 0:
            set_aside(target)
            why = (
                "was torn: it is written anew, the old one kept" if size < lengths.get((number, path), 0) else "renewed"
            )
        else:
            why = "was missing: it is written anew"
            if files.is_there(target):  # something else is in its place
                set_aside(target)
        if why:
            files.write_whole(target, content)
        con.execute("INSERT OR REPLACE INTO file VALUES (?, ?, ?)", (number, path, len(content)))
        if why and why != "renewed":
            yield f"{space}: {path} {why}."


def _due(con: apsw.Connection) -> dict[tuple[int, str], str]:
    """Return the line files that rows ask for, as `line_files` does those that were written."""
    due: dict[tuple[int, str], str] = {}
    spaces: Any = con.execute("SELECT id, name FROM space").fetchall()
    for number, name in spaces:
        days: Any = con.execute("SELECT DISTINCT learned_at / 86400000 FROM turn WHERE space = ?", (number,))
        paths = [f"conversations/{from_ms(day * 86_400_000 + 43_200_000):%Y-%m-%d}.jsonl" for (day,) in days]
        sessions: Any = con.execute(
            "SELECT DISTINCT s.name FROM record r JOIN session s ON s.id = r.session WHERE r.space = ?", (number,)
        )
        paths += [f"offload-{session}.jsonl" for (session,) in sessions]
        for table, path in (("canvas", canvases.FILE), ("tombstone", tombstones.FILE)):
            if con.execute(f"SELECT 1 FROM {table} WHERE space = ? LIMIT 1", (number,)).get:
                paths.append(path)
        due.update({(number, path): name for path in paths})
    return due


# --- canvases and scenes ----------------------------------------------------------------------------


def _pages(con: apsw.Connection, home: Path, set_aside: SetAside) -> Iterator[str]:
    spaces: Any = con.execute("SELECT id, name FROM space").fetchall()
    for number, name in spaces:
        folder = home / "spaces" / name
        drawn: Any = con.execute("SELECT number, label, text FROM canvas WHERE space = ?", (number,)).fetchall()
        wanted = {folder / canvases.path_of(canvas, label): text.encode() for canvas, label, text in drawn}
        tx = SqliteTransaction(con, home, name)
        pages = {folder / path: due for path, due in scenes.files_of(tx)}
        for path, due in {**wanted, **pages}.items():
            if files.content_of(path) == due and (due is not None or not files.is_there(path)):
                continue
            if files.is_there(path):
                set_aside(path)
            if due is not None:
                files.write_whole(path, due)
            yield f"{name}: {path.relative_to(folder).as_posix()} is as the database has it."
        for path in checks.stray_scenes(tx):
            set_aside(path)
            yield f"{name}: scenes/{path.name}, of no scene, is set aside."
        for path in checks.stray_canvases(con, folder, number):
            set_aside(path)
            yield f"{name}: mmds/{path.name}, of no canvas, is set aside."
        for path in list(checks.left_behind(folder)) if folder.exists() else []:
            set_aside(path)
            yield f"{name}: {path.relative_to(folder).as_posix()}, left from a write that was cut short, is set aside."
