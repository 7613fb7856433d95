"""Finds the rows that have a term, by the keys of the term in the GIN index; see `terms`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mcp_memory.store.postgres.connection import forbid_scans
from mcp_memory.store.postgres.terms import array_of, keys_in_blocks
from mcp_memory.store.sql import postings
from mcp_memory.store.sql.filters import is_plain, where
from mcp_memory.store.sql.postings import COMMON, CommonTerms
from mcp_memory.store.sql.transaction import Value
from mcp_memory.store.values import Filters, Layer, Posting

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mcp_memory.store.postgres.transaction import PostgresTransaction


def read(
    tx: PostgresTransaction,
    layer: Layer,
    query_terms: Sequence[str],
    *,
    filters: Filters,
    also: Sequence[str] = (),
    common: CommonTerms,
) -> list[Posting]:
    """See `Store.postings`. `common` has the common terms that the store knows."""
    if not tx.space:
        return []
    forbid_scans(tx)
    return postings.read(_GinRows(tx, layer, filters), query_terms, also=also, common=common.of(tx, layer))


class _GinRows:
    def __init__(self, tx: PostgresTransaction, layer: Layer, filters: Filters) -> None:
        self._tx = tx
        self._layer: Layer = layer
        self.plain = is_plain(layer, filters)
        condition, self._values = where(tx, layer, filters)
        self._passing = f"AND EXISTS (SELECT 1 FROM {layer} r WHERE r.id = w.id AND {condition})"

    def rows(self, terms: Sequence[str], *, passing: bool = False) -> list[NDArray[np.int64]]:
        asked = (passing or self._layer != "turn") and not self.plain
        condition, values = (self._passing, self._values) if asked else ("", [])

        def read(new_terms: Sequence[str]) -> dict[str, NDArray[np.int64]]:
            return dict(zip(new_terms, self._read(new_terms, condition, values), strict=True))

        rows = self._tx.once(f"{self._layer} rows {condition} {values}", terms, read)
        return [rows[term] for term in terms]

    def _read(self, terms: Sequence[str], condition: str, values: Sequence[Value]) -> list[NDArray[np.int64]]:
        import numpy as np

        last = self.newest()
        # Blocks are read in the order of their keys, and none after COMMON rows.
        packed = self._tx.column(
            f"SELECT (SELECT string_agg(int8send(n.id), '' ORDER BY n.id DESC) FROM (SELECT w.id"
            f" FROM unnest(asked.keys::bigint[]) block (key), LATERAL (SELECT w.id FROM {self._layer}_rows_with("
            f"ARRAY[block.key]) w (id) WHERE true {condition} ORDER BY w.id DESC) w LIMIT {COMMON}) n)"
            " FROM unnest(string_to_array(?, ' ')) WITH ORDINALITY asked (keys, place) ORDER BY asked.place",
            *values,
            " ".join(array_of(keys_in_blocks(self._tx.space, term, last)) for term in terms),
        )
        return [np.frombuffer(rows or b"", ">i8").astype(np.int64) for rows in packed]

    def newest(self) -> int:
        return self._tx.newest(self._layer)
