"""Dates and times as pages write them: `26 Oct 2026`, `26 Oct 2026, 07:20`, in the time zone of the reader.

The browser names its zone in a cookie (`static/build.js`, `tellZone`); without it, times are in the zone of this
machine, which for `mcp-memory ui` and the App is the reader's own.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from mcp_memory.ui.elements import Element, el

ZONE_COOKIE = "mcp-memory-zone"
_ZONE_NAME = re.compile(r"[A-Za-z0-9_+\-]+(/[A-Za-z0-9_+\-]+)*")
_zone: ContextVar[tzinfo | None] = ContextVar("zone", default=None)


@contextmanager
def in_zone(name: str | None) -> Generator[None]:
    """Write times in the zone of this IANA name; in the machine's if the name is None or unknown."""
    token = _zone.set(_zone_of(name) if name else None)
    try:
        yield
    finally:
        _zone.reset(token)


def _zone_of(name: str) -> tzinfo | None:
    try:
        return ZoneInfo(name) if len(name) <= 64 and _ZONE_NAME.fullmatch(name) else None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def local(at: datetime) -> datetime:
    """Return a time in the reader's zone."""
    return at.astimezone(_zone.get())


def day_of(at: datetime) -> date:
    """Return the reader's date of a time. A date that was stored as one, midnight UTC, is that date in every zone."""
    in_utc = at.astimezone(UTC)
    return in_utc.date() if in_utc.time() == time.min else local(at).date()


def end_of(day: date) -> datetime:
    """Return when a date of the reader ends."""
    following = datetime.combine(day + timedelta(days=1), time.min)
    zone = _zone.get()
    return following.replace(tzinfo=zone) if zone else following.astimezone()


def day_text(day: date) -> str:
    """Return a date as text: `26 Oct 2026`."""
    return f"{day.day} {day:%b %Y}"


def weekday_text(day: date) -> str:
    """Return a date with its day of the week: `Thu, 12 Feb 2026`."""
    return f"{day:%a}, {day_text(day)}"


def moment(at: datetime, *, day: bool = False) -> Element:
    """Return a time, or with `day` only its date, as a `<time>` that carries the exact value."""
    text = day_text(day_of(at)) if day else f"{day_text(local(at).date())}, {local(at):%H:%M}"
    return el("time", text, datetime=at.isoformat(timespec="seconds"))


def time_span(first: datetime, last: datetime) -> Element:
    """Return a time range as short as it can be written: the date once if both ends are on one day."""
    begun, ended = local(first), local(last)
    if begun.replace(second=0, microsecond=0) == ended.replace(second=0, microsecond=0):
        return moment(first)
    if begun.date() == ended.date():
        return el("span", moment(first), "–", el("time", f"{ended:%H:%M}", datetime=last.isoformat(timespec="seconds")))
    return el("span", moment(first), " – ", moment(last))
