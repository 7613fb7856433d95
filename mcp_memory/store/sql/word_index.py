"""The word index: the terms of turns and atoms, and chunks of tool results, which are runs of their lines.

It can be rebuilt from the rows and the files of results. Turns that an earlier version indexed may have an additional
term that contains U+E000; no term of a query does, so no search finds it.

`ref.indexed` is the version of the terms (`TERMS_VERSION`) once all chunks of a ref are indexed, and 0 before any chunk
is. It is negative while only the chunks up to some byte are indexed, so that a kill during a large result loses only
one batch. Chunks are added in order: a batch that does not follow the previous batch is refused, so that two processes
do not index a result twice. A forgotten ref has no chunks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mcp_memory.core.text import with_speaker
from mcp_memory.language.words import TERMS_VERSION, index_terms
from mcp_memory.store.sql.transaction import HomeTransaction, Transaction, marks, numbers_of
from mcp_memory.store.values import INDEX, PROJECT_FILE, Chunk, Layer, NewChunk, UnindexedRef, Vectors

INDEXED = {"turn": "tombstone IS NULL AND role <> 'note'", "atom": "tombstone IS NULL"}
"""Conditions on the rows of a layer in the word index. A note is found through its atom."""

INDEXED_COLUMNS = {"turn": "content, name", "atom": "text, NULL"}
"""Columns with the indexed text of a row."""


def index_queue(identity: str) -> str:
    """Return the name of the queue of spaces that have rows to embed with a model, or results to index."""
    return f"{INDEX} {TERMS_VERSION} {identity}"


def make_due(tx: Transaction, vectors: Vectors | None = None) -> None:
    """Mark the space as due for indexing, after new rows were stored.

    `vectors` are given if all of these rows have their vectors already; their model has nothing to do then.
    """
    tx.make_due(INDEX, but=_needless(vectors))


def touch(tx: Transaction, *topics: str, vectors: Vectors | None = None) -> None:
    """Do what `make_due` and `Transaction.touch` do, with fewer statements."""
    tx.touch(*topics, due=[INDEX], but=_needless(vectors))


def _needless(vectors: Vectors | None) -> str:
    """Return the name of the index queue of the model that made these vectors; empty without vectors."""
    return "" if vectors is None else index_queue(vectors.identity)


def terms_of_row(layer: Layer, text: str, name: str | None) -> list[str]:
    """Return the terms of a row; `text` and `name` are its `INDEXED_COLUMNS`."""
    return terms_of_atom(text) if layer == "atom" else terms_of_turn(text, name)


def terms_of_atom(text: str) -> list[str]:
    return index_terms(text)


def terms_of_turn(content: str, name: str | None) -> list[str]:
    return index_terms(with_speaker(content, name))


# --- chunks of tool results -------------------------------------------------------------------------


IN_PROJECT = (
    f"EXISTS (SELECT 1 FROM followed p WHERE p.space = r.space AND p.client = '{PROJECT_FILE}' AND p.head = r.id)"
)
"""The condition that a ref `r` is the content of a file of a project; see `project_file_rows`."""

SEARCHED = (
    f"(r.tombstone IS NULL AND (r.tool <> '{PROJECT_FILE}' OR {IN_PROJECT}"
    " OR EXISTS (SELECT 1 FROM record p WHERE p.space = r.space AND p.ref = r.id)))"
)
"""The condition that a ref `r` is to be indexed."""


def refs_waiting(tx: HomeTransaction) -> int:
    """Return the number of results of the home that are not completely indexed."""
    return tx.get(f"SELECT count(*) FROM ref r WHERE r.indexed < ? AND {SEARCHED}", TERMS_VERSION)


def unindexed_ref(tx: Transaction, *, passing: Iterable[str] = ()) -> UnindexedRef | None:
    """Return a ref that is not fully indexed, or whose terms are of an earlier version; None if there is none.

    The refs in `passing` are skipped.
    """
    passed = set(passing)
    rows = tx.all(
        "SELECT r.id, CASE r.indexed WHEN ? THEN (SELECT max(byte_end) FROM chunk c WHERE c.space = r.space"
        f" AND c.ref = r.id) END FROM ref r WHERE r.space = :space AND r.indexed < ? AND {SEARCHED} LIMIT ?",
        *(-TERMS_VERSION, TERMS_VERSION, len(passed) + 1),
    )
    return next((UnindexedRef(ref=ref, start=start or 0) for ref, start in rows if ref not in passed), None)


def terms_of_chunks(new: Sequence[NewChunk]) -> list[list[str]]:
    """Return the terms of each chunk without repetitions, because ranking only needs to know which rows have a term.

    They should be computed before the transaction that stores the chunks, so that other writers do not wait.
    """
    return [list(dict.fromkeys(index_terms(chunk.text))) for chunk in new]


def put_chunks(
    tx: Transaction,
    ref: str,
    new: Sequence[NewChunk],
    terms: Sequence[Sequence[str]],
    *,
    start: int,
    complete: bool,
) -> bool:
    """Add the next chunks of a ref, which begin at byte `start`, with their terms (see `terms_of_chunks`).

    `complete` means that they are the last chunks. Chunks with terms of an earlier version are deleted first. Returns
    False, adding nothing, if the ref is unknown, not to be searched, indexed completely, or indexed up to another byte.
    """
    indexed = tx.get(f"SELECT r.indexed FROM ref r WHERE r.space = :space AND r.id = ? AND {SEARCHED}", ref)
    if indexed is None or indexed == TERMS_VERSION:
        return False
    if indexed != -TERMS_VERSION:
        _delete_chunks(tx, ref)
    if (tx.get("SELECT max(byte_end) FROM chunk WHERE space = :space AND ref = ?", ref) or 0) != start:
        return False
    first = tx.next("chunk", len(new))
    tx.many(
        "INSERT INTO chunk (space, id, ref, first_line, last_line, byte_start, byte_end)"
        " VALUES (:space, ?, ?, ?, ?, ?, ?)",
        [(number, ref, *chunk.lines, *chunk.span) for number, chunk in enumerate(new, start=first)],
    )
    tx.index.put_terms("chunk", list(zip(range(first, first + len(new)), terms, strict=True)))
    state = TERMS_VERSION if complete else -TERMS_VERSION
    tx.run("UPDATE ref SET indexed = ? WHERE space = :space AND id = ?", state, ref)
    return True


def forget_chunks(tx: Transaction, ref: str) -> None:
    """Remove the chunks of a ref from the index. If the ref is restored, it is indexed again."""
    _delete_chunks(tx, ref)
    tx.run("UPDATE ref SET indexed = 0 WHERE space = :space AND id = ?", ref)


def _delete_chunks(tx: Transaction, ref: str) -> None:
    tx.index.remove("chunk", tx.column("DELETE FROM chunk WHERE space = :space AND ref = ? RETURNING id", ref))


def first_chunks(tx: Transaction, refs: Sequence[str]) -> dict[str, str]:
    """Return the ids of the first chunks of results, by the ids of the results that are indexed."""
    rows = tx.all(
        f"SELECT c.ref, c.id FROM chunk c WHERE c.space = :space AND c.ref IN ({marks(refs)}) AND c.byte_start = 0",
        *refs,
    )
    return {ref: f"c{number}" for ref, number in rows}


def chunks_by_id(tx: Transaction, ids: Iterable[str]) -> list[tuple[Chunk, bytes]]:
    """Return chunks and their raw bytes, in the order of `ids`.

    Chunks that are gone, or whose file is missing or torn, are left out; the bytes are not checked against a hash.
    """
    numbers = numbers_of(ids, "c")
    rows = tx.all(
        "SELECT c.id, c.ref, c.first_line, c.last_line, c.byte_start, c.byte_end, r.path, r.bytes FROM chunk c"
        f" JOIN ref r ON r.space = c.space AND r.id = c.ref WHERE c.space = :space AND c.id IN ({marks(numbers)})",
        *numbers,
    )
    by_number = {
        id: (Chunk(id=f"c{id}", ref=ref, lines=(first, last), span=(start, end)), path, size)
        for id, ref, first, last, start, end, path, size in rows
    }
    ordered = [by_number[number] for number in numbers if number in by_number]
    texts = tx.files.read_results([(path, size, chunk.span) for chunk, path, size in ordered])
    return [(chunk, text) for (chunk, _, _), text in zip(ordered, texts, strict=True) if text is not None]
