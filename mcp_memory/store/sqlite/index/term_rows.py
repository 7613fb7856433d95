"""The rows that have a term, from FTS5 over the terms of `words.index_terms`.

Only row numbers are read, half a microsecond each; FTS5's own `bm25()` takes twenty times as long, and ranking needs
more than its sum.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from mcp_memory.store.sql import postings
from mcp_memory.store.sql.filters import is_plain, where
from mcp_memory.store.sql.postings import COMMON, CommonTerms
from mcp_memory.store.sql.transaction import Value
from mcp_memory.store.sqlite.index.outlines import Outlines, passing_rows
from mcp_memory.store.sqlite.index.rowids import ID_MASK, rowid, span
from mcp_memory.store.sqlite.index.terms import new_rows, quote_term
from mcp_memory.store.values import Filters, Layer, Posting

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mcp_memory.store.sqlite.transaction import SqliteTransaction


_LISTING = 3_000  # up to this many rows that pass a filter are listed by id


def read(
    tx: SqliteTransaction,
    layer: Layer,
    query_terms: Sequence[str],
    *,
    filters: Filters,
    also: Sequence[str] = (),
    absent: bool = False,
    common: CommonTerms,
    outlines: Outlines,
) -> list[Posting]:
    """See `Store.postings`. `common` and `outlines` are the caches of the store."""
    if not tx.space:
        return []
    rows = _FtsRows(tx, layer, filters, outlines)
    return postings.read(rows, query_terms, also=also, absent=absent, common=common.of(tx, layer))


class _FtsRows:
    def __init__(self, tx: SqliteTransaction, layer: Layer, filters: Filters, outlines: Outlines) -> None:
        self._tx = tx
        self._layer: Layer = layer
        self._filters = filters
        self._outlines = outlines
        self.plain = is_plain(layer, filters)
        self._condition, self._values = where(tx, layer, filters)

    @cached_property
    def _few(self) -> list[int] | None:
        """The rows that pass, if they are few; otherwise None."""
        if self._layer != "chunk":
            rows = passing_rows(self._tx, self._layer, self._filters, self._outlines)
            return rows.tolist() if len(rows) <= _LISTING else None
        sql = f"SELECT r.id FROM {self._layer} r WHERE {self._condition} LIMIT {_LISTING + 1}"
        few: list[int] = self._tx.column(sql, *self._values)
        return few if len(few) <= _LISTING else None

    @cached_property
    def _passing(self) -> tuple[str, list[Value]]:
        """The condition of passing rows, and its values: a list of few rows, or the filters for many.

        Usually most atoms pass, and FTS5 would look up each listed atom, in 60 ms a term for 1,000 atoms. The plus sign
        makes it check the rows of the term against the list instead, in 0.4 ms.
        """
        if self._few is not None:
            column = "rowid" if self._layer == "turn" else "+rowid"
            few = json.dumps([rowid(self._tx.space, id) for id in self._few])
            return f"AND {column} IN (SELECT value FROM json_each(?))", [few]
        of_row = f"r.id = {self._layer}_terms.rowid & {ID_MASK} AND {self._condition}"
        return f"AND EXISTS (SELECT 1 FROM {self._layer} r WHERE {of_row})", self._values

    def rows(self, terms: Sequence[str], *, passing: bool = False) -> list[NDArray[np.int64]]:
        import numpy as np

        table = f"{self._layer}_terms"
        asked = (passing or self._layer != "turn") and not self.plain
        condition, values = self._passing if asked else ("", [])
        sql = (
            f"SELECT rowid & {ID_MASK} FROM {table} WHERE {table} MATCH ? AND rowid BETWEEN ? AND ? {condition}"
            f" ORDER BY rowid DESC LIMIT {COMMON}"
        )
        within = *span(self._tx.space), *values

        def read(new_terms: Sequence[str]) -> dict[str, NDArray[np.int64]]:
            return {term: np.array(self._tx.column(sql, quote_term(term), *within), np.int64) for term in new_terms}

        rows = self._tx.once(f"{self._layer} rows {condition} {values}", terms, read)
        new = self._new_rows(only_passing=asked)
        return [self._with_new(rows[term], [row for row in new if term in new[row]]) for term in terms]

    def _new_rows(self, *, only_passing: bool) -> dict[int, set[str]]:
        """Return the terms of the turns that are not indexed yet."""
        if self._layer != "turn":
            return {}

        def read(_: object) -> dict[str, dict[int, set[str]]]:
            return {"all": new_rows(self._tx.con, "turn", self._tx.space)}

        new = self._tx.once("new turns", ["all"], read)["all"]
        if new and only_passing:
            sql = f"SELECT r.id FROM turn r WHERE r.id IN (SELECT value FROM json_each(?)) AND {self._condition}"
            passing = set(self._tx.column(sql, json.dumps([*new]), *self._values))
            new = {row: own for row, own in new.items() if row in passing}
        return new

    def _with_new(self, rows: NDArray[np.int64], new: Sequence[int]) -> NDArray[np.int64]:
        """Return rows, newest first, together with new ones, at most COMMON."""
        import numpy as np

        return np.sort(np.concatenate([rows, np.array(new, np.int64)]))[::-1][:COMMON] if new else rows

    def newest(self) -> int:
        return self._tx.newest(self._layer)
