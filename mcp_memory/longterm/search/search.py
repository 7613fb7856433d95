"""Finds candidate turns and atoms by words and vectors, and ranks them.

Vectors of two models can be used side by side while a change of model is being indexed. Rows with equal scores are
ordered by id, newest first, so that the order is deterministic.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING

from mcp_memory.core.types import Atom
from mcp_memory.longterm.search import ranking
from mcp_memory.longterm.search.feedback import NO_OPINIONS, opinions
from mcp_memory.longterm.search.literals import VERBATIM, share_in
from mcp_memory.longterm.search.query import ParsedQuery, asked_period, parse_query
from mcp_memory.longterm.search.ranking import SIGNALS, WEIGHTS, ScoredRows, Weights, rows_with_all
from mcp_memory.longterm.turns import small_talk_kind
from mcp_memory.models.embed.bundled import IDENTITY, encoder_alone
from mcp_memory.models.metered import StageContext
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import atom_rows, turn_rows
from mcp_memory.store.turn_metadata import TurnMetadata
from mcp_memory.store.values import Filters, Layer, Posting, Vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_UNNAMED = ("context_short", "tells", "beside")
"""Signals not named as reasons: they repeat `context`, or do not suffice alone."""
_IN_PERIOD = 1_000  # rows of a period: the newest turns, the first of `list_atoms`
_LATER, _LATER_TURNS, _READ = timedelta(days=3), 100, 2_000  # time after a period, turns in it, characters of each
_READ_VERBATIM = 300  # rows with the terms of a literal
_NEAREST = 100  # rows by each model; a row's meaning is scaled among them


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A hit: its score, the signals that found it with their values (0 to 1), and its cosine if vectors found it.

    `opinion` is how far people found it helpful, or wrong if negative (`feedback.opinions`); `score` includes it.
    """

    id: str
    score: float
    found_by: Mapping[str, float]
    cosine: float | None
    opinion: float = 0.0
    by_signals: float | None = None
    """Its score without the opinion; None if there is no opinion."""

    @property
    def verbatim(self) -> float:
        """The share of the query's literals that the row contains."""
        return self.found_by.get(VERBATIM, 0.0)


def row_texts(store: Store, space: str, ids: Sequence[str]) -> dict[str, str]:
    """Return the texts of turns and atoms by id; forgotten rows are left out."""
    texts = {turn.id: turn.content for turn in store.read(space, turn_rows.by_ids, [id for id in ids if id[0] == "t"])}
    return texts | {
        atom.id: atom.text for atom in store.read(space, atom_rows.by_ids, [id for id in ids if id[0] == "a"])
    }


def atom_turns(atom: Atom) -> list[str]:
    """Return the ids of the turns that an atom is based on."""
    return [atom.evidence, *(evidence.turn for evidence in atom.also)]


