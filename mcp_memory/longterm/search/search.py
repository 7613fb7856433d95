"""Finds candidate turns and atoms by words and vectors, and ranks them.

Vectors of two models can be used side by side while a change of model is being indexed. Deterministic: equal scores are
ordered by id, newest first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING

from mcp_memory.core.types import Atom, Turn
from mcp_memory.longterm.search import ranking
from mcp_memory.longterm.search.query import ParsedQuery, parse_query
from mcp_memory.longterm.search.ranking import SIGNALS, WEIGHTS, ScoredRows, Weights
from mcp_memory.longterm.search.time_only import asked_period
from mcp_memory.longterm.turns import small_talk_kind
from mcp_memory.models.embed.bundled import IDENTITY, encoder_alone
from mcp_memory.models.metered import StageContext
from mcp_memory.store.protocol import Store
from mcp_memory.store.turn_metadata import TurnMetadata
from mcp_memory.store.values import Filters, Layer, Vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_UNSAID = ("context_short", "tells", "beside")  # they repeat `context`, or alone are not a reason
_OF_A_TIME = 1_000  # rows of the time that a question asks for: the newest turns, the first of `list_atoms`
_TOLD_LATER, _OF_LATER, _READ = timedelta(days=3), 100, 2_000  # after that time; turns; characters of each
_NEAREST = 100  # rows by each model; a row's meaning is where it stands among them


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A hit: its score, which signals found it and how strongly (0 to 1), and its cosine where vectors found it."""

    id: str
    score: float
    found_by: Mapping[str, float]
    cosine: float | None


def row_texts(store: Store, space: str, ids: Sequence[str]) -> dict[str, str]:
    """Return the texts of turns and atoms by id; forgotten rows are left out."""
    texts = {turn.id: turn.content for turn in store.turns(space, [id for id in ids if id[0] == "t"])}
    return texts | {atom.id: atom.text for atom in store.atoms(space, [id for id in ids if id[0] == "a"])}


def atom_turns(atom: Atom) -> list[str]:
    """Return the ids of the turns that an atom is based on."""
    return [atom.evidence, *(one.turn for one in atom.also)]


