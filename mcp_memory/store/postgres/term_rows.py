"""Finds the rows that have a term, in the segments of a space and in the rows without a segment."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import chain
from typing import TYPE_CHECKING

from mcp_memory.store.postgres import terms
from mcp_memory.store.postgres.connection import forbid_scans
from mcp_memory.store.sql import postings
from mcp_memory.store.sql.filters import is_plain, where
from mcp_memory.store.sql.postings import COMMON, CommonTerms
from mcp_memory.store.sql.transaction import Transaction, Value
from mcp_memory.store.values import Filters, Layer, Posting

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def read(
    tx: Transaction,
    layer: Layer,
    query_terms: Sequence[str],
    *,
    filters: Filters,
    also: Sequence[str] = (),
    absent: bool = False,
    common: CommonTerms,
) -> list[Posting]:
    """See `Store.postings`. `common` has the common terms that the store knows."""
    if not tx.space:
        return []
    forbid_scans(tx)
    rows = SegmentRows(tx, layer, filters)
    return postings.read(rows, query_terms, also=also, absent=absent, common=common.of(tx, layer))


def with_all(tx: Transaction, layer: Layer, query_terms: Sequence[str]) -> list[int]:
    """Return the rows of a space that have all of these terms, in ascending order."""
    import numpy as np

    rows = _rows_with(tx, layer, list(dict.fromkeys(query_terms)))
    return reduce(np.intersect1d, rows).tolist() if rows else []


class SegmentRows:
    """`sql.postings.TermRows` over the segments."""

    def __init__(self, tx: Transaction, layer: Layer, filters: Filters) -> None:
        self._tx = tx
        self._layer: Layer = layer
        self.plain = is_plain(layer, filters)
        condition, self._values = where(tx, layer, filters)
        self._passing = f"WHERE EXISTS (SELECT 1 FROM {layer} r WHERE r.id = w.id AND {condition} OFFSET 0)"

    def rows(self, terms: Sequence[str], *, passing: bool = False) -> list[NDArray[np.int64]]:
        asked = (passing or self._layer != "turn") and not self.plain
        condition, values = (self._passing, self._values) if asked else ("", [])

        def read(new_terms: Sequence[str]) -> dict[str, NDArray[np.int64]]:
            rows = _rows_with(self._tx, self._layer, new_terms, condition, values, limit=COMMON)
            return dict(zip(new_terms, rows, strict=True))

        rows = self._tx.once(f"{self._layer} rows {condition} {values}", terms, read)
        return [rows[term] for term in terms]

    def newest(self) -> int:
        return self._tx.newest(self._layer)


# `part` are the segments of a space, and the ranges between and after them, whose rows are searched by their keys.
# They are read in descending order, and none after the limit. The subqueries with OFFSET 0 are computed for each part
# of a term, by the primary keys, whatever the planner estimates.
_ROWS = """
    WITH segment AS MATERIALIZED (
        SELECT first, last, buckets FROM term_segment WHERE space = :space AND layer = '{layer}' AND bucket = 0
    ), part AS MATERIALIZED (
        SELECT first, last, buckets FROM segment UNION ALL
        SELECT first, last, NULL FROM (
            SELECT coalesce(lag(last) OVER (ORDER BY first), -1) + 1 AS first, first - 1 AS last
            FROM (SELECT first, last FROM segment UNION ALL SELECT {most}, NULL) bound
        ) gap WHERE first <= last
        ORDER BY first DESC
    ), unmerged AS MATERIALIZED (
        SELECT id, key FROM (
            SELECT t.id, unnest(t.keys) AS key FROM part, LATERAL (
                SELECT id, keys FROM {layer}_terms
                WHERE space = :space AND id BETWEEN part.first AND part.last OFFSET 0
            ) t WHERE buckets IS NULL
        ) posting WHERE key = ANY (?::bigint[])
    )
    SELECT (
        SELECT string_agg(int8send(n.id), '' ORDER BY n.id DESC) FROM (
            SELECT w.id FROM part, LATERAL (
                SELECT id FROM unmerged WHERE buckets IS NULL
                    AND id BETWEEN part.first AND part.last AND key = asked.keys[1 + id / {block}]
                UNION ALL
                SELECT part.first + unnest(s.rows[coalesce(s.ends[s.at - 1], 0) + 1 : s.ends[s.at]]) FROM (
                    SELECT s.rows, s.ends, array_position(s.keys, of_part.key) AS at
                    FROM (SELECT asked.keys[1 + part.first / {block}] AS key) of_part, term_segment s
                    WHERE s.space = :space AND s.layer = '{layer}' AND s.first = part.first
                        AND s.bucket = of_part.key & part.buckets - 1 OFFSET 0
                ) s WHERE buckets IS NOT NULL
            ) w (id) {condition} ORDER BY part.first DESC, w.id DESC {limit}
        ) n
    )
    FROM unnest(string_to_array(?, ' ')::text[]) WITH ORDINALITY term (keys, place),
        LATERAL (SELECT term.keys::bigint[] AS keys OFFSET 0) asked
    ORDER BY term.place
"""


def _rows_with(
    tx: Transaction,
    layer: Layer,
    query_terms: Sequence[str],
    condition: str = "",
    values: Sequence[Value] = (),
    *,
    limit: int | None = None,
) -> list[NDArray[np.int64]]:
    """Return the rows with each of these terms that pass a condition, newest first, at most `limit` for a term."""
    import numpy as np

    last = tx.newest(layer)
    keys = [terms.keys_in_blocks(tx.space, term, last) for term in query_terms]
    sql = _ROWS.format(
        layer=layer,
        most=2**63 - 1,
        block=terms.BLOCK,
        condition=condition,
        limit="" if limit is None else f"LIMIT {limit}",
    )
    packed = tx.column(sql, terms.array_of(chain(*keys)), *values, " ".join(map(terms.array_of, keys)))
    return [np.frombuffer(rows or b"", ">i8").astype(np.int64) for rows in packed]
