"""Phrases of turns that name a day by its distance or its weekday: tomorrow, last night, on Friday, next Tuesday."""

from __future__ import annotations

import re
from datetime import date, time

from mcp_memory.language.when.meaning import meaning
from mcp_memory.language.when.phrases import Phrase
from mcp_memory.language.when.reading import DAY, WEEK, Context, Meant, last_weekday, next_weekday

__all__ = ["by_weekday", "day_of_week", "part_of_day", "whole_day"]


def whole_day(context: Context) -> Meant | None:
    phrase, words = context.phrase, context.phrase.words
    if time() < context.said_at.time() < time(4):  # tonight's today, or tomorrow's? but midnight is a date alone
        return None
    if phrase.said.get("DAYPART") in ("heute nacht", "cette nuit", "stanotte"):
        return None
    last = phrase.before[-1] if phrase.before else ""
    if "like" in phrase.before:  # it feels like only yesterday
        return None
    if phrase.said.get("DAY") == "manana" and last in _A_MORNING:
        return None
    if phrase.head == "Morgen" and "DAY" in words and (last or not phrase.after or len(words) > 1):
        return None
    offset = words["DAY"] if "DAY" in words else words["DAYPART"][0]
    day = context.today + offset * DAY
    return Meant(day, day)


_A_MORNING = frozenset(("la", "una", "cada", "esta", "toda", "aquella", "misma", "media", "buena", "por", "otra"))


def part_of_day(context: Context) -> Meant | None:
    """This morning, last night; "next morning" is told from another day."""
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
            if _COMING.search(" ".join(phrase.said.values())):
                return Meant(soonest, soonest)
            return Meant(soonest, next_week, either=soonest != next_week)
        case -1:
            latest, last_week = last_weekday(today, weekday), monday - WEEK + weekday * DAY
            if "past" in phrase.said.get("REL", "").split() or "this" in phrase.said.get("REL", ""):
                return Meant(latest, latest)
            return Meant(last_week, latest, either=latest != last_week)
        case _:
            return None


_COMING = re.compile(r"kommend|que viene|que vem|proxim|次の")
"""Words for next that mean the one that comes first."""


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
    return phrase.among or _AFTERWARDS.match(phrase.after) is not None


_AFTERWARDS = re.compile(
    r"(?:after|before|following|later|that|of|danach|darauf|davor|drauf|nach|vor|suivant|d'apres|despues|antes|depois|"
    r"dopo|prima|successiv\w*|после|перед|до)$"
)


def by_weekday(context: Context) -> Meant | None:
    """By, until, since a weekday."""
    head, weekday = context.phrase.head.lower(), context.phrase.words["WEEKDAY"]
    if _counts_from_another(context.phrase) or weekday == context.today.weekday() or context.direction == "unsure":
        return None
    day: date | None
    if head in _SINCE:
        day = last_weekday(context.today, weekday)
    elif head in _UNTIL:  # "it lasted until Tuesday" is told from another day
        day = next_weekday(context.today, weekday) if context.direction != "past" else None
    else:
        return _bare_weekday(context, weekday) if "FROM" in context.phrase.words else None
    return Meant(day, day) if day else None


_SINCE = frozenset(("since", "seit", "seit dem", "depuis", "depuis le", "desde el", "desde", "desde a"))
_UNTIL = frozenset(
    ("by", "until", "till", "bis", "bis zum", "ab", "hasta", "hasta el", "jusqu'à", "até", "fino a", "до")
)
