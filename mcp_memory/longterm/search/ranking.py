"""The ranking: signals of each row, in [0, 1], and their weighted sum.

    words     BM25 of the question's terms in the row itself
    context   BM25 of the terms in the row and up to five turns before and after it, with decreasing weight; terms in
              few sessions weigh more. It counts more for short turns, which depend on their context
    related   the same as `words` for related words, weighted by the square of their similarity
    meaning   the cosine, scaled between the last and the first of the nearest rows, and less if even the first is low,
              since noise has no meaning. The fewer of the question's words the best turn has, the more the cosine by
              the encoder alone counts instead
    beside    the meaning of the adjacent turn, before or after, whichever is higher
    reply     the turn before ends with a question that matches, so this turn is the answer
    tells     it does not end with a question
    speaker   the question asks for its speaker, by name or by a word such as "I" or "you"
    time      it was said at the time that the question names, or within days of it

A term counts once per row, however often it occurs: on conversations this is as good as BM25's own saturation for
short turns and better for long turns, and needs only the rows with a term. Lengths are bytes.

Rows that contain an identifier or a quoted phrase of the question verbatim come before all others (`literals`).

The weights were fitted by `bench/fusion.py` (results in `bench/RESULTS.md`) and are the same for every store. The
ranking does not consider word order, negation or references such as "she".
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial, reduce
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from mcp_memory.language.words import fold
from mcp_memory.store.turn_metadata import TurnMetadata
from mcp_memory.store.values import Posting, Totals

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mcp_memory.language.when.intervals import Span
    from mcp_memory.longterm.search.query import ParsedQuery

    Rows = NDArray[np.int64]
    """Row numbers: 812 for t812 or a812."""
    Places = NDArray[np.int64]
    """Indices into the columns of a `TurnMetadata`, which are ordered by session and position."""
    Floats = NDArray[np.float64]


class Weights(NamedTuple):
    """The weight of each signal. `context_short` counts in full for an empty turn, by half for a turn of 300 bytes."""

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
    """Candidates: row numbers, and for each row its signals in the order of `SIGNALS`."""

    rows: Rows
    signals: Floats
    verbatim: Mapping[int, float] = field(default_factory=dict[int, float])
    """The share of the question's literals in the rows that contain any of them; these rows rank first."""


Near = Sequence[tuple["Rows", "Floats"]]
"""For each model, the rows nearest to the question and their cosines, nearest first."""


class ReadTurns(Protocol):
    """Reads the metadata of rows, as `Store.turn_metadata` does."""

    def __call__(self, rows: Rows, *, reach: int = 0) -> TurnMetadata: ...


def of_atoms(
    question: ParsedQuery, postings: Sequence[Posting], near: Near, *, total: int,
    verbatim: Mapping[int, float] = MappingProxyType({}),
) -> ScoredRows:  # fmt: skip
    """Score atoms by words, related words and meaning; they have no context. `total` is the number of all atoms."""
    import numpy as np

    terms = {posting.term: _TermHit(posting.rows, rarity(posting.documents, total)) for posting in postings}
    rows = _union([*(hit.keys for hit in terms.values()), *(nearest for nearest, _ in near)])
    norms = _norms(np.ones(len(rows)), 1.0)
    words, share = _score_words(question, terms, rows, norms)
    related, meaning = _score_related(question, terms, rows, norms), _score_meaning(near, rows)
    signals = _columns(len(rows), words=words * share, related=related, meaning=meaning)
    return ScoredRows(rows=rows, signals=signals, verbatim=verbatim)


