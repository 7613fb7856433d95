"""Time filters: dates, date-times and natural phrases."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from mcp_memory.errors import InvalidInput
from mcp_memory.text import iso
from mcp_memory.when import parse_time

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("2026", datetime(2026, 1, 1), datetime(2027, 1, 1)),
        ("2026-12", datetime(2026, 12, 1), datetime(2027, 1, 1)),
        ("2026-04-30", datetime(2026, 4, 30), datetime(2026, 5, 1)),
    ],
)
def test_a_bare_date_is_its_whole_span(text: str, start: datetime, end: datetime) -> None:
    assert parse_time(text, what="since", now=NOW) == start.astimezone()
    assert parse_time(text, what="until", now=NOW, end=True) == end.astimezone()


def test_a_time_keeps_its_offset() -> None:
    moment = parse_time("2026-04-16T22:19:53.895+08:00", what="since", now=NOW)
    assert moment == datetime(2026, 4, 16, 22, 19, 53, 895000, tzinfo=timezone(timedelta(hours=8)))
    assert iso(moment) == "2026-04-16T22:19:53.895+08:00"


@pytest.mark.parametrize("text", ["", "tomorrow-ish", "2026-13-01", "9999-12-31", "12:00", "∞"])
def test_what_is_no_date_gets_an_example_of_one(text: str) -> None:
    with pytest.raises(InvalidInput, match="Write 2026-04-16"):
        parse_time(text, what="since", now=NOW, end=True)


def test_a_moment_of_another_zone_is_the_same_moment() -> None:
    assert parse_time("2026-01-01T00:00:00Z", what="since", now=NOW) == datetime(2026, 1, 1, tzinfo=UTC)
