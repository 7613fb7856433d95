"""Repairs derived data from the rows: counters, first evidence, the word index, and copies in files.

Turns and statements are not changed. Replaced files, and files that belong to no row, are passed to `set_aside`. A
second run finds nothing to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw

from mcp_memory.store import files
from mcp_memory.store.sql import word_index
from mcp_memory.store.sql.transaction import catch_up_counters, counters_behind
from mcp_memory.store.sql.word_index import INDEXED, INDEXED_COLUMNS, terms_of_row
from mcp_memory.store.sqlite import checks, copies
from mcp_memory.store.sqlite.index import terms
from mcp_memory.store.sqlite.index.rowids import ID_BITS, ID_MASK
from mcp_memory.store.sqlite.transaction import SqliteTransaction
from mcp_memory.store.values import Layer

SetAside = Callable[[Path], object]
_BATCH = 2_000


def repair_database(con: apsw.Connection, home: Path, set_aside: SetAside) -> list[str]:
    """See `Store.repair`."""
    spaces: Any = con.execute("SELECT name FROM space").fetchall()
    return [
        *(line for (name,) in spaces for line in _repair_counters(SqliteTransaction(con, home, name))),
        *_restore_quotes(con),
        *repair_word_index(con),
        *_rewrite_copies(con, home, set_aside),
    ]


def _repair_counters(tx: SqliteTransaction) -> Iterator[str]:
    if behind := counters_behind(tx):
        catch_up_counters(tx)
        yield f"{tx.name}: numbers of new {', '.join(behind)} rows continue after the last row."


# --- indexes ----------------------------------------------------------------------------------------


def _restore_quotes(con: apsw.Connection) -> Iterator[str]:
    """Restore the first evidence of statements that lost it, from the turn and positions in their own rows."""
    restored: Any = con.execute(
        "INSERT INTO evidence (space, atom, turn, span_start, span_end)"
        " SELECT a.space, a.id, t.id, a.span_start, a.span_end"
        " FROM atom a JOIN turn t ON t.space = a.space AND t.id = a.evidence"
        f" WHERE {checks.WITHOUT_WORDS} AND t.purged_at IS NULL AND 0 <= a.span_start"
        " AND a.span_start < a.span_end AND a.span_end <= length(t.content) RETURNING atom"
    ).fetchall()
    if restored:
        yield f"The first evidence of {', '.join(f'a{atom}' for (atom,) in restored)} is restored."


def repair_word_index(con: apsw.Connection) -> Iterator[str]:
    layers: tuple[Layer, ...] = ("turn", "atom")
    for layer in layers:
        if lacking := _index_missing(con, layer):
            yield f"{lacking} {layer}s are in the word index again."
        surplus: Any = con.execute(
            f"SELECT id >> {ID_BITS}, id & {ID_MASK} FROM {layer}_terms_docsize WHERE id NOT IN"
            f" (SELECT space << {ID_BITS} | id FROM {layer} WHERE {INDEXED[layer]})"
        ).fetchall()
        for space, number in surplus:
            terms.delete(con, layer, space, [number])
        if surplus:
            yield f"{len(surplus)} {layer}s that were forgotten are out of the word index."
    torn: Any = con.execute(
        "SELECT DISTINCT s.name, c.ref FROM chunk c JOIN space s ON s.id = c.space"
        f" WHERE c.space << {ID_BITS} | c.id NOT IN (SELECT id FROM chunk_terms_docsize)"
    ).fetchall()
    for space, ref in torn:
        word_index.forget_chunks(SqliteTransaction(con, Path(), space), ref)
    if torn:
        yield f"{len(torn)} results are reindexed in the background."


def _index_missing(con: apsw.Connection, layer: Layer) -> int:
    """Index the rows that the word index lacks, and return how many."""
    after, count = (0, 0), 0
    while True:
        rows: Any = con.execute(
            f"SELECT space, id, {INDEXED_COLUMNS[layer]} FROM {layer} WHERE {INDEXED[layer]} AND (space, id) > (?, ?)"
            f" AND space << {ID_BITS} | id NOT IN (SELECT id FROM {layer}_terms_docsize)"
            f" ORDER BY space, id LIMIT {_BATCH}",
            after,
        ).fetchall()
        if not rows:
            return count
        for space, number, *row in rows:
            terms.insert(con, layer, space, [(number, terms_of_row(layer, *row))])
        after, count = rows[-1][:2], count + len(rows)


# --- copies ------------------------------------------------------------------------------------------


def _rewrite_copies(con: apsw.Connection, home: Path, set_aside: SetAside) -> Iterator[str]:
    """Set aside copies that differ from their rows, which are rewritten after the commit, and files without rows."""
    names: Any = con.execute("SELECT name FROM space").fetchall()
    for (name,) in names:
        tx = SqliteTransaction(con, home, name)
        for path in copies.differing_copies(tx):
            if files.is_there(tx.folder / path):
                set_aside(tx.folder / path)
            tx.files.outdate(path)
            yield f"{name}: {path} is written from the database."
        for path in checks.stray_files(tx):
            set_aside(path)
            yield f"{name}: {path.relative_to(tx.folder).as_posix()} belongs to no row; it is in quarantine."
