"""The postings of a query: chooses the terms whose rows are read, and how many rows.

The cost of a query is the number of postings that it reads, so that number is limited: a term that very many rows have
discriminates little, and is left out if there are rarer terms. No list of stop words is needed, so this works in any
language.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Protocol

from mcp_memory.core.lru import LRU
from mcp_memory.core.text import well_formed
from mcp_memory.store.sql.transaction import Transaction
from mcp_memory.store.values import Layer, Posting

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


COMMON = 1_500
"""Number of rows from which a term is common; for a common term, only that many of its newest rows are read."""

_TOGETHER = 6_000  # rows of all terms together; the rarest terms come first
_RELATIVES = 3_000
_AT_LEAST = 2  # terms to search for, even if they are common
_MOST = 64
_REMEMBERED = 10_000
_MOST_SPACES = 1_000


class TermRows(Protocol):
    """The word index of a layer, under the filters of a search. Each engine implements it."""

    @property
    def plain(self) -> bool:
        """Whether all rows of the layer pass the filters."""
        ...

    def rows(self, terms: Sequence[str], *, passing: bool = False) -> list[NDArray[np.int64]]:
        """Return for each term the newest rows with it, newest first, at most COMMON.

        Atoms and chunks that do not pass the filters are left out. Turns are left out only with `passing`, because
        turns that do not pass may be the context of their neighbours.
        """
        ...

    def newest(self) -> int:
        """Return the number of the newest row of the space."""
        ...


class CommonTerms:
    """A cache of the terms that are known to be common, by layer and space.

    A common term stays common while rows are only added. When rows are forgotten, the cache of the space is cleared.
    """

    def __init__(self) -> None:
        self._known = LRU[tuple[Layer, int], tuple[int, set[str]]](_MOST_SPACES)

    def of(self, tx: Transaction, layer: Layer) -> set[str]:
        newest = tx.newest("tombstone")
        cached = self._known.get((layer, tx.space))
        if cached is None or cached[0] != newest:
            cached = self._known.put((layer, tx.space), (newest, set[str]()))
        return cached[1]


def read(
    index: TermRows, terms: Sequence[str], *, also: Sequence[str] = (), absent: bool = False, common: set[str]
) -> list[Posting]:
    """See `Store.postings`. `common` has the terms known to be common; newly found common terms are added."""
    also = _searchable([term for term in also if term not in terms])
    terms = _searchable(terms)
    rare = _rows_of_rare_terms(index, [*terms, *also], common)
    kept, dropped = _split_by_rows(_rarest_first(rare, terms), _TOGETHER, at_least=_AT_LEAST)
    left_out = [*(term for term in terms if term not in rare), *(posting.term for posting in dropped)]
    if index.plain:
        left_out = left_out[: max(0, _AT_LEAST - len(kept))]
    # With a filter, passing rows may contain only the terms that were left out.
    kept += _newest_rows(index, left_out)
    kept += _split_by_rows(_rarest_first(rare, also), _RELATIVES, at_least=0)[0]
    if absent:
        kept += [
            Posting(term=term, rows=rare[term], documents=0) for term in terms if term in rare and not len(rare[term])
        ]
    return kept


def _searchable(terms: Sequence[str]) -> list[str]:
    return [term for term in dict.fromkeys(terms) if "\0" not in term and well_formed(term)][:_MOST]


def _rows_of_rare_terms(index: TermRows, terms: Sequence[str], common: set[str]) -> dict[str, NDArray[np.int64]]:
    """Return the rows of each term that is not common, and add newly found common terms to `common`."""
    unknown = [term for term in terms if term not in common]
    rare: dict[str, NDArray[np.int64]] = {}
    for term, rows in zip(unknown, index.rows(unknown) if unknown else (), strict=True):
        if len(rows) < COMMON:
            rare[term] = rows
        elif len(common) < _REMEMBERED:
            common.add(term)
    return rare


def _rarest_first(rare: Mapping[str, NDArray[np.int64]], terms: Sequence[str]) -> list[Posting]:
    """Return the postings of the terms with at least one row, rarest first."""
    rows_by_term = ((term, rare[term]) for term in terms if term in rare)
    postings = [Posting(term=term, rows=rows, documents=len(rows)) for term, rows in rows_by_term if len(rows)]
    return sorted(postings, key=lambda posting: len(posting.rows))


def _newest_rows(index: TermRows, terms: Sequence[str]) -> Iterator[Posting]:
    """Yield postings of common terms, with their newest rows that pass the filters.

    The number of all rows with a term is estimated from the density of these rows between the oldest of them and the
    newest row of the space.
    """
    newest = index.newest() if terms and index.plain else 0
    for term, rows in zip(terms, index.rows(terms, passing=True) if terms else (), strict=True):
        if len(rows):
            since = newest - int(rows[-1]) + 1
            estimated = COMMON * newest // max(1, since)
            yield Posting(term=term, rows=rows, documents=max(estimated, COMMON, len(rows) + 1))


def _split_by_rows(postings: Sequence[Posting], rows: int, *, at_least: int) -> tuple[list[Posting], list[Posting]]:
    """Split postings, rarest first, into a first part with at most `rows` rows in total, and the remaining postings.

    The first part has at least `at_least` postings, even if they have more rows.
    """
    together = accumulate(len(posting.rows) for posting in postings)
    kept = max(at_least, sum(1 for so_far in together if so_far <= rows))
    return list(postings[:kept]), list(postings[kept:])
