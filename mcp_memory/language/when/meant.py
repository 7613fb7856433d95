"""Which days a phrase means in what somebody said on a day; None where that is not certain.

`meaning` reads questions, which look back. A turn looks either way, so here each phrase needs words that say which:
its own ("last", "in two weeks") or those of its sentence (`cues`). Where two readings are common ("next Friday", said
on a Monday) both days are given. All is in naive local days; weeks begin on Monday.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from mcp_memory.language.when.amounts import (
    calendar_unit,
    counted,
    counted_ahead,
    counted_before,
    counted_from,
    counted_later,
    next_but_one,
    week_later,
)
from mcp_memory.language.when.cues import Sentence
from mcp_memory.language.when.phrases import Phrase
from mcp_memory.language.when.reading import Context, Meant
from mcp_memory.language.when.weekdays import by_weekday, day_of_week, part_of_day, whole_day
from mcp_memory.language.when.yearless import in_month, weekday_with_date

__all__ = ["meant"]


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
