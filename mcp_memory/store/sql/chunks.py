"""The word index of tool results: which runs of their lines are in it, and how far each ref has come.

A projection: it can be made anew from the refs. `ref.indexed` is the version of the terms that all of a ref's chunks
have; 0 before the first; negative as long as only those up to some byte are there, so that a kill in the middle of a
large result costs one batch. Chunks of one ref come in order, and a batch that does not follow what is there is
refused: two processes at once do nothing twice. A forgotten ref has none.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import apsw

from mcp_memory.language.words import TERMS_VERSION, index_terms
from mcp_memory.store.protocol import Chunk, NewChunk, UnindexedRef
from mcp_memory.store.sql.rows import marks, numbers_of, space_id
from mcp_memory.store.sqlite.finding import terms

__all__ = ["by_ids", "cut", "forget", "put", "read", "unindexed", "waiting"]

_FENCE = b"---\n"
_STALE = "indexed < ? AND tombstone IS NULL"


def waiting(con: apsw.Connection) -> int:
    """See `Store.refs_waiting`."""
    return con.execute(f"SELECT count(*) FROM ref WHERE {_STALE}", (TERMS_VERSION,)).get


def unindexed(con: apsw.Connection, *, passing: Iterable[tuple[str, str]]) -> UnindexedRef | None:
    """See `Store.unindexed_ref`."""
    passed = set(passing)
    rows: Any = con.execute(
        "SELECT s.name, r.id, CASE r.indexed WHEN -?1 THEN (SELECT max(byte_end) FROM chunk c WHERE c.space = r.space"
        " AND c.ref = r.id) END FROM ref r JOIN space s ON s.id = r.space WHERE r.indexed < ?1 AND r.tombstone IS NULL"
        " LIMIT ?2",
        (TERMS_VERSION, len(passed) + 1),
    )
    found = (UnindexedRef(space=space, ref=ref, start=start or 0) for space, ref, start in rows)
    return next((one for one in found if (one.space, one.ref) not in passed), None)


def cut(new: Sequence[NewChunk]) -> list[list[str]]:
    """Return the terms of chunks, each once: the ranking asks no more than which rows hold one."""
    return [list(dict.fromkeys(index_terms(chunk.text))) for chunk in new]


def put(
    con: apsw.Connection,
    space: str,
    ref: str,
    new: Sequence[NewChunk],
    found: Sequence[Sequence[str]],
    *,
    start: int,
    complete: bool,
) -> bool:
    """See `Store.put_chunks`; `found` has the terms."""
    number = space_id(con, space)
    row: Any = con.execute(
        "SELECT indexed FROM ref WHERE space = ? AND id = ? AND tombstone IS NULL", (number, ref)
    ).fetchone()
    if number is None or row is None or row[0] == TERMS_VERSION:
        return False
    if row[0] != -TERMS_VERSION:
        _delete(con, number, ref)
    held = con.execute("SELECT max(byte_end) FROM chunk WHERE space = ? AND ref = ?", (number, ref)).get or 0
    if held != start:
        return False
    last: int = con.execute("SELECT seq FROM sqlite_sequence WHERE name = 'chunk'").get or 0
    con.executemany(
        "INSERT INTO chunk (id, space, ref, first_line, last_line, byte_start, byte_end) VALUES (?, ?, ?, ?, ?, ?, ?)",
        [(place, number, ref, *chunk.lines, *chunk.span) for place, chunk in enumerate(new, start=last + 1)],
    )
    terms.insert(con, "chunk", number, list(enumerate(found, start=last + 1)))
    state = TERMS_VERSION if complete else -TERMS_VERSION
    con.execute("UPDATE ref SET indexed = ? WHERE space = ? AND id = ?", (state, number, ref))
    return True


def forget(con: apsw.Connection, space: int, ref: str) -> None:
    """Take a ref out of the index; should it come back, it is indexed anew."""
    _delete(con, space, ref)
    con.execute("UPDATE ref SET indexed = 0 WHERE space = ? AND id = ?", (space, ref))


def _delete(con: apsw.Connection, space: int, ref: str) -> None:
    rows: Any = con.execute("DELETE FROM chunk WHERE space = ? AND ref = ? RETURNING id", (space, ref)).fetchall()
    con.executemany("DELETE FROM chunk_terms WHERE rowid = ?", rows)


def by_ids(con: apsw.Connection, space: str, ids: Iterable[str]) -> list[tuple[Chunk, str, int]]:
    """Return chunks with the path and the length of their refs, in the order asked for."""
    numbers = numbers_of(ids, "c")
    rows: Any = con.execute(
        "SELECT c.id, c.ref, c.first_line, c.last_line, c.byte_start, c.byte_end, r.path, r.bytes FROM chunk c"
        " JOIN ref r ON r.space = c.space AND r.id = c.ref"
        f" WHERE c.space = ? AND c.id IN ({marks(numbers)})",
        (space_id(con, space), *numbers),
    )
    found = {
        id: (Chunk(id=f"c{id}", ref=ref, lines=(first, last), span=(start, end)), path, size)
        for id, ref, first, last, start, end, path, size in rows
    }
    return [found[number] for number in numbers if number in found]


def read(folder: Path, found: Iterable[tuple[Chunk, str, int]]) -> list[tuple[Chunk, bytes]]:
    """See `Store.chunks`."""
    texts = ((chunk, _span(folder / path, size, chunk.span)) for chunk, path, size in found)
    return [(chunk, text) for chunk, text in texts if text is not None]


def _span(path: Path, size: int, span: tuple[int, int]) -> bytes | None:
    """Return some of the last `size` bytes of a file; what stands before them is the front matter."""
    try:
        with path.open("rb") as file:
            head = file.seek(0, os.SEEK_END) - size
            file.seek(max(0, head - len(_FENCE)))
            fence = file.read(len(_FENCE))
            file.seek(span[0], os.SEEK_CUR)
            data = file.read(span[1] - span[0])
    except OSError:
        return None
    return data if fence == _FENCE and len(data) == span[1] - span[0] else None
