"""The meaning of a phrase in a turn, and the context that the readers of phrases get."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Literal, NamedTuple

from mcp_memory.language.when.cues import Direction, Sentence
from mcp_memory.language.when.phrases import Phrase

__all__ = ["DAY", "WEEK", "Context", "Meant", "last_weekday", "next_weekday"]

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


def next_weekday(today: date, weekday: int) -> date | None:
    """Return the next such day; on the day itself it is not certain which is meant."""
    ahead = (weekday - today.weekday()) % 7
    return today + ahead * DAY if ahead else None


def last_weekday(today: date, weekday: int) -> date:
    return today - ((today.weekday() - weekday) % 7 or 7) * DAY
