"""Rows made of other rows, where a space lost all of one kind: what is indexed, who names results, who is meant.

A single row that is missing is not told apart from one that never was: a text may have named a result before it was
there. Where a space has none at all of what its texts come to, the rows were deleted.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw

from mcp_memory.language.words import TERMS_VERSION
from mcp_memory.store.naming import named
from mcp_memory.store.sql import chunks, citation_rows, entities
from mcp_memory.store.sqlite.transaction import SqliteTransaction

__all__ = ["made_again", "problems", "transaction_on"]

_INDEXED = (
    "SELECT r.space, r.id FROM ref r WHERE r.indexed = ? AND r.tombstone IS NULL AND r.bytes > 0"
    " AND r.content_type LIKE 'text/%' AND NOT EXISTS (SELECT 1 FROM chunk c WHERE c.space = r.space)"
)
_TEXTS = (
    "SELECT t.space, 't' || t.id, t.content FROM turn t WHERE t.tombstone IS NULL AND t.role <> 'note' AND {none}"
    " UNION ALL SELECT t.space, 'a' || t.id, t.text FROM atom t WHERE t.tombstone IS NULL AND {none}"
)
_UNCITED = _TEXTS.format(
    none="t.space IN (SELECT space FROM ref WHERE tombstone IS NULL) AND t.space NOT IN (SELECT space FROM citation)"
)
_UNNAMED = (
    "SELECT f.space, f.atom, f.entity FROM fact f WHERE f.entity <> '' AND f.tombstone IS NULL AND f.space NOT IN"
    " (SELECT a.space FROM mention m JOIN atom a ON a.space = m.space AND a.id = m.atom)"
)


def problems(con: apsw.Connection) -> Iterator[str]:
    """Yield what is lacking, a sentence each."""
    if many := con.execute(f"SELECT count(*) FROM ({_INDEXED})", (TERMS_VERSION,)).get:
        yield f"{many} results are not found by their lines: the index has none of them. {_NEXT}"
    if many := len(_citing(con)):
        yield f"{many} turns and statements name results, and no row says which. {_NEXT}"
    if many := con.execute(f"SELECT count(*) FROM ({_UNNAMED})").get:
        yield f"{many} facts are about somebody, and no row says whom. {_NEXT}"


_NEXT = "`mcp-memory doctor --repair` makes these rows again."


def made_again(con: apsw.Connection) -> Iterator[str]:
    """Make these rows again in this transaction, and say so."""
    unindexed: Any = con.execute(_INDEXED, (TERMS_VERSION,)).fetchall()
    for space, ref in unindexed:
        chunks.forget(transaction_on(con, space), ref)
    if unindexed:
        yield f"{len(unindexed)} results, of which the index had nothing, are indexed anew in the background."
    uncited = _citing(con)
    for space, source, text in uncited:
        citation_rows.note(transaction_on(con, space), source, text)
    if uncited:
        yield f"What {len(uncited)} turns and statements name of results is noted again."
    unnamed: Any = con.execute(_UNNAMED).fetchall()
    for space, atom, entity in unnamed:
        entities.mention(transaction_on(con, space), atom, [entity])
    if unnamed:
        yield f"Whom {len(unnamed)} facts are about is noted again."


def transaction_on(con: apsw.Connection, space: int) -> SqliteTransaction:
    """Return a transaction on the rows of a space; its files are not touched."""
    return SqliteTransaction(con, Path(), con.execute("SELECT name FROM space WHERE id = ?", (space,)).get)


def _citing(con: apsw.Connection) -> list[tuple[int, str, str]]:
    """Return (space, source, text) of what names a result: by its hash, which nothing says before it is there."""
    rows: Any = con.execute(_UNCITED).fetchall()
    live: Any = con.execute("SELECT space, id FROM ref WHERE tombstone IS NULL").fetchall()
    refs = {(space, id) for space, id in live}
    return [row for row in rows if any((row[0], name.target) in refs for name in named(row[2]))]