class Search:
    """Finds candidates by words and by vectors, and ranks them by `weights`.

    A cached search (`cached`) is for one question: it finds the candidates of a layer with the same filters only once.
    """

    def __init__(self, store: Store, now: Callable[[], datetime], *, weights: Weights = WEIGHTS) -> None:
        self._store = store
        self._now = now
        self.weights = weights
        self._cache: dict[tuple[str, Layer, str, Filters], tuple[ScoredRows, dict[int, float]]] | None = None

    def cached(self) -> Search:
        if self._cache is not None:
            return self
        other = copy(self)
        other._cache = {}
        return other

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
        is_question: bool = True,
    ) -> list[Ranked]:
        """Return the best `limit` rows. `embed` returns the vectors of a text by each available model.

        `at` is when the question was asked, by default now: "last week" is the week before `at`. Feedback counts unless
        the query is no question but a statement, which is compared with others.
        """
        question = parse_query(query, at or self._now())
        candidates, cosines = self.candidates(space, layer, question, embed=embed, filters=filters)
        said = opinions(self._store, space, query) if is_question else NO_OPINIONS
        return _rank(layer, candidates, cosines, self.weights, limit, said)

    def by_signals(
        self,
        signals: Collection[str],
        space: str,
        query: str,
        *,
        embed: Callable[[str], Sequence[Vectors]],
        limit: int,
    ) -> list[str]:
        """Return the ids of the best `limit` turns by some signals alone, as a baseline for the ranking."""
        weights = Weights(
            *(
                weight if name.removesuffix("_short") in signals else 0.0
                for name, weight in zip(SIGNALS, self.weights, strict=True)
            )
        )
        question = parse_query(query, self._now())
        candidates, _ = self.candidates(space, "turn", question, embed=embed, filters=Filters())
        return [hit.id for hit in _rank("turn", candidates, {}, weights, limit)]

    def candidates(
        self,
        space: str,
        layer: Layer,
        question: ParsedQuery,
        *,
        embed: Callable[[str], Sequence[Vectors]],
        filters: Filters,
    ) -> tuple[ScoredRows, dict[int, float]]:
        """Return the candidates with their signals, and the cosines of the nearest rows."""
        key = space, layer, question.text, filters
        if self._cache is not None and key in self._cache:
            return self._cache[key]
        if question.time_only:
            candidates, cosines = self._in_period(space, layer, question, filters), dict[int, float]()
        else:
            candidates, cosines = self._by_words_and_meaning(space, layer, question, embed, filters)
        if self._cache is not None:
            self._cache[key] = candidates, cosines
        return candidates, cosines

    def _by_words_and_meaning(
        self, space: str, layer: Layer, question: ParsedQuery, embed: Callable[[str], Sequence[Vectors]],
        filters: Filters,
    ) -> tuple[ScoredRows, dict[int, float]]:  # fmt: skip
        import numpy as np

        related = [term for group in question.related for term in group]
        # The vectors for atoms come first: making them waits while the background extracts statements.
        models = embed(question.text) if layer == "atom" else ()
        totals = self._store.totals(space, layer)
        models = models or embed(ranking.without_names(question.text, totals.names))

        postings = self._store.postings(space, layer, question.words, filters=filters, also=related)
        verbatim = self._verbatim(space, question, postings, layer)

        def nearest(vectors: Vectors) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
            hits = self._store.nearest(space, layer, vectors, filters=filters, limit=_NEAREST)
            return np.array([int(hit.id[1:]) for hit in hits], np.int64), np.array([hit.score for hit in hits], float)

        near = [nearest(vectors) for vectors in models]
        cosines: dict[int, float] = {}
        for rows, scores in near:
            for row, score in zip(rows.tolist(), scores.tolist(), strict=True):
                cosines[row] = max(score, cosines.get(row, -1.0))
        if layer != "turn":
            return ranking.of_atoms(question, postings, near, total=totals.rows, verbatim=verbatim), cosines

        def read(rows: NDArray[np.int64], *, reach: int = 0) -> TurnMetadata:
            return self._store.turn_metadata(space, rows, filters=filters, reach=reach)

        def near_by_encoder() -> list[tuple[NDArray[np.int64], NDArray[np.float64]]]:
            bundled = [vectors for vectors in models if vectors.identity == IDENTITY]
            return [nearest(Vectors(identity=IDENTITY, data=encoder_alone(vectors.data))) for vectors in bundled]

        scored = ranking.of_turns(
            question, postings, near, read, totals=totals, by_encoder=near_by_encoder, verbatim=verbatim
        )
        return scored, cosines

    def _verbatim(
        self, space: str, question: ParsedQuery, postings: Sequence[Posting], layer: Layer
    ) -> dict[int, float]:
        """Return the share of the question's literals in rows that contain any verbatim, by row number.

        Of very many rows with the terms of a literal only the newest are read.
        """
        if not question.literals:
            return {}
        by_term = {posting.term: posting for posting in postings}
        rows: set[int] = set()
        for literal in question.literals:
            found = [by_term[term] for term in literal.terms if term in by_term]
            if found:
                rows.update(rows_with_all(found)[-_READ_VERBATIM:].tolist())
        texts = row_texts(self._store, space, [f"{layer[0]}{row}" for row in sorted(rows)])
        shares = {int(id[1:]): share_in(text, question.literals) for id, text in texts.items()}
        return {row: share for row, share in shares.items() if share}

    def _in_period(self, space: str, layer: Layer, question: ParsedQuery, filters: Filters) -> ScoredRows:
        """Return the rows of the period that a question names, without small talk.

        Includes turns of the next three days in which the user names a time in the period ("yesterday I was in Rome").
        """
        import numpy as np

        from mcp_memory.language.when.intervals import spans_in

        begin, end = asked_period(question.times)
        inside = _within(filters, begin, end)
        if layer != "turn":
            atoms = self._store.read(space, atom_rows.list_atoms, filters=inside, limit=_IN_PERIOD)
            rows = np.array([int(atom.id[1:]) for atom in atoms], np.int64)
            return ranking.ScoredRows(
                rows=rows, signals=np.tile([float(name == "time") for name in SIGNALS], (len(rows), 1))
            )
        turns = self._store.read(space, turn_rows.list_turns, filters=inside, limit=_IN_PERIOD)
        if filters.role in (None, "user"):
            later = replace(_within(filters, end, end + _LATER), role="user")
            turns += [
                turn
                for turn in self._store.read(space, turn_rows.list_turns, filters=later, limit=_LATER_TURNS)
                if any(begin <= span.start and span.end <= end for span in spans_in(turn.content[:_READ], turn.said_at))
            ]
        rows = np.array(sorted(int(turn.id[1:]) for turn in turns if small_talk_kind(turn.content) is None), np.int64)
        metadata = self._store.turn_metadata(space, rows, filters=filters)
        return ranking.by_time(question, metadata, totals=self._store.totals(space, "turn"))


