"""The interval that a time phrase denotes, relative to a moment.

All moments here are naive local time; weeks begin on Monday; a weekend is Saturday and Sunday; seasons are those of the
northern hemisphere by whole months, and a winter belongs to the year of its December. A phrase without its year or
week means the latest such time that has begun, because questions to a memory look back. "Two weeks ago" is the day
fourteen days back, half a week vague; "last week" is the calendar week.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.text import one_line, with_zone
from mcp_memory.language.when.vocabulary import (
    ANCHORS,
    CLASS,
    LETTER,
    PREPOSITIONS,
    TimeToken,
    shapes_in,
    time_languages,
    without_overlaps,
)

LENGTH = {
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "weekend": timedelta(days=2),
    "week": timedelta(weeks=1),
    "month": timedelta(days=30),
    "quarter": timedelta(days=91),
    "year": timedelta(days=365),
}
_EXACT = timedelta(0)
_DAY = LENGTH["day"]


class Interval(NamedTuple):
    """The time from `start` to `end` (exclusive); the time meant may be up to `slack` outside."""

    start: datetime
    end: datetime
    slack: timedelta = _EXACT


def local(moment: datetime) -> datetime:
    """Return the naive local time of a moment; a naive moment is taken as local."""
    try:
        return moment.astimezone().replace(tzinfo=None)
    except (ValueError, OverflowError, OSError):  # within hours of datetime.min or max
        return moment.replace(tzinfo=None)


def interval_of(words: Mapping[str, Any], now: datetime) -> Interval | None:
    """Return the interval of a phrase, given its values by class; None if they form no time.

    Raises ValueError and OverflowError for dates that do not exist.
    """
    interval = _ago(words, now) or _rolling(words, now) or _calendar_interval(words, now)
    if interval and "PART" in words:
        interval = _part_of(interval, words["PART"])
    if interval and "EDGE" in words:
        low, high = words["EDGE"]
        length = interval.end - interval.start
        interval = Interval(interval.start + length * low, interval.start + length * high, length * (high - low) / 3)
    return interval


# --- amounts of time --------------------------------------------------------------------------------


def _ago(words: Mapping[str, Any], now: datetime) -> Interval | None:
    if words.keys().isdisjoint(("AGO", "PRIOR", "LATELY")):
        return None
    unit, least, most = words.get("LATELY") or amount(words)
    if unit is None:
        return None
    slack = LENGTH[unit] / 2
    if "HALF" in words:
        unit, least, most, slack = *_half(unit), slack / 2
    if unit in ("minute", "hour"):
        start, end = (back(now, unit, n).replace(second=0, microsecond=0) for n in (most, least))
        return Interval(start, end + LENGTH["minute"], slack)
    if unit == "weekend":
        return Interval(calendar_unit("weekend", now, -most).start, calendar_unit("weekend", now, -least).end)
    today = _midnight(now)
    return Interval(back(today, unit, most), back(today, unit, least) + _DAY, slack)


def _rolling(words: Mapping[str, Any], now: datetime) -> Interval | None:
    """Read "the past three weeks" or "the next three weeks", to the end of a day, so that the answer stays the same."""
    counted = not words.keys().isdisjoint(("NUM", "WORD", "FEW", "AMOUNT", "ONE"))
    if "MONTH" in words:  # the last week of May
        return None
    if "PAST" not in words and not ("REL" in words and counted and "UNIT" in words):
        return None
    unit, _, most = amount(words)
    if unit is None or not (counted or words.get("PAST") or LENGTH[unit] > _DAY):
        return None
    if unit == "weekend":
        return Interval(calendar_unit(unit, now, -most).start, calendar_unit(unit, now, -1).end)
    today = _midnight(now)
    slack = LENGTH[unit] / 2
    if words.get("REL", -1) > 0:
        return Interval(today, back(today, unit, -most) + _DAY, slack)
    start = back(now, unit, most).replace(second=0, microsecond=0) if LENGTH[unit] < _DAY else None
    return Interval(start or back(today, unit, most), today + _DAY, slack)


def amount(words: Mapping[str, Any]) -> tuple[str | None, int, int]:
    """Return the unit of a phrase (None if it has none), and the smallest and largest number of units it may mean."""
    if "AMOUNT" in words:
        unit, count = words["AMOUNT"]
        return unit, count, count
    count = words.get("NUM", words.get("WORD", 1))
    least, most = words.get("FEW", (count, count))
    return words.get("UNIT"), least, most


def _half(unit: str) -> tuple[str, int, int]:
    unit, count = {"year": ("month", 6), "month": ("day", 15), "day": ("hour", 12)}.get(unit, ("minute", 30))
    return unit, count, count


# --- calendar intervals -----------------------------------------------------------------------------


def _calendar_interval(words: Mapping[str, Any], now: datetime) -> Interval | None:
    unit, shift = words.get("SHIFT") or (words.get("UNIT"), words.get("REL"))
    year: int | None = words.get("YEAR")
    if unit == "year" and shift is not None:
        year = now.year + shift
    yearly = _Yearly(now, year, None if unit else shift)
    today = _midnight(now)
    day = words.get("NUM", words.get("ORD", words.get("NTH")))
    match words:
        case {"DATE": named}:
            return _whole_day(datetime.combine(named, time()))
        case {"DAY": offset}:
            return _whole_day(today + offset * _DAY)
        case {"DAYPART": (offset, part)}:
            return _part_of(_whole_day(today + offset * _DAY), part)
        case {"MONTH": month, "UNIT": ("day" | "week" | "weekend") as small}:
            return _nth(small, -1 if day is None else day, yearly(lambda y: _months(y, month, 1)))
        case {"MONTH": month, "NTHOF": (small, nth)}:
            return _nth(small, nth, yearly(lambda y: _months(y, month, 1)))
        case {"MONTH": month} if day is not None:
            return yearly(lambda y: _whole_day(datetime(y, month, day)))
        case {"MONTH": month}:
            return yearly(lambda y: _months(y, month, 1))
        case {"SEASON": season}:
            return yearly(lambda y: _months(y, 3 + 3 * season, 3))._replace(slack=LENGTH["month"] / 2)
        case {"QUARTER": quarter}:
            return yearly(lambda y: _months(y, 3 * quarter - 2, 3))
        case {"UNIT": "quarter"} if day is not None and year is not None:
            return _months(year, 3 * day - 2, 3)
        case {"FEAST": (month, feast)}:
            return yearly(lambda y: _whole_day(datetime(y, month, feast)))._replace(slack=_DAY)
        case {"WEEKOF": (weeks, weekday)}:
            return _whole_day(calendar_unit("week", now, weeks).start + weekday * _DAY)
        case {"WEEKDAY": weekday} if unit == "week" and shift is not None:
            return _whole_day(calendar_unit("week", now, shift).start + weekday * _DAY)
        case {"WEEKDAY": weekday}:
            return _whole_day(_weekday(weekday, shift, today))
        case {"PART": _} if unit is None and shift is not None:
            return _whole_day(today + shift * _DAY)
        case _ if unit == "month" and shift is not None and day is not None:
            return _whole_day(calendar_unit("month", now, shift).start.replace(day=day))
        case _ if year is not None:
            return _months(year, 1, 12)
        case _:
            return _relative_unit(unit, shift, now)


def _relative_unit(unit: str | None, shift: int | None, now: datetime) -> Interval | None:
    """Read "last week", "this month", "the weekend"; but not "this day" or "last minute"."""
    if unit == "weekend" and shift is None:
        this = calendar_unit(unit, now, 0)
        return this if this.start <= now else calendar_unit(unit, now, -1)
    if unit is None or shift is None or LENGTH[unit] <= _DAY:
        return None
    return calendar_unit(unit, now, shift)._replace(slack=LENGTH[unit] / 4)


class _Yearly(NamedTuple):
    """Chooses an occurrence of a yearly interval: by its year, by "last", "this" or "next", else the latest begun."""

    now: datetime
    year: int | None
    shift: int | None

    def __call__(self, in_year: Callable[[int], Interval]) -> Interval:
        if self.year is not None:
            return in_year(self.year)
        around: list[Interval] = []
        for year in range(self.now.year - 8, self.now.year + 9):
            with suppress(ValueError):  # 29 February
                around.append(in_year(year))
        try:
            match self.shift:
                case None:
                    return [interval for interval in around if interval.start <= self.now][-1]
                case 0:
                    running = [interval for interval in around if interval.start <= self.now < interval.end]
                    return running[0] if running else in_year(self.now.year)
                case shift if shift > 0:
                    return [interval for interval in around if interval.start > self.now][shift - 1]
                case shift:
                    return [interval for interval in around if interval.end <= self.now][shift]
        except IndexError:  # before the year 1, or after 9999
            raise ValueError("no such year") from None


def _nth(unit: str, n: int, within: Interval) -> Interval | None:
    """Read "the first week of May", "the last day of May" (n = −1)."""
    length = LENGTH["day" if unit == "weekend" else unit]
    if unit == "weekend":
        first = within.start + (5 - within.start.weekday()) % 7 * _DAY
        start = first + (n - 1) * LENGTH["week"] if n > 0 else within.end - ((within.end.weekday() + 1) % 7 + 1) * _DAY
        return Interval(start, start + 2 * _DAY) if within.start <= start < within.end else None
    start = within.start + (n - 1) * length if n > 0 else within.end + n * length
    slack = _EXACT if unit == "day" else 2 * _DAY
    return Interval(start, start + length, slack) if within.start <= start < within.end else None


# --- calendar arithmetic ----------------------------------------------------------------------------


def _midnight(moment: datetime) -> datetime:
    return datetime.combine(moment.date(), time())


def _whole_day(start: datetime) -> Interval:
    return Interval(start, start + _DAY)


def _part_of(day: Interval, part: tuple[int, int]) -> Interval | None:
    if day.end - day.start != _DAY:
        return None
    begin, end = part
    return Interval(
        day.start + begin * LENGTH["hour"], day.start + end * LENGTH["hour"], max(day.slack, LENGTH["hour"])
    )


def _months(year: int, first: int, count: int) -> Interval:
    start = datetime(year, first, 1)
    return Interval(start, back(start, "month", -count))


def calendar_unit(unit: str, now: datetime, shift: int) -> Interval:
    """Return the calendar unit that is `shift` units after the current unit."""
    today = _midnight(now)
    monday = today - today.weekday() * _DAY
    match unit:
        case "week":
            start = monday + shift * LENGTH["week"]
            return Interval(start, start + LENGTH["week"])
        case "weekend":
            start = monday + shift * LENGTH["week"] + 5 * _DAY
            return Interval(start, start + 2 * _DAY)
        case "month" | "quarter" | "year":
            count = {"month": 1, "quarter": 3, "year": 12}[unit]
            first = datetime(now.year, (now.month - 1) // count * count + 1, 1)
            start = back(first, unit, -shift)
            return Interval(start, back(start, unit, -1))
        case _:
            return _whole_day(today + shift * _DAY)


def _weekday(weekday: int, shift: int | None, today: datetime) -> datetime:
    """Return the last, this week's or the next such day; if `shift` is None the latest, today included."""
    since = (today.weekday() - weekday) % 7
    match shift:
        case None:
            return today - since * _DAY
        case 0:
            return today + (weekday - today.weekday()) * _DAY
        case shift if shift > 0:
            return today + (7 * shift - since) * _DAY
        case _:
            return today - (since or 7) * _DAY


