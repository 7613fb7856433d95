"""Postings in SQLite: the rows that hold a term, from FTS5 over the terms of `text.index_terms`.

Only which rows hold a term is read, half a microsecond a row; FTS5's own `bm25()` takes twenty times that, and
ranking needs more than its sum. What a query costs is how many postings it reads, so that is bounded: terms in
very many rows tell little and are left out while there are rarer ones. No list of stop words, no language.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import apsw

from mcp_memory.core.text import well_formed
from mcp_memory.store.protocol import Filters, Layer, Posting
from mcp_memory.store.sql.filters import is_plain, where
from mcp_memory.store.sql.rows import space_id
from mcp_memory.store.sqlite.finding.outlines import Outlines

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["CommonTerms", "read"]

_COMMON = 1_500  # rows at which a term is called common; of a common one, so many of the newest are read
_TOGETHER = 6_000  # rows of all terms together; the rarest terms come first
_RELATIVES = 3_000
_AT_LEAST = 2  # terms to look for, common ones where there are no others
_MOST = 64
_A_LISTING = 3_000  # rows that pass a filter, up to which they are named one by one
_REMEMBERED = 10_000


class CommonTerms:
    """Terms known to be common, by layer and space.

    Rows only come, so what is common stays so until something is forgotten: then all is asked again.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[Layer, int], tuple[int, set[str]]] = {}

    def of(self, con: apsw.Connection, layer: Layer, space: int) -> set[str]:
        newest: int = con.execute("SELECT coalesce(max(id), 0) FROM tombstone").get
        tombstone, known = self._known.get((layer, space), (newest, set[str]()))
        if tombstone != newest:
            known = set[str]()
        self._known[layer, space] = newest, known
        return known


def read(
    con: apsw.Connection,
    layer: Layer,
    space: str,
    wanted: Sequence[str],
    also: Sequence[str],
    *,
    filters: Filters,
    common: CommonTerms,
    outlines: Outlines,
) -> list[Posting]:
    """See `Store.postings`. `outlines` are those of the store."""
    number = space_id(con, space)
    if number is None:
        return []
    query = _Query(con, layer, space, number, filters, outlines)
    known = common.of(con, layer, number)
    found, common_ones = _rare_first(query, wanted, known)
    kept, dropped = _within(found, _TOGETHER, at_least=_AT_LEAST)
    left_out = [*common_ones, *(posting.term for posting in dropped)]
    if query.plain:
        left_out = left_out[: max(0, _AT_LEAST - len(kept))]
    # Where rows are filtered, those that pass may hold nothing but what was left out.
    kept += [one for term in left_out if (one := query.newest(term))]
    relatives, _ = _rare_first(query, [term for term in also if term not in wanted], known)
    return kept + _within(relatives, _RELATIVES, at_least=0)[0]


def _rare_first(query: _Query, terms: Sequence[str], common: set[str]) -> tuple[list[Posting], list[str]]:
    """Return the postings of terms that are not common, rarest first, and the terms that are."""
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
    """Part postings, rarest first, into those that together have so many rows, and the others."""
    together = accumulate(len(posting.rows) for posting in found)
    kept = max(at_least, sum(1 for so_far in together if so_far <= rows))
    return list(found[:kept]), list(found[kept:])


class _Query:
    def __init__(
        self, con: apsw.Connection, layer: Layer, name: str, space: int, filters: Filters, outlines: Outlines
    ) -> None:
        several = con.execute("SELECT count(*) FROM space").get > 1
        self._con = con
        self._layer: Layer = layer
        self._name = name
        self._id = space
        self._filters = filters
        self._outlines = outlines
        self._space = f"space : s{space} AND " if several else ""
        self.plain = is_plain(layer, filters)
        self._condition, self._values = where(layer, space, filters)

    @cached_property
    def _few(self) -> list[int] | None:
        """The rows that pass, if they are few."""
        if self._layer == "turn":  # of a million turns SQLite would read every one
            outline = self._outlines.of(self._con, self._name, self._filters)
            rows = outline.rows[outline.passes]
            return rows.tolist() if len(rows) <= _A_LISTING else None
        few: Any = self._con.execute(
            f"SELECT r.id FROM {self._layer} r WHERE {self._condition} LIMIT {_A_LISTING + 1}", self._values
        ).fetchall()
        return [id for (id,) in few] if len(few) <= _A_LISTING else None

    @cached_property
    def _passing(self) -> tuple[str, tuple[int | str, ...]]:
        """The condition that a row passes, and its values. Few rows are named and sought; of many, each met is asked.

        Atoms that pass are as many as there are, mostly: sought one by one in FTS5, 1,000 take 60 ms a term. With the
        plus they are looked up as the term's rows are met, and take 0.4.
        """
        if self._few is not None:
            rowid = "rowid" if self._layer == "turn" else "+rowid"
            return f"AND {rowid} IN (SELECT value FROM json_each(?))", (json.dumps(self._few),)
        exists = f"SELECT 1 FROM {self._layer} r WHERE r.id = {self._layer}_terms.rowid AND {self._condition}"
        return f"AND EXISTS ({exists})", tuple(self._values)

    def rows(self, term: str, *, passing: bool = False) -> NDArray[np.int64]:
        """Return the newest rows with the term, newest first; with `passing`, of those that pass the filters.

        Atoms and chunks always have to pass: nothing is said around them.
        """
        import numpy as np

        table = f"{self._layer}_terms"
        match = f"{self._space}terms : " + '"' + term.replace('"', '""') + '"'
        condition, values = self._passing if (passing or self._layer != "turn") and not self.plain else ("", ())
        found: Any = self._con.execute(
            f"SELECT rowid FROM {table} WHERE {table} MATCH ? {condition} ORDER BY rowid DESC LIMIT {_COMMON}",
            (match, *values),
        ).fetchall()
        return np.array(found, np.int64).reshape(-1)

    def newest(self, term: str) -> Posting | None:
        """Return the newest rows of a common term; in how many it stands is guessed from how dense they are."""
        rows = self.rows(term, passing=True)
        if not len(rows):
            return None
        total, since = self._counts(int(rows[-1])) if self.plain else (0, 1)
        return Posting(term=term, rows=rows, documents=max(_COMMON * total // max(1, since), _COMMON))

    def _counts(self, first: int) -> tuple[int, int]:
        """Return how many rows the space has, and how many of them from `first` on."""
        if self._layer == "turn":
            rows = self._outlines.of(self._con, self._name, Filters()).rows
            return len(rows), int((rows >= first).sum())
        counted: Any = self._con.execute(
            f"SELECT count(*), count(*) FILTER (WHERE id >= ?) FROM {self._layer} WHERE space = ?", (first, self._id)
        ).fetchone()
        return counted
