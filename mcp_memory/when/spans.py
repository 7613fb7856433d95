"""Time phrases inside a text: where they stand and which interval each denotes. Pure but for the local time zone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from importlib import import_module
from typing import NamedTuple

from mcp_memory.text import fold
from mcp_memory.when.lexing import Lexicon, Token, lexicon_of, tokens_of
from mcp_memory.when.meaning import Interval, meaning
from mcp_memory.when.shapes import ALONE, COMMON, compiled
from mcp_memory.when.vocabulary import ANCHORS, LETTER, PREPOSITIONS

__all__ = ["LANGUAGES", "Span", "readings_of", "spans_in"]

LANGUAGES = ("en", "de", "fr", "es", "pt", "it", "ru", "zh", "ja", "ko")


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A phrase and the time it denotes: from `start` until just before `end`, both aware.

    `at` are its first character in the text and the one after its last. `slack` says how vague it is: how far
    outside the interval the speaker may well mean; zero for a date.
    """

    text: str
    at: tuple[int, int]
    start: datetime
    end: datetime
    slack: timedelta

    def away(self, moment: datetime) -> timedelta:
        """Return how far a moment lies outside the interval, negative where it lies before it."""
        if moment < self.start:
            return moment - self.start
        return max(moment - self.end, timedelta(0))


def spans_in(text: str, now: datetime) -> list[Span]:
    """Return the time phrases of a text in order, none overlapping, as understood at `now` in the local zone.

    Only what is surely a time is one: durations ("for two weeks"), "May I", "Sunday roast", "on Sundays" are not.
    What names no year is the latest that has begun.
    """
    best: list[_Found] = []
    languages = _languages_of(text)
    if not languages:
        return []
    local = now.astimezone().replace(tzinfo=None)
    for language in languages:
        best += _found(text, language, local)
    return [_span(text, found) for found in sorted(_longest(best), key=lambda found: found.at)]


def readings_of(text: str, now: datetime) -> list[Span]:
    """Return what a text that is nothing but one time phrase can mean: one span for each different interval."""
    local = now.astimezone().replace(tzinfo=None)
    different: dict[Interval, _Found] = {}
    languages = _languages_of(text)
    if "zh" in languages:
        languages.append("ja")  # a phrase alone may do without kana
    for language in languages:
        for found in _found(text, language, local, alone=True):
            different.setdefault(found.interval, found)
    return [_span(text, found) for found in different.values()]


# --- which languages to read it in --------------------------------------------------------------------

_SCRIPTS = {
    "ja": re.compile("[\u3040-\u30ff]"),
    "ko": re.compile("[\uac00-\ud7a3]"),
    "zh": re.compile("[\u3400-\u9fff]"),
}
_WORD = re.compile(r"[^\W\d_]+")
_YEAR = re.compile(r"\d{4}|[Qq][1-4]")
_LETTERS_ONLY = bytes(ord(chr(i).lower()) if i < 128 and chr(i).isalpha() else 32 for i in range(256))


def _languages_of(text: str) -> list[str]:
    """Return the languages in which some word of the text may be part of a time, cheaply: mostly none."""
    ascii_only = text.isascii()
    if ascii_only:  # nearly five times as fast as a regular expression, and most texts need no more than this
        words = set(text.encode().translate(_LETTERS_ONLY).decode().split())
    else:
        words = {fold(word) for word in _WORD.findall(text)}
    anchors = _anchors()
    languages = {language for word in words & anchors.keys() for language in anchors[word]}
    if _YEAR.search(text):
        openers = _openers()
        languages.update(language for word in words & openers.keys() for language in openers[word])
        languages.add("en")  # dates in digits are the same in all
    if not ascii_only:
        for language, script in _SCRIPTS.items():
            if script.search(text):
                languages.add(language)
                break
    return [language for language in LANGUAGES if language in languages] if languages else []


