"""Recognises questions that name a time and nothing else: "what happened on Tuesday?", "was habe ich gestern gemacht?".

Words and vectors say nothing about such a question, so the search filters by its times instead of ranking by its words.
Read in seven languages and in Chinese, Japanese and Korean (`words/time_questions.txt`). Questions about what is to be
done ("what should I do today?") do not count, nor does a time without a question ("see you on Tuesday").
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from mcp_memory.language import pattern_of, words_of
from mcp_memory.language.words import function_words

if TYPE_CHECKING:
    from mcp_memory.language.when.intervals import Span

__all__ = ["asked_period", "is_time_only"]

_LANGUAGES = ("en", "de", "fr", "es", "it", "pt", "ru")
_LONGEST = 200  # characters; a longer text has words to search by
_WORD = re.compile(r"[^\W\d_]+")
_words_of = partial(words_of, "mcp_memory.longterm", "words/time_questions.txt")
_pattern_of = partial(pattern_of, "mcp_memory.longterm", "words/time_questions.txt")


def is_time_only(question: str, times: Sequence[Span]) -> bool:
    """Return whether a question asks about the `times` found in it, and has no other informative word."""
    if not times or len(question) > _LONGEST:
        return False
    rest = question
    for span in sorted(times, key=lambda one: -one.at[0]):
        rest = f"{rest[: span.at[0]]} {rest[span.at[1] :]}"
    if any(character.isdecimal() for character in rest):
        return False
    words = {word.lower() for word in _WORD.findall(rest)}
    return any(_asks_in(language, words) for language in _LANGUAGES) or _asks_in_dense_script(rest)


def asked_period(times: Sequence[Span]) -> tuple[datetime, datetime]:
    """Return the start and the end (exclusive) of the period that spans all times."""
    return min(span.start - span.slack for span in times), max(span.end + span.slack for span in times)


def _asks_in(language: str, words: set[str]) -> bool:
    asks = _words_of(f"asks {language}")
    known = asks | _words_of(f"also {language}") | function_words((language,))
    return words <= known and not words.isdisjoint(asks) and words.isdisjoint(_words_of(f"ahead {language}"))


def _asks_in_dense_script(text: str) -> bool:
    if not _pattern_of("DENSE_ASKS").search(text) or _pattern_of("DENSE_AHEAD").search(text):
        return False
    return _WORD.search(_pattern_of("DENSE").sub("", text)) is None
