"""Vectors as int8, and the exact scan of a `vec0` table of them: every row of a space is scored.

The scan reads the chunks that sqlite-vec keeps (tables `…_chunks`, `…_rowids` and `…_vector_chunks00`, as its
ARCHITECTURE.md describes them), through one blob handle into one buffer, and multiplies them with numpy:
`MATCH` of vec0 0.1.9 takes many times as long, since it picks the k best of a chunk one after the other.
A test holds the two to the same answer. It costs 0.25 s a million rows of 256 numbers; where that is too much,
`sketch` says which rows are worth it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import apsw

from mcp_memory.store.sqlite.index.rowids import ID_MASK, rowid, span

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Best", "blocks", "products", "quantised"]

_BLOCK = 2**20  # bytes of vectors read together
_FLOATS = 2**17  # numbers multiplied together
_ROUNDING = 1e-4  # more than single precision can be off in a cosine


def quantised(data: NDArray[np.float32]) -> NDArray[np.int8]:
    """Return the rows as int8, each of the same length; a row of zeros (no known word) is near to nothing.

    A unit vector is stored times 12 √dimensions (127 at least): components are around 12, so rounding moves a
    cosine by some thousandths, and only one of more than two thirds of the whole length is cut.
    """
    import numpy as np

    data = np.nan_to_num(data)
    lengths = np.linalg.norm(data, axis=1, keepdims=True)
    scaled = data / np.where(lengths == 0, 1, lengths) * _length(data.shape[1])
    return np.clip(np.rint(scaled), -127, 127).astype(np.int8)


class Best:
    """The best rows of all that were added, by their cosines to the query."""

    def __init__(self, query: NDArray[np.float32], limit: int) -> None:
        import numpy as np

        self._query = query.astype(np.float64) / np.linalg.norm(query) / _length(len(query))
        self._limit = limit
        self._numbers: NDArray[np.int64] = np.empty(0, np.int64)
        self._scores: NDArray[np.float64] = np.empty(0, np.float64)

    def add(self, numbers: NDArray[np.int64], rows: NDArray[np.int8]) -> None:
        """Score rows; those numbered 0 are left out.

        First all in single precision, which is fast; then the possible best rows again, one by one, so that equal rows
        get equal scores to the last bit, whatever their position.
        """
        import numpy as np

        if np.count_nonzero(numbers) < len(numbers) / 2:  # a filter left few
            numbers, rows = numbers[numbers > 0], rows[numbers > 0]
        rough = np.where(numbers > 0, products(rows, self._query), -np.inf)
        bar = -np.inf
        if len(self._scores) == self._limit:
            bar = self._scores[-1] - _ROUNDING
        elif len(rough) > self._limit:
            bar = np.partition(rough, -self._limit)[-self._limit] - 2 * _ROUNDING
        near = np.flatnonzero((rough >= bar) & (numbers > 0))
        if len(near):
            self._merge(numbers[near], (rows[near] * self._query).sum(axis=1))

    def _merge(self, numbers: NDArray[np.int64], scores: NDArray[np.float64]) -> None:
        import numpy as np

        numbers, scores = np.concatenate((self._numbers, numbers)), np.concatenate((self._scores, scores))
        order = np.lexsort((-numbers, -scores))[: self._limit]
        self._numbers, self._scores = numbers[order], scores[order]

    def found(self) -> list[tuple[int, float]]:
        """Return row numbers and cosines, best first; ties by number, newest first."""
        return list(zip(self._numbers.tolist(), self._scores.tolist(), strict=True))


def products(rows: NDArray[np.int8], query: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
    """Return each row times the query, in single precision.

    Some hundred rows at a time: the floats stay in the cache of a core, and OpenBLAS in one thread. It takes
    others for half a million numbers, and then waits for a scheduler's turn, 8 ms, wherever a core is busy.
    """
    import numpy as np

    floats = np.empty((max(1, _FLOATS // len(query)), len(query)), np.float32)
    single = query.astype(np.float32)
    found = np.empty(len(rows), np.float32)
    for start in range(0, len(rows), len(floats)):
        part = rows[start : start + len(floats)]
        np.copyto(floats[: len(part)], part)
        np.dot(floats[: len(part)], single, out=found[start : start + len(part)])
    return found


def blocks(
    con: apsw.Connection,
    table: str,
    space: int,
    dimensions: int,
    *,
    allowed: NDArray[np.bool_] | None = None,
    above: int = 0,
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int8]]]:
    """Yield ids of rows (0 for a row to leave out) and their vectors, which the next block overwrites.

    Rows with an id up to `above` are left out.
    """
    import numpy as np

    chunks = list(_chunks(con, table, space, allowed, above))
    if not chunks:
        return
    size = len(chunks[0][1]) * dimensions
    together = max(1, _BLOCK // size)
    buffer = np.empty((together * len(chunks[0][1]), dimensions), np.int8)
    raw = memoryview(buffer).cast("B")
    vectors = con.blob_open("main", f"{table}_vector_chunks00", "vectors", chunks[0][0], False)
    try:
        for start in range(0, len(chunks), together):
            for place, (chunk, _) in enumerate(chunks[start : start + together]):
                vectors.reopen(chunk)
                vectors.read_into(raw, place * size, size)
            numbers = np.concatenate([numbers for _, numbers in chunks[start : start + together]])
            yield numbers, buffer[: len(numbers)]
    finally:
        vectors.close()


def _chunks(
    con: apsw.Connection, table: str, space: int, allowed: NDArray[np.bool_] | None, above: int
) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Yield the chunks that hold rows to score, and the ids of their rows (0 for one to leave out)."""
    import numpy as np

    tail = ""
    if above:
        newer = f"rowid > {rowid(space, above)} AND rowid <= {span(space)[1]}"
        tail = f"AND chunk_id IN (SELECT chunk_id FROM {table}_rowids WHERE {newer})"
    for chunk, used, rowids in con.execute(
        f"SELECT chunk_id, validity, rowids FROM {table}_chunks WHERE partition00 = ? {tail} ORDER BY chunk_id",
        (space,),
    ):
        numbers = np.frombuffer(rowids, np.int64) & ID_MASK
        if used.count(255) < len(used):
            numbers = numbers * np.unpackbits(np.frombuffer(used, np.uint8), bitorder="little")
        if allowed is not None:
            known = np.where(numbers < len(allowed), numbers, 0)
            numbers = np.where(allowed[known], known, 0)
        if above:
            numbers = np.where(numbers > above, numbers, 0)
        if numbers.any():
            yield chunk, numbers


def _length(dimensions: int) -> float:
    """How long every stored vector is, but for rounding."""
    return max(127.0, 12.0 * dimensions**0.5)