def of_turns(
    question: ParsedQuery,
    postings: Sequence[Posting],
    near: Near,
    read: ReadTurns,
    *,
    totals: Totals,
    by_encoder: Callable[[], Near],
    verbatim: Mapping[int, float] = MappingProxyType({}),
) -> ScoredRows:
    """Score the turns that match and the turns around them, if they pass the filters of `read`.

    `by_encoder` finds the rows nearest by the encoder alone. It is called only if no turn has many of the question's
    words: the answer then uses other words, and the word table in `near` cannot find it. `totals` are of all turns.
    """
    import numpy as np

    rows = _union([*(posting.rows for posting in postings), *(nearest for nearest, _ in near)])
    matches = _match_words(question, postings, rows, read, totals)
    lacking = 1 - matches.share
    near_by_encoder = by_encoder() if lacking >= _LACKING else ()
    all_rows = _union([rows, *(nearest for nearest, _ in near_by_encoder)])
    if len(all_rows) > len(rows):
        matches = _match_words(question, postings, all_rows, read, totals)
    own = _score_matches(question, matches, near, near_by_encoder, lacking, totals)
    seeds = np.concatenate([_choose_seeds(own), np.array(list(verbatim), np.int64)])
    window = matches.turns if len(all_rows) <= _SEEDS else read(seeds, reach=_WINDOW)
    around, _ = _places_around(window, window.places(seeds), _AROUND)
    candidates = _union([around])
    candidates = candidates[window.passes[candidates]]
    own = own.in_window(window)
    context = _score_context(question, matches, window, candidates, sessions=totals.sessions)
    signals = _columns(
        len(candidates),
        words=own.at(candidates, own.words),
        context=context,
        context_short=context / (1 + window.sizes[candidates] / _SHORT),
        related=own.at(candidates, own.related),
        meaning=own.at(candidates, own.meaning),
        beside=_score_adjacent(own, candidates),
        reply=_score_question_before(own, candidates),
        tells=~window.asks[candidates],
        speaker=np.isin(window.speakers[candidates], _speakers(question, window, totals)),
        time=_score_time(question.times, window.said_at[candidates]),
    )
    return ScoredRows(rows=window.rows[candidates], signals=signals, verbatim=verbatim)


def by_time(question: ParsedQuery, turns: TurnMetadata, *, totals: Totals) -> ScoredRows:
    """Score turns by the distance to the question's time, by speaker, and by whether they end with a question.

    If the question does not say whose turns it asks for, the user's turns come first.
    """
    import numpy as np

    places = np.flatnonzero(turns.passes)
    exact = [replace(span, slack=timedelta(0)) for span in question.times]
    speakers = _speakers(question if question.role else replace(question, role="user"), turns, totals)
    signals = _columns(
        len(places),
        time=_score_time(exact, turns.said_at[places]),
        speaker=np.isin(turns.speakers[places], speakers),
        tells=~turns.asks[places],
    )
    return ScoredRows(rows=turns.rows[places], signals=signals)


def _columns(count: int, **signals: NDArray[Any]) -> Floats:
    """Return the signals of `count` candidates as columns in the order of `SIGNALS`; missing signals are 0."""
    import numpy as np

    columns = np.zeros((count, len(SIGNALS)))
    for name, scores in signals.items():
        columns[:, SIGNALS.index(name)] = scores
    return columns


def rows_with_all(postings: Iterable[Posting]) -> NDArray[np.int64]:
    """Return the rows that have the terms of all postings, of which there must be one at least, ascending."""
    import numpy as np

    # Without `assume_unique` numpy imports its masked arrays, which takes 8 ms.
    common = partial(np.intersect1d, assume_unique=True)
    return np.sort(reduce(common, [posting.rows for posting in postings]))


