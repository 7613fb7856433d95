"""Phrases of turns that name a month or a date without its year: 31 March, in May, Thursday the 19th."""

from __future__ import annotations

from datetime import date, timedelta

from mcp_memory.language.when.meaning import meaning
from mcp_memory.language.when.reading import DAY, Context, Meant

__all__ = ["in_month", "weekday_with_date"]

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
