"""How many rows a space has in each layer, and which is its newest: what rarity is measured by.

Of one space alone: a total over all spaces would let what one holds move the scores of another.
"""

from __future__ import annotations

from dataclasses import dataclass

from mcp_memory.store.sql.transaction import Transaction
from mcp_memory.store.sqlite.finding.outlines import Outlines
from mcp_memory.store.values import Filters, Layer

__all__ = ["Extent", "Extents"]


@dataclass(frozen=True, slots=True)
class Extent:
    rows: int
    newest: int
    """The number of the newest row; 0 where there is none."""


class Extents:
    """One for a store; counts are kept until something changes, for counting reads every row of the space."""

    def __init__(self, outlines: Outlines) -> None:
        self._outlines = outlines
        self._known: dict[tuple[Layer, int], tuple[tuple[int, int], Extent]] = {}

    def of(self, tx: Transaction, layer: Layer) -> Extent:
        if layer == "turn":
            rows = self._outlines.of(tx, Filters()).rows
            return Extent(len(rows), int(rows.max(initial=0)))
        newest = f"SELECT coalesce(max(id), 0) FROM {layer} WHERE space = :space"
        state = tx.get("SELECT coalesce(max(seq), 0) FROM change"), tx.get(newest)
        known = self._known.get((layer, tx.space))
        if known is None or known[0] != state:
            counted = tx.get(f"SELECT count(*) FROM {layer} WHERE space = :space")
            known = self._known[layer, tx.space] = state, Extent(counted, state[1])
        return known[1]
