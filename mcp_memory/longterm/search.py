"""One search for turns and atoms: a lexical and a vector leg over the same filters, fused by rank.

Reciprocal rank fusion (Cormack, Clarke and Büttcher, 2009): a row's score is the sum over the legs of
weight / (60 + its rank). Ranks need no calibration between BM25 and cosines of different models, so the
vectors of two models can stand side by side while a change of model is being indexed.
Deterministic: equal scores are ordered by id, newest first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from mcp_memory.store.protocol import Filters, Layer, Scored, Store, Vectors
from mcp_memory.text import query_terms

__all__ = ["Ranked", "Search"]

RRF_K = 60
MAX_QUERY_CHARS = 10_000
_DEPTH = 300  # of each leg, whatever page is asked for: pages of one question must not disagree
_WEIGHTS = {"words": 1.0, "meaning": 0.4}  # of a small static model; `python -m bench.retrieval` judges them


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A hit: its fused score, what found it (`words`, `meaning`), and its cosine where vectors found it."""

    id: str
    score: float
    found_by: list[str]
    cosine: float | None


class Search:
    """Runs the legs of a query side by side; owns the thread that the second leg runs on."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._beside = ThreadPoolExecutor(max_workers=2, thread_name_prefix="search-leg")

    def close(self) -> None:
        self._beside.shutdown()

    def __call__(
        self,
        space: str,
        layer: Layer,
        query: str,
        *,
        embedded: Callable[[], Sequence[Vectors]],
        filters: Filters,
        limit: int,
    ) -> list[Ranked]:
        """Return the best `limit` rows. `embedded` gives the query's vector by each model there is, or none."""
        words = self._beside.submit(
            lambda: self._store.lexical(
                space, layer, query_terms(query[:MAX_QUERY_CHARS]), filters=filters, limit=_DEPTH
            )
        )
        meanings = [self._store.nearest(space, layer, vectors, filters=filters, limit=_DEPTH) for vectors in embedded()]
        return _fused(words.result(), meanings)[:limit]


def _fused(words: Sequence[Scored], meanings: Sequence[Sequence[Scored]]) -> list[Ranked]:
    scores: dict[str, float] = {}
    found_by: dict[str, list[str]] = {}
    cosines: dict[str, float] = {}
    for name, leg in (("words", words), *(("meaning", leg) for leg in meanings)):
        for rank, hit in enumerate(leg, start=1):
            scores[hit.id] = scores.get(hit.id, 0.0) + _WEIGHTS[name] / (RRF_K + rank)
            names = found_by.setdefault(hit.id, [])
            if name not in names:
                names.append(name)
            if name == "meaning":
                cosines[hit.id] = max(hit.score, cosines.get(hit.id, -1.0))
    order = sorted(scores, key=lambda id: (-scores[id], -int(id[1:])))
    return [Ranked(id=id, score=scores[id], found_by=found_by[id], cosine=cosines.get(id)) for id in order]
