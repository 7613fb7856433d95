"""The ranking: scoring features of each row, in [0, 1], and their weighted sum.

    words     BM25 of the question's terms in the row itself
    context   BM25 of the terms in the turns around it, five either way, with decreasing weight; terms weigh by how few
              sessions have them. It counts more for shorter turns: a short turn depends on its context,
              a long one is obscured by it
    related   the same as `words` for related words, weighted by the square of their similarity
    meaning   the cosine, scaled between those of the last and the first of the nearest rows, and less if even the
              first is low: noise is no meaning. The fewer of the question's words any turn has, the more the cosine
              by the encoder alone counts instead
    beside    the meaning of the turn before or after, whichever is nearer
    reply     the turn before ends with a question that matches, so this one is the answer
    tells     it does not end with a question
    speaker   its speaker is the one the question asks for: by name, or as I and you
    time      it was said at the time that the question names, or within days of it

A term counts once per row, however often it occurs: on conversations that is as good as BM25's own saturation for
short turns and better for long ones, and needs only the rows with a term. Lengths are bytes.

The weights were fitted by `bench/fusion.py` (results in `bench/RESULTS.md`) to rows of these kinds, and are the same
for every store. Not considered: word order, negation, the reference of "she".
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from mcp_memory.language.words import fold
from mcp_memory.store.turn_metadata import TurnMetadata
from mcp_memory.store.values import Posting, Totals

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mcp_memory.language.when.intervals import Span
    from mcp_memory.longterm.search.query import ParsedQuery


class Weights(NamedTuple):
    """What each signal counts. `context_short` is counted in full for an empty turn, half at 300 bytes."""

    words: float
    context: float
    context_short: float
    related: float
    meaning: float
    beside: float
    reply: float
    tells: float
    speaker: float
    time: float


SIGNALS = Weights._fields
WEIGHTS = Weights(
    words=3.9,
    context=3.3,
    context_short=3.2,
    related=1.0,
    meaning=3.5,
    beside=1.6,
    reply=0.6,
    tells=0.8,
    speaker=2.3,
    time=5.5,
)

_K1, _B = 1.2, 0.75  # of BM25, as everywhere
_LONGEST = 2.5  # times the mean length
_FULL_MEANING = 0.4  # cosine of a row that surely means the same
_LACKING = 0.5  # least weight of the encoder alone for which it is asked
_REACH = 5  # turns before and after that are context
_SHORT = 300  # bytes
_SEEDS = 400  # best rows by their own features, whose neighbours become candidates too
_AROUND = 2
_WINDOW = _AROUND + _REACH  # turns before and after a seed: neighbours that are candidates, and the context of these
_FADES_DAYS = 7.0
_DAY_MS = 86_400_000
_MONTH_DAYS = 31


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScoredRows:
    """Candidates: row numbers, and a line of signals for each, in the order of `SIGNALS`."""

    rows: NDArray[np.int64]
    signals: NDArray[np.float64]


Near = Sequence[tuple["NDArray[np.int64]", "NDArray[np.float64]"]]
"""For each model, the rows nearest to the question and their cosines, nearest first."""


def of_atoms(question: ParsedQuery, postings: Sequence[Posting], near: Near, *, total: int) -> ScoredRows:
    """Score atoms by words, related words and meaning; they have no context. `total` is their number."""
    import numpy as np

    hits = {one.term: _TermHit(one.rows, rarity(one.documents, total)) for one in postings}
    rows = _all_of([*(hit.at for hit in hits.values()), *(ids for ids, _ in near)])
    signals = np.zeros((len(rows), len(SIGNALS)))
    norms = _norms(np.ones(len(rows)), 1.0)
    words, share = _words(question, hits, rows, norms)
    for name, scores in _alone(question, hits, near, rows, norms, words * share).items():
        signals[:, SIGNALS.index(name)] = scores
    return ScoredRows(rows=rows, signals=signals)


class ReadTurns(Protocol):
    """Reads the metadata of rows, as `Store.turn_metadata` does."""

    def __call__(self, rows: NDArray[np.int64], *, reach: int = 0) -> TurnMetadata: ...


def of_turns(
    question: ParsedQuery,
    postings: Sequence[Posting],
    near: Near,
    read: ReadTurns,
    *,
    totals: Totals,
    by_encoder: Callable[[], Near],
) -> ScoredRows:
    """Score turns: those that match, and those around them; only turns that pass the filters of `read`.

    `by_encoder` finds the rows nearest by the encoder alone. It is called only if no turn has many of the question's
    words: the answer then uses other words, and the word table in `near` cannot find it. `totals` are of the turns.
    """
    import numpy as np

    rows = _all_of([*(one.rows for one in postings), *(nearest for nearest, _ in near)])
    found = _found(read, rows)
    hits = _hits(postings, found, totals)
    said = _all_of([hit.at for hit in hits.values()])
    words, share = _words(question, hits, said, _norms(found.sizes[said], totals.mean_size))
    lacking = 1 - share
    sense = by_encoder() if lacking >= _LACKING else ()
    more = _all_of([rows, *(nearest for nearest, _ in sense)])
    if len(more) > len(rows):
        rows, found = more, _found(read, more)
        hits = _hits(postings, found, totals)
        said = _all_of([hit.at for hit in hits.values()])
        words, share = _words(question, hits, said, _norms(found.sizes[said], totals.mean_size))  # read again as well
    near, sense = ([_known(found, *one) for one in some] for some in (near, sense))
    met = _all_of([said, *(at for at, _ in (*near, *sense))])
    norms = _norms(found.sizes[met], totals.mean_size)
    alone = _alone(question, hits, near, met, norms, _spread(words * share, said, met))
    for at, cosines in sense:
        index = np.searchsorted(met, at)
        before = alone["meaning"][index]
        alone["meaning"][index] = np.maximum(before, lacking * _standing(cosines) + (1 - lacking) * before)
    seeds = found.rows[_seeds(found, met, 2 * alone["words"] + alone["related"] + alone["meaning"])]
    turns = found if len(rows) <= _SEEDS else read(seeds, reach=_WINDOW)
    places = _candidates(turns, turns.places(seeds))
    known = turns.has(found.rows[met])
    met, alone = turns.places(found.rows[met]), {name: scores[known] for name, scores in alone.items()}
    context = _context(question, hits, found, turns, places, sessions=totals.sessions)
    signals = {name: _spread(scores, met, places) for name, scores in alone.items()} | {
        "context": context,
        "context_short": context / (1 + turns.sizes[places] / _SHORT),
        "beside": _beside(turns, places, met, alone["meaning"]),
        "reply": _reply(turns, places, met, np.maximum(alone["words"], alone["meaning"])),
        "tells": 1.0 - turns.asks[places],
        "speaker": np.isin(turns.speakers[places], _speakers(question, turns, totals)).astype(np.float64),
        "time": _time(question.times, turns.said_at[places]),
    }
    lines = np.stack([signals[name] for name in SIGNALS], axis=1).astype(np.float64)
    return ScoredRows(rows=turns.rows[places], signals=lines)


def by_time(question: ParsedQuery, turns: TurnMetadata, *, totals: Totals) -> ScoredRows:
    """Score turns by how near they are to the time that a question asks for, by their speakers, and for not asking.

    If the question does not say whose turns it asks for, the user's come first.
    """
    import numpy as np

    places = np.flatnonzero(turns.passes)
    signals = np.zeros((len(places), len(SIGNALS)))
    exact = [replace(span, slack=timedelta(0)) for span in question.times]
    speakers = _speakers(question if question.role else replace(question, role="user"), turns, totals)
    for name, scores in {
        "time": _time(exact, turns.said_at[places]),
        "speaker": np.isin(turns.speakers[places], speakers),
        "tells": ~turns.asks[places],
    }.items():
        signals[:, SIGNALS.index(name)] = scores
    return ScoredRows(rows=turns.rows[places], signals=signals)


# --- features of a row alone ------------------------------------------------------------------------


class _TermHit(NamedTuple):
    """The positions of a term (rows, or places of turns) and its weight."""

    at: NDArray[np.int64]
    rarity: float


def _alone(
    question: ParsedQuery,
    hits: Mapping[str, _TermHit],
    near: Near,
    at: NDArray[np.int64],
    norms: NDArray[np.float64],
    words: NDArray[np.float64],
) -> dict[str, NDArray[np.float64]]:
    """Return words, related and meaning of the rows `at`. `norms` are of their lengths."""
    import numpy as np

    related, meaning = (np.zeros(len(at)) for _ in range(2))
    for group in question.related:
        # Of each word the best relative, not their sum: else words with many of them would win.
        best = np.zeros(len(at))
        for term, nearness in group.items():
            if term in hits:
                index, scores = _bm25(hits[term], at, norms)
                best[index] = np.maximum(best[index], nearness**2 * scores)
        related += best
    for rows, cosines in near:
        index = np.searchsorted(at, rows)
        meaning[index] = np.maximum(meaning[index], _standing(cosines))
    return {"words": words, "related": _relative(related), "meaning": meaning}


def _words(
    question: ParsedQuery, hits: Mapping[str, _TermHit], at: NDArray[np.int64], norms: NDArray[np.float64]
) -> tuple[NDArray[np.float64], float]:
    """Return BM25 of the question's words in the rows `at`, as shares of the best, and the share of the question's
    words that the best row has, a rare word counting more.

    If a question shares no rare word with its answer, the best row by words has only a common one: as the best it would
    count as much as a row that has them all, and hide the rows that are near by meaning. So callers multiply the two.
    """
    import numpy as np

    words, rarities = np.zeros(len(at)), np.zeros(len(at))
    known = [hits[word] for word in question.words if word in hits]
    for hit in known:
        index, scores = _bm25(hit, at, norms)
        words[index] += scores
        rarities[index] += hit.rarity
    full = _of_all([hit.rarity for hit in known], question)
    return _relative(words), float(rarities[np.argmax(words)]) / full if full > 0 else 0.0


def _bm25(
    hit: _TermHit, at: NDArray[np.int64], norms: NDArray[np.float64]
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    import numpy as np

    index = np.searchsorted(at, hit.at)
    return index, hit.rarity * (_K1 + 1) / (1 + norms[index])


def rarity(documents: int, total: int) -> float:
    """Return BM25's inverse document frequency, in the form that is never negative."""
    return math.log(1 + (max(total, documents) - documents + 0.5) / (documents + 0.5))


