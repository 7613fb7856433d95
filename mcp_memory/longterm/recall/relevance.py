"""Relevance of a row to a question, on an absolute scale.

The ranking compares the rows of one question with each other, so even a question about nothing in the store has a best
row. The weight of a row does not depend on other rows:

    share    share of the question's words that the row has; a word counts one, and up to one more the rarer it is.
             Words of the turns one and two places away count by half and by a third
    rarity   summed rarity of those words; 1 is a word of a single row
    speaker  the row's speaker is the one asked for      } as in `ranking`
    time     the row's time is the one asked for         }

A row is relevant if share + (rarity + speaker + time) / 4 reaches 1, or if its meaning is very near and no other row's
is. Once one row is relevant, others need half of that. Long texts share words with anything, so rarity counts at most 2
for passages. `bench/recall.py` measures this; the weights are round numbers.

A row that only repeats the question, such as the same question of another day, is an echo: it is relevant and answers
nothing (`is_echo`). Repeating a question does not make its words more common.

Synonyms are not known here: rows are found by them, and weighed without.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median

from mcp_memory.longterm.search.coverage import (
    TermPresence,
    is_echo,
    question_words,
    terms_of,
    terms_with_neighbours,
)
from mcp_memory.longterm.search.query import speaker_intent
from mcp_memory.longterm.search.search import Ranked, SearchContext
from mcp_memory.store.values import Filters, Layer

__all__ = [
    "ABOUT", "NEAR", "RecallQuery", "WeighedRow", "recall_query", "weigh_rows", "weights_of",
]  # fmt: skip

ABOUT = 1.0
"""A row with this score is about the question."""
NEAR = ABOUT / 2
"""Beside such a row others are as well that come to this."""

_WEIGHED = 15  # rows
_QUESTION = 300  # characters; a longer text is a passage
_PASSAGE_RARITY = 2.0
_BESIDE_AN_ECHO = 3  # rows that an echo displaces: itself, and rows found because of it
_VERY_NEAR, _ALONE = 0.82, 0.1  # cosines: of a row, and over the middle one of those found


@dataclass(frozen=True, kw_only=True)
class RecallQuery:
    """A question, or the turns of a conversation, as one search. `texts` are weighed one by one; the best counts."""

    desk: SearchContext
    texts: Sequence[str]

    @cached_property
    def text(self) -> str:
        return "\n".join(self.texts)

    @cached_property
    def is_question(self) -> bool:
        """Whether it is short enough for a question; longer texts are passages."""
        return len(self.texts) == 1 and len(self.text) <= _QUESTION

    @cached_property
    def by_user(self) -> bool:
        """Whether it asks for the user's own words, which atoms hold."""
        return self.is_question and speaker_intent(self.text) == "user"


@dataclass(frozen=True, slots=True, kw_only=True)
class WeighedRow:
    """A row of a search; `weight` is compared with ABOUT and NEAR, below 0 it is unknown."""

    id: str
    weight: float
    cosine: float
    is_echo: bool = False


def recall_query(desk: SearchContext, texts: Sequence[str]) -> RecallQuery | None:
    """Return one search for all texts; None where all are blank."""
    told = [text for text in texts if text.strip()]
    return RecallQuery(desk=desk, texts=told) if told else None


def weigh_rows(wanted: RecallQuery, layer: Layer, *, limit: int, ended: bool = False) -> list[WeighedRow]:
    """Return the first `limit` rows of a search, in its order, and as many more as echoes took places.

    With `ended`, statements that have ended are among them. Only the first rows are weighed; further ones are shown if
    the budget allows.
    """
    hits = _searched(wanted, layer, limit, ended)
    echoes = _echoes(wanted, layer, hits)
    if echoes:
        hits = _searched(wanted, layer, limit + _BESIDE_AN_ECHO * len(echoes), ended)
        echoes = _echoes(wanted, layer, hits)
    first = [hit.id for hit in hits[: _WEIGHED + _BESIDE_AN_ECHO * len(echoes)]]
    weights = weights_of(wanted, layer, _presence(wanted.desk, layer, first), echoes=list(echoes.values()))
    middle = median([hit.cosine for hit in hits if hit.cosine is not None] or [1.0])
    return [
        WeighedRow(
            id=hit.id,
            weight=ABOUT if _alone(hit, middle) else weights.get(hit.id, -1.0) + _hints(wanted, layer, hit),
            cosine=max(0.0, hit.cosine or 0.0),
            is_echo=hit.id in echoes,
        )
        for hit in hits
    ]


def _searched(wanted: RecallQuery, layer: Layer, limit: int, ended: bool) -> Sequence[Ranked]:
    desk = wanted.desk
    return desk.search(
        desk.space,
        layer,
        wanted.text,
        embed=desk.of_query,
        filters=Filters(unheld=layer == "atom", ended=ended),
        limit=limit,
        at=desk.now,
    )


def _echoes(wanted: RecallQuery, layer: Layer, hits: Sequence[Ranked]) -> dict[str, TermPresence]:
    """Return the terms of the hits that only repeat the question, by id."""
    turns = wanted.desk.store.turns(wanted.desk.space, [hit.id for hit in hits]) if layer == "turn" else []
    return {
        turn.id: terms_of(turn.content) for turn in turns if any(is_echo(turn.content, text) for text in wanted.texts)
    }


def weights_of(
    wanted: RecallQuery, layer: Layer, rows: Mapping[str, TermPresence], *, echoes: Sequence[TermPresence] = ()
) -> dict[str, float]:
    """Return the weight of each row by its words; word frequencies are those of the layer, without its `echoes`."""
    if not rows:
        return {}
    desk, found = wanted.desk, rows.values()
    texts = [question_words(desk.store, desk.space, layer, text, found, echoes=echoes) for text in wanted.texts]
    most = math.inf if wanted.is_question else _PASSAGE_RARITY
    return {id: max(_weight(words.rarity, held, most) for words in texts) for id, held in rows.items()}


def _weight(rare: Mapping[str, float], held: TermPresence, most: float) -> float:
    """Return share + rarity / 4."""
    worth = {word: 1 + one for word, one in rare.items()}
    share = sum(worth[word] * held.get(word, 0.0) for word in worth) / sum(worth.values()) if worth else 0.0
    return share + min(most, sum(one * held.get(word, 0.0) for word, one in rare.items())) / 4


def _hints(wanted: RecallQuery, layer: Layer, hit: Ranked) -> float:
    """Return (speaker + time) / 4; atoms count as the user's words."""
    if not wanted.is_question:
        return 0.0
    if layer == "atom":
        return wanted.by_user / 4
    return (hit.found_by.get("speaker", 0.0) + hit.found_by.get("time", 0.0)) / 4


def _alone(hit: Ranked, middle: float) -> bool:
    return hit.cosine is not None and hit.cosine >= _VERY_NEAR and hit.cosine - middle >= _ALONE


def _presence(desk: SearchContext, layer: Layer, ids: Sequence[str]) -> dict[str, TermPresence]:
    if layer == "atom":
        return {atom.id: terms_of(atom.text) for atom in desk.store.atoms(desk.space, ids)}
    return terms_with_neighbours(desk.store, desk.space, ids)
