"""How much of a question's words a row has, and how rare those words are in the memory."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from mcp_memory.core.text import with_speaker
from mcp_memory.core.types import Turn
from mcp_memory.language.words import base_terms, index_terms, query_terms
from mcp_memory.longterm.search.ranking import rarity
from mcp_memory.store.protocol import Store
from mcp_memory.store.values import Filters, Layer

_REACH = 2  # turns
_READ = 4_000  # characters of a row
_ECHO_ROOM = 80  # characters by which the same question may be longer
_ONE_QUESTION = re.compile(r"[^?？؟。！]+[?？؟]\W*")
_SENTENCE = re.compile(r"[.!:;]\s|\n")
_FEW = 30  # rows; of fewer it does not follow that a word is common

TermPresence = Mapping[str, float]
"""The terms of a row and of the turns around it, with their nearness: 1 for the row itself."""


def content_words(text: str) -> list[str]:
    """Return the content words of a text, each in one form."""
    terms, forms = list(dict.fromkeys(query_terms(text))), set(base_terms(text))
    return [term for term in terms if term in forms] or terms


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionWords:
    """The content words of a question in one layer of a memory."""

    rarity: Mapping[str, float]
    """Of each: 0 for a word of most rows, 1 for a word of one."""
    unknown: frozenset[str]
    """Those of no row."""


def question_words(
    store: Store,
    space: str,
    layer: Layer,
    text: str,
    found: Iterable[TermPresence],
    *,
    echoes: Sequence[TermPresence] = (),
) -> QuestionWords:
    """Look up the words of a question. `found` are rows of a search for it, `echoes` those that only repeat it.

    A word without postings occurs in no row, or is so common that the store left it out, and the rows found show which.
    Echoes do not count as rows.
    """
    words = content_words(text)
    present = {term for terms in found for term in terms}
    postings = store.postings(space, layer, words, filters=Filters())
    rows = {
        posting.term: max(0, posting.documents - sum(posting.term in one for one in echoes)) for posting in postings
    }
    total = max([_FEW, store.totals(space, layer).rows, *rows.values()])
    return QuestionWords(
        rarity={
            word: 0.0
            if word in present and word not in rows
            else rarity(rows.get(word, 0), total) / math.log(total + 2)
            for word in words
        },
        unknown=frozenset(word for word in words if word not in present and not rows.get(word)),
    )


def terms_of(text: str) -> TermPresence:
    return dict.fromkeys(_terms(text[:_READ]), 1.0)


@lru_cache(maxsize=256)  # the turns around the first rows of a question, which are read to judge it and to order them
def _terms(text: str) -> frozenset[str]:
    return frozenset(index_terms(text))


def terms_with_neighbours(store: Store, space: str, ids: Sequence[str]) -> dict[str, TermPresence]:
    """Return the terms of turns; those of the turns one and two places away count by half and by a third."""
    near = store.context_windows(space, ids, around=_REACH)
    terms = {turn.id: _terms(with_speaker(turn.content[:_READ], turn.name)) for turn in near}
    turns = {turn.id: turn for turn in near}
    return {id: _with_neighbours(turns[id], near, terms) for id in ids if id in turns}


def _with_neighbours(turn: Turn, near: Sequence[Turn], terms: Mapping[str, frozenset[str]]) -> TermPresence:
    present: dict[str, float] = {}
    for other in near:
        away = abs(other.position - turn.position)
        if other.session == turn.session and away <= _REACH:
            for term in terms[other.id]:
                present[term] = max(present.get(term, 0.0), 1 / (1 + away))
    return present


def is_echo(row: str, question: str) -> bool:
    """Return whether a row only repeats a question: it has the same words, or is a question without further ones."""
    if len(row) > 2 * len(question) + _ECHO_ROOM:
        return False
    if base_terms(row) == base_terms(question):
        return True
    stripped = row.strip()
    is_question = _ONE_QUESTION.fullmatch(stripped) is not None and not _SENTENCE.search(stripped)
    return is_question and set(content_words(row)) <= set(content_words(question))