class Search:
    """Reads words beside vectors; owns the thread that the words are read on. `weights` judge the ranking."""

    def __init__(self, store: Store, now: Callable[[], datetime], *, weights: Weights = WEIGHTS) -> None:
        self._store = store
        self._now = now
        self.weights = weights
        self._beside = ThreadPoolExecutor(max_workers=2, thread_name_prefix="search-words")
        self._kept: dict[tuple[str, Layer, str, Filters], tuple[ScoredRows, dict[int, float]]] | None = None

    def of_one_question(self) -> Search:
        """Return this search for one question: what it finds in a layer with some filters is found once."""
        other = copy(self)
        other._kept = {}
        return other

    @property
    def is_of_one_question(self) -> bool:
        return self._kept is not None

    def close(self) -> None:
        self._beside.shutdown()

    def __call__(
        self,
        space: str,
        layer: Layer,
        query: str,
        *,
        embed: Callable[[str], Sequence[Vectors]],
        filters: Filters,
        limit: int,
        at: datetime | None = None,
    ) -> list[Ranked]:
        """Return the best `limit` rows. `embed` gives a text's vector by each model there is, or none.

        `at` is when the question was asked, now where none is given: "last week" is the one before it.
        """
        question = parse_query(query, at or self._now())
        found, cosines = self.found(space, layer, question, embed=embed, filters=filters)
        return _ranked(layer, found, cosines, self.weights, limit)

    def by(
        self,
        signals: Collection[str],
        space: str,
        query: str,
        *,
        embed: Callable[[str], Sequence[Vectors]],
        limit: int,
    ) -> list[str]:
        """Return the ids of the turns that some signals alone rank first: what the ranking is measured against."""
        some = Weights(
            *(
                w if name.removesuffix("_short") in signals else 0.0
                for name, w in zip(SIGNALS, self.weights, strict=True)
            )
        )
        found, _ = self.found(space, "turn", parse_query(query, self._now()), embed=embed, filters=Filters())
        return [hit.id for hit in _ranked("turn", found, {}, some, limit)]

    def found(
        self,
        space: str,
        layer: Layer,
        question: ParsedQuery,
        *,
        embed: Callable[[str], Sequence[Vectors]],
        filters: Filters,
    ) -> tuple[ScoredRows, dict[int, float]]:
        """Return the candidates with their signals, and the cosines of those that are near."""
        if self._kept is None:
            return self._found(space, layer, question, embed, filters)
        asked = space, layer, question.text, filters
        if asked not in self._kept:
            self._kept[asked] = self._found(space, layer, question, embed, filters)
        return self._kept[asked]

    def _found(
        self, space: str, layer: Layer, question: ParsedQuery, embed: Callable[[str], Sequence[Vectors]],
        filters: Filters,
    ) -> tuple[ScoredRows, dict[int, float]]:  # fmt: skip
        if question.time_only:
            return self._said_then(space, layer, question, filters), {}
        relatives = [term for group in question.related for term in group]
        asked = embed(question.text) if layer == "atom" else ()  # first: it waits while the background makes statements
        reading = self._beside.submit(
            lambda: self._store.postings(space, layer, question.words, filters=filters, also=relatives)
        )
        totals = self._store.totals(space, layer)
        near: list[tuple[NDArray[np.int64], NDArray[np.float64]]] = []
        cosines: dict[int, float] = {}
        asked = asked or embed(ranking.without_names(question.text, totals.names))
        for vectors in asked:
            rows, scores = self._nearest(space, layer, vectors, filters)
            near.append((rows, scores))
            for row, score in zip(rows.tolist(), scores.tolist(), strict=True):
                cosines[row] = max(score, cosines.get(row, -1.0))
        if layer != "turn":
            return ranking.of_atoms(question, reading.result(), near, total=totals.rows), cosines

        def read(rows: NDArray[np.int64], *, reach: int = 0) -> TurnMetadata:
            return self._store.turn_metadata(space, rows, filters=filters, reach=reach)

        def by_encoder() -> list[tuple[NDArray[np.int64], NDArray[np.float64]]]:
            bundled = (one for one in asked if one.identity == IDENTITY)
            halves = (Vectors(identity=IDENTITY, data=encoder_alone(one.data)) for one in bundled)
            return [self._nearest(space, layer, half, filters) for half in halves]

        found = ranking.of_turns(question, reading.result(), near, read, totals=totals, by_encoder=by_encoder)
        return found, cosines

    def _said_then(self, space: str, layer: Layer, question: ParsedQuery, filters: Filters) -> ScoredRows:
        """Return the rows of the time that a question asks for, which has no other word; small talk is left out."""
        import numpy as np

        begin, end = asked_period(question.times)
        since, until = max(filter(None, (begin, filters.since))), min(filter(None, (end, filters.until)))
        passing = replace(filters, since=since, until=until)
        if layer != "turn":
            atoms = self._store.list_atoms(space, filters=passing, limit=_OF_A_TIME)
            rows = np.array([int(atom.id[1:]) for atom in atoms], np.int64)
            return ranking.ScoredRows(
                rows=rows, signals=np.tile([float(name == "time") for name in SIGNALS], (len(rows), 1))
            )
        turns = self._store.list_turns(space, filters=passing, limit=_OF_A_TIME)
        turns += self._told_later(space, filters, begin, end)
        rows = np.array(sorted(int(turn.id[1:]) for turn in turns if small_talk_kind(turn.content) is None), np.int64)
        said = self._store.turn_metadata(space, rows, filters=filters)
        return ranking.by_time(question, said, totals=self._store.totals(space, "turn"))

    def _told_later(self, space: str, filters: Filters, begin: datetime, end: datetime) -> list[Turn]:
        """Return what the user said within days after a time and that names it: "yesterday I was in Rome"."""
        from mcp_memory.language.when.intervals import spans_in

        since, until = max(filter(None, (end, filters.since))), min(filter(None, (end + _TOLD_LATER, filters.until)))
        if filters.role not in (None, "user"):
            return []
        later = replace(filters, role="user", since=since, until=until)
        return [
            turn
            for turn in self._store.list_turns(space, filters=later, limit=_OF_LATER)
            if any(begin <= span.start and span.end <= end for span in spans_in(turn.content[:_READ], turn.said_at))
        ]

    def _nearest(
        self, space: str, layer: Layer, vectors: Vectors, filters: Filters
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        import numpy as np

        hits = self._store.nearest(space, layer, vectors, filters=filters, limit=_NEAREST)
        return np.array([int(hit.id[1:]) for hit in hits], np.int64), np.array([hit.score for hit in hits], np.float64)


def _ranked(
    layer: Layer, found: ScoredRows, cosines: Mapping[int, float], weights: Weights, limit: int
) -> list[Ranked]:
    import numpy as np

    scores = np.round(found.signals @ np.array(weights) / sum(weights), 9)
    order = np.lexsort((-found.rows, -scores))
    order = order[scores[order] > 0][:limit]
    return [
        Ranked(
            id=f"{layer[0]}{row}",
            score=score,
            found_by={
                name: round(value, 3)
                for name, value in zip(SIGNALS, signals, strict=True)
                if value > 0 and name not in _UNSAID
            },
            cosine=cosines.get(row),
        )
        for row, score, signals in zip(
            found.rows[order].tolist(), scores[order].tolist(), found.signals[order].tolist(), strict=True
        )
    ]


@dataclass(frozen=True, kw_only=True)
class SearchContext(StageContext[Store]):
    """What the long-term side works with, for one space at one moment."""

    search: Search
    of_query: Callable[[str], Sequence[Vectors]]
    """Vectors of a text to search by."""
    of_rows: Callable[[Sequence[str]], Vectors | None]
    """Vectors to store with new rows, one each; None where the background makes them."""

    def hits(self, layer: Layer, text: str, *, filters: Filters, limit: int) -> list[Ranked]:
        """Return the best `limit` rows of a layer for a text, best first."""
        return self.search(self.space, layer, text, embed=self.of_query, filters=filters, limit=limit, at=self.now)

    def of_one_question(self) -> SearchContext:
        """Return this context for one question, in which each text is embedded and each search made once."""
        if self.search.is_of_one_question:
            return self
        return replace(self, search=self.search.of_one_question(), of_query=cache(self.of_query))