_Moment = TypeVar("_Moment", date, datetime)


def back(moment: _Moment, unit: str, count: int) -> _Moment:
    """Return the moment `count` units earlier. The day is cut to the length of the month."""
    months = {"month": 1, "quarter": 3, "year": 12}.get(unit)
    if months is None:
        return moment - count * LENGTH[unit]
    year, month = divmod(moment.year * 12 + moment.month - 1 - count * months, 12)
    last = (date(year + (month == 11), (month + 1) % 12 + 1, 1) - _DAY).day
    return moment.replace(year=year, month=month + 1, day=min(moment.day, last))


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A phrase and the time it denotes: from `start` until before `end`, both aware.

    `at` is its span in the text. `slack` is its vagueness: the time meant may be that far outside; zero for a date.
    """

    text: str
    at: tuple[int, int]
    start: datetime
    end: datetime
    slack: timedelta

    def away(self, moment: datetime) -> timedelta:
        """Return the distance of a moment from the interval: zero inside, negative before."""
        if moment < self.start:
            return moment - self.start
        return max(moment - self.end, timedelta(0))


def spans_in(text: str, now: datetime) -> list[Span]:
    """Return the time phrases of a text in order, without overlaps, as understood at `now` in the local zone.

    Durations ("for two weeks") are left out, and phrases such as "May I", "Sunday roast" and "on Sundays". Without a
    year a phrase means the latest such time that has begun.
    """
    here = local(now)
    phrases = [phrase for language in time_languages(text) for phrase in _intervals(text, language, here)]
    phrases.sort(key=lambda phrase: (phrase[0][0] - phrase[0][1], phrase[0]))  # the longest first
    return [_span(text, at, interval) for at, interval in without_overlaps(phrases, itemgetter(0))]


def readings_of(text: str, now: datetime) -> list[Span]:
    """Return the readings of a text that is a single time phrase, a span for each interval; empty for other text."""
    languages = time_languages(text)
    if "zh" in languages:
        languages.append("ja")  # a single phrase may have no kana
    here = local(now)
    different: dict[Interval, tuple[int, int]] = {}
    for language in languages:
        for at, interval in _intervals(text, language, here, alone=True):
            different.setdefault(interval, at)
    return [_span(text, at, interval) for interval, at in different.items()]


_TELLING = frozenset(LETTER[name] for name in (*ANCHORS, "YEAR", "DATE"))


def _intervals(
    text: str, language: str, now: datetime, *, alone: bool = False
) -> Iterator[tuple[tuple[int, int], Interval]]:
    """Yield the place and the interval of every phrase, including overlaps; if `alone`, only of the whole text."""
    tokens, letters, matches = shapes_in(text, language, "alone" if alone else "", _TELLING)
    for _, first, last in matches:
        while first < last - 1 and letters[first] in PREPOSITIONS:
            first += 1
        while first < last - 1 and letters[last - 1] in PREPOSITIONS:
            last -= 1
        if alone and not set(letters[:first] + letters[last:]) <= PREPOSITIONS | {LETTER["DOT"]}:
            continue
        at = (tokens[first].start, tokens[last - 1].end)
        interval = _interval(tokens[first:last], now)
        if interval and not _within_a_word(text, at):
            yield at, interval


def _interval(tokens: Iterable[TimeToken], now: datetime) -> Interval | None:
    try:
        interval = interval_of({CLASS[token.letter]: token.value for token in tokens}, now)
        return interval if interval and interval.start.astimezone() < interval.end.astimezone() else None
    except (ValueError, OverflowError, OSError):  # the 31st of April, five thousand years ago
        return None


def _within_a_word(text: str, at: tuple[int, int]) -> bool:
    """Return whether the phrase is part of a hyphenated word: "twenty-two days ago", "a May-December romance"."""
    before, after = text[max(0, at[0] - 2) : at[0]], text[at[1] : at[1] + 2]
    return (before[-1:] == "-" and before[:1].isalnum()) or (after[:1] == "-" and after[1:].isalnum())


def _span(text: str, at: tuple[int, int], interval: Interval) -> Span:
    start, end, slack = interval
    return Span(text=text[slice(*at)], at=at, start=start.astimezone(), end=end.astimezone(), slack=slack)


_UNDERSTOOD = (
    "Write 2026-04-16, 2026-04, 2026-04-16T22:19:53+08:00, or a phrase such as yesterday, last week, 3 days ago, "
    "since Monday, May 2026, spring 2026, Q2 2026, this morning; other languages work too."
)


def parse_time(text: str, *, what: str, now: datetime, end: bool = False) -> datetime:
    """Return the aware moment of a date, a time or a phrase, local if it has no offset.

    A day, a year or `last week` means its first moment, or with `end` the first moment after it. Phrases are relative
    to `now`. Raises InvalidInput for unknown and ambiguous text, with the argument (`what`) and the accepted forms.
    """
    value = text.strip()
    moment = _written_out(value, end=end)
    if moment is not None:
        return moment
    if value.lower() == "now":
        return now
    readings = readings_of(value, now) if len(value) <= 100 else []
    if len(readings) == 1:
        return readings[0].end if end else readings[0].start
    problem = "is not a date or time in a known form"
    if readings:
        problem = "can be " + " or ".join(f"{span.start:%Y-%m-%d}" for span in readings)
    elif len(set(ambiguous := _slashed(value))) == 2:
        problem = f"can be {ambiguous[0]} or {ambiguous[1]}"
    raise InvalidInput(f"{what} {one_line(text, 40)!r} {problem}. {_UNDERSTOOD}")


def _written_out(value: str, *, end: bool) -> datetime | None:
    try:
        if written := re.fullmatch(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?", value):
            year, month, day = (int(part) if part else None for part in written.groups())
            moment = datetime(year or 0, month or 1, day or 1)
            moment = back(moment, "day" if day else "month" if month else "year", -1) if end else moment
        else:
            moment = datetime.fromisoformat(value)
        return with_zone(moment)
    except (ValueError, OverflowError):  # not a date, or out of range
        return None


def _slashed(value: str) -> list[str]:
    """Return the two readings of a date such as 3/4/2026; none for other text."""
    match = re.fullmatch(r"(\d{1,2})[/-](\d{1,2})[/-](\d{4})", value)
    if not match:
        return []
    first, second, year = map(int, match.groups())
    return [f"{year}-{first:02}-{second:02}", f"{year}-{second:02}-{first:02}"]
