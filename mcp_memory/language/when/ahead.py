"""The day that a phrase about the future means: "on Friday", "on 3 May", "in two weeks", "am 15.".

For orders and reminders, where a date is never past: `spans_in` reads questions, which look back, and `annotate` needs
words that say whether a sentence looks back or ahead. A weekday is the next one, a date without a year the next such
date, a month its first day. Languages as in `intervals`; numbers of days ("dia 15", "am 18.") in some more.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from functools import lru_cache, partial
from typing import NamedTuple

from mcp_memory.language import pattern_of
from mcp_memory.language.when.intervals import local, spans_in
from mcp_memory.language.when.phrases import Sentence, phrases_in
from mcp_memory.language.when.relative import meant
from mcp_memory.language.when.vocabulary import languages_of, without_overlaps

__all__ = ["DayAhead", "days_ahead"]

_words = partial(pattern_of, "mcp_memory.language", "data/time_words.txt")
_WEEK = timedelta(weeks=1)
_YEARS = 9  # until there is a 29 February again


class DayAhead(NamedTuple):
    """A phrase, `text[start:end]`, and the first day that it means."""

    start: int
    end: int
    day: date


@lru_cache(maxsize=1_024)
def days_ahead(text: str, said_at: datetime) -> tuple[DayAhead, ...]:
    """Return the phrases of a text that mean a day from `said_at` on, in order, none overlapping. Never raises."""
    found = [*_by_span(text, said_at), *_by_sentence(text, said_at), *_days_of_month(text, local(said_at).date())]
    found.sort(key=lambda one: one.start - one.end)
    return tuple(without_overlaps(found, lambda one: (one.start, one.end)))


def _by_sentence(text: str, said_at: datetime) -> Iterator[DayAhead]:
    """Yield what `annotate` would add if the sentence looked ahead."""
    now = local(said_at)
    looks_ahead = Sentence(text, definite=[], cues=[(-1, "future")], cuts=[])
    for language in languages_of(text):
        for phrase in phrases_in(text, language):
            try:
                days = meant(phrase, looks_ahead, now)
            except (ValueError, OverflowError, OSError):  # a day that no calendar has
                continue
            if days and days.first >= now.date():
                yield DayAhead(phrase.start, phrase.end, days.first)


def _by_span(text: str, said_at: datetime) -> Iterator[DayAhead]:
    """Yield the times that a question could name, the past ones moved to the next week or year."""
    today = local(said_at).date()
    for span in spans_in(text, said_at):
        vague = span.slack if span.slack >= _WEEK else timedelta(0)  # a season may begin early
        begin = local(span.start - vague).date()
        end = local(span.end + vague - timedelta(microseconds=1)).date()
        if end < today and any(part.isdigit() and len(part) == 4 for part in span.text.replace("-", " ").split()):
            continue
        if end < today:
            begin = begin + _WEEK if begin == end and today - begin <= _WEEK else _next_year(begin, today)
        yield DayAhead(*span.at, max(begin, today))


def _next_year(day: date, today: date) -> date:
    for year in range(today.year, today.year + _YEARS):
        try:
            moved = day.replace(year=year)
        except ValueError:  # 29 February
            continue
        if moved >= today:
            return moved
    return day


def _days_of_month(text: str, today: date) -> Iterator[DayAhead]:
    for match in _words("day_of_month").finditer(text):
        number = int(next(filter(None, match.groups())))
        month = today.replace(day=1)
        for _ in range(12):
            try:
                day = month.replace(day=number)
            except ValueError:  # 31 February
                day = None
            if day is not None and day >= today:
                yield DayAhead(*match.span(), day)
                break
            month = (month + timedelta(days=32)).replace(day=1)
