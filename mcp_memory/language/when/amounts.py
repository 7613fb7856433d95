"""Phrases of turns that count from the day they were said: two weeks ago, in ten days, a week on Thursday, next month.

Days are exact; weeks are about; months and years are exact only to the month and the year.
"""

from __future__ import annotations

import re
from datetime import date
from typing import Any

from mcp_memory.language.when.reading import DAY, WEEK, Context, Meant, next_weekday

__all__ = [
    "calendar_unit",
    "counted",
    "counted_ahead",
    "counted_before",
    "counted_from",
    "counted_later",
    "next_but_one",
    "week_later",
]


def counted(context: Context, sign: int) -> Meant | None:
    """Two weeks ago, in two weeks: days are exact, weeks are not, months and years only to the month and year."""
    words = context.phrase.words
    if "AMOUNT" in words:
        unit, count = words["AMOUNT"]
    else:
        unit, count = words.get("UNIT"), words.get("NUM", words.get("WORD", 1))
    if "HALF" in words:
        unit, count = "month", 6 if unit == "year" else 0
    if not count or (context.phrase.before and context.phrase.before[-1] in _MORE):
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


_MORE = frozenset(("and", "than", "und", "als", "et", "que", "y", "de", "e", "и", "чем", "every"))
"""Words in front of an amount that make it another one: two and a half years, less than a month."""


def counted_ahead(context: Context) -> Meant | None:
    phrase = context.phrase
    surely = phrase.head.lower() in _SURELY_AHEAD or "AHEAD" in phrase.words
    if context.direction == "past":
        return None
    looks_ahead = context.direction == "future" or (context.direction is None and "ONE" not in phrase.words)
    if not surely and (not looks_ahead or _may_be_a_duration(context)):
        return None
    if not surely and context.sentence.has("past", phrase.start, phrase.end):
        return None
    if "AGO" in phrase.words or any(_FREQUENCY.match(word) for word in phrase.before):
        return None
    return counted(context, 1)


def _may_be_a_duration(context: Context) -> bool:
    """Five flights in two months, fix this in a day; but "the exam is in a week"."""
    phrase = context.phrase
    if phrase.after in ("from", "of", "for") or any(_NUMBER.match(word) for word in phrase.before):
        return True
    singular = "ONE" in phrase.words or 1 in (phrase.words.get("NUM"), phrase.words.get("WORD"))
    return singular and bool(phrase.before) and not _COMES.match(phrase.before[-1])


_NUMBER = re.compile(r"\d|(?:two|three|four|five|six|ten|zwei|drei|vier|fünf|dos|tres|cuatro|cinco|dois|duas)$")
_COMES = re.compile(
    r"(?:is|are|be|s|re|due|again|you|here|there|starts?|ends?|begins?|opens?|leav\w+|com\w+|mov\w+|ist|sind|termin|"
    r"urlaub|prüfung|uns|mich|wieder|es|hay|nos|vemos|examen|prova)$"
)
_SURELY_AHEAD = frozenset(("dans", "tra", "fra", "через"))
_FREQUENCY = re.compile(
    r"once|twice|times?|per|hours?|mal$|\w*mals?$|einmal|veces|vez|fois|volte|vezes|раза?|back|"
    r"can|could|within|learn|finish|complete|done|lose|gain|lernen|schaffen|only|just|things?"
)


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
    if not 1 <= weeks <= 8 or context.direction == "past" or any(_RATE.match(word) for word in phrase.before):
        return None
    if "UNIT" not in words and "AMOUNT" not in words and count not in (8, 15):
        return None
    return _weeks_after(context, weeks)


_DAYS_AS_WEEKS = {7: 1, 8: 1, 14: 2, 15: 2, 21: 3}
"""The day itself counts in many languages: eight days are a week."""
_RATE = re.compile(r"once|twice|times?|\d|one|two|three|four|five|days?|hours?|euros?|dollars?|pounds?|per|least|most")


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
