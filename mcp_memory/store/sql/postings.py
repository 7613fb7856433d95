"""Postings of a question: which of its terms are read, and how many of their rows.

The cost of a query is the number of postings it reads, so that is bounded: terms in very many rows discriminate little
and are left out while there are rarer ones. No list of stop words, no language.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Protocol

from mcp_memory.core.text import well_formed
from mcp_memory.store.sql.transaction import Transaction
from mcp_memory.store.values import Layer, Posting

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["COMMON", "CommonTerms", "TermRows", "read"]

COMMON = 1_500
"""Rows at which a term counts as common; of a common term, only this number of newest rows is read."""

_TOGETHER = 6_000  # rows of all terms together; the rarest terms come first
_RELATIVES = 3_000
_AT_LEAST = 2  # terms to look for, common ones where there are no others
_MOST = 64
_REMEMBERED = 10_000


class TermRows(Protocol):
    """The rows of a layer that have a term, as the word index of an engine finds them under the filters of a search."""

    @property
    def plain(self) -> bool:
        """Whether all rows of the layer pass."""
        ...

    def rows(self, term: str, *, passing: bool = False) -> NDArray[np.int64]:
        """Return the newest rows with the term, newest first, COMMON at most; with `passing`, only those that pass.

        Atoms and chunks must always pass; turns that do not are kept as context of their neighbours.
        """
        ...

    def counts(self, first: int) -> tuple[int, int]:
        """Return the number of rows of the space, and of those from `first` on."""
        ...


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


def read(index: TermRows, wanted: Sequence[str], *, also: Sequence[str] = (), common: set[str]) -> list[Posting]:
    """See `Store.postings`. `common` are the terms known to be common; others that are found to be are added."""
    found, common_ones = _rare_first(index, wanted, common)
    kept, dropped = _within(found, _TOGETHER, at_least=_AT_LEAST)
    left_out = [*common_ones, *(posting.term for posting in dropped)]
    if index.plain:
        left_out = left_out[: max(0, _AT_LEAST - len(kept))]
    # With a filter, the rows that pass may have only terms that were left out.
    kept += [one for term in left_out if (one := _newest(index, term))]
    relatives, _ = _rare_first(index, [term for term in also if term not in wanted], common)
    return kept + _within(relatives, _RELATIVES, at_least=0)[0]


def _rare_first(index: TermRows, terms: Sequence[str], common: set[str]) -> tuple[list[Posting], list[str]]:
    """Return the postings of rare terms, rarest first, and the common terms."""
    found: list[Posting] = []
    common_ones: list[str] = []
    for term in [term for term in dict.fromkeys(terms) if "\0" not in term and well_formed(term)][:_MOST]:
        rows = None if term in common else index.rows(term)
        if rows is None or len(rows) == COMMON:
            if len(common) < _REMEMBERED:
                common.add(term)
            common_ones.append(term)
        elif len(rows):
            found.append(Posting(term=term, rows=rows, documents=len(rows)))
    return sorted(found, key=lambda posting: len(posting.rows)), common_ones


def _newest(index: TermRows, term: str) -> Posting | None:
    """Return the newest rows of a common term that pass; its documents are estimated from the density of these rows."""
    rows = index.rows(term, passing=True)
    if not len(rows):
        return None
    total, since = index.counts(int(rows[-1])) if index.plain else (0, 1)
    return Posting(term=term, rows=rows, documents=max(COMMON * total // max(1, since), COMMON))


def _within(found: Sequence[Posting], rows: int, *, at_least: int) -> tuple[list[Posting], list[Posting]]:
    """Split postings, rarest first, into those with at most `rows` rows in total, and the others."""
    together = accumulate(len(posting.rows) for posting in found)
    kept = max(at_least, sum(1 for so_far in together if so_far <= rows))
    return list(found[:kept]), list(found[kept:])
