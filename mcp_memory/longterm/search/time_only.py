"""Recognises questions that name a time and nothing else: "what happened on Tuesday?", "was habe ich gestern gemacht?".

Words and vectors say nothing about such a question, so the search filters by its times instead of ranking by its words.
Read in seven languages and in Chinese, Japanese and Korean (`words/time_questions.txt`). Questions about what is to be
done ("what should I do today?") do not count, nor does a statement ("I was working yesterday"): a question has a
question mark, begins with a question word or is an imperative ("list what we did yesterday").
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


_LANGUAGES = ("en", "de", "fr", "es", "it", "pt", "ru")
_LONGEST = 200  # characters; a longer text has words to search by
_MARK = re.compile(r"[?？]\W*$")
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
    words = [word.lower() for word in _WORD.findall(rest)]
    marked = _MARK.search(question) is not None
    return any(_asks_in(language, words, marked) for language in _LANGUAGES) or _asks_in_dense_script(rest, marked)


def asked_period(times: Sequence[Span]) -> tuple[datetime, datetime]:
    """Return the start and the end (exclusive) of the period that spans all times."""
    return min(span.start - span.slack for span in times), max(span.end + span.slack for span in times)


def _asks_in(language: str, words: Sequence[str], marked: bool) -> bool:
    asks = _words_of(f"asks {language}")
    known = asks | _words_of(f"also {language}") | function_words((language,))
    if not marked and not _opens_question(language, words):
        return False
    some = set(words)
    return some <= known and not some.isdisjoint(asks) and some.isdisjoint(_words_of(f"ahead {language}"))


def _opens_question(language: str, words: Sequence[str]) -> bool:
    """Return whether a text begins with a question word, after a preposition or not ("de qué"), or an imperative."""
    interrogative = _words_of(f"interrogative {language}")
    first, second = [*words, "", ""][:2]
    if first in interrogative or first in _words_of(f"imperative {language}"):
        return True
    return second in interrogative and first in _words_of(f"preposition {language}")


def _asks_in_dense_script(text: str, marked: bool) -> bool:
    if not marked and not _pattern_of("DENSE_QUESTION").search(text):
        return False
    if not _pattern_of("DENSE_ASKS").search(text) or _pattern_of("DENSE_AHEAD").search(text):
        return False
    return _WORD.search(_pattern_of("DENSE").sub("", text)) is None
