"""Times of statements: from when and until when one holds, and dates for words that mean nothing later.

What is to come holds as a plan, from when it was told. What is over holds as a memory, without an end: it says itself
when it was, and who asks about it later asks then. Only what holds now and ends on a day that is known ends by itself;
events never do. A time that is none gives way to that of the turn.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

__all__ = ["Times", "dated", "holds"]

_A_DAY = timedelta(days=1)
_YEARS = 1000, 2200  # what lies outside was meant otherwise


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """When a statement holds. `told`: what of the given times was passed over."""

    since: datetime
    until: datetime | None
    now: bool
    """It holds at the time it is said, so that it can be a fact."""
    told: Sequence[str]


def holds(valid_from: str | None, valid_to: str | None, said_at: datetime, *, lasting: bool) -> Times:
    """Return when a statement of a turn holds; `lasting` if it tells a state and no event."""
    since, until = _moment(valid_from, said_at), _moment(valid_to, said_at, end=True)
    told: list[str] = []
    if valid_from and since is None:
        told.append(f"{valid_from!r} is no date; it counts as true from {said_at:%Y-%m-%d}, when it was said")
    if valid_to and until is None:
        told.append(f"{valid_to!r} is no date; it counts as open")
    to_come = since is not None and since > said_at + _A_DAY
    over = until is not None and until <= said_at
    return Times(
        since=min(since, said_at) if since else said_at,
        until=until if lasting and not over else None,
        now=not to_come and not over,
        told=told,
    )


_WRITTEN = re.compile(r"(\d{4})(?:[-/.年](\d{1,2})(?:[-/.月](\d{1,2})日?)?)?[月年]?")


def _moment(given: str | None, said_at: datetime, *, end: bool = False) -> datetime | None:
    """Return a date or time as a moment, for `end` the moment when a day, month or year is over; None if it is none."""
    zone = timezone(said_at.utcoffset() or timedelta())
    text = (given or "").strip()
    try:
        if written := _WRITTEN.fullmatch(text):
            year, month, day = (int(part) if part else None for part in written.groups())
            start = datetime(year or 0, month or 1, day or 1, tzinfo=zone)
            moment = _next(start, "day" if day else "month" if month else "year") if end else start
        else:
            moment = datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        return _as_words(text, said_at, end=end)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=zone)
    return moment if _YEARS[0] <= moment.year <= _YEARS[1] else None


def _as_words(text: str, said_at: datetime, *, end: bool) -> datetime | None:
    """Return what words such as "six months ago" or "7 May 2023" mean, if they are all that is given."""
    from mcp_memory.when import spans_in

    spans = spans_in(text, said_at) if text else []
    if len(spans) != 1 or 2 * len(spans[0].text) < len(text):
        return None
    return spans[0].end if end else spans[0].start


def _next(start: datetime, unit: str) -> datetime:
    match unit:
        case "day":
            return start + _A_DAY
        case "month":
            return (start + timedelta(days=31)).replace(day=1)
        case _:
            return start.replace(year=start.year + 1)


def dated(text: str, said_at: datetime) -> str:
    """Return the text with dates behind "yesterday" and its like, which mean nothing to whoever reads it later.

    Only words that move with the day are read so: those whose time is another one, seen from as much earlier or
    later as they span. "In May" may be the one before or the one after.
    """
    from mcp_memory.when import spans_in

    spans = spans_in(text, said_at)
    given = {span.start for span in spans if not _moves(span.text, span.start, span.end, said_at)}
    for span in reversed(spans):
        if span.start not in given and _moves(span.text, span.start, span.end, said_at):
            text = f"{text[: span.at[1]]} ({_days(span.start, span.end)}){text[span.at[1] :]}"
    return text


def _moves(phrase: str, start: datetime, end: datetime, said_at: datetime) -> bool:
    from mcp_memory.when import spans_in

    elsewhere = (spans_in(phrase, said_at + shift) for shift in (start - end, end - start))
    return all(len(spans) == 1 and spans[0].start != start for spans in elsewhere)


def _days(start: datetime, end: datetime) -> str:
    """Return a time as a day, a month, a year, or its first and last day."""
    last = end - timedelta(microseconds=1)
    if start.date() == last.date():
        return f"{start:%Y-%m-%d}"
    if start.day == 1 and _next(start, "month").date() == end.date():
        return f"{start:%Y-%m}"
    if start.day == start.month == 1 and _next(start, "year").date() == end.date():
        return f"{start:%Y}"
    return f"{start:%Y-%m-%d} – {last:%Y-%m-%d}"
