"""Dates and times on pages are in the reader's time zone, in one format."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from mcp_memory.ui.elements import text_of
from mcp_memory.ui.times import day_of, in_zone, local, moment, time_span

EVENING = datetime(2026, 5, 7, 22, 30, tzinfo=UTC)
STORED_DAY = datetime(2026, 5, 7, tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "time", "day"),
    [
        ("Asia/Tokyo", "8 May 2026, 07:30", "8 May 2026"),
        ("UTC", "7 May 2026, 22:30", "7 May 2026"),
        ("America/New_York", "7 May 2026, 18:30", "7 May 2026"),
    ],
)
def test_a_time_is_that_of_the_readers_zone(zone: str, time: str, day: str) -> None:
    with in_zone(zone):
        assert text_of(moment(EVENING)) == time
        assert text_of(moment(EVENING, day=True)) == day


@pytest.mark.parametrize("zone", ["Asia/Tokyo", "America/New_York", "UTC"])
def test_a_date_that_was_stored_as_a_date_is_the_same_in_every_zone(zone: str) -> None:
    with in_zone(zone):
        assert text_of(moment(STORED_DAY, day=True)) == "7 May 2026"
        assert day_of(STORED_DAY) == STORED_DAY.date()


@pytest.mark.parametrize("name", ["Nowhere/Land", "../../etc/passwd", "", "x" * 5000, "UTC\n", None])
def test_an_unknown_zone_is_that_of_the_machine(name: str | None) -> None:
    with in_zone(name):
        assert local(EVENING) == EVENING.astimezone()
        assert local(EVENING).utcoffset() == EVENING.astimezone().utcoffset()


def test_a_span_names_its_day_once() -> None:
    with in_zone("UTC"):
        assert text_of(time_span(EVENING, EVENING.replace(second=40))) == "7 May 2026, 22:30"
        assert text_of(time_span(EVENING, EVENING.replace(minute=45))) == "7 May 2026, 22:30–22:45"
        assert (
            text_of(time_span(STORED_DAY, datetime(2026, 5, 9, 8, 5, tzinfo=UTC)))
            == "7 May 2026, 00:00 – 9 May 2026, 08:05"
        )
