"""The number of rows of each layer, counted once for each state of a space, because counting reads all its rows."""

from __future__ import annotations

from mcp_memory.core.lru import LRU
from mcp_memory.store.sql.transaction import Transaction
from mcp_memory.store.values import Layer, Totals

_MOST = 1_000  # counts


class RowCounts:
    """The cache of counts, one per store; safe to use from several threads."""

    def __init__(self) -> None:
        self._known = LRU[tuple[Layer, int], tuple[tuple[int, int], Totals]](_MOST)

    def totals(self, tx: Transaction, layer: Layer) -> Totals:
        state = tx.last_change(), tx.newest(layer)
        cached = self._known.get((layer, tx.space))
        if cached is None or cached[0] != state:
            counted = tx.get(f"SELECT count(*) FROM {layer} WHERE space = :space")
            cached = self._known.put((layer, tx.space), (state, Totals(rows=counted, newest=state[1])))
        return cached[1]
