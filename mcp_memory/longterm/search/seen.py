"""The rows that a search weighed, as it saw them: what found each, what each signal gave it, and its place by that."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mcp_memory.longterm.search.question import Question
from mcp_memory.longterm.search.ranking import SIGNALS
from mcp_memory.longterm.search.search import Search
from mcp_memory.store.protocol import Filters, Layer, Store, Vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Leg", "Part", "Row", "Seen", "row_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What one signal gave a row: its value (0 to 1), what that counts in the score, and its place among all rows."""

    signal: str
    value: float
    points: float
    place: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A turn or an atom as the search saw it. `score` is the sum of the points."""

    id: str
    score: float
    parts: tuple[Part, ...]
    holds: tuple[str, ...]
    """Terms of the question that stand in it."""
    cosine: float | None
    """How near it is by meaning, where it is among the nearest."""
    text: str
    behind: float | None = None
    """How much its score is below that of the last one of its kind that is shown."""
    left_out: str | None = None
    """Why it is not shown, though its score would do."""
    held: tuple[str, ...] = ()
    """Why it waits for review; automatic recall leaves it out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leg:
    """What was found of one kind of rows, before any order."""

    layer: Layer
    by_words: int
    by_meaning: int
    candidates: int
    """All that were weighed, what was said around those that match included."""
    words: Mapping[str, int]
    """In how many rows each term of the question stands; one that is missing stands in none, or in far too many."""
    nearest: float | None


class Seen:
    """The candidates of a layer: their signals, places and points."""

    def __init__(
        self, store: Store, search: Search, space: str, layer: Layer, question: Question,
        embed: Callable[[str], Sequence[Vectors]], filters: Filters,
    ) -> None:  # fmt: skip
        import numpy as np

        found, self.cosines = search.found(space, layer, question, embed=embed, filters=filters)
        weights = np.array(search.weights)
        self._letter = layer[0]
        self.signals = found.signals
        self.points = found.signals * weights / weights.sum()
        self.scores: NDArray[np.float64] = np.round(found.signals @ weights / weights.sum(), 9)
        self.at: dict[int, int] = {row: place for place, row in enumerate(found.rows.tolist())}
        postings = store.postings(space, layer, question.words, filters=filters)
        self.holding = {one.term: set(one.rows.tolist()) for one in postings}
        self.leg = Leg(
            layer=layer,
            by_words=_passing(store, space, layer, set[int]().union(*self.holding.values()), filters),
            by_meaning=len(self.cosines),
            candidates=len(self.at),
            words={one.term: one.documents for one in postings},
            nearest=round(max(self.cosines.values()), 3) if self.cosines else None,
        )

    def has(self, id: str) -> bool:
        return id[0] == self._letter and int(id[1:]) in self.at

    def parts(self, row: int) -> tuple[Part, ...]:
        """Return what each signal gave a row, the most first."""
        at = self.at[row]
        made = [
            Part(
                signal=name,
                value=round(float(self.signals[at, column]), 3),
                points=round(float(self.points[at, column]), 4),
                place=int((self.signals[:, column] > self.signals[at, column]).sum()) + 1,
            )
            for column, name in enumerate(SIGNALS)
            if self.signals[at, column] > 0
        ]
        return tuple(sorted(made, key=lambda part: -part.points))

    def best(self, least: float) -> list[str]:
        """Return the rows that score at least so much, the best and newest first."""
        rows = [(-float(self.scores[at]), -row) for row, at in self.at.items() if self.scores[at] >= least]
        return [f"{self._letter}{-row}" for _, row in sorted(rows)]


def _passing(store: Store, space: str, layer: Layer, rows: set[int], filters: Filters) -> int:
    """Return how many of the rows pass the filters; where words stand in turns is told of all."""
    import numpy as np

    if layer != "turn":
        return len(rows)
    outline = store.outline(space, filters=filters)
    return int(outline.passes[outline.places(np.array(sorted(rows), np.int64))].sum())


def row_of(
    seen: Sequence[Seen], id: str, question: Question, least: Mapping[str, float], why: Mapping[str, str]
) -> Row | None:
    number = int(id[1:])
    among = next((one for one in seen if one.has(id)), None)
    if among is None:
        return None
    score = float(among.scores[among.at[number]])
    return Row(
        id=id,
        score=round(score, 5),
        parts=among.parts(number),
        holds=tuple(word for word in question.words if number in among.holding.get(word, ())),
        cosine=round(cosine, 3) if (cosine := among.cosines.get(number)) is not None else None,
        text="",
        behind=round(least[id[0]] - score, 5) if least.get(id[0], 0.0) > score else None,
        left_out=why.get(id),
    )
