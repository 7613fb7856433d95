"""The word index of tool results: which runs of their lines are in it, and how far each ref has come.

A projection: it can be made anew from the refs. `ref.indexed` is the version of the terms that all of a ref's chunks
have; 0 before the first; negative as long as only those up to some byte are there, so that a kill in the middle of a
large result costs one batch. Chunks of one ref come in order, and a batch that does not follow what is there is
refused: two processes at once do nothing twice. A forgotten ref has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import apsw

from mcp_memory.errors import Damaged
from mcp_memory.store.protocol import Chunk, NewChunk, UnindexedRef
from mcp_memory.store.sqlite import terms
from mcp_memory.store.sqlite.rows import marks, numbers_of, space_id
from mcp_memory.text import TERMS_VERSION, index_terms
from mcp_memory.types import Ref

__all__ = ["by_ids", "cut", "forget", "put", "read_span", "unindexed", "waiting"]

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


def by_ids(con: apsw.Connection, space: str, ids: Iterable[str]) -> list[Chunk]:
    """See `Store.chunks`."""
    numbers = numbers_of(ids, "c")
    rows: Any = con.execute(
        "SELECT id, ref, first_line, last_line, byte_start, byte_end FROM chunk"
        f" WHERE space = ? AND id IN ({marks(numbers)})",
        (space_id(con, space), *numbers),
    )
    found = {
        id: Chunk(id=f"c{id}", ref=ref, lines=(first, last), span=(start, end))
        for id, ref, first, last, start, end in rows
    }
    return [found[number] for number in numbers if number in found]


def read_span(folder: Path, ref: Ref, span: tuple[int, int]) -> bytes:
    """See `Store.read_span`. The front matter is what the file has more than the result."""
    path = folder / ref.path
    try:
        with path.open("rb") as file:
            head = path.stat().st_size - ref.bytes
            file.seek(max(0, head - 4))
            fence = file.read(4)
            file.seek(head + span[0])
            data = file.read(span[1] - span[0])
    except OSError:
        fence, data = b"", b""
    if fence != b"---\n" or len(data) != span[1] - span[0]:
        raise Damaged(f"The file of {ref.id} is missing or torn: {path}. Restore it from a backup.")
    return data
