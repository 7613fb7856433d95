"""Postings in SQLite: the rows that have a term, from FTS5 over the terms of `text.index_terms`.

Only row numbers are read, half a microsecond each; FTS5's own `bm25()` takes twenty times as long, and ranking needs
more than its sum. The cost of a query is the number of postings it reads, so that is bounded: terms in very many rows
discriminate little and are left out while there are rarer ones. No list of stop words, no language.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING

from mcp_memory.core.text import well_formed
from mcp_memory.store.sql.filters import is_plain, where
from mcp_memory.store.sql.transaction import Transaction, Value
from mcp_memory.store.sqlite.index.outlines import Outlines
from mcp_memory.store.sqlite.index.rowids import ID_MASK, rowid, span
from mcp_memory.store.sqlite.index.terms import quoted, states_rule
from mcp_memory.store.values import Filters, Layer, Posting

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mcp_memory.store.sqlite.transaction import SqliteTransaction

__all__ = ["CommonTerms", "read"]

_COMMON = 1_500  # rows at which a term counts as common; of a common term, only this number of newest rows is read
_TOGETHER = 6_000  # rows of all terms together; the rarest terms come first
_RELATIVES = 3_000
_AT_LEAST = 2  # terms to look for, common ones where there are no others
_MOST = 64
_A_LISTING = 3_000  # rows that pass a filter, up to which they are named one by one
_REMEMBERED = 10_000


class CommonTerms:
    """Terms known to be common, by layer and space.

    Rows are only added, so a common term stays common until rows are forgotten; then the cache is cleared.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[Layer, int], tuple[int, set[str]]] = {}

    def of(self, tx: Transaction, layer: Layer) -> set[str]:
        newest: int = tx.get("SELECT coalesce(max(id), 0) FROM tombstone WHERE space = :space")
        tombstone, known = self._known.get((layer, tx.space), (newest, set[str]()))
        if tombstone != newest:
            known = set[str]()
        self._known[layer, tx.space] = newest, known
        return known


def read(
    tx: SqliteTransaction,
    layer: Layer,
    wanted: Sequence[str],
    *,
    filters: Filters,
    also: Sequence[str] = (),
    common: CommonTerms,
    outlines: Outlines,
) -> list[Posting]:
    """See `Store.postings`. `outlines` are those of the store."""
    if not tx.space:
        return []
    query = _Query(tx, layer, filters, outlines)
    known = common.of(tx, layer)
    found, common_ones = _rare_first(query, wanted, known)
    kept, dropped = _within(found, _TOGETHER, at_least=_AT_LEAST)
    left_out = [*common_ones, *(posting.term for posting in dropped)]
    if query.plain:
        left_out = left_out[: max(0, _AT_LEAST - len(kept))]
    # With a filter, the rows that pass may have only terms that were left out.
    kept += [one for term in left_out if (one := query.newest(term))]
    relatives, _ = _rare_first(query, [term for term in also if term not in wanted], known)
    return kept + _within(relatives, _RELATIVES, at_least=0)[0]


def _rare_first(query: _Query, terms: Sequence[str], common: set[str]) -> tuple[list[Posting], list[str]]:
    """Return the postings of rare terms, rarest first, and the common terms."""
    found: list[Posting] = []
    common_ones: list[str] = []
    for term in [term for term in dict.fromkeys(terms) if "\0" not in term and well_formed(term)][:_MOST]:
        rows = None if term in common else query.rows(term)
        if rows is None or len(rows) == _COMMON:
            if len(common) < _REMEMBERED:
                common.add(term)
            common_ones.append(term)
        elif len(rows):
            found.append(Posting(term=term, rows=rows, documents=len(rows)))
    return sorted(found, key=lambda posting: len(posting.rows)), common_ones


def _within(found: Sequence[Posting], rows: int, *, at_least: int) -> tuple[list[Posting], list[Posting]]:
    """Split postings, rarest first, into those with at most `rows` rows in total, and the others."""
    together = accumulate(len(posting.rows) for posting in found)
    kept = max(at_least, sum(1 for so_far in together if so_far <= rows))
    return list(found[:kept]), list(found[kept:])


class _Query:
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
        if self._layer == "turn":  # of a million turns SQLite would read every one
            outline = self._outlines.of(self._tx, self._filters)
            rows = outline.rows[outline.passes]
            return rows.tolist() if len(rows) <= _A_LISTING else None
        sql = f"SELECT r.id FROM {self._layer} r WHERE {self._condition} LIMIT {_A_LISTING + 1}"
        few: list[int] = self._tx.column(sql, *self._values)
        return few if len(few) <= _A_LISTING else None

    @cached_property
    def _passing(self) -> tuple[str, list[Value]]:
        """The condition of passing rows, and its values: a list of few rows, or the filters for many.

        Most atoms pass. FTS5 would look each listed atom up: 60 ms a term for 1,000 atoms. The plus sign makes it
        check the rows of the term against the list instead: 0.4 ms.
        """
        if self._few is not None:
            column = "rowid" if self._layer == "turn" else "+rowid"
            few = json.dumps([rowid(self._tx.space, id) for id in self._few])
            return f"AND {column} IN (SELECT value FROM json_each(?))", [few]
        rule = f" AND {states_rule(self._tx.space)}" if self._filters.states_rule else ""
        of_row = f"r.id = {self._layer}_terms.rowid & {ID_MASK} AND {self._condition}{rule}"
        return f"AND EXISTS (SELECT 1 FROM {self._layer} r WHERE {of_row})", self._values

    def rows(self, term: str, *, passing: bool = False) -> NDArray[np.int64]:
        """Return the newest rows with the term, newest first; with `passing`, only those that pass the filters.

        Atoms and chunks must always pass; turns that do not are kept as context of their neighbours.
        """
        import numpy as np

        table = f"{self._layer}_terms"
        asked = (passing or self._layer != "turn") and not self.plain
        condition, values = self._passing if asked else ("", [])
        sql = (
            f"SELECT rowid & {ID_MASK} FROM {table} WHERE {table} MATCH ? AND rowid BETWEEN ? AND ? {condition}"
            f" ORDER BY rowid DESC LIMIT {_COMMON}"
        )
        return np.array(self._tx.column(sql, quoted(term), *span(self._tx.space), *values), np.int64)

    def newest(self, term: str) -> Posting | None:
        """Return the newest rows of a common term; the number of its documents is estimated from their density."""
        rows = self.rows(term, passing=True)
        if not len(rows):
            return None
        total, since = self._counts(int(rows[-1])) if self.plain else (0, 1)
        return Posting(term=term, rows=rows, documents=max(_COMMON * total // max(1, since), _COMMON))

    def _counts(self, first: int) -> tuple[int, int]:
        """Return the number of rows of the space, and of those from `first` on."""
        if self._layer == "turn":
            rows = self._outlines.of(self._tx, Filters()).rows
            return len(rows), int((rows >= first).sum())
        sql = f"SELECT count(*), count(*) FILTER (WHERE id >= ?) FROM {self._layer} WHERE space = :space"
        return self._tx.all(sql, first)[0]