def _union(several: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Return the distinct numbers, ascending. `np.unique` takes five times as long: it makes a hash table first."""
    import numpy as np

    ordered = np.sort(np.concatenate([np.zeros(0, np.int64), *several]))
    return ordered[np.concatenate(([True], ordered[1:] != ordered[:-1]))] if len(ordered) else ordered


# --- words, related words and meaning of a row ------------------------------------------------------


class _TermHit(NamedTuple):
    """Where a term occurs, and its weight. The keys are rows of atoms, or places of turns."""

    keys: NDArray[np.int64]
    rarity: float


def _score_words(
    question: ParsedQuery, terms: Mapping[str, _TermHit], keys: NDArray[np.int64], norms: Floats
) -> tuple[Floats, float]:
    """Return BM25 of the question's words in each row, relative to the best row, and that row's share of the words.

    The share is weighted by rarity. Callers multiply the scores by it: if no row has a rare word of the question, the
    best row has only a common word, and with a full score it would hide the rows that are near by meaning.
    """
    import numpy as np

    scores, rarities = np.zeros(len(keys)), np.zeros(len(keys))
    hits = [terms[word] for word in question.words if word in terms]
    for hit in hits:
        indices = np.searchsorted(keys, hit.keys)
        scores[indices] += hit.rarity * (_K1 + 1) / (1 + norms[indices])
        rarities[indices] += hit.rarity
    full = _full_rarity([hit.rarity for hit in hits], question)
    return _relative(scores), float(rarities[np.argmax(scores)]) / full if full > 0 else 0.0


def _score_related(
    question: ParsedQuery, terms: Mapping[str, _TermHit], keys: NDArray[np.int64], norms: Floats
) -> Floats:
    import numpy as np

    related = np.zeros(len(keys))
    for group in question.related:
        # For each word only the best relative counts: by their sum, words with many relatives would win.
        best = np.zeros(len(keys))
        for term, nearness in group.items():
            if term in terms:
                indices = np.searchsorted(keys, terms[term].keys)
                scores = terms[term].rarity * (_K1 + 1) / (1 + norms[indices])
                best[indices] = np.maximum(best[indices], nearness**2 * scores)
        related += best
    return _relative(related)


def _score_meaning(near: Near, keys: NDArray[np.int64]) -> Floats:
    import numpy as np

    meaning = np.zeros(len(keys))
    for nearest, cosines in near:
        indices = np.searchsorted(keys, nearest)
        meaning[indices] = np.maximum(meaning[indices], _rescale(cosines))
    return meaning


def rarity(documents: int, total: int) -> float:
    """Return BM25's inverse document frequency, in the form that is never negative."""
    return math.log(1 + (max(total, documents) - documents + 0.5) / (documents + 0.5))


def _norms(sizes: NDArray[Any], mean: float) -> Floats:
    """Return BM25's measure of length: how often a term must occur in a row to count by half.

    Rows longer than 2.5 times the mean count as that long, so that a word that only a very long row has finds it.
    """
    import numpy as np

    return _K1 * (1 - _B + _B * np.minimum(sizes / max(mean, 1.0), _LONGEST))


def _rescale(cosines: Floats) -> Floats:
    """Scale descending cosines to 0 for the last and 1 for the first; less if even the first is a weak match."""
    if not len(cosines):
        return cosines
    spread, best = cosines[0] - cosines[-1], max(0.0, min(1.0, cosines[0] / _FULL_MEANING))
    return best * ((cosines - cosines[-1]) / spread if spread > 0 else cosines * 0 + 1)


def _full_rarity(rarities: Sequence[float], question: ParsedQuery) -> float:
    """Return the rarity of all words of the question together; words that no row has count as the mean."""
    return sum(rarities) / len(rarities) * max(len(rarities), question.length) if rarities else 0.0


def _relative(scores: Floats) -> Floats:
    best = scores.max(initial=0.0)
    return scores / best if best > 0 else scores


# --- turns that match -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _WordMatches:
    """The turns that a search read, and the matches of the question's terms in these turns."""

    turns: TurnMetadata
    terms: Mapping[str, _TermHit]
    places: Places
    scores: Floats
    share: float
    """The share of the question's words that the best turn has."""


def _match_words(
    question: ParsedQuery, postings: Sequence[Posting], rows: Rows, read: ReadTurns, totals: Totals
) -> _WordMatches:
    """Read the turns of the rows, and the turns around them if there are few enough rows for all to be seeds."""
    turns = read(rows, reach=_WINDOW if len(rows) <= _SEEDS else 0)
    terms = {
        posting.term: _TermHit(turns.places(posting.rows), rarity(posting.documents, totals.rows))
        for posting in postings
    }
    places = _union([hit.keys for hit in terms.values()])
    scores, share = _score_words(question, terms, places, _norms(turns.sizes[places], totals.mean_size))
    return _WordMatches(turns=turns, terms=terms, places=places, scores=scores, share=share)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _OwnScores:
    """Scores of matching turns by their own text, in the order of `places`, which are ascending places of `turns`."""

    turns: TurnMetadata
    places: Places
    words: Floats
    related: Floats
    meaning: Floats

    def in_window(self, window: TurnMetadata) -> _OwnScores:
        """Return the scores of those turns that are also in `window`, with their places in it."""
        if window is self.turns:
            return self
        rows = self.turns.rows[self.places]
        kept = window.has(rows)
        return _OwnScores(
            turns=window,
            places=window.places(rows),
            words=self.words[kept],
            related=self.related[kept],
            meaning=self.meaning[kept],
        )

    def at(self, places: Places, column: Floats) -> Floats:
        """Return the scores of a column at any places; places that did not match have 0."""
        return _spread(column, self.places, places)


def _score_matches(
    question: ParsedQuery, matches: _WordMatches, near: Near, near_by_encoder: Near, lacking: float, totals: Totals
) -> _OwnScores:
    """Score the turns with terms of the question and those near by meaning.

    The more of the question's words are `lacking`, the more the cosine by the encoder alone counts.
    """
    import numpy as np

    turns = matches.turns

    def by_place(models: Near) -> Sequence[tuple[Places, Floats]]:
        return [(turns.places(rows), cosines[turns.has(rows)]) for rows, cosines in models]

    near, near_by_encoder = by_place(near), by_place(near_by_encoder)
    places = _union([matches.places, *(nearest for nearest, _ in (*near, *near_by_encoder))])
    norms = _norms(turns.sizes[places], totals.mean_size)
    meaning = _score_meaning(near, places)
    for nearest, cosines in near_by_encoder:
        indices = np.searchsorted(places, nearest)
        before = meaning[indices]
        meaning[indices] = np.maximum(before, lacking * _rescale(cosines) + (1 - lacking) * before)
    return _OwnScores(
        turns=turns,
        places=places,
        words=_spread(matches.scores * matches.share, matches.places, places),
        related=_score_related(question, matches.terms, places, norms),
        meaning=meaning,
    )


def _choose_seeds(own: _OwnScores) -> Rows:
    """Return the rows of the turns with the best scores: the best of all, then the best that pass the filters."""
    import numpy as np

    rows = own.turns.rows[own.places]
    if len(rows) <= _SEEDS:
        return rows
    scores = 2 * own.words + own.related + own.meaning
    passing = own.turns.passes[own.places]
    best, best_passing = (np.argsort(-some, kind="stable")[:_SEEDS] for some in (scores, scores[passing]))
    return np.concatenate([rows[best], rows[passing][best_passing]])


def _spread(scores: Floats, at: Places, places: Places) -> Floats:
    """Return the scores of `at` (ascending) for other places; places that are not among `at` get 0."""
    import numpy as np

    if not len(at):
        return np.zeros(len(places))
    indices = np.minimum(np.searchsorted(at, places), len(at) - 1)
    return np.where(at[indices] == places, scores[indices], 0.0)


# --- the turns around a turn ------------------------------------------------------------------------


def _places_around(turns: TurnMetadata, places: Places, reach: int) -> tuple[Places, NDArray[np.int64]]:
    """Return the places within `reach` of some places, in the same stretch, and the offset of each from its center."""
    import numpy as np

    offsets = np.arange(-reach, reach + 1)
    around = places[:, None] + offsets
    inside = (around >= 0) & (around < len(turns.rows))
    around = np.where(inside, around, places[:, None])
    inside &= turns.stretches[around] == turns.stretches[places][:, None]
    return around[inside], np.broadcast_to(offsets, inside.shape)[inside]


def _score_context(
    question: ParsedQuery, matches: _WordMatches, window: TurnMetadata, candidates: Places, *, sessions: int
) -> Floats:
    """Return BM25 over a soft window around each candidate: the words and length of a turn k away count 1 / (1 + k/2).

    Scores are relative to the best candidate, times the largest share of the question's words in a window. `candidates`
    are places in `window`. `sessions` is the number of all sessions.
    """
    import numpy as np

    hits = [matches.terms[word] for word in question.words if word in matches.terms]
    if not hits or not len(candidates):
        return np.zeros(len(candidates))
    heard = np.zeros((len(hits), len(candidates)))
    rarities = np.zeros(len(hits))
    for number, hit in enumerate(hits):
        around, offsets = _places_around(window, window.places(matches.turns.rows[hit.keys]), _REACH)
        indices = np.minimum(np.searchsorted(candidates, around), len(candidates) - 1)
        is_candidate = candidates[indices] == around
        weights = 1 / (1 + abs(offsets[is_candidate]) / 2)
        heard[number] += np.bincount(indices[is_candidate], weights, minlength=len(candidates))
        with_term = len(_union([matches.turns.sessions[hit.keys]]))
        without = max(sessions, with_term) - with_term  # `sessions` was read earlier; more may be new since
        rarities[number] = max(0.05, math.log((without + 0.5) / (with_term + 0.5)))
    lengths = _window_sizes(window, candidates)
    norms = _norms(lengths, float(lengths.mean()))
    scores = rarities @ (heard * (_K1 + 1) / (heard + norms))
    share = (rarities @ np.minimum(heard, 1)).max() / _full_rarity(rarities.tolist(), question)
    return _relative(scores) * share


def _window_sizes(turns: TurnMetadata, places: Places) -> Floats:
    import numpy as np

    own = turns.stretches[places]
    sizes = turns.sizes[places].astype(np.float64)
    for distance in range(1, _REACH + 1):
        for other, inside in (
            (places - distance, places >= distance),
            (places + distance, places < len(turns.rows) - distance),
        ):
            same = inside & (turns.stretches.take(other, mode="clip") == own)
            sizes += np.where(same, turns.sizes.take(other, mode="clip"), 0) * (1 / (1 + distance / 2))
    return sizes


def _score_adjacent(own: _OwnScores, places: Places) -> Floats:
    """Return the higher `meaning` of the two turns next to each place, in its session."""
    import numpy as np

    best, stretches = np.zeros(len(places)), own.turns.stretches
    for other in (np.maximum(places - 1, 0), np.minimum(places + 1, len(stretches) - 1)):
        same = (other != places) & (stretches[other] == stretches[places])
        best = np.maximum(best, np.where(same, own.at(other, own.meaning), 0.0))
    return best


def _score_question_before(own: _OwnScores, places: Places) -> Floats:
    """Return how well the turn before each place matches; 0 if that turn does not end with a question."""
    import numpy as np

    before, stretches = np.maximum(places - 1, 0), own.turns.stretches
    asked = own.turns.asks[before] & (stretches[before] == stretches[places]) & (places > 0)
    return np.where(asked, own.at(before, np.maximum(own.words, own.meaning)), 0.0)


# --- who and when -----------------------------------------------------------------------------------


def without_names(text: str, names: Collection[str]) -> str:
    """Return a question without the full and first names of speakers, since vectors do not contain the speaker.

    On conversations between named people, vectors then find a fifth more of the evidence in their first ten rows.
    """
    parts = {part for name in names for part in (name, *name.split()[:1]) if part.casefold() in text.casefold()}
    for part in sorted(parts, key=len, reverse=True):
        pattern = re.escape(part)
        if part.isascii():  # many other scripts do not separate words
            pattern = rf"(?<!\w){pattern}(?:'s)?(?!\w)"
        text = re.sub(pattern, "", text, flags=re.IGNORECASE)
    return text


def _speakers(question: ParsedQuery, turns: TurnMetadata, totals: Totals) -> list[int]:
    """Return the codes of the speakers that the question names, else of the role whose turns it asks for."""
    text = fold(question.text)

    def is_named(name: str) -> bool:
        if not name.isascii():
            return name in text  # many scripts do not separate words
        first = next(iter(name.split()), "")
        return bool(first) and any(re.search(rf"(?<!\w){re.escape(part)}(?!\w)", text) for part in (name, first))

    named = {name for name in totals.names if is_named(fold(name))}
    return [code for code, (role, name) in turns.who.items() if (name in named if named else role == question.role)]


def _score_time(times: Sequence[Span], said_at: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return how near each turn is to a time in the question, 0 to 1; times longer than a month count less."""
    import numpy as np

    near = np.zeros(len(said_at))
    for span in times:
        start, end = (span.start - span.slack).timestamp() * 1000, (span.end + span.slack).timestamp() * 1000
        days = np.maximum(np.maximum(start - said_at, said_at - end), 0) / _DAY_MS
        near = np.maximum(near, min(1.0, _MONTH_DAYS * _DAY_MS / (end - start)) * np.exp(-days / _FADES_DAYS))
    return near
