"""Parses a question and finds candidate turns and atoms by words and vectors.

Vectors of two models can be
used side by side while a change of model is being indexed. Deterministic: equal scores are ordered by id, newest first.
`speaker_intent` finds the speaker that a question asks for, by its pronouns, in eleven languages
(`words/questions.txt`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from typing import TYPE_CHECKING

from mcp_memory.core.types import Atom, Role
from mcp_memory.language import pattern_of, words_of
from mcp_memory.language.words import base_terms, languages_of, query_terms, terms_of_each
from mcp_memory.longterm.search import ranking
from mcp_memory.longterm.search.ranking import SIGNALS, WEIGHTS, ScoredRows, Weights
from mcp_memory.models.embed.bundled import IDENTITY, encoder_alone
from mcp_memory.models.metered import StageContext
from mcp_memory.store.protocol import Store
from mcp_memory.store.turn_metadata import TurnMetadata
from mcp_memory.store.values import Filters, Layer, Vectors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mcp_memory.language.when.intervals import Span

_UNSAID = ("context_short", "tells", "beside")  # they repeat `context`, or alone are not a reason
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
        relatives = [term for group in question.related for term in group]
        reading = self._beside.submit(
            lambda: self._store.postings(space, layer, question.words, filters=filters, also=relatives)
        )
        totals = self._store.totals(space, layer)
        near: list[tuple[NDArray[np.int64], NDArray[np.float64]]] = []
        cosines: dict[int, float] = {}
        asked = embed(ranking.without_names(question.text, totals.names))
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


MAX_CHARS = 10_000
_RELATED = 8  # words of a question whose relatives are looked for; more make a passage, which needs none
_RELATIVES = 6  # of each
_LATIN_WORD = re.compile(r"[a-z]{3,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedQuery:
    """`words` are index terms. `related` gives, for each word that has any, other terms and how near they are."""

    text: str
    words: list[str]
    related: list[Mapping[str, float]]
    role: Role | None
    """Whose turns it asks for, where it says so."""
    length: int
    """The number of its content words, each counted once."""
    times: list[Span]


def parse_query(text: str, at: datetime) -> ParsedQuery:
    """Take apart a question asked at a moment. Of a very long one, the beginning."""
    from mcp_memory.language.when.intervals import spans_in

    text = text[:MAX_CHARS]
    words = list(dict.fromkeys(query_terms(text)))
    return ParsedQuery(
        text=text,
        words=words,
        related=_related(text, set(words)),
        role=speaker_intent(text),
        length=len(set(base_terms(text)).intersection(words)) or len(words),
        times=spans_in(text, at),
    )


def _related(text: str, words: set[str]) -> list[Mapping[str, float]]:
    from mcp_memory.models.embed.classifiers import related_words

    asked = list(dict.fromkeys(_LATIN_WORD.findall(text.lower())))
    # the others ask, and tell nothing
    telling = [word for word, terms in zip(asked, terms_of_each(asked), strict=True) if words.intersection(terms)]
    relatives = [related_words(word)[:_RELATIVES] for word in telling]
    terms_of_others = iter(terms_of_each([other for near in relatives for other, _ in near]))
    found: list[Mapping[str, float]] = []
    for near in relatives:
        group: dict[str, float] = {}
        for (_, nearness), terms in zip(near, terms_of_others, strict=False):
            for term in terms[:1]:
                if term not in words:
                    group.setdefault(term, nearness)
        if group:
            found.append(group)
    return found[:_RELATED]


_USER = re.compile(r"\b(?:the )?user(?:'s)?\b|用户|用戶", re.IGNORECASE)
_ASSISTANT = re.compile(r"\b(?:the )?assistant(?:'s)?\b|助手", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")


def speaker_intent(question: str) -> Role | None:
    """Return the role whose turns the question asks for, or None."""
    user, assistant = bool(_USER.search(question)), bool(_ASSISTANT.search(question))
    if user != assistant:
        return "user" if user else "assistant"
    if question_pattern("SECOND").search(question_pattern("ASKED").sub("", question)):
        return "assistant"
    if question_pattern("FIRST").search(question):
        return "user"
    return _by_pronouns(question.replace("’", "'"))


def _by_pronouns(question: str) -> Role | None:
    words = _words(question)
    for language in languages_of(words):
        if language not in _PRONOUNS:
            continue
        if not _pronouns(f"second {language}").isdisjoint(_words(_requests(language).sub(" ", question))):
            return "assistant"
        if not _pronouns(f"first {language}").isdisjoint(words):
            return "user"
    return None


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


_PRONOUNS = frozenset(("en", "de", "fr", "es", "it", "pt", "nl", "ru"))
_pronouns = partial(words_of, "mcp_memory.longterm", "words/questions.txt")
question_pattern = partial(pattern_of, "mcp_memory.longterm", "words/questions.txt")


@cache
def _requests(language: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{question_pattern(f'request {language}').pattern})\b", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class SearchContext(StageContext[Store]):
    """What the long-term side works with, for one space at one moment."""

    search: Search
    of_query: Callable[[str], Sequence[Vectors]]
    """Vectors of a text to search by."""
    of_rows: Callable[[Sequence[str]], Vectors | None]
    """Vectors to store with new rows, one each; None where the background makes them."""