def _within(filters: Filters, begin: datetime, end: datetime) -> Filters:
    return replace(
        filters,
        since=max(filter(None, (begin, filters.since))),
        until=min(filter(None, (end, filters.until))),
    )


def factors(layer: Layer, candidates: ScoredRows, said: Mapping[str, float]) -> NDArray[np.float64]:
    """Return the factor of each row's score by the opinions `said` of it."""
    import numpy as np

    return np.array([1.0 + said.get(f"{layer[0]}{row}", 0.0) for row in candidates.rows.tolist()])


def _rank(
    layer: Layer,
    candidates: ScoredRows,
    cosines: Mapping[int, float],
    weights: Weights,
    limit: int,
    said: Mapping[str, float] = NO_OPINIONS,
) -> list[Ranked]:
    import numpy as np

    by_signals = np.round(candidates.signals @ np.array(weights) / sum(weights), 9)
    scores = by_signals * factors(layer, candidates, said) if said else by_signals
    order = np.lexsort((-candidates.rows, -scores))
    order = order[by_signals[order] > 0]
    if candidates.verbatim:
        shares = np.array([candidates.verbatim.get(row, 0.0) for row in candidates.rows[order].tolist()])
        order = order[np.argsort(-shares, kind="stable")]
    order = order[:limit]
    hits = [
        Ranked(
            id=f"{layer[0]}{row}",
            score=score,
            found_by={
                name: round(value, 3)
                for name, value in ((VERBATIM, candidates.verbatim.get(row, 0.0)), *zip(SIGNALS, signals, strict=True))
                if value > 0 and name not in _UNNAMED
            },
            cosine=cosines.get(row),
        )
        for row, score, signals in zip(
            candidates.rows[order].tolist(), scores[order].tolist(), candidates.signals[order].tolist(), strict=True
        )
    ]
    if said:
        hits = [
            replace(hit, opinion=said[hit.id], by_signals=score) if hit.id in said else hit
            for hit, score in zip(hits, by_signals[order].tolist(), strict=True)
        ]
    return hits


@dataclass(frozen=True, kw_only=True)
class SearchContext(StageContext[Store]):
    """Store, settings, search and embedder of the long-term memory, for one space at one moment."""

    search: Search
    of_query: Callable[[str], Sequence[Vectors]]
    """Returns the vectors of a text to search by, by each available model."""
    of_rows: Callable[[Sequence[str]], Vectors | None]
    """Returns the vectors to store with new rows, one for each text; None if the background makes them."""

    def hits(self, layer: Layer, text: str, *, filters: Filters, limit: int, is_question: bool = True) -> list[Ranked]:
        """Return the best `limit` rows of a layer for a text, best first. See `Search` on `is_question`."""
        return self.search(
            self.space, layer, text, embed=self.of_query, filters=filters, limit=limit, at=self.now,
            is_question=is_question,
        )  # fmt: skip

    def cached(self) -> SearchContext:
        """Return this context for one question: each text is embedded once, and each search is made once."""
        search = self.search.cached()
        if search is self.search:
            return self
        return replace(self, search=search, of_query=cache(self.of_query))
