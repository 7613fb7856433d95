"""Nearest rows by their vectors: every row of a space is scored, a block of vectors at a time, with simsimd."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import apsw

from mcp_memory.store.sqlite.index import vector_blocks
from mcp_memory.store.stored_vectors import cosines, stored_length, unit

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Best:
    """The best rows of all that were added, by their cosines to the query.

    `allowed` has for each row from 0 on whether it may be returned; None allows all.
    """

    def __init__(self, query: NDArray[np.float32], limit: int, allowed: NDArray[np.bool_] | None = None) -> None:
        import numpy as np

        self.allowed = allowed
        self.dimensions = len(query)
        self._query = unit(query)
        self._factor = float(np.abs(self._query).max()) / 127 or 1.0
        self._rounded = np.rint(self._query / self._factor).astype(np.int8)
        longest = stored_length(len(query)) + 0.5 * len(query) ** 0.5  # rounding lengthens a stored row by this at most
        self._error = float(np.linalg.norm(self._query - self._factor * self._rounded)) * longest
        self._limit = limit
        self._numbers: NDArray[np.int64] = np.empty(0, np.int64)
        self._scores: NDArray[np.float64] = np.empty(0, np.float64)

    def add(self, numbers: NDArray[np.int64], rows: NDArray[np.int8]) -> None:
        """Score rows, and keep the best. Rows with the number 0 are left out.

        All rows are scored by products with the rounded query, which is fast and off by at most `_error`. Then the rows
        that may be among the best are scored again, one by one, so that equal rows get equal scores to the last bit,
        whatever their position.
        """
        import numpy as np

        if self.allowed is not None and np.count_nonzero(numbers) < len(numbers) / 2:  # a filter left few
            numbers, rows = numbers[numbers > 0], rows[numbers > 0]
            if not len(numbers):
                return
        rough = self._products(rows)
        bar = -np.inf
        if len(self._scores) == self._limit:
            bar = self._scores[-1] - self._error
        elif len(rough) > self._limit:
            rough[numbers == 0] = -np.inf
            bar = np.partition(rough, -self._limit)[-self._limit] - 2 * self._error
        near = np.flatnonzero(rough >= bar)
        near = near[numbers[near] > 0]
        if len(near):
            self._merge(numbers[near], cosines(rows[near], self._query))

    def _products(self, rows: NDArray[np.int8]) -> NDArray[np.float64]:
        """Return the cosine of each row, up to `_error`."""
        import numpy as np
        import simsimd

        return self._factor * np.asarray(simsimd.dot(self._rounded, rows))

    def _merge(self, numbers: NDArray[np.int64], scores: NDArray[np.float64]) -> None:
        import numpy as np

        numbers, scores = np.concatenate((self._numbers, numbers)), np.concatenate((self._scores, scores))
        order = np.lexsort((-numbers, -scores))[: self._limit]
        self._numbers, self._scores = numbers[order], scores[order]

    def results(self) -> list[tuple[int, float]]:
        """Return row numbers and cosines, best first; ties by number, newest first."""
        return list(zip(self._numbers.tolist(), self._scores.tolist(), strict=True))


def find(con: apsw.Connection, table: str, space: int, queries: Sequence[Best]) -> None:
    """Add the rows of a space in a table of `vector_blocks` to each of these queries, which have equal dimensions."""
    allowed = queries[0].allowed
    for query in queries[1:]:
        allowed = _either(allowed, query.allowed)
    for numbers, rows in vector_blocks.scan(con, table, space, queries[0].dimensions, allowed=allowed):
        for query in queries:
            own = numbers if query.allowed is allowed else vector_blocks.allowed_of(numbers, query.allowed)
            query.add(own, rows)


def _either(some: NDArray[np.bool_] | None, others: NDArray[np.bool_] | None) -> NDArray[np.bool_] | None:
    """Return which rows one of two filters allows."""
    if some is None or others is None or some is others:
        return None if some is None or others is None else some
    shorter, longer = sorted((some, others), key=len)
    either = longer.copy()
    either[: len(shorter)] |= shorter
    return either
