"""Explains a memory search: candidates of each layer, the share of each signal, near misses, and rows left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from mcp_memory.core.secrets.masking import mask
from mcp_memory.core.text import one_line
from mcp_memory.core.types import Known, Signals
from mcp_memory.language.snippet import matches, snippet
from mcp_memory.longterm.search.answerability import judge
from mcp_memory.longterm.search.feedback import opinions
from mcp_memory.longterm.search.pages import MemoryRows, rows_for, turn_filters
from mcp_memory.longterm.search.query import ParsedQuery, parse_query
from mcp_memory.longterm.search.ranking import SIGNALS
from mcp_memory.longterm.search.rerank import FIRST
from mcp_memory.longterm.search.results import ABOUT as SHARE
from mcp_memory.longterm.search.results import result_filters, results
from mcp_memory.longterm.search.scenes import MIN_COSINE, scenes_for
from mcp_memory.longterm.search.search import Ranked, Search, atom_turns, factors, row_texts
from mcp_memory.store.citations import address
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import atom_rows, quarantine_rows
from mcp_memory.store.values import Filters, Layer, Vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_MISSED = 5
_TEXT = 160
_RESULTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """The explanation of one search. `shown` is its first page, in order."""

    query: str
    words: tuple[str, ...]
    related: tuple[str, ...]
    asks_for: str | None
    """The role of the speaker that the query asks for, if any."""
    times: tuple[str, ...]
    legs: tuple[SearchLeg, ...]
    shown: tuple[ExplainedRow, ...]
    missed: tuple[ExplainedRow, ...]
    """The next rows in the order."""
    left_out: tuple[ExplainedRow, ...]
    """Rows that rank as high as shown rows, with the reason why they are not shown, such as a filter."""
    scenes: tuple[tuple[str, Signals], ...]
    results: tuple[tuple[str, Signals, bool], ...]
    """Lines of tool results, the signals that found them, and whether they have enough of the question's words to
    be shown.
    """
    known: Known | None = None
    """Whether the memory knows an answer; None if no turns were found."""
    note: str | None = None


def explain(
    store: Store,
    search: Search,
    space: str,
    query: str,
    *,
    embed: Callable[[str], Sequence[Vectors]],
    filters: Filters,
    limit: int,
    at: datetime,
) -> Explained:
    """Explain the first page of a memory search; the query must not be empty."""
    question, search = parse_query(query, at), search.cached()
    many = max(FIRST, limit + _MISSED + 1)

    def rows(filters: Filters) -> MemoryRows:
        return rows_for(store, search, space, query, embed=embed, filters=filters, limit=many, at=at)

    found_rows = rows(filters)
    atoms, ordered = found_rows.atoms, found_rows.ordered
    shown, missed = ordered[:limit], ordered[limit : limit + _MISSED]
    kinds: list[tuple[Layer, Filters | None]] = [("atom", filters), ("turn", turn_filters(filters))]
    legs = [ScoredLayer(store, search, space, layer, question, embed, passing) for layer, passing in kinds if passing]
    # The lowest shown score of each kind: scores of turns and of atoms are not comparable.
    least = {kind: min(hit.score for hit in shown if hit.id[0] == kind) for kind in {hit.id[0] for hit in shown}}
    passed_over = _find_passed_over(store, space, legs, ordered, least)
    everything = rows(Filters()).ordered[:limit] if filters != Filters() else []
    filtered = [hit for hit in everything if hit.id in passed_over or not any(leg.has(hit.id) for leg in legs)]
    hidden = [_hidden(hit, passed_over.get(hit.id, "the filters leave it out")) for hit in filtered]
    filtered_ids = {row.id for row in hidden}

    def seen(ids: Iterable[str]) -> list[ExplainedRow]:
        return [row for id in ids if (row := row_of(legs, id, question, least, passed_over.get(id)))]

    return Explained(
        query=one_line(query, 300),
        words=tuple(question.words),
        related=tuple(dict.fromkeys(term for group in question.related for term in group)),
        asks_for=question.role,
        times=tuple(f"{span.start:%Y-%m-%d %H:%M} to {span.end:%Y-%m-%d %H:%M}" for span in question.times),
        legs=tuple(scored.leg for scored in legs),
        shown=_with_texts(store, space, seen(hit.id for hit in shown), question),
        missed=_with_texts(store, space, seen(hit.id for hit in missed), question),
        left_out=_with_texts(
            store, space, [*seen(id for id in passed_over if id not in filtered_ids), *hidden], question
        ),
        scenes=tuple(
            (hit.scene.slug, hit.found_by)
            for hit in scenes_for(store, space, query, filters=filters, atoms=atoms, at=at)
        ),
        results=_results(store, space, query, filters),
        known=judge(store, space, query, found_rows.turns, found_rows.atoms, embed=embed, at=at).known
        if found_rows.turns
        else None,
    )


def _hidden(hit: Ranked, why: str) -> ExplainedRow:
    return ExplainedRow(
        id=hit.id, score=round(hit.score, 5), parts=(), holds=(), cosine=hit.cosine, text="", left_out=why
    )


def _find_passed_over(
    store: Store, space: str, seen: Sequence[ScoredLayer], ordered: Sequence[Ranked], least: Mapping[str, float]
) -> dict[str, str]:
    inside = {hit.id for hit in ordered}
    atoms = store.read(space, atom_rows.by_ids, [id for id in inside if id[0] == "a"])
    resting = {turn: atom.id for atom in atoms for turn in atom_turns(atom)}
    reasons: dict[str, str] = {}
    for scored in seen:
        kind = scored.leg.layer[0]
        if kind not in least:
            continue
        for id in [id for id in scored.best(least[kind]) if id not in inside][:_MISSED]:
            if id in resting:
                reasons[id] = f"{resting[id]}, which stands before it, rests on it"
            elif kind == "a":
                reasons[id] = f"it holds no word of the question, and a cosine of {MIN_COSINE} would be near"
    return reasons


def _with_texts(
    store: Store, space: str, rows: Sequence[ExplainedRow], question: ParsedQuery
) -> tuple[ExplainedRow, ...]:
    ids = [row.id for row in rows]
    texts = row_texts(store, space, ids)
    reasons = (
        {
            entry.id: entry.reasons
            for entry in store.read(space, quarantine_rows.list_quarantined, ids)
            if entry.is_quarantined
        }
        if ids
        else {}
    )
    words = set(question.words)

    def excerpt(text: str) -> str:
        around = snippet(text, _TEXT, matches(text, words))[0] if len(text) > _TEXT else text
        return mask(one_line(around, _TEXT + 2))

    return tuple(
        replace(row, text=excerpt(texts[row.id]), held=tuple(reasons.get(row.id, ())))
        for row in rows
        if row.id in texts
    )


def _results(store: Store, space: str, query: str, filters: Filters) -> tuple[tuple[str, Signals, bool], ...]:
    passing = result_filters(filters)
    if passing is None:
        return ()
    about, hits = (results(store, space, query, filters=passing, limit=_RESULTS, least=least) for least in (SHARE, 0))
    enough = {address(hit.ref, hit.lines) for hit in about}
    return tuple(((at := address(hit.ref, hit.lines)), hit.found_by, at in enough) for hit in hits)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalShare:
    """What one signal contributes to a row: its value (0 to 1), its points in the score, and the row's rank by it.

    The value and the points of the signal `feedback` are negative if people found the row wrong.
    """

    signal: str
    value: float
    points: float
    place: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedRow:
    """A turn or an atom as the search saw it. `score` is the sum of the points of its `parts`."""

    id: str
    score: float
    parts: tuple[SignalShare, ...]
    holds: tuple[str, ...]
    """Terms of the question that the row contains."""
    cosine: float | None
    """Cosine to the question; None if the row is not among the nearest rows."""
    text: str
    behind: float | None = None
    """How much lower its score is than that of the last shown row of its kind; None for shown rows."""
    left_out: str | None = None
    """The reason why it is not shown although its score is high enough."""
    held: tuple[str, ...] = ()
    """Reasons for its quarantine; recall leaves quarantined rows out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchLeg:
    """Counts of what a search found in one layer.

    `by_words` counts rows with a term of the question, `by_meaning` its nearest rows; `nearest` is the highest cosine.
    """

    layer: Layer
    by_words: int
    by_meaning: int
    candidates: int
    """Number of rows that were scored, including the context of matching turns."""
    words: Mapping[str, int]
    """Number of rows with each term of the question. A missing term is in no row, or in too many."""
    nearest: float | None