@cache
def _anchors() -> dict[str, set[str]]:
    return _words_of(ANCHORS)


@cache
def _openers() -> dict[str, set[str]]:
    return _words_of(frozenset(("IN", "FROM", "EDGE")))


_TELLING = frozenset(LETTER[name] for name in (*ANCHORS, "YEAR", "DATE"))


def _words_of(classes: frozenset[str]) -> dict[str, set[str]]:
    """Return each (longest) word of these classes with the languages that have it."""
    words: dict[str, set[str]] = {}
    for language in LANGUAGES:
        spoken = _lexicon(language).language
        if spoken.spaced:
            for name in classes & spoken.words.keys():
                for form in spoken.words[name]:
                    longest = max(_WORD.findall(fold(form)), key=len)
                    words.setdefault(longest, set()).add(language)
    return words


# --- reading ------------------------------------------------------------------------------------------


@cache
def _lexicon(language: str) -> Lexicon:
    return lexicon_of(import_module(f"mcp_memory.when.{language}").LANGUAGE)


@cache
def _shapes(language: str, alone: bool) -> list[re.Pattern[str]]:
    return compiled(COMMON + _lexicon(language).language.shapes + (ALONE if alone else ""))


class _Found(NamedTuple):
    at: tuple[int, int]
    interval: Interval


def _found(text: str, language: str, now: datetime, *, alone: bool = False) -> Iterator[_Found]:
    """Yield every phrase that denotes a time, overlapping ones too; `alone`, only those that are the whole text."""
    tokens = tokens_of(text, _lexicon(language))
    letters = "".join(token.letter for token in tokens)
    if _TELLING.isdisjoint(letters):
        return
    for shape in _shapes(language, alone):
        for match in shape.finditer(letters):
            first, last = match.span()
            while first < last and letters[first] in PREPOSITIONS:
                first += 1
            while first < last and letters[last - 1] in PREPOSITIONS:
                last -= 1
            if alone and not _is_whole(letters, first, last):
                continue
            interval = _interval(tokens[first:last], now)
            at = (tokens[first].start, tokens[last - 1].end)
            if interval and not _within_a_word(text, at):
                yield _Found(at, interval)


def _is_whole(letters: str, first: int, last: int) -> bool:
    rest = letters[:first] + letters[last:]
    return set(rest) <= PREPOSITIONS | {LETTER["DOT"]}


def _interval(tokens: list[Token], now: datetime) -> Interval | None:
    names = {letter: name for name, letter in LETTER.items()}
    words = {names[token.letter]: token.value for token in tokens}
    for name in ("MON", "MAY"):
        if name in words:
            words["MONTH"] = words.pop(name)
    if "WDAY" in words:
        words["WEEKDAY"] = words.pop("WDAY")
    try:
        return meaning(words, now)
    except (ValueError, OverflowError):  # the 31st of April, five thousand years ago
        return None


def _within_a_word(text: str, at: tuple[int, int]) -> bool:
    """Tell whether hyphens tie the phrase to more: twenty-two days ago, a May-December romance."""
    before, after = text[max(0, at[0] - 2) : at[0]], text[at[1] : at[1] + 2]
    return (before[-1:] == "-" and before[:1].isalnum()) or (after[:1] == "-" and after[1:].isalnum())


def _longest(found: list[_Found]) -> list[_Found]:
    """Return those that do not overlap, the longer first; of equals the first."""
    chosen: list[_Found] = []
    for one in sorted(found, key=lambda one: (one.at[0] - one.at[1], one.at)):
        if all(one.at[1] <= other.at[0] or other.at[1] <= one.at[0] for other in chosen):
            chosen.append(one)
    return chosen


def _span(text: str, found: _Found) -> Span:
    return Span(
        text=text[slice(*found.at)],
        at=found.at,
        start=found.interval.start.astimezone(),
        end=found.interval.end.astimezone(),
        slack=found.interval.slack,
    )
