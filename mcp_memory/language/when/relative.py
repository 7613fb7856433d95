"""The meaning of a phrase in a turn, and the context that the readers of phrases get.

Phrases of turns that count from the day they were said: two weeks ago, in ten days, a week on Thursday, next month.

Days are exact; weeks are about; months and years are exact only to the month and the year.

Phrases of turns that name a day by its distance or its weekday: tomorrow, last night, on Friday, next Tuesday.

Phrases of turns that name a month or a date without its year: 31 March, in May, Thursday the 19th.

Which days a phrase means in what somebody said on a day; None where that is not certain.

`meaning` reads questions, which look back. A turn looks either way, so here each phrase needs words that say which:
its own ("last", "in two weeks") or those of its sentence (`cues`). Where two readings are common ("next Friday", said
on a Monday) both days are given. All is in naive local days; weeks begin on Monday.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from functools import cache
from typing import Any, Literal, NamedTuple

from mcp_memory.language import patterns_of
from mcp_memory.language.when.intervals import meaning
from mcp_memory.language.when.phrases import Direction, Phrase, Sentence

Unit = Literal["day", "month", "year"]
DAY = timedelta(days=1)
WEEK = timedelta(weeks=1)


class Meant(NamedTuple):
    """Days from `first` to `last`, both included, to be shown as exactly as `unit`.

    `about`: only roughly. `either`: one of the two days, none between. `only_year`: the rest stands in the text.
    """

    first: date
    last: date
    unit: Unit = "day"
    about: bool = False
    either: bool = False
    only_year: bool = False


class Context(NamedTuple):
    """A phrase, the cues of its sentence, and the naive local moment at which it was said."""

    phrase: Phrase
    sentence: Sentence
    said_at: datetime
    today: date
    direction: Direction | None


@cache
def _words(name: str) -> re.Pattern[str]:
    return re.compile(dict(patterns_of("mcp_memory.language", "data", "time_words.txt"))[name])


def next_weekday(today: date, weekday: int) -> date | None:
    """Return the next such day; on the day itself it is not certain which is meant."""
    ahead = (weekday - today.weekday()) % 7
    return today + ahead * DAY if ahead else None


def last_weekday(today: date, weekday: int) -> date:
    return today - ((today.weekday() - weekday) % 7 or 7) * DAY


def counted(context: Context, sign: int) -> Meant | None:
    """Two weeks ago, in two weeks: days are exact, weeks are not, months and years only to the month and year."""
    words = context.phrase.words
    if "AMOUNT" in words:
        unit, count = words["AMOUNT"]
    else:
        unit, count = words.get("UNIT"), words.get("NUM", words.get("WORD", 1))
    if "HALF" in words:
        unit, count = "month", 6 if unit == "year" else 0
    if not count or (context.phrase.before and _words("more").match(context.phrase.before[-1])):
        return None
    today = context.today
    match unit:
        case "day":
            day = today + sign * count * DAY
            return Meant(day, day, about="AMOUNT" in words or count in (8, 15) or count >= 20)
        case "week":
            day = today + sign * count * WEEK
            return Meant(day, day, about=True)
        case "month":
            year, month = divmod(today.year * 12 + today.month - 1 + sign * count, 12)
            day = date(year, month + 1, 1)
            return Meant(day, day, "month", about=True)
        case "year":
            day = date(today.year + sign * count, 1, 1)
            return Meant(day, day, "year", about=True)
        case _:
            return None


def counted_ahead(context: Context) -> Meant | None:
    phrase = context.phrase
    surely = _words("surely_ahead").match(phrase.head.lower()) or "AHEAD" in phrase.words
    if context.direction == "past":
        return None
    looks_ahead = context.direction == "future" or (context.direction is None and "ONE" not in phrase.words)
    if not surely and (not looks_ahead or _may_be_a_duration(context)):
        return None
    if not surely and context.sentence.has("past", phrase.start, phrase.end):
        return None
    if "AGO" in phrase.words or any(_words("frequency").match(word) for word in phrase.before):
        return None
    return counted(context, 1)


def _may_be_a_duration(context: Context) -> bool:
    """Five flights in two months, fix this in a day; but "the exam is in a week"."""
    phrase = context.phrase
    if phrase.after in ("from", "of", "for") or any(_words("number").match(word) for word in phrase.before):
        return True
    singular = "ONE" in phrase.words or 1 in (phrase.words.get("NUM"), phrase.words.get("WORD"))
    return singular and bool(phrase.before) and not _words("comes").match(phrase.before[-1])


def counted_later(context: Context) -> Meant | None:
    """三天后, 3日後に, 사흘 뒤: from now only where the sentence looks ahead; else it may be later than another day."""
    if context.direction != "future" or context.phrase.said.get("THAT") in ("内", "內"):
        return None
    return counted(context, 1)


def counted_from(context: Context) -> Meant | None:
    """A week on Thursday, a week from tomorrow, heute in einer Woche, de mañana en ocho."""
    phrase, words = context.phrase, context.phrase.words
    if "AT" in words and phrase.said["AT"] != "from":
        return None
    if "AMOUNT" in words:
        unit, count = words["AMOUNT"]
    else:
        unit, count = words.get("UNIT", "day"), words.get("NUM", words.get("WORD", 1))
    weeks = count if unit == "week" else _DAYS_AS_WEEKS.get(count, 0) if unit == "day" else 0
    if not 1 <= weeks <= 8 or context.direction == "past" or any(_words("rate").match(word) for word in phrase.before):
        return None
    if "UNIT" not in words and "AMOUNT" not in words and count not in (8, 15):
        return None
    return _weeks_after(context, weeks)


_DAYS_AS_WEEKS = {7: 1, 8: 1, 14: 2, 15: 2, 21: 3}
"""The day itself counts in many languages: eight days are a week."""


def _weeks_after(context: Context, weeks: int) -> Meant | None:
    words = context.phrase.words
    if "DAY" in words:
        day = context.today + words["DAY"] * DAY if words["DAY"] >= 0 else None
    else:
        day = next_weekday(context.today, words["WEEKDAY"])
    return Meant(day + weeks * WEEK, day + weeks * WEEK) if day else None


def counted_before(context: Context) -> Meant | None:
    """Heute vor einer Woche."""
    words = context.phrase.words
    length = {"day": DAY, "week": WEEK}.get(words["UNIT"])
    if length is None or words["DAY"] != 0:
        return None
    day = context.today - length * words.get("NUM", words.get("WORD", 1))
    return Meant(day, day)


def week_later(context: Context) -> Meant | None:
    """Thursday week, tomorrow week."""
    if context.phrase.said["UNIT"] != "week" or context.direction == "past":
        return None
    return _weeks_after(context, 1)


def next_but_one(context: Context) -> Meant | None:
    """The week after next, the month before last."""
    words, said = context.phrase.words, context.phrase.said
    shift = {("after", "next"): 2, ("before", "last"): -2}.get((said["FUNC"], said["REL"]))
    return shifted(context, words["UNIT"], shift) if shift else None


# --- weeks, weekends, months, years -----------------------------------------------------------------


def calendar_unit(context: Context) -> Meant | None:
    phrase, words = context.phrase, context.phrase.words
    if words.keys() & {"NUM", "WORD", "ONE", "ORD", "NTH", "HALF", "AMOUNT"}:
        return None
    unit, shift = words.get("SHIFT") or (words.get("UNIT"), words.get("REL"))
    if unit == "weekend":
        return _weekend(context, shift, exact="SHIFT" in words)
    if unit is None or shift is None:
        return None
    return None if phrase.said.get("UNIT") == "г" else shifted(context, unit, shift)


def shifted(context: Context, unit: Any, shift: int) -> Meant | None:
    today = context.today
    match unit:
        case "week":
            if shift == 0 and today.weekday() == 6:  # the week may begin with today
                return None
            monday = today + shift * WEEK - today.weekday() * DAY
            return Meant(monday, monday + 6 * DAY)
        case "weekend":
            return _weekend(context, shift, exact=True)
        case "month":
            year, month = divmod(today.year * 12 + today.month - 1 + shift, 12)
            return Meant(date(year, month + 1, 1), date(year, month + 1, 1), "month")
        case "year":
            return Meant(date(today.year + shift, 1, 1), date(today.year + shift, 1, 1), "year")
        case _:
            return None


def _weekend(context: Context, shift: int | None, *, exact: bool) -> Meant | None:
    """`exact`: of that week, as one word says it. Else "next weekend" is the coming one or the one after it."""
    today, direction = context.today, context.direction
    saturday = today + (5 - today.weekday()) * DAY
    on_one = today.weekday() >= 5
    if shift is None:  # "on the weekend" is as often every one
        return None
    if not on_one and ((shift == 0 and direction == "past") or (shift == 1 and not exact)):
        return None
    return Meant(saturday + shift * WEEK, saturday + shift * WEEK + DAY)


def whole_day(context: Context) -> Meant | None:
    phrase, words = context.phrase, context.phrase.words
    if time() < context.said_at.time() < time(4):  # tonight's today, or tomorrow's? but midnight is a date alone
        return None
    if phrase.said.get("DAYPART") in ("heute nacht", "cette nuit", "stanotte"):
        return None
    last = phrase.before[-1] if phrase.before else ""
    if "like" in phrase.before:  # it feels like only yesterday
        return None
    if phrase.said.get("DAY") == "manana" and _words("a_morning").match(last):
        return None
    if phrase.head == "Morgen" and "DAY" in words and (last or not phrase.after or len(words) > 1):
        return None
    offset = words["DAY"] if "DAY" in words else words["DAYPART"][0]
    day = context.today + offset * DAY
    return Meant(day, day)


def part_of_day(context: Context) -> Meant | None:
    """Read "this morning", "last night"; "next morning" counts from another day."""
    shift = context.phrase.words.get("REL")
    if shift not in (0, -1) or time() < context.said_at.time() < time(4):
        return None
    day = context.today + shift * DAY
    return Meant(day, day)


def day_of_week(context: Context) -> Meant | None:
    phrase, words, today = context.phrase, context.phrase.words, context.today
    if "WEEKOF" in words or "SHIFT" in words or words.get("UNIT") == "week":
        found = meaning(words, context.said_at)
        return Meant(found.start.date(), found.start.date()) if found else None
    if "UNIT" in words:
        return None
    weekday: int = words["WEEKDAY"]
    shift: int | None = words.get("REL")
    ahead = (weekday - today.weekday()) % 7 or 7
    monday = today - today.weekday() * DAY
    if phrase.kind == "by":
        return None
    match shift:
        case None:
            return _bare_weekday(context, weekday)
        case 0:
            day = monday + weekday * DAY
            return Meant(day, day) if day > today else None
        case 1:
            soonest, next_week = today + ahead * DAY, monday + WEEK + weekday * DAY
            if _words("coming").search(" ".join(phrase.said.values())):
                return Meant(soonest, soonest)
            return Meant(soonest, next_week, either=soonest != next_week)
        case -1:
            latest, last_week = last_weekday(today, weekday), monday - WEEK + weekday * DAY
            if "past" in phrase.said.get("REL", "").split() or "this" in phrase.said.get("REL", ""):
                return Meant(latest, latest)
            return Meant(last_week, latest, either=latest != last_week)
        case _:
            return None


def _bare_weekday(context: Context, weekday: int) -> Meant | None:
    if _counts_from_another(context.phrase) or weekday == context.today.weekday():
        return None
    day: date | None = None
    if context.direction == "past":
        day = last_weekday(context.today, weekday)
    elif context.direction == "future":
        day = next_weekday(context.today, weekday)
    return Meant(day, day) if day else None


def _counts_from_another(phrase: Phrase) -> bool:
    """Tell whether a weekday may be one near another date: "from 3 May until Friday", "am Samstag danach"."""
    return phrase.among or _words("afterwards").match(phrase.after) is not None


def by_weekday(context: Context) -> Meant | None:
    """By, until, since a weekday."""
    head, weekday = context.phrase.head.lower(), context.phrase.words["WEEKDAY"]
    if _counts_from_another(context.phrase) or weekday == context.today.weekday() or context.direction == "unsure":
        return None
    day: date | None
    if _words("since").match(head):
        day = last_weekday(context.today, weekday)
    elif _words("until").match(head):  # "it lasted until Tuesday" is told from another day
        day = next_weekday(context.today, weekday) if context.direction != "past" else None
    else:
        return _bare_weekday(context, weekday) if "FROM" in context.phrase.words else None
    return Meant(day, day) if day else None


_FAR = timedelta(days=200)
"""Without a year, a day of the month is not looked for further away than this."""
_NEAR = timedelta(days=60)
"""And without a word that shows the direction, not further than this."""


def weekday_with_date(context: Context) -> Meant | None:
    """Thursday the 19th: the one near by that is a Thursday. Thursday 19 March: the year in which it is."""
    words, today = context.phrase.words, context.today
    number: int = words["ORD"] if "ORD" in words else words["NUM"]
    if "MONTH" in words:
        return _of_the_year(context, words["MONTH"], number)
    first, last = {"past": (-32, 0), "future": (0, 45)}.get(context.direction or "", (-7, 35))
    around = (today + n * DAY for n in range(first, last + 1))
    fitting = [day for day in around if day.day == number and day.weekday() == words["WEEKDAY"]]
    return Meant(fitting[0], fitting[0]) if len(fitting) == 1 else None


def in_month(context: Context) -> Meant | None:
    words = context.phrase.words
    number = words.get("NUM", words.get("ORD", words.get("NTH")))
    if "SHIFT" in words or words.get("UNIT") in ("year", "month"):
        found = meaning(words, context.said_at)
        if not found or "EDGE" in words:
            return None
        return Meant(found.start.date(), found.start.date(), "day" if number else "month")
    if "UNIT" in words or "REL" in words:
        return _month_before_or_after(context) if "REL" in words and "UNIT" not in words else None
    if number:
        return _of_the_year(context, words["MONTH"], number)
    return _bare_month(context)


def _of_the_year(context: Context, month: int, number: int) -> Meant | None:
    today, direction = context.today, context.direction
    days = [day for year in (-1, 0, 1) if (day := _date(today.year + year, month, number))]
    if "WEEKDAY" in context.phrase.words:  # it tells the year, whatever the sentence is about
        days = [day for day in days if day.weekday() == context.phrase.words["WEEKDAY"]]
        near = _FAR
    elif direction == "unsure":
        return None
    else:
        near = _FAR if direction else _NEAR
        days = [day for day in days if not (day > today if direction == "past" else day < today)] if direction else days
    nearest = min(days, key=lambda day: abs(day - today), default=None)
    if nearest is None or abs(nearest - today) > near:
        return None
    return Meant(nearest, nearest, "year", only_year=True)


def _date(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:  # the 29th of February
        return None


def _bare_month(context: Context) -> Meant | None:
    """In May, with a cue: the one before or after, or this one."""
    month, today = context.phrase.words["MONTH"], context.today
    ahead = (month - today.month) % 12
    match context.direction:
        case "future" if ahead <= 8:
            year = today.year + (month < today.month)
        case "past" if ahead == 0 or ahead >= 4:
            year = today.year - (month > today.month)
        case _:
            return None
    return Meant(date(year, month, 1), date(year, month, 1), "year", only_year=True)


def _month_before_or_after(context: Context) -> Meant | None:
    """Next May, last May: certain where this year's is no candidate."""
    words, today = context.phrase.words, context.today
    match words["REL"]:
        case 1 if words["MONTH"] < today.month:
            year = today.year + 1
        case -1 if words["MONTH"] > today.month:
            year = today.year - 1
        case 0:
            year = today.year
        case _:
            return None
    return Meant(date(year, words["MONTH"], 1), date(year, words["MONTH"], 1), "year", only_year=True)