class ScoredLayer:
    """The candidates of a layer: their signals, points and scores."""

    def __init__(
        self, store: Store, search: Search, space: str, layer: Layer, question: ParsedQuery,
        embed: Callable[[str], Sequence[Vectors]], filters: Filters,
    ) -> None:  # fmt: skip
        import numpy as np

        candidates, self.cosines = search.candidates(space, layer, question, embed=embed, filters=filters)
        weights = np.array(search.weights)
        self._letter = layer[0]
        self.signals = candidates.signals
        self.points = candidates.signals * weights / weights.sum()
        by_signals = np.array(np.round(candidates.signals @ weights / weights.sum(), 9), float)
        self._said = opinions(store, space, question.text)
        self.scores: NDArray[np.float64] = by_signals * factors(layer, candidates, self._said)
        self._gained: NDArray[np.float64] = self.scores - by_signals
        self.at: dict[int, int] = {row: place for place, row in enumerate(candidates.rows.tolist())}
        postings = store.postings(space, layer, question.words, filters=filters)
        self.holding = {posting.term: set(posting.rows.tolist()) for posting in postings}
        self.leg = SearchLeg(
            layer=layer,
            by_words=_passing(store, space, layer, set[int]().union(*self.holding.values()), filters),
            by_meaning=len(self.cosines),
            candidates=len(self.at),
            words={posting.term: posting.documents for posting in postings},
            nearest=round(max(self.cosines.values()), 3) if self.cosines else None,
        )

    def has(self, id: str) -> bool:
        return id[0] == self._letter and int(id[1:]) in self.at

    def parts(self, row: int) -> tuple[SignalShare, ...]:
        """Return the contribution of each signal to a row, largest first, without those that are 0."""
        at = self.at[row]
        columns = zip(SIGNALS, self.signals.T, self.points[at].tolist(), strict=True)
        made = [
            SignalShare(
                signal=name,
                value=round(float(column[at]), 3),
                points=round(points, 4),
                place=int((column > column[at]).sum()) + 1,
            )
            for name, column, points in columns
            if column[at] > 0
        ]
        if opinion := self._said.get(f"{self._letter}{row}"):
            gained = self._gained
            made.append(
                SignalShare(
                    signal="feedback",
                    value=round(opinion, 3),
                    points=round(float(gained[at]), 4),
                    place=int((gained > gained[at]).sum()) + 1,
                )
            )
        return tuple(sorted(made, key=lambda part: -part.points))

    def best(self, least: float) -> list[str]:
        """Return the ids of the rows with a score of at least `least`, best first, then newest first."""
        rows = [(-float(self.scores[at]), -row) for row, at in self.at.items() if self.scores[at] >= least]
        return [f"{self._letter}{-row}" for _, row in sorted(rows)]


def _passing(store: Store, space: str, layer: Layer, rows: set[int], filters: Filters) -> int:
    import numpy as np

    if layer != "turn":
        return len(rows)
    return int(store.turn_metadata(space, np.array(sorted(rows), np.int64), filters=filters).passes.sum())


def row_of(
    legs: Sequence[ScoredLayer], id: str, question: ParsedQuery, least: Mapping[str, float], why: str | None
) -> ExplainedRow | None:
    number = int(id[1:])
    leg = next((scored for scored in legs if scored.has(id)), None)
    if leg is None:
        return None
    score = float(leg.scores[leg.at[number]])
    cosine = leg.cosines.get(number)
    return ExplainedRow(
        id=id,
        score=round(score, 5),
        parts=leg.parts(number),
        holds=tuple(word for word in question.words if number in leg.holding.get(word, ())),
        cosine=None if cosine is None else round(cosine, 3),
        text="",
        behind=round(least[id[0]] - score, 5) if least.get(id[0], 0.0) > score else None,
        left_out=why,
    )
