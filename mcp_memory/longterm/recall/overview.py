"""Recall for questions about many things: the order of events, counts, lists, sums, summaries.

One fact is answered by the best row; these need many rows, each of which may be short. The rows are chosen for
coverage by maximal marginal relevance (Carbonell and Goldstein 1998): each next row is relevant and unlike the rows
chosen before. `blocks` cuts the lines from the end of this choice, shows the rest oldest first, and counts what it cut.

The first hits of the search come first and keep more of their text, so a question that is taken for one about many
things by mistake still gets its answer.

The vectors are those of the first model that the question was embedded with; rows without one count as unlike all
others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mcp_memory.core.types import Atom, Turn
from mcp_memory.longterm.recall.lines import RecallLine, of_atom, of_turns
from mcp_memory.longterm.recall.relevance import RecallQuery
from mcp_memory.models.embed.classifiers import asks_for_many_things

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mcp_memory.longterm.search.search import Ranked

__all__ = ["CANDIDATES", "Candidate", "asks_for_overview", "candidates", "choose", "of_candidates"]

CANDIDATES = 100
"""Hits of each layer to choose from."""

_LONGEST_QUESTION = 400  # characters; a longer text is a passage
_SHARE = 0.5  # of the best hit's score: a row below it is not about the question
_RELEVANCE = 0.7  # weight of relevance against novelty
_FIRST = 4  # hits of the search that come first, whatever they say
_WIDTHS = (320,) * _FIRST + (160,)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A row that may be shown: its id, the turn that it is or was extracted from, and its relevance from 0 to 1."""

    id: str
    turn: str
    relevance: float


def asks_for_overview(question: str) -> bool:
    """Return whether a question asks about many things rather than for one fact."""
    return 0 < len(question.strip()) <= _LONGEST_QUESTION and asks_for_many_things(question)


def candidates(hits: Sequence[Ranked], turns: Mapping[str, str]) -> list[Candidate]:
    """Return the hits of one layer whose score is at least half of the best, with the turn of each from `turns`.

    Hits without an entry in `turns` are left out.
    """
    best = max((hit.score for hit in hits), default=0.0)
    return [
        Candidate(hit.id, turns[hit.id], hit.score / best)
        for hit in hits
        if hit.id in turns and hit.score >= _SHARE * best
    ]


def choose(query: RecallQuery, rows: Sequence[Candidate]) -> list[str]:
    """Return the ids of the rows, first to be shown first; of a turn and its statements only what came first.

    Takes time in proportion to the square of the number of rows.
    """
    import numpy as np

    pool = sorted(rows, key=lambda row: -row.relevance)
    likeness = _similarities(query, pool)
    nearest = np.zeros(len(pool), np.float32)  # similarity of each row to the nearest chosen one
    relevance = np.array([row.relevance for row in pool], np.float32)
    open_rows = np.ones(len(pool), bool)
    chosen: list[str] = []
    shown: set[str] = set()
    while open_rows.any():
        value = relevance if len(chosen) < _FIRST else _RELEVANCE * relevance - (1 - _RELEVANCE) * nearest
        place = int(np.where(open_rows, value, -np.inf).argmax())
        row = pool[place]
        open_rows[place] = False
        # A statement repeats its turn; several statements of one turn differ.
        if row.turn in shown and (row.id == row.turn or row.turn in chosen):
            continue
        chosen.append(row.id)
        shown.add(row.turn)
        nearest = np.maximum(nearest, likeness[place])
    return chosen


def _similarities(query: RecallQuery, rows: Sequence[Candidate]) -> NDArray[np.float32]:
    """Return the cosine of each pair of rows; 0 for a row without a vector."""
    import numpy as np

    desk, model = query.desk, query.model
    vectors: dict[str, NDArray[np.float32]] = {}
    if model is not None:
        for layer, prefix in (("turn", "t"), ("atom", "a")):
            ids = [row.id for row in rows if row.id.startswith(prefix)]
            vectors |= desk.store.vectors_of(desk.space, layer, ids, model) if ids else {}
    if not vectors:
        return np.zeros((len(rows), len(rows)), np.float32)
    unknown = np.zeros_like(next(iter(vectors.values())))
    matrix = np.stack([vectors.get(row.id, unknown) for row in rows])
    return np.maximum(matrix @ matrix.T, 0)


def of_candidates(
    chosen: Sequence[str],
    turns: Mapping[str, Turn],
    atoms: Mapping[str, Atom],
    *,
    words: AbstractSet[str],
    speakers: Mapping[str, str | None],
) -> Iterator[RecallLine]:
    """Yield a short, dated line for each chosen row."""
    for place, id in enumerate(chosen):
        if id in atoms:
            yield _of_statement(atoms[id], speakers.get(id))
        elif id in turns:
            turn = turns[id]
            width = _WIDTHS[min(place, len(_WIDTHS) - 1)]
            dates = {id: f"{turn.said_at:%Y-%m-%d}"}
            yield from of_turns([turn], words=words, widths=(width,), group="overview", notes=dates)


def _of_statement(atom: Atom, speaker: str | None) -> RecallLine:
    line = of_atom(atom, speaker)
    ended = f" (until {atom.valid_to:%Y-%m-%d})" if atom.valid_to is not None else ""
    return replace(line, group="overview", text=f"{line.text}{ended}", place=(atom.valid_from.isoformat(), 0))
