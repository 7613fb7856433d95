"""The word index of tool results: which runs of their lines are in it, and how far each ref has come.

A projection: it can be rebuilt from the refs. `ref.indexed` is the version of the terms that all of a ref's chunks
have; 0 before the first; negative as long as only those up to some byte are there, so that a kill in the middle of a
large result costs one batch. Chunks of one ref come in order, and a batch that does not follow the one before is
refused: two processes at once do nothing twice. A forgotten ref has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mcp_memory.language.words import TERMS_VERSION, index_terms
from mcp_memory.store.sql.transaction import HomeTransaction, Transaction, marks, numbers_of
from mcp_memory.store.values import Chunk, NewChunk, UnindexedRef

__all__ = ["by_ids", "cut", "forget", "put", "unindexed", "waiting"]


def waiting(tx: HomeTransaction) -> int:
    """Count the results that have yet to be indexed."""
    return tx.get("SELECT count(*) FROM ref WHERE indexed < ? AND tombstone IS NULL", TERMS_VERSION)


def unindexed(tx: HomeTransaction, *, passing: Iterable[tuple[str, str]] = ()) -> UnindexedRef | None:
    passed = set(passing)
    rows = tx.all(
        "SELECT s.name, r.id, CASE r.indexed WHEN ? THEN (SELECT max(byte_end) FROM chunk c WHERE c.space = r.space"
        " AND c.ref = r.id) END FROM ref r JOIN space s ON s.id = r.space WHERE r.indexed < ? AND r.tombstone IS NULL"
        " LIMIT ?",
        *(-TERMS_VERSION, TERMS_VERSION, len(passed) + 1),
    )
    found = (UnindexedRef(space=space, ref=ref, start=start or 0) for space, ref, start in rows)
    return next((one for one in found if (one.space, one.ref) not in passed), None)


def cut(new: Sequence[NewChunk]) -> list[list[str]]:
    """Return the terms of chunks, each once: the ranking asks no more than which rows have one."""
    return [list(dict.fromkeys(index_terms(chunk.text))) for chunk in new]


def put(
    tx: Transaction,
    ref: str,
    new: Sequence[NewChunk],
    terms: Sequence[Sequence[str]],
    *,
    start: int,
    complete: bool,
) -> bool:
    """Add the next chunks of a ref, with their terms; False, and nothing is done, where they do not follow."""
    indexed = tx.get("SELECT indexed FROM ref WHERE space = :space AND id = ? AND tombstone IS NULL", ref)
    if indexed is None or indexed == TERMS_VERSION:
        return False
    if indexed != -TERMS_VERSION:
        _delete(tx, ref)
    if (tx.get("SELECT max(byte_end) FROM chunk WHERE space = :space AND ref = ?", ref) or 0) != start:
        return False
    first = tx.next("chunk", len(new))
    tx.many(
        "INSERT INTO chunk (space, id, ref, first_line, last_line, byte_start, byte_end)"
        " VALUES (:space, ?, ?, ?, ?, ?, ?)",
        [(number, ref, *chunk.lines, *chunk.span) for number, chunk in enumerate(new, start=first)],
    )
    tx.index.put_terms("chunk", list(enumerate(terms, start=first)))
    state = TERMS_VERSION if complete else -TERMS_VERSION
    tx.run("UPDATE ref SET indexed = ? WHERE space = :space AND id = ?", state, ref)
    return True


def forget(tx: Transaction, ref: str) -> None:
    """Take a ref out of the index; should it come back, it is indexed again."""
    _delete(tx, ref)
    tx.run("UPDATE ref SET indexed = 0 WHERE space = :space AND id = ?", ref)


def _delete(tx: Transaction, ref: str) -> None:
    tx.index.remove("chunk", tx.column("DELETE FROM chunk WHERE space = :space AND ref = ? RETURNING id", ref))


def by_ids(tx: Transaction, ids: Iterable[str]) -> list[tuple[Chunk, bytes]]:
    """Return chunks with their raw bytes, in the order asked for. Those whose file is torn or gone are left out."""
    numbers = numbers_of(ids, "c")
    rows = tx.all(
        "SELECT c.id, c.ref, c.first_line, c.last_line, c.byte_start, c.byte_end, r.path, r.bytes FROM chunk c"
        f" JOIN ref r ON r.space = c.space AND r.id = c.ref WHERE c.space = :space AND c.id IN ({marks(numbers)})",
        *numbers,
    )
    found = {
        id: (Chunk(id=f"c{id}", ref=ref, lines=(first, last), span=(start, end)), path, size)
        for id, ref, first, last, start, end, path, size in rows
    }
    wanted = (found[number] for number in numbers if number in found)
    texts = ((chunk, tx.files.read_result(path, size, chunk.span)) for chunk, path, size in wanted)
    return [(chunk, text) for chunk, text in texts if text is not None]
