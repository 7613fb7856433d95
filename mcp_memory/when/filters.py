"""A time filter (`since`, `until`, `as_of`, `valid_from`) read as a moment."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from mcp_memory.errors import InvalidInput
from mcp_memory.text import one_line

__all__ = ["parse_time"]


def parse_time(text: str, *, what: str, now: datetime, end: bool = False) -> datetime:
    """Return the aware moment that a date or time names; without an offset it is local time.

    A bare date (`2026-04-16`, `2026-04`, `2026`) is its first moment, or with `end` the first moment after it.
    """
    value = text.strip()
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
        moment = moment if moment.tzinfo else moment.astimezone()
        moment.astimezone(UTC)  # the year 1 has no moment before it
    except (ValueError, OverflowError, OSError):
        raise InvalidInput(
            f"{what} {one_line(text, 40)!r} is not a date or time. Write 2026-04-16 or 2026-04-16T22:19:53+08:00."
        ) from None
    return moment
