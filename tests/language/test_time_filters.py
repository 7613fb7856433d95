"""Time filters: dates, date-times and natural phrases."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.text import iso
from mcp_memory.core.types import NewTurn
from mcp_memory.language.when.intervals import parse_time
from mcp_memory.service.memory import open_memory
from mcp_memory.testing import FixedClock, HashEmbedder

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def test_a_moment_is_itself_and_keeps_its_offset() -> None:
    moment = parse_time("2026-04-16T22:19:53.895+08:00", what="since", now=NOW)
    assert moment == datetime(2026, 4, 16, 22, 19, 53, 895000, tzinfo=timezone(timedelta(hours=8)))
    assert iso(moment) == "2026-04-16T22:19:53.895+08:00"
    assert parse_time("2026-01-01T00:00:00Z", what="since", now=NOW) == datetime(2026, 1, 1, tzinfo=UTC)
    assert parse_time("now", what="as_of", now=NOW, end=True) == NOW


@pytest.mark.parametrize(
    "text", ["", "tomorrow-ish", "2026-13-01", "9999-12-31", "12:00", "∞", "2 weeks", "before yesterday"]
)
def test_what_is_no_time_gets_examples_of_some(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"since .* is not a date or time .* Write 2026-04-16.*last week"):
        parse_time(text, what="since", now=NOW, end=True)


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("2026", datetime(2026, 1, 1), datetime(2027, 1, 1)),
        ("2026-12", datetime(2026, 12, 1), datetime(2027, 1, 1)),
        ("2026-04-30", datetime(2026, 4, 30), datetime(2026, 5, 1)),
        ("yesterday", datetime(2026, 11, 19), datetime(2026, 11, 20)),
        ("Last week", datetime(2026, 11, 9), datetime(2026, 11, 16)),
        ("3 days ago", datetime(2026, 11, 17), datetime(2026, 11, 18)),
        ("two months ago", datetime(2026, 9, 20), datetime(2026, 9, 21)),
        ("in May", datetime(2026, 5, 1), datetime(2026, 6, 1)),
        ("may 31", datetime(2026, 5, 31), datetime(2026, 6, 1)),
        ("since Monday", datetime(2026, 11, 16), datetime(2026, 11, 17)),
        ("tue", datetime(2026, 11, 17), datetime(2026, 11, 18)),
        ("this morning", datetime(2026, 11, 20, 4), datetime(2026, 11, 20, 12)),
        ("the weekend", datetime(2026, 11, 14), datetime(2026, 11, 16)),
        ("Q2 2024", datetime(2024, 4, 1), datetime(2024, 7, 1)),
        ("summer", datetime(2026, 6, 1), datetime(2026, 9, 1)),
        ("last 30 days", datetime(2026, 10, 21), datetime(2026, 11, 21)),
        ("7.5.2024", datetime(2024, 5, 7), datetime(2024, 5, 8)),
        ("上周", datetime(2026, 11, 9), datetime(2026, 11, 16)),
        ("先週", datetime(2026, 11, 9), datetime(2026, 11, 16)),
        ("3日前", datetime(2026, 11, 17), datetime(2026, 11, 18)),
        ("지난주", datetime(2026, 11, 9), datetime(2026, 11, 16)),
        ("seit Montag", datetime(2026, 11, 16), datetime(2026, 11, 17)),
        ("depuis mardi", datetime(2026, 11, 17), datetime(2026, 11, 18)),
        ("desde el lunes", datetime(2026, 11, 16), datetime(2026, 11, 17)),
        ("desde ontem", datetime(2026, 11, 19), datetime(2026, 11, 20)),
        ("da lunedì", datetime(2026, 11, 16), datetime(2026, 11, 17)),
        ("с понедельника", datetime(2026, 11, 16), datetime(2026, 11, 17)),
    ],
)
def test_a_date_or_a_phrase_is_all_of_what_it_names(text: str, start: datetime, end: datetime) -> None:
    now = NOW.replace(tzinfo=None).astimezone()
    assert parse_time(text, what="since", now=now) == start.astimezone()
    assert parse_time(text, what="until", now=now, end=True) == end.astimezone()


@pytest.mark.parametrize("text", ["03/04/2024", "3-4-2024"])
def test_what_can_be_two_times_is_refused_with_both(text: str) -> None:
    with pytest.raises(InvalidInput, match=f"until '{text}' can be 2024-03-04 or 2024-04-03. Write 2026-04-16"):
        parse_time(text, what="until", now=NOW, end=True)


async def test_searches_take_phrases_as_of_their_clock(home: Path) -> None:
    clock = FixedClock(datetime(2026, 11, 18, 12, 0).astimezone())
    async with open_memory(home=home, now=clock, embedder=HashEmbedder()) as memory:
        for _ in range(3):
            await memory.record_turns([NewTurn(role="user", content=f"walked the dog, {clock():%A}")])
            clock.advance(days=1)
        results = await memory.conversation_search("dog", since="two days ago", until="two days ago")
        assert [hit.turn.content for hit in results.hits] == ["walked the dog, Thursday"]
        known = await memory.memory_search("dog", as_of="yesterday", since="last week")
        assert {hit.turn.content[16:] for hit in known.turns} == {"Wednesday", "Thursday", "Friday"}
