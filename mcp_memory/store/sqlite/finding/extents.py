"""How many rows a space has in each layer, and which is its newest: what rarity is measured by.

Of one space alone: a total over all spaces would let what one holds move the scores of another.
"""

from __future__ import annotations

from dataclasses import dataclass

import apsw

from mcp_memory.store.protocol import Filters, Layer
from mcp_memory.store.sql.rows import space_id
from mcp_memory.store.sqlite.finding.outlines import Outlines

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
        self._known: dict[tuple[Layer, str], tuple[tuple[int, int], Extent]] = {}

    def of(self, con: apsw.Connection, space: str, layer: Layer) -> Extent:
        if layer == "turn":
            rows = self._outlines.of(con, space, Filters()).rows
            return Extent(len(rows), int(rows.max(initial=0)))
        state: tuple[int, int] = (
            con.execute("SELECT coalesce(max(seq), 0) FROM change").get,
            con.execute(f"SELECT coalesce(max(id), 0) FROM {layer}").get,
        )
        known = self._known.get((layer, space))
        if known is None or known[0] != state:
            counted = con.execute(
                f"SELECT count(*), coalesce(max(id), 0) FROM {layer} WHERE space = ?", (space_id(con, space),)
            ).fetchone()
            known = self._known[layer, space] = state, Extent(*map(int, counted or (0, 0)))
        return known[1]
