"""Parses a question: its words and related words, its times, and the speaker that it asks for.

`speaker_intent` finds the speaker by the pronouns of a question, in eleven languages (`words/questions.txt`).

`is_time_only` recognises questions that name a time and nothing else ("what happened on Tuesday?", "was habe ich
gestern gemacht?"), in seven languages and in Chinese, Japanese and Korean (`words/time_questions.txt`). Words and
vectors do not help with such questions, so the search filters by time. Questions about what to do ("what should I do
today?") do not count, nor do statements ("I was working yesterday"): a question has a question mark, begins with a
question word or is an imperative ("list what we did yesterday").
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING

from mcp_memory.core.types import Role
from mcp_memory.language import pattern_of, words_of
from mcp_memory.language.words import base_terms, function_words, languages_of, query_terms, terms_of_each
from mcp_memory.longterm.search.literals import Literal, literals_in

if TYPE_CHECKING:
    from mcp_memory.language.when.intervals import Span

MAX_CHARS = 10_000
_RELATED = 8  # words of a question that get related words; a text with more is a passage, which needs none
_RELATIVES = 6  # related words of each
_LATIN_WORD = re.compile(r"[a-z]{3,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedQuery:
    """A question, parsed for searching.

    `words` are its index terms. `related` has, for each word with related words, a mapping of the related words' terms
    to similarities.
    """

    text: str
    words: list[str]
    related: list[Mapping[str, float]]
    role: Role | None
    """The role whose turns it asks for, if any."""
    length: int
    """The number of its distinct content words."""
    times: list[Span]
    time_only: bool
    """Whether it asks about `times` and has no other word to search by."""
    literals: Sequence[Literal] = ()
    """The parts that are searched for verbatim."""
    literal_only: bool = False
    """Whether it has no word beside `literals`."""


def parse_query(text: str, at: datetime) -> ParsedQuery:
    """Parse a question asked at the moment `at`; of a very long text, only the beginning."""
    return _parse(text[:MAX_CHARS], at, at.tzinfo)


@lru_cache(maxsize=64)  # a recall searches for a question several times
def _parse(text: str, at: datetime, _: tzinfo | None) -> ParsedQuery:
    from mcp_memory.language.when.intervals import spans_in

    words, times = list(dict.fromkeys(query_terms(text))), spans_in(text, at)
    literals, literal_only = literals_in(text, [span.at for span in times])
    return ParsedQuery(
        text=text,
        words=words,
        related=_related_groups(text, set(words)),
        role=speaker_intent(text),
        length=len(set(base_terms(text)).intersection(words)) or len(words),
        times=times,
        time_only=is_time_only(text, times),
        literals=literals,
        literal_only=literal_only,
    )


def _related_groups(text: str, words: set[str]) -> list[Mapping[str, float]]:
    from mcp_memory.models.embed.classifiers import related_words

    latin = list(dict.fromkeys(_LATIN_WORD.findall(text.lower())))
    # Function words have no terms among `words`.
    content = [word for word, terms in zip(latin, terms_of_each(latin), strict=True) if words.intersection(terms)]
    relatives = [related_words(word)[:_RELATIVES] for word in content]
    terms_of_relatives = iter(terms_of_each([relative for several in relatives for relative, _ in several]))
    groups: list[Mapping[str, float]] = []
    for several in relatives:
        group: dict[str, float] = {}
        for (_, similarity), terms in zip(several, terms_of_relatives, strict=False):
            for term in terms[:1]:
                if term not in words:
                    group.setdefault(term, similarity)
        if group:
            groups.append(group)
    return groups[:_RELATED]


# --- the speaker ------------------------------------------------------------------------------------

_USER = re.compile(r"\b(?:the )?user(?:'s)?\b|用户|用戶", re.IGNORECASE)
_ASSISTANT = re.compile(r"\b(?:the )?assistant(?:'s)?\b|助手", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_PRONOUNS = frozenset(("en", "de", "fr", "es", "it", "pt", "nl", "ru"))
_pronouns = partial(words_of, "mcp_memory.longterm", "words/questions.txt")
question_pattern = partial(pattern_of, "mcp_memory.longterm", "words/questions.txt")


def speaker_intent(question: str) -> Role | None:
    """Return the role whose turns the question asks for, or None."""
    user, assistant = bool(_USER.search(question)), bool(_ASSISTANT.search(question))
    if user != assistant:
        return "user" if user else "assistant"
    if question_pattern("SECOND").search(question_pattern("ASKED").sub("", question)):
        return "assistant"
    if question_pattern("FIRST").search(question):
        return "user"
    text = question.replace("’", "'")
    words = [word.lower() for word in _WORD.findall(text)]
    for language in languages_of(words):
        if language not in _PRONOUNS:
            continue
        asked_for = _WORD.findall(_requests(language).sub(" ", text))
        if not _pronouns(f"second {language}").isdisjoint(word.lower() for word in asked_for):
            return "assistant"
        if not _pronouns(f"first {language}").isdisjoint(words):
            return "user"
    return None


@cache
def _requests(language: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{question_pattern(f'request {language}').pattern})\b", re.IGNORECASE)


# --- questions about a time alone -------------------------------------------------------------------

_LANGUAGES = ("en", "de", "fr", "es", "it", "pt", "ru")
_LONGEST = 200  # characters; a longer text has words to search by
_MARK = re.compile(r"[?？]\W*$")
_LETTERS = re.compile(r"[^\W\d_]+")
_time_words = partial(words_of, "mcp_memory.longterm", "words/time_questions.txt")
_time_pattern = partial(pattern_of, "mcp_memory.longterm", "words/time_questions.txt")


def is_time_only(question: str, times: Sequence[Span]) -> bool:
    """Return whether a question asks about the `times` found in it, and has no other informative word."""
    if not times or len(question) > _LONGEST:
        return False
    rest = question
    for span in sorted(times, key=lambda span: -span.at[0]):
        rest = f"{rest[: span.at[0]]} {rest[span.at[1] :]}"
    if any(character.isdecimal() for character in rest):
        return False
    words = [word.lower() for word in _LETTERS.findall(rest)]
    marked = _MARK.search(question) is not None
    return any(_asks_in(language, words, marked) for language in _LANGUAGES) or _asks_in_dense_script(rest, marked)


def asked_period(times: Sequence[Span]) -> tuple[datetime, datetime]:
    """Return the start and the end (exclusive) of the period that spans all times."""
    return min(span.start - span.slack for span in times), max(span.end + span.slack for span in times)


def _asks_in(language: str, words: Sequence[str], marked: bool) -> bool:
    asks = _time_words(f"asks {language}")
    allowed = asks | _time_words(f"also {language}") | function_words((language,))
    if not marked and not _opens_question(language, words):
        return False
    distinct = set(words)
    return (
        distinct <= allowed and not distinct.isdisjoint(asks) and distinct.isdisjoint(_time_words(f"ahead {language}"))
    )


def _opens_question(language: str, words: Sequence[str]) -> bool:
    """Return whether a text begins with an imperative or a question word, perhaps after a preposition ("de qué")."""
    interrogative = _time_words(f"interrogative {language}")
    first, second = [*words, "", ""][:2]
    if first in interrogative or first in _time_words(f"imperative {language}"):
        return True
    return second in interrogative and first in _time_words(f"preposition {language}")


def _asks_in_dense_script(text: str, marked: bool) -> bool:
    if not marked and not _time_pattern("DENSE_QUESTION").search(text):
        return False
    if not _time_pattern("DENSE_ASKS").search(text) or _time_pattern("DENSE_AHEAD").search(text):
        return False
    return _LETTERS.search(_time_pattern("DENSE").sub("", text)) is None


if TYPE_CHECKING:
    from mcp_memory.language.when.intervals import Span
