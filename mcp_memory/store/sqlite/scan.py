"""Vectors as int8, and the exact scan of a `vec0` table of them: every row of a space is scored, none guessed at.

The scan reads the chunks that sqlite-vec keeps (tables `…_chunks` and `…_vector_chunks00`, as its
ARCHITECTURE.md describes them): `MATCH` of vec0 0.1.9 takes many times as long, since it picks the k best of a
chunk one after the other. A test holds the two to the same answer.

Two things make it fast. Chunks are read through one blob handle into one buffer, at half the cost of a SELECT.
And rows are scored first with the query rounded to int8 too, by the SIMD kernels of simsimd. How far off that
can be is known, so all rows that might still be among the best are scored again with the query itself. Where
simsimd cannot be had, numpy scores the rows: the same answers at three times the time.

Scores are sums of whole numbers, exact in a double: equal rows score the same wherever they stand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

import apsw

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["nearest_rows", "quantised"]

_BLOCK = 2**20  # bytes of vectors read and scored together: more would leave the cache of a core
_PLACES = (2.0**14, 2.0**7, 1.0)  # of the digits of a query


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


def nearest_rows(
    con: apsw.Connection,
    table: str,
    space: int,
    query: NDArray[np.float32],
    *,
    allowed: NDArray[np.bool_] | None,
    limit: int,
) -> list[tuple[int, float]]:
    """Return (row number, cosine) of the rows nearest to `query`, best first; ties by number, newest first.

    `allowed` tells for each row number from 0 on whether the row may be returned; None allows all.
    """
    import numpy as np

    digits, one = _digits(query)
    # By Cauchy and Schwarz; rounding makes no row longer than it is meant to be by more than half a root.
    doubt = np.linalg.norm(digits[1:].T @ _PLACES[1:]) * (_length(len(query)) + len(query) ** 0.5 / 2)
    multiply = _multiply()
    numbers, scores = np.empty(0, np.int64), np.empty(0)
    for block, rows in _blocks(con, table, space, len(query), allowed):
        rough = multiply(rows, digits[:1])[:, 0] * _PLACES[0]
        rough[block == 0] = -np.inf
        if len(scores) == limit:
            bar = scores[-1] - doubt
        elif len(rough) > limit:
            bar = np.partition(rough, -limit)[-limit] - 2 * doubt
        else:
            bar = -np.inf
        near = np.flatnonzero(rough >= bar)
        near = near[block[near] > 0]
        if not len(near):
            continue
        numbers = np.concatenate((numbers, block[near]))
        scores = np.concatenate((scores, multiply(rows.take(near, axis=0), digits) @ _PLACES))
        order = np.lexsort((-numbers, -scores))[:limit]
        numbers, scores = numbers[order], scores[order]
    return list(zip(numbers.tolist(), (scores / one).tolist(), strict=True))


def _digits(query: NDArray[np.float32]) -> tuple[NDArray[np.int8], float]:
    """Return the query as three digits of int8, by _PLACES, and its product with a row of the same direction."""
    import numpy as np

    scale = 127 * _PLACES[0] / np.abs(query).max()
    rest = np.rint(query * scale)
    digits: list[NDArray[np.float64]] = []
    for place in _PLACES:
        digits.append(np.rint(rest / place))
        rest = rest - digits[-1] * place
    return np.stack(digits).astype(np.int8), float(np.linalg.norm(query) * scale * _length(len(query)))


def _blocks(
    con: apsw.Connection, table: str, space: int, dimensions: int, allowed: NDArray[np.bool_] | None
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int8]]]:
    """Yield row numbers (0 for a row to leave out) and their vectors, which the next block overwrites."""
    import numpy as np

    chunks = list(_chunks(con, table, space, allowed))
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
    con: apsw.Connection, table: str, space: int, allowed: NDArray[np.bool_] | None
) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Yield the chunks that hold rows to score, and the numbers of their rows (0 for one to leave out)."""
    import numpy as np

    for chunk, used, rowids in con.execute(
        f"SELECT chunk_id, validity, rowids FROM {table}_chunks WHERE partition00 = ? ORDER BY chunk_id", (space,)
    ):
        numbers = np.frombuffer(rowids, np.int64)
        if used.count(255) < len(used):
            numbers = numbers * np.unpackbits(np.frombuffer(used, np.uint8), bitorder="little")
        if allowed is not None:
            known = np.where(numbers < len(allowed), numbers, 0)
            numbers = np.where(allowed[known], known, 0)
        if numbers.any():
            yield chunk, numbers


@cache
def _multiply() -> Callable[[NDArray[np.int8], NDArray[np.int8]], NDArray[np.floating[Any]]]:
    """Return what multiplies rows with a query, both int8."""
    import numpy as np

    try:
        import simsimd
    except ImportError:
        return lambda rows, queries: rows.astype(np.float32) @ queries.T.astype(np.float32)
    return lambda rows, queries: np.asarray(simsimd.cdist(rows, queries, metric="dot"))


def _length(dimensions: int) -> float:
    """How long every stored vector is, but for rounding."""
    return max(127.0, 12.0 * dimensions**0.5)