def _norms(sizes: NDArray[Any], mean: float) -> NDArray[np.float64]:
    """BM25's measure of length: how often a term must occur in a row to count by half.

    A row much longer than the mean counts as its best passage would, or a word that only it has would not find it.
    """
    import numpy as np

    return _K1 * (1 - _B + _B * np.minimum(sizes / max(mean, 1.0), _LONGEST))


def _standing(cosines: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale descending cosines: 0 for the last, 1 for the first, less if even the first is far from a full match."""
    if not len(cosines):
        return cosines
    spread, best = cosines[0] - cosines[-1], max(0.0, min(1.0, cosines[0] / _FULL_MEANING))
    return best * ((cosines - cosines[-1]) / spread if spread > 0 else cosines * 0 + 1)


def _of_all(rarities: Sequence[float], question: ParsedQuery) -> float:
    """Return the rarity of all words of the question together; those that no row has count as much as the others."""
    return sum(rarities) / len(rarities) * max(len(rarities), question.length) if rarities else 0.0


def _relative(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the scores as shares of the best one."""
    best = scores.max(initial=0.0)
    return scores / best if best > 0 else scores


# --- features of its context ------------------------------------------------------------------------


def _found(read: ReadTurns, rows: NDArray[np.int64]) -> TurnMetadata:
    """Read the turns that a search met; if all of them will be seeds, with their windows."""
    return read(rows, reach=_WINDOW if len(rows) <= _SEEDS else 0)


def _hits(postings: Sequence[Posting], turns: TurnMetadata, totals: Totals) -> dict[str, _TermHit]:
    return {one.term: _TermHit(turns.places(one.rows), rarity(one.documents, totals.rows)) for one in postings}


def _known(
    turns: TurnMetadata, rows: NDArray[np.int64], cosines: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the places of rows, and the cosines of those that have one."""
    return turns.places(rows), cosines[turns.has(rows)]


def _seeds(turns: TurnMetadata, met: NDArray[np.int64], scores: NDArray[np.float64]) -> NDArray[np.int64]:
    import numpy as np

    if len(met) <= _SEEDS:
        return met
    passing = turns.passes[met]
    return np.concatenate([met[_first(scores, _SEEDS)], met[passing][_first(scores[passing], _SEEDS)]])


def _candidates(turns: TurnMetadata, seeds: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the places of the seeds and the turns next to them, without those that may not be returned."""
    around, _ = _around(turns, seeds, _AROUND)
    places = _distinct(around)
    return places[turns.passes[places]]


def _first(scores: NDArray[np.float64], count: int) -> NDArray[np.intp]:
    import numpy as np

    return np.argsort(-scores, kind="stable")[:count]


def _around(turns: TurnMetadata, places: NDArray[np.int64], reach: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return all places within reach of these and in their stretches, and how far each is from its own."""
    import numpy as np

    offsets = np.arange(-reach, reach + 1)
    around = places[:, None] + offsets
    inside = (around >= 0) & (around < len(turns.rows))
    around = np.where(inside, around, places[:, None])
    inside &= turns.stretches[around] == turns.stretches[places][:, None]
    return around[inside], np.broadcast_to(offsets, inside.shape)[inside]


def _context(
    question: ParsedQuery,
    hits: Mapping[str, _TermHit],
    found: TurnMetadata,
    turns: TurnMetadata,
    places: NDArray[np.int64],
    *,
    sessions: int,
) -> NDArray[np.float64]:
    """BM25 over a soft window around each place: a turn k away counts 1 / (1 + k/2), its length too.

    As shares of the best, times the share of the question that it has, like the words of the row itself. `hits` are
    places in `found`, `places` are in `turns`. `sessions` is the number of all sessions.
    """
    import numpy as np

    known = [hits[word] for word in question.words if word in hits]
    if not known or not len(places):
        return np.zeros(len(places))
    heard = np.zeros((len(known), len(places)))
    for line, hit in zip(heard, known, strict=True):
        around, offsets = _around(turns, turns.places(found.rows[hit.at]), _REACH)
        index = np.minimum(np.searchsorted(places, around), len(places) - 1)
        right = places[index] == around
        line += np.bincount(index[right], _fading(offsets[right]), minlength=len(places))
    lengths = _window_sizes(turns, places)
    norms = _norms(lengths, float(lengths.mean()))
    rarities = np.array([_session_rarity(len(_distinct(found.sessions[hit.at])), sessions) for hit in known])
    scores = rarities @ (heard * (_K1 + 1) / (heard + norms))
    share = (rarities @ np.minimum(heard, 1)).max() / _of_all(rarities.tolist(), question)
    return _relative(scores) * share


def _window_sizes(turns: TurnMetadata, places: NDArray[np.int64]) -> NDArray[np.float64]:
    import numpy as np

    own = turns.stretches[places]
    sizes = turns.sizes[places].astype(np.float64)
    for distance in range(1, _REACH + 1):
        for other, inside in (
            (places - distance, places >= distance),
            (places + distance, places < len(turns.rows) - distance),
        ):
            same = inside & (turns.stretches.take(other, mode="clip") == own)
            sizes += np.where(same, turns.sizes.take(other, mode="clip"), 0) * _fading(distance)
    return sizes


def _fading(offsets: Any) -> Any:
    return 1 / (1 + abs(offsets) / 2)


def _session_rarity(documents: int, total: int) -> float:
    others = max(total, documents) - documents  # the total was read earlier; sessions may be new since
    return max(0.05, math.log((others + 0.5) / (documents + 0.5)))


def _beside(
    turns: TurnMetadata, places: NDArray[np.int64], met: NDArray[np.int64], scores: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the better score of the two turns next to each place, in its session."""
    import numpy as np

    best = np.zeros(len(places))
    for other in (np.maximum(places - 1, 0), np.minimum(places + 1, len(turns.rows) - 1)):
        same = (other != places) & (turns.stretches[other] == turns.stretches[places])
        best = np.maximum(best, np.where(same, _spread(scores, met, other), 0.0))
    return best


def _reply(
    turns: TurnMetadata, places: NDArray[np.int64], met: NDArray[np.int64], matched: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return how well the question matches that was asked just before each place."""
    import numpy as np

    before = np.maximum(places - 1, 0)
    asked = turns.asks[before] & (turns.stretches[before] == turns.stretches[places]) & (places > 0)
    return np.where(asked, _spread(matched, met, before), 0.0)


def _spread(scores: NDArray[np.float64], at: NDArray[np.int64], places: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the scores of `at` (sorted) for places of which some are not among them: those get 0."""
    import numpy as np

    if not len(at):
        return np.zeros(len(places))
    index = np.minimum(np.searchsorted(at, places), len(at) - 1)
    return np.where(at[index] == places, scores[index], 0.0)


def _all_of(rows: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    import numpy as np

    return _distinct(np.concatenate([np.zeros(0, np.int64), *rows]))


def _distinct(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """`np.unique` at a fifth of its time: for these few numbers it makes a hash table first."""
    import numpy as np

    ordered = np.sort(numbers)
    return ordered[np.concatenate(([True], ordered[1:] != ordered[:-1]))] if len(ordered) else ordered


# --- who and when -----------------------------------------------------------------------------------


def without_names(text: str, names: Collection[str]) -> str:
    """Return a question without the names of speakers and their first words: vectors do not contain the speaker.

    On conversations between named people that lifts the vectors' share of evidence in the first ten by a fifth.
    """
    parts = {part for name in names for part in (name, *name.split()[:1]) if part.casefold() in text.casefold()}
    for part in sorted(parts, key=len, reverse=True):
        is_apart = part.isascii()  # many scripts part no words
        found = rf"(?<!\w){re.escape(part)}(?:'s)?(?!\w)" if is_apart else re.escape(part)
        text = re.sub(found, "", text, flags=re.IGNORECASE)
    return text


def _speakers(question: ParsedQuery, turns: TurnMetadata, totals: Totals) -> list[int]:
    """Return the speakers that the question names, else those of the role whose turns it asks for."""
    asked = fold(question.text)
    named = {name for name in totals.names if _names(fold(name), asked)}
    return [code for code, (role, name) in turns.who.items() if (name in named if named else role == question.role)]


def _names(name: str, text: str) -> bool:
    if not name.isascii():
        return name in text  # many scripts part no words
    first, *_ = name.split() or [""]
    return bool(first) and any(re.search(rf"(?<!\w){re.escape(part)}(?!\w)", text) for part in (name, first))


def _time(times: Sequence[Span], said_at: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return how near each turn is to a time in the question; longer periods count less."""
    import numpy as np

    near = np.zeros(len(said_at))
    for span in times:
        start, end = (span.start - span.slack).timestamp() * 1000, (span.end + span.slack).timestamp() * 1000
        days = np.maximum(np.maximum(start - said_at, said_at - end), 0) / _DAY_MS
        near = np.maximum(near, min(1.0, _MONTH_DAYS * _DAY_MS / (end - start)) * np.exp(-days / _FADES_DAYS))
    return near
