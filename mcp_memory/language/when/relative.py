"""The days that a phrase of a turn means, seen from the day it was said; None if that is uncertain.

`intervals` reads questions, which look back. A turn looks either way, so here each phrase needs words that show its
direction: its own ("last", "in two weeks") or those of its sentence (`Sentence`). If two readings are common ("next
Friday", said on a Monday), both days are returned. Counted days are exact, counted weeks approximate; months and years
are exact only to the month and the year. All days are naive local days; weeks begin on Monday.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from functools import partial
from typing import Any, Literal, NamedTuple

from mcp_memory.language import pattern_of
from mcp_memory.language.when.intervals import amount, back, calendar_unit, interval_of
from mcp_memory.language.when.phrases import Direction, Phrase, Sentence

DAY = timedelta(days=1)
WEEK = timedelta(weeks=1)


class MeantDays(NamedTuple):
    """Days from `first` to `last`, both included, with the precision of `unit`.

    With `about` the days are approximate. With `either` the first or the last day is meant, none between. With
    `only_year` the text lacks only the year.
    """

    first: date
    last: date
    unit: Literal["day", "month", "year"] = "day"
    about: bool = False
    either: bool = False
    only_year: bool = False


class Context(NamedTuple):
    """A phrase, its sentence, and the naive local moment at which it was said."""

    phrase: Phrase
    sentence: Sentence
    said_at: datetime
    today: date
    direction: Direction | None

    @property
    def words(self) -> dict[str, Any]:
        return self.phrase.words


_words = partial(pattern_of, "mcp_memory.language", "data/time_words.txt")


def _on(day: date | None, **more: Any) -> MeantDays | None:
    return MeantDays(day, day, **more) if day else None


def _in_year(year: int, month: int) -> MeantDays:
    """Return the year of a month that the text names without its year."""
    first = date(year, month, 1)
    return MeantDays(first, first, "year", only_year=True)


def _next_weekday(today: date, weekday: int) -> date | None:
    """Return the next day that is this weekday; None if today is, because today or in a week may be meant."""
    ahead = (weekday - today.weekday()) % 7
    return today + ahead * DAY if ahead else None


def _last_weekday(today: date, weekday: int) -> date:
    return today - ((today.weekday() - weekday) % 7 or 7) * DAY


# --- counted from the day: two weeks ago, in ten days, a week on Thursday ----------------------------


def _count_from_today(context: Context, sign: int) -> MeantDays | None:
    words, today = context.words, context.today
    unit, count, _ = amount(words)
    if "HALF" in words:
        unit, count = "month", 6 if unit == "year" else 0
    if not count or (context.phrase.before and _words("more").match(context.phrase.before[-1])):
        return None
    match unit:
        case "day":
            return _on(today + sign * count * DAY, about="AMOUNT" in words or count in (8, 15) or count >= 20)
        case "week":
            return _on(today + sign * count * WEEK, about=True)
        case "month":
            return _on(back(today.replace(day=1), unit, -sign * count), unit=unit, about=True)
        case "year":
            return _on(date(today.year + sign * count, 1, 1), unit=unit, about=True)
        case _:
            return None


def _counted_ahead(context: Context) -> MeantDays | None:
    phrase, words, direction = context.phrase, context.words, context.direction
    surely = _words("surely_ahead").match(phrase.head.lower()) or "AHEAD" in words
    looks_ahead = direction == "future" or (direction is None and "ONE" not in words)
    if direction == "past" or "AGO" in words or any(_words("frequency").match(word) for word in phrase.before):
        return None
    if not surely and (
        not looks_ahead or _may_be_a_duration(phrase) or context.sentence.has("past", phrase.start, phrase.end)
    ):
        return None
    return _count_from_today(context, 1)


def _may_be_a_duration(phrase: Phrase) -> bool:
    """Return whether a phrase may be a duration ("five flights in two months"; but not "the exam is in a week")."""
    if phrase.after in ("from", "of", "for") or any(_words("number").match(word) for word in phrase.before):
        return True
    singular = "ONE" in phrase.words or 1 in (phrase.words.get("NUM"), phrase.words.get("WORD"))
    return singular and bool(phrase.before) and not _words("comes").match(phrase.before[-1])


def _counted_later(context: Context) -> MeantDays | None:
    """Read 三天后, 3日後に, 사흘 뒤: only in a sentence that looks ahead, else it may count from another day."""
    if context.direction != "future" or context.phrase.texts.get("THAT") in ("内", "內"):
        return None
    return _count_from_today(context, 1)


_DAYS_AS_WEEKS = {7: 1, 8: 1, 14: 2, 15: 2, 21: 3}
"""Many languages count the current day: eight days are a week."""


def _counted_from(context: Context) -> MeantDays | None:
    """Read "a week on Thursday", "a week from tomorrow", "heute in einer Woche", "de mañana en ocho"."""
    phrase, words = context.phrase, context.words
    unit, count, _ = amount({"UNIT": "day", **words})
    weeks = count if unit == "week" else _DAYS_AS_WEEKS.get(count, 0) if unit == "day" else 0
    if ("AT" in words and phrase.texts["AT"] != "from") or not 1 <= weeks <= 8 or context.direction == "past":
        return None
    if words.keys().isdisjoint(("UNIT", "AMOUNT")) and count not in (8, 15):
        return None
    return None if any(_words("rate").match(word) for word in phrase.before) else _weeks_after(context, weeks)


def _weeks_after(context: Context, weeks: int) -> MeantDays | None:
    words = context.words
    if "DAY" in words:
        day = context.today + words["DAY"] * DAY if words["DAY"] >= 0 else None
    else:
        day = _next_weekday(context.today, words["WEEKDAY"])
    return _on(day + weeks * WEEK) if day else None


def _counted_before(context: Context) -> MeantDays | None:
    """Read "heute vor einer Woche"."""
    unit, count, _ = amount(context.words)
    if unit not in ("day", "week") or context.words["DAY"] != 0:
        return None
    return _on(context.today - count * (DAY if unit == "day" else WEEK))


def _week_later(context: Context) -> MeantDays | None:
    """Read "Thursday week", "tomorrow week"."""
    return None if context.phrase.texts["UNIT"] != "week" or context.direction == "past" else _weeks_after(context, 1)


# --- weeks, weekends, months, years -----------------------------------------------------------------


def _next_but_one(context: Context) -> MeantDays | None:
    """Read "the week after next", "the month before last"."""
    texts = context.phrase.texts
    shift = {("after", "next"): 2, ("before", "last"): -2}.get((texts["FUNC"], texts["REL"]))
    return _shifted_unit(context, context.words["UNIT"], shift) if shift else None


def _calendar_unit(context: Context) -> MeantDays | None:
    words = context.words
    if words.keys() & {"NUM", "WORD", "ONE", "ORD", "NTH", "HALF", "AMOUNT"} or context.phrase.texts.get("UNIT") == "г":
        return None
    unit, shift = words.get("SHIFT") or (words.get("UNIT"), words.get("REL"))
    if shift is None:  # "on the weekend" is as often every one
        return None
    return _shifted_unit(context, unit, shift, next_is_certain="SHIFT" in words)


def _shifted_unit(context: Context, unit: str | None, shift: int, *, next_is_certain: bool = True) -> MeantDays | None:
    """Return the calendar unit `shift` units after the current unit, None if it is uncertain.

    Without `next_is_certain`, "next weekend" may also mean the coming weekend, so it is uncertain.
    """
    weekday = context.today.weekday()
    if unit == "week" and shift == 0 and weekday == 6:  # the week may begin with today
        return None
    is_unsure = (shift == 0 and context.direction == "past") or (shift == 1 and not next_is_certain)
    if unit == "weekend" and weekday < 5 and is_unsure:
        return None
    match unit:
        case "week" | "weekend":
            interval = calendar_unit(unit, context.said_at, shift)
            return MeantDays(interval.start.date(), interval.end.date() - DAY)
        case "month" | "year":
            return _on(calendar_unit(unit, context.said_at, shift).start.date(), unit=unit)
        case _:
            return None


# --- a day by its distance or its weekday: tomorrow, last night, on Friday, next Tuesday -------------


def _is_after_midnight(moment: datetime) -> bool:
    """Return whether "tonight" may be this or the next evening; midnight is a date without a time."""
    return time() < moment.time() < time(4)


def _whole_day(context: Context) -> MeantDays | None:
    phrase, words = context.phrase, context.words
    last = phrase.before[-1] if phrase.before else ""
    if (
        _is_after_midnight(context.said_at)
        or phrase.texts.get("DAYPART") in ("heute nacht", "cette nuit", "stanotte")
        or "like" in phrase.before  # it feels like only yesterday
        or (phrase.texts.get("DAY") == "manana" and _words("a_morning").match(last))
        or (phrase.head == "Morgen" and "DAY" in words and (last or not phrase.after or len(words) > 1))
    ):
        return None
    return _on(context.today + (words["DAY"] if "DAY" in words else words["DAYPART"][0]) * DAY)


def _part_of_day(context: Context) -> MeantDays | None:
    """Read "this morning" and "last night", but not "next morning", which counts from another day."""
    shift = context.words.get("REL")
    return None if shift not in (0, -1) or _is_after_midnight(context.said_at) else _on(context.today + shift * DAY)


def _day_of_week(context: Context) -> MeantDays | None:
    phrase, words, today = context.phrase, context.words, context.today
    if "WEEKOF" in words or "SHIFT" in words or words.get("UNIT") == "week":
        interval = interval_of(words, context.said_at)
        return _on(interval.start.date()) if interval else None
    if "UNIT" in words:
        return None
    weekday: int = words["WEEKDAY"]
    this_week = today + (weekday - today.weekday()) * DAY
    match words.get("REL"):
        case None:
            return _bare_weekday(context, weekday)
        case 0:
            return _on(this_week if this_week > today else None)
        case 1:
            soonest = _next_weekday(today, weekday) or today + WEEK
            is_coming = _words("coming").search(" ".join(phrase.texts.values()))
            next_week = soonest if is_coming else this_week + WEEK
            return MeantDays(soonest, next_week, either=soonest != next_week)
        case -1:
            latest, rel_text = _last_weekday(today, weekday), phrase.texts.get("REL", "")
            last_week = latest if "past" in rel_text.split() or "this" in rel_text else this_week - WEEK
            return MeantDays(last_week, latest, either=latest != last_week)
        case _:
            return None


def _bare_weekday(context: Context, weekday: int) -> MeantDays | None:
    if _counts_from_another(context.phrase) or weekday == context.today.weekday():
        return None
    if context.direction == "past":
        return _on(_last_weekday(context.today, weekday))
    return _on(_next_weekday(context.today, weekday)) if context.direction == "future" else None


def _counts_from_another(phrase: Phrase) -> bool:
    """Return whether a weekday may count from another date: "from 3 May until Friday", "am Samstag danach"."""
    return phrase.among or _words("afterwards").match(phrase.after) is not None


def _by_weekday(context: Context) -> MeantDays | None:
    """Read "by", "until" and "since" with a weekday."""
    head, weekday = context.phrase.head.lower(), context.words["WEEKDAY"]
    if _counts_from_another(context.phrase) or weekday == context.today.weekday() or context.direction == "unsure":
        return None
    if _words("since").match(head):
        return _on(_last_weekday(context.today, weekday))
    if _words("until").match(head):  # "it lasted until Tuesday" counts from another day
        return _on(_next_weekday(context.today, weekday)) if context.direction != "past" else None
    return _bare_weekday(context, weekday) if "FROM" in context.words else None


# --- a month or a date without its year: 31 March, in May, Thursday the 19th -------------------------

_FAR = timedelta(days=200)
"""The greatest distance of a date without a year."""
_NEAR = timedelta(days=60)
"""The greatest distance of a date without a year and without a direction."""


def _weekday_with_date(context: Context) -> MeantDays | None:
    """Read "Thursday the 19th" as the nearest such Thursday, "Thursday 19 March" as the year in which it is."""
    words, today = context.words, context.today
    number: int = words["ORD"] if "ORD" in words else words["NUM"]
    if "MONTH" in words:
        return _of_the_year(context, words["MONTH"], number)
    first, last = {"past": (-32, 0), "future": (0, 45)}.get(context.direction or "", (-7, 35))
    around = (today + n * DAY for n in range(first, last + 1))
    fitting = [day for day in around if day.day == number and day.weekday() == words["WEEKDAY"]]
    return _on(fitting[0]) if len(fitting) == 1 else None


def _in_month(context: Context) -> MeantDays | None:
    words = context.words
    number = words.get("NUM", words.get("ORD", words.get("NTH")))
    if "SHIFT" in words or words.get("UNIT") in ("year", "month"):
        interval = interval_of(words, context.said_at)
        if interval is None or "EDGE" in words:
            return None
        return _on(interval.start.date(), unit="day" if number else "month")
    if "UNIT" in words:
        return None
    if "REL" in words:
        return _month_before_or_after(context)
    return _of_the_year(context, words["MONTH"], number) if number else _bare_month(context)


def _of_the_year(context: Context, month: int, number: int) -> MeantDays | None:
    today, direction = context.today, context.direction
    days = [day for year in (-1, 0, 1) if (day := _date(today.year + year, month, number))]
    near = _FAR
    if "WEEKDAY" in context.words:  # the weekday determines the year, whatever the sentence is about
        days = [day for day in days if day.weekday() == context.words["WEEKDAY"]]
    elif direction == "unsure":
        return None
    elif direction:
        days = [day for day in days if (day <= today if direction == "past" else day >= today)]
    else:
        near = _NEAR
    nearest = min(days, key=lambda day: abs(day - today), default=None)
    if nearest is None or abs(nearest - today) > near:
        return None
    return _on(nearest, unit="year", only_year=True)


def _date(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:  # the 29th of February
        return None


_SOON = 3
"""Months. Of a month that comes this soon, people say "last year" if they mean the previous year."""


def names_day(phrase: Phrase) -> bool:
    """Return whether a phrase names a calendar day: 12 March, 2026-03-12."""
    words = phrase.words
    return "DATE" in words or ("MONTH" in words and not words.keys().isdisjoint(("NUM", "ORD", "NTH")))


def is_to_come(phrase: Phrase, today: date) -> bool:
    """Return whether the nearest such calendar day is in the future. A day with its weekday counts as past."""
    words = phrase.words
    if "DATE" in words:
        return words["DATE"] > today
    if "WEEKDAY" in words:
        return False
    number: int = next(words[name] for name in ("NUM", "ORD", "NTH") if name in words)
    years = [words["YEAR"]] if "YEAR" in words else [today.year - 1, today.year, today.year + 1]
    days = [day for year in years if (day := _date(year, words["MONTH"], number))]
    return min(days, key=lambda day: abs(day - today), default=today) > today


def _bare_month(context: Context) -> MeantDays | None:
    """Read "in May" with a cue: the previous, the next or the current May."""
    phrase, month, today = context.phrase, context.words["MONTH"], context.today
    ahead = (month - today.month) % 12
    match context.direction:
        case "future" if ahead <= _SOON or (ahead <= 8 and not context.sentence.is_aside(phrase.start, phrase.end)):
            return _in_year(today.year + (month < today.month), month)
        case "past" if ahead == 0 or ahead >= 4:
            return _in_year(today.year - (month > today.month), month)
        case _:
            return None


def _month_before_or_after(context: Context) -> MeantDays | None:
    """Read "next May" and "last May", which are certain if this year's May is not possible."""
    month, shift, this = context.words["MONTH"], context.words["REL"], context.today
    is_certain = shift == 0 or (shift == 1 and month < this.month) or (shift == -1 and month > this.month)
    return _in_year(this.year + shift, month) if is_certain else None


