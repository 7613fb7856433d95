"""Time phrases inside a text: where they stand and which interval each denotes. Pure but for the local time zone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import NamedTuple

from mcp_memory.language.when.languages import languages_of, lexicon
from mcp_memory.language.when.lexing import Token, tokens_of, without_overlaps
from mcp_memory.language.when.meaning import Interval, local, meaning
from mcp_memory.language.when.shapes import ALONE, COMMON, compiled
from mcp_memory.language.when.vocabulary import ANCHORS, LETTER, PREPOSITIONS

__all__ = ["Span", "readings_of", "spans_in"]


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
    languages = languages_of(text)
    if not languages:
        return []
    here = local(now)
    found = [one for language in languages for one in _found(text, language, here)]
    found.sort(key=lambda one: (one.at[0] - one.at[1], one.at))  # the longest first
    return [_span(text, one) for one in without_overlaps(found, lambda one: one.at)]


def readings_of(text: str, now: datetime) -> list[Span]:
    """Return what a text that is nothing but one time phrase can mean: one span for each different interval."""
    languages = languages_of(text)
    if "zh" in languages:
        languages.append("ja")  # a phrase alone may do without kana
    here = local(now)
    different: dict[Interval, _Found] = {}
    for language in languages:
        for one in _found(text, language, here, alone=True):
            different.setdefault(one.interval, one)
    return [_span(text, one) for one in different.values()]


class _Found(NamedTuple):
    at: tuple[int, int]
    interval: Interval


_NAME = {letter: name for name, letter in LETTER.items()}
_SAME = {"MON": "MONTH", "MAY": "MONTH", "WDAY": "WEEKDAY", "RELP": "REL"}  # they differ only in where they may stand
_TELLING = frozenset(LETTER[name] for name in (*ANCHORS, "YEAR", "DATE"))


def _found(text: str, language: str, now: datetime, *, alone: bool = False) -> Iterator[_Found]:
    """Yield every phrase that denotes a time, overlapping ones too; `alone`, only those that are the whole text."""
    tokens = tokens_of(text, lexicon(language))
    letters = "".join(token.letter for token in tokens)
    if _TELLING.isdisjoint(letters):
        return
    for shape in _shapes(language, alone):
        for match in shape.finditer(letters):
            first, last = _trimmed(letters, *match.span())
            if alone and not _is_whole(letters, first, last):
                continue
            at = (tokens[first].start, tokens[last - 1].end)
            interval = _interval(tokens[first:last], now)
            if interval and not _within_a_word(text, at):
                yield _Found(at, interval)


@cache
def _shapes(language: str, alone: bool) -> list[re.Pattern[str]]:
    return compiled(COMMON + lexicon(language).language.shapes + (ALONE if alone else ""))


def _trimmed(letters: str, first: int, last: int) -> tuple[int, int]:
    """Return the place without the prepositions and articles at its ends."""
    while first < last - 1 and letters[first] in PREPOSITIONS:
        first += 1
    while first < last - 1 and letters[last - 1] in PREPOSITIONS:
        last -= 1
    return first, last


def _is_whole(letters: str, first: int, last: int) -> bool:
    return set(letters[:first] + letters[last:]) <= PREPOSITIONS | {LETTER["DOT"]}


def _interval(tokens: Iterable[Token], now: datetime) -> Interval | None:
    named = ((_NAME[token.letter], token.value) for token in tokens)
    try:
        found = meaning({_SAME.get(name, name): value for name, value in named}, now)
        return found if found and found.start.astimezone() < found.end.astimezone() else None
    except (ValueError, OverflowError, OSError):  # the 31st of April, five thousand years ago
        return None


def _within_a_word(text: str, at: tuple[int, int]) -> bool:
    """Tell whether hyphens tie the phrase to more: twenty-two days ago, a May-December romance."""
    before, after = text[max(0, at[0] - 2) : at[0]], text[at[1] : at[1] + 2]
    return (before[-1:] == "-" and before[:1].isalnum()) or (after[:1] == "-" and after[1:].isalnum())


def _span(text: str, found: _Found) -> Span:
    return Span(
        text=text[slice(*found.at)],
        at=found.at,
        start=found.interval.start.astimezone(),
        end=found.interval.end.astimezone(),
        slack=found.interval.slack,
    )
