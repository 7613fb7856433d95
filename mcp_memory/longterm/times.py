"""Times of statements: from when and until when one holds, dates for relative expressions, and how to show them.

A statement about the future holds as a plan, from when it was said. One about the past holds as a memory, without an
end: its text says when it was. Only a condition that holds now and ends on a known day gets an end; events never do.
An unreadable time is replaced by that of the turn.

A time is kept as a moment: a year, month, week or day as the midnight with which it begins, in the zone of this
machine, and the time of a turn unchanged. `date_of` shows it as exactly as the text of the statement has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta

from mcp_memory.core.text import with_zone
from mcp_memory.language.when.annotate import with_dates
from mcp_memory.language.when.intervals import back, spans_in

_A_DAY = timedelta(days=1)
_YEARS = 1000, 2200  # a year outside is a misreading


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """When a statement holds. `notes`: the given times that were ignored."""

    since: datetime
    until: datetime | None
    now: bool
    """It holds at the time it is said, so that it can be a fact."""
    notes: Sequence[str]


def holds(valid_from: str | None, valid_to: str | None, said_at: datetime, *, lasting: bool) -> Times:
    """Return when a statement of a turn holds; `lasting` if it states a condition and not an event."""
    since, until = _moment(valid_from, said_at), _moment(valid_to, said_at, end=True)
    notes: list[str] = []
    if valid_from and _BEFORE.match(valid_from):
        since = None  # an unknown day; only the time of saying is known
    elif valid_from and since is None:
        notes.append(f"{valid_from!r} is no date; it counts as true from {said_at:%Y-%m-%d}, when it was said")
    if valid_to and until is None:
        notes.append(f"{valid_to!r} is no date; it counts as open")
    to_come = since is not None and since - said_at > _A_DAY
    over = until is not None and until <= said_at
    return Times(
        since=min(since, said_at) if since else said_at,
        until=until if lasting and not over else None,
        now=not to_come and not over,
        notes=notes,
    )


_BEFORE = re.compile(r"\s*(?:before|until|by|<)(?![a-z])", re.IGNORECASE)
_WRITTEN = re.compile(r"(\d{4})(?:[-/.年](\d{1,2})(?:[-/.月](\d{1,2})日?)?)?[月年]?")


def _moment(given: str | None, said_at: datetime, *, end: bool = False) -> datetime | None:
    """Return a date or time as a moment, for `end` the moment when a day, month or year is over; None if it is none."""
    text = (given or "").strip()
    try:
        if written := _WRITTEN.fullmatch(text):
            year, month, day = (int(part) if part else None for part in written.groups())
            start = datetime(year or 0, month or 1, day or 1)
            moment = _next(start, "day" if day else "month" if month else "year") if end else start
        else:
            moment = datetime.fromisoformat(text)
        # Not said_at's offset: a day begins at midnight in summer and in winter.
        moment = with_zone(moment)
    except (ValueError, OverflowError):
        return _as_words(text, said_at, end=end)
    return moment if _YEARS[0] <= moment.year <= _YEARS[1] else None


def _as_words(text: str, said_at: datetime, *, end: bool) -> datetime | None:
    """Return what words such as "six months ago" or "7 May 2023" mean, if they are all that is given."""
    spans = spans_in(text, said_at) if text else []
    if len(spans) != 1 or 2 * len(spans[0].text) < len(text):
        return None
    return spans[0].end if end else spans[0].start


def _next(start: datetime, unit: str) -> datetime:
    """Return the moment when a day, month or year that begins so is over; the last one that there is has no end."""
    try:
        return back(start, unit, -1)
    except (ValueError, OverflowError):
        return datetime.max.replace(tzinfo=start.tzinfo)


def _after(moment: datetime, span: timedelta) -> datetime:
    """Return the moment so much later, or the last or first one that there is: people say that something never ends."""
    try:
        return moment + span
    except OverflowError:
        return (datetime.max if span > timedelta(0) else datetime.min).replace(tzinfo=moment.tzinfo)


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


# --- shown ------------------------------------------------------------------------------------------

_ABOUT = re.compile(r"\b(?:in )?(?:about|around|circa|roughly|etwa|ungefähr|vers|hacia) (?=\d{4}\b)", re.IGNORECASE)
_WEEK = re.compile(
    r"\bweek of\b|\bwoche\b|\bsemaine\b|\bsemana\b|\bsettimana\b|\bнедел|\b주\b|\b주간|星期"
    r"|[一每这這那该該本当當][个個]?[周週]",  # 周 alone is a surname, too
    re.IGNORECASE,
)


def date_of(moment: datetime, text: str) -> str:
    """Return the time of a statement for people and models, as exact as its text has it.

    `2022`, `2022-05`, `2022-05-09`, `2022-05-09 – 2022-05-15`, or, marked as such, the day it was said if no other time
    is known.
    """
    span = span_of(moment, text)
    return _days(*span) if span else f"told {moment:%Y-%m-%d}"


def span_of(moment: datetime, text: str, *, named: bool = False) -> tuple[datetime, datetime] | None:
    """Return the time of a statement, from its first moment to the one after its last, as exact as its text has it.

    None if only the day it was said is known; with `named`, also if the text does not name the time.
    """
    found = _named(moment, text)
    if moment.time() != time() or (named and found is None):
        return None
    start, end = found or (moment, _next(moment, _unit(moment)))
    if moment.weekday() == 0 and end - start <= _A_DAY and _WEEK.search(text):
        return moment, _after(moment, 7 * _A_DAY)
    return start, end


_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
_MARK = 3  # letters beside a time that say no more than how exact it is, such as 左右
_SOME = re.compile(r"(?<=[日号號])(?:前不久|不久前|前[后後]?)")  # else 28日前 may be 28 days ago


def is_only_a_time(text: str) -> bool:
    """Return whether a clause says when and nothing else."""
    spans = spans_in(text, datetime.now(UTC))
    rest = "".join(text[start:stop] for start, stop in _between([span.at for span in spans], len(text)))
    return bool(spans) and sum(map(str.isalpha, rest)) <= _MARK


def with_its_date(text: str, said_at: datetime) -> str:
    """Return a statement with the dates of "yesterday" and its like, which mean nothing to whoever reads it later.

    One that names a year has its dates.
    """
    named = any(_YEAR.search(span.text) for span in spans_in(text, said_at))
    return text if named else with_dates(text, said_at)


def without_dates(text: str) -> str:
    """Return a text without the days, months and years that it names by numbers: people say "yesterday"."""
    text = _SOME.sub("", text)
    dates = [span.at for span in spans_in(text, datetime.now(UTC)) if any(map(str.isdigit, span.text))]
    return "".join(text[start:stop] for start, stop in _between(dates, len(text)))


def _between(taken: Sequence[tuple[int, int]], length: int) -> Iterator[tuple[int, int]]:
    at = 0
    for start, stop in sorted(taken):
        yield at, start
        at = stop
    yield at, length


def _unit(moment: datetime) -> str:
    """Return what begins at a midnight, if it is not known to be less: on 1 January a year."""
    return "day" if moment.day > 1 else "month" if moment.month > 1 else "year"


def _named(moment: datetime, text: str) -> tuple[datetime, datetime] | None:
    """Return the most exact time that a text names and that has the moment in it."""
    spans = spans_in(_ABOUT.sub("in ", text), moment)
    around = [(span.start, span.end) for span in spans if span.start <= moment < span.end]
    return min(around, key=lambda span: span[1] - span[0], default=None)
