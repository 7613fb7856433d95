"""A time filter (`since`, `until`, `as_of`, `valid_from`) read as a moment."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.text import one_line, zoned
from mcp_memory.language.when.spans import readings_of

__all__ = ["parse_time"]

_UNDERSTOOD = (
    "Write 2026-04-16, 2026-04, 2026-04-16T22:19:53+08:00, or a phrase such as yesterday, last week, 3 days ago, "
    "since Monday, May 2026, spring 2026, Q2 2026, this morning; other languages work too."
)


def parse_time(text: str, *, what: str, now: datetime, end: bool = False) -> datetime:
    """Return the aware moment that a date, a time or a phrase names; without an offset it is local time.

    What lasts (`2026-04-16`, `2026`, `last week`) is its first moment, or with `end` the first moment after it.
    Phrases are understood as of `now`. Raises InvalidInput, naming the argument (`what`) and what would be
    understood, for what is no time and for what can be two.
    """
    value = text.strip()
    moment = _written_out(value, end=end)
    if moment is not None:
        return moment
    if value.lower() == "now":
        return now
    readings = readings_of(value, now) if len(value) <= 100 else []
    if len(readings) == 1:
        return readings[0].end if end else readings[0].start
    problem = "is not a date or time that is understood"
    if readings:
        problem = "can be " + " or ".join(f"{span.start:%Y-%m-%d}" for span in readings)
    elif len(set(ambiguous := _slashed(value))) == 2:
        problem = f"can be {ambiguous[0]} or {ambiguous[1]}"
    raise InvalidInput(f"{what} {one_line(text, 40)!r} {problem}. {_UNDERSTOOD}")


def _written_out(value: str, *, end: bool) -> datetime | None:
    try:
        if re.fullmatch(r"\d{4}", value):
            start = datetime(int(value), 1, 1)
            moment = start.replace(year=start.year + 1) if end else start
        elif re.fullmatch(r"\d{4}-\d{2}", value):
            start = datetime.fromisoformat(value + "-01")
            moment = (start + timedelta(days=32)).replace(day=1) if end else start
        elif re.fullmatch(r"\d{4}-\d{2}-\d{2}", value):
            moment = datetime.fromisoformat(value) + timedelta(days=1 if end else 0)
        else:
            moment = datetime.fromisoformat(value)
        return zoned(moment)
    except (ValueError, OverflowError):  # the year 1 has no moment before it
        return None


def _slashed(value: str) -> list[str]:
    """Return the two days that 3/4/2026 can be."""
    match = re.fullmatch(r"(\d{1,2})[/-](\d{1,2})[/-](\d{4})", value)
    if not match:
        return []
    one, other, year = map(int, match.groups())
    return [f"{year}-{one:02}-{other:02}", f"{year}-{other:02}-{one:02}"]
