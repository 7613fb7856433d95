"""The day that a phrase about the future means: "on Friday", "on 3 May", "in two weeks", "am 15.".

This is for orders and reminders, whose dates are never past; `spans_in` is for questions, which look back, and
`annotate` needs words that show whether a sentence looks back or ahead. A weekday is the next such day; said on that
weekday, it is a week later unless "this" is said. A date without a year is the next such date, a month its first day.
"Before Friday" is the day before it. A time of the day belongs to its phrase, and alone it means today. The languages
are those of `intervals`; times of the day and numbers of days ("dia 15", "am 18.") are read in some more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date, datetime, timedelta
from functools import lru_cache, partial
from typing import NamedTuple

from mcp_memory.language import pattern_of
from mcp_memory.language.when.intervals import local, spans_in
from mcp_memory.language.when.phrases import Sentence, phrases_in
from mcp_memory.language.when.relative import days_of
from mcp_memory.language.when.vocabulary import time_languages, without_overlaps

_words = partial(pattern_of, "mcp_memory.language", "data/time_words.txt")
_WEEK = timedelta(weeks=1)
_MORNING = 5  # the hour until which "in the morning" is that of today
_YEARS = 9  # until there is a 29 February again


class DayAhead(NamedTuple):
    """A phrase, `text[start:end]`, and the first day that it means."""

    start: int
    end: int
    day: date


@lru_cache(maxsize=1_024)
def days_ahead(text: str, said_at: datetime) -> tuple[DayAhead, ...]:
    """Return the phrases that mean a day from `said_at` on, in order, without overlaps. Never raises."""
    today = local(said_at).date()
    if not date.min.year < today.year < date.max.year:
        return ()
    plain = _words("before_weekday").sub(lambda word: _ON[word[0].lower()].ljust(len(word[0])), text)
    named = [*_by_span(plain, said_at), *_by_sentence(plain, said_at)]
    phrases = [*named, *_days_of_month(text, today), *_in_digits(text, today), *_ends_of_months(text, today)]
    phrases = [_with_time(text, _before(text, _with_time(text, phrase), today)) for phrase in _longest(phrases)]
    return tuple(_longest([*phrases, *_soon(text, said_at)]))


def _longest(phrases: Iterable[DayAhead]) -> list[DayAhead]:
    """Return the phrases in order; of overlapping phrases the longest."""
    longest_first = sorted(phrases, key=lambda phrase: phrase.start - phrase.end)
    return without_overlaps(longest_first, lambda phrase: (phrase.start, phrase.end))


def _by_sentence(text: str, said_at: datetime) -> Iterator[DayAhead]:
    """Yield the dates that `annotate` would add if the sentence looked ahead."""
    now = local(said_at)
    tomorrow = now + timedelta(days=1)
    looks_ahead = Sentence(text, definite=[], cues=[(-1, "future")], cuts=[])
    for language in time_languages(text):
        for phrase in phrases_in(text, language):
            try:
                days = days_of(phrase, looks_ahead, now)
                if days is None and phrase.words.get("WEEKDAY") == now.weekday():  # today or a week later
                    days = days_of(phrase, looks_ahead, tomorrow)
            except (ValueError, OverflowError, OSError):  # not a valid date
                continue
            if days and days.first >= now.date():
                yield DayAhead(phrase.start, phrase.end, days.first)


def _by_span(text: str, said_at: datetime) -> Iterator[DayAhead]:
    """Yield the times found by `spans_in`, past times in the next week or year; past times with a year are left out."""
    today = local(said_at).date()
    for span in spans_in(text, said_at):
        vague = span.slack if span.slack >= _WEEK else timedelta(0)  # a season may begin early
        begin = local(span.start - vague).date()
        end = local(span.end + vague - timedelta(microseconds=1)).date()
        if begin == end == today and _is_bare_weekday(text, span.at, said_at):
            begin = end = today + _WEEK
        if end < today and any(part.isdigit() and len(part) == 4 for part in span.text.replace("-", " ").split()):
            continue
        if end < today:
            begin = begin + _WEEK if begin == end and today - begin <= _WEEK else _next_year(begin, today)
        yield DayAhead(*span.at, max(begin, today))


def _is_bare_weekday(text: str, at: tuple[int, int], said_at: datetime) -> bool:
    """Return whether a phrase for today is a weekday without "this": yesterday it would have meant a week ago."""
    earlier = {span.at: local(span.start).date() for span in spans_in(text, said_at - timedelta(days=1))}
    return earlier.get(at) == local(said_at).date() - _WEEK and not _words("this_day").search(text[slice(*at)])


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


def _in_digits(text: str, today: date) -> Iterator[DayAhead]:
    """Yield dates such as "12.11." and "11/12"; an ambiguous date means the sooner day."""
    for match in _words("date_in_digits").finditer(text):
        first, second = int(match["first"]), int(match["second"])
        orders = {(first, second), (second, first)} if match["sign"] == "/" else {(first, second)}
        year = int(match["year"]) if match["year"] else None
        year = 2000 + year if year is not None and year < 100 else year
        days = [day for number, month in orders if (day := _of_year(year, month, number, today))]
        if days:
            yield DayAhead(match.start("first"), match.end(), min(days))


def _of_year(year: int | None, month: int, number: int, today: date) -> date | None:
    """Return the next date from today on with this day and month, and year if given; None if there is none."""
    years = range(today.year, min(today.year + _YEARS, date.max.year)) if year is None else (year,)
    for candidate in years:
        try:
            day = date(candidate, month, number)
        except ValueError:
            continue
        if day >= today:
            return day
    return None


def _ends_of_months(text: str, today: date) -> Iterator[DayAhead]:
    for match in _words("end_of_month").finditer(text):
        following = today.replace(day=1) + timedelta(days=32)
        yield DayAhead(*match.span(), following.replace(day=1) - timedelta(days=1))


# --- times of the day, and "before" --------------------------------------------------------------------

_REACH = 40  # characters
_ON = {"before": "on", "vor": "am"}


def _with_time(text: str, phrase: DayAhead) -> DayAhead:
    """Return a phrase with the time of the day before or after it: "at 9 tomorrow", "am Freitag um 15 Uhr"."""
    after = _words("time_after").match(text, phrase.end)
    begin = max(0, phrase.start - _REACH)
    before = _words("time_before").search(text[begin : phrase.start])
    return phrase._replace(
        start=begin + before.start() if before else phrase.start, end=after.end() if after else phrase.end
    )


def _before(text: str, phrase: DayAhead, today: date) -> DayAhead:
    """Return the phrase with an adjacent "before", moved to the day before unless that is past; else unchanged."""
    begin = max(0, phrase.start - _REACH)
    word = _words("before_day").search(text[begin : phrase.start])
    suffix = _words("before_day_behind").match(text, phrase.end)
    if word is None and suffix is None and not _words("before_weekday").match(text, phrase.start):
        return phrase
    return DayAhead(
        begin + word.start() if word else phrase.start,
        suffix.end() if suffix else phrase.end,
        phrase.day - timedelta(days=1) if phrase.day > today else phrase.day,
    )


def _soon(text: str, said_at: datetime) -> Iterator[DayAhead]:
    """Yield "in an hour", "at 5 pm" (today), and "in the morning" (the next morning)."""
    now = local(said_at)
    today = now.date()
    for match in _words("time_alone").finditer(text):
        yield DayAhead(*match.span(), today)
    for match in _words("next_morning").finditer(text):
        yield DayAhead(*match.span(), today if now.hour < _MORNING else today + timedelta(days=1))