# --- all of them ------------------------------------------------------------------------------------

_NEVER = {"DATE", "LATELY", "PAST", "SEASON", "QUARTER", "FEAST", "NTHOF", "FEW", "EVERY", "NOT", "YEAR"}
_ONCE = {"DAY", "DAYPART", "AGO", "PRIOR", "MONTH"}
"""These are a single time even in a sentence about a habit: yesterday, last week, Friday 3 April."""
_FOLLOWING = re.compile(r"siguiente|seguinte|предыдущ|ess[ea]$|ness[ea]$|前年|다음 해")
"""Words that count from the day of the event, not from the day of the message."""

_KINDS: dict[str, Callable[[Context], MeantDays | None]] = {
    "ahead": _counted_ahead,
    "later": _counted_later,
    "from": _counted_from,
    "before": _counted_before,
    "week": _week_later,
    "next but one": _next_but_one,
    "dated": _weekday_with_date,
    "by": _by_weekday,
}
_CLASSES: dict[str, Callable[[Context], MeantDays | None]] = {
    "AGO": lambda context: _count_from_today(context, -1),
    "PRIOR": lambda context: _count_from_today(context, -1),
    "DAY": _whole_day,
    "DAYPART": _whole_day,
    "MONTH": _in_month,
    "WEEKDAY": _day_of_week,
    "WEEKOF": _day_of_week,
    "PART": _part_of_day,
}
"""Readers of phrases without a kind. The first of these classes that a phrase has selects its reader."""


def days_of(phrase: Phrase, sentence: Sentence, said_at: datetime) -> MeantDays | None:
    """Return the days that a phrase means, None if it has its year, is vague, or is ambiguous.

    Raises ValueError and OverflowError for dates that do not exist.
    """
    words = phrase.words
    if not words.keys().isdisjoint(_NEVER) or any(map(_FOLLOWING.match, phrase.texts.values())):
        return None
    is_once = not words.keys().isdisjoint(_ONCE) or words.get("REL") == -1
    if not is_once and sentence.has("habit", phrase.start, phrase.end):
        return None
    context = Context(phrase, sentence, said_at, said_at.date(), sentence.direction(phrase.start, phrase.end))
    if phrase.kind:
        return _KINDS[phrase.kind](context)
    return next((read for name, read in _CLASSES.items() if name in words), _calendar_unit)(context)