def meant(phrase: Phrase, sentence: Sentence, said_at: datetime) -> Meant | None:
    """Return the days that a phrase means, None where it names its year, is vague, or can mean others too.

    Raises ValueError and OverflowError for a day that no calendar has.
    """
    direction = sentence.direction(phrase.start, phrase.end)
    context = Context(phrase, sentence, said_at, said_at.date(), direction)
    words = phrase.words
    if words.keys() & _NEVER or ("YEAR" in words) or _told_from_another_day(phrase):
        return None
    if sentence.has("habit", phrase.start, phrase.end) and not _is_said_once(words):
        return None
    if phrase.kind:
        return _KINDS[phrase.kind](context)
    if words.keys() & {"AGO", "PRIOR"}:
        return counted(context, -1)
    if "DAY" in words or "DAYPART" in words:
        return whole_day(context)
    if "MONTH" in words:
        return in_month(context)
    if "WEEKDAY" in words or "WEEKOF" in words:
        return day_of_week(context)
    if "PART" in words:
        return part_of_day(context)
    return calendar_unit(context)


def _is_said_once(words: Mapping[str, Any]) -> bool:
    """Tell whether even in a sentence about a habit it is one time: yesterday, last week, Friday 3 April."""
    return not words.keys().isdisjoint(("DAY", "DAYPART", "AGO", "PRIOR", "MONTH")) or words.get("REL") == -1


_NEVER = {"DATE", "LATELY", "PAST", "SEASON", "QUARTER", "FEAST", "NTHOF", "FEW", "EVERY", "NOT"}
_FOLLOWING = re.compile(r"siguiente|seguinte|предыдущ|ess[ea]$|ness[ea]$|前年|다음 해")
"""Words that count from the day that is told of, not from the day on which it is told."""


def _told_from_another_day(phrase: Phrase) -> bool:
    return any(_FOLLOWING.match(said) for said in phrase.said.values())


_KINDS: dict[str, Callable[[Context], Meant | None]] = {
    "ahead": counted_ahead,
    "later": counted_later,
    "from": counted_from,
    "before": counted_before,
    "week": week_later,
    "next but one": next_but_one,
    "dated": weekday_with_date,
    "by": by_weekday,
}
