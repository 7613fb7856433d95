"""Parses a question: its words and their relatives, its times, and the speaker that it asks for.

`speaker_intent` finds the speaker by the pronouns of a question, in eleven languages (`words/questions.txt`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from typing import TYPE_CHECKING

from mcp_memory.core.types import Role
from mcp_memory.language import pattern_of, words_of
from mcp_memory.language.words import base_terms, languages_of, query_terms, terms_of_each
from mcp_memory.longterm.search.time_only import is_time_only

if TYPE_CHECKING:
    from mcp_memory.language.when.intervals import Span

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
    time_only: bool
    """Whether it asks about `times` alone and has no other word to search by."""


def parse_query(text: str, at: datetime) -> ParsedQuery:
    """Take apart a question asked at a moment. Of a very long one, the beginning."""
    from mcp_memory.language.when.intervals import spans_in

    text = text[:MAX_CHARS]
    words, times = list(dict.fromkeys(query_terms(text))), spans_in(text, at)
    return ParsedQuery(
        text=text,
        words=words,
        related=_related(text, set(words)),
        role=speaker_intent(text),
        length=len(set(base_terms(text)).intersection(words)) or len(words),
        times=times,
        time_only=is_time_only(text, times),
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
