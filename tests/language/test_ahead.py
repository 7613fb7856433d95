"""Days that orders and reminders name: always the next such day."""

from __future__ import annotations

from datetime import date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.language.when.ahead import days_ahead

THURSDAY = datetime(2026, 6, 11, 12)


@pytest.mark.parametrize(
    ("phrase", "day"),
    [
        ("on friday ", date(2026, 6, 12)),
        ("tomorrow morning", date(2026, 6, 12)),
        ("on 3 May", date(2027, 5, 3)),
        ("on 3 May 2028", date(2028, 5, 3)),
        ("in two weeks", date(2026, 6, 25)),
        ("in january", date(2027, 1, 1)),
        ("on 29 February", date(2028, 2, 29)),
        ("on the 15th", date(2026, 6, 15)),
        ("on the 10th", date(2026, 7, 10)),
        ("am 15. ", date(2026, 6, 15)),
        ("am 18. Juli", date(2026, 7, 18)),
        ("el día 20", date(2026, 6, 20)),
        ("demain matin", date(2026, 6, 12)),
        ("в понедельник", date(2026, 6, 15)),
        ("六月一号", date(2027, 6, 1)),
        ("来週の水曜日に", date(2026, 6, 17)),
        ("2026-07-04", date(2026, 7, 4)),
        ("on 12.11. ", date(2026, 11, 12)),
        ("am 3.5. ", date(2027, 5, 3)),
        ("on 11/12", date(2026, 11, 12)),
        ("on 25/12", date(2026, 12, 25)),
        ("1.2.2027", date(2027, 2, 1)),
        ("before Monday", date(2026, 6, 14)),
        ("vor Montag", date(2026, 6, 14)),
        ("before 3 July", date(2026, 7, 2)),
        ("by Monday", date(2026, 6, 15)),
        ("星期一之前", date(2026, 6, 14)),
        ("at the end of the month", date(2026, 6, 30)),
        ("in the morning", date(2026, 6, 12)),
        ("at 5 pm", date(2026, 6, 11)),
    ],
)
def test_a_phrase_means_its_next_day(phrase: str, day: date) -> None:
    assert [found.day for found in days_ahead(phrase, THURSDAY)] == [day]


@pytest.mark.parametrize(
    "phrase",
    [
        "on Thursday", "by Thursday", "next Thursday", "am Donnerstag", "el jueves", "jeudi", "giovedì", "na quinta-feira",
        "в четверг", "星期四", "木曜日に", "목요일에",
    ],
)  # fmt: skip
def test_a_weekday_said_on_that_weekday_is_a_week_later(phrase: str) -> None:
    assert [found.day for found in days_ahead(phrase, THURSDAY)] == [date(2026, 6, 18)]


@pytest.mark.parametrize("phrase", ["this Thursday", "today", "diesen Donnerstag", "este jueves", "ce jeudi"])
def test_but_not_with_a_word_for_this(phrase: str) -> None:
    assert [found.day for found in days_ahead(phrase, THURSDAY)] == [date(2026, 6, 11)]


@pytest.mark.parametrize(
    "phrase",
    [
        "tomorrow at 9", "at 9 tomorrow", "tomorrow at 5pm", "tomorrow at 14:00", "tomorrow at noon",
        "morgen um 15 Uhr", "um 15 Uhr morgen", "mañana a las 5", "demain à 17h", "domani alle 9", "amanhã às 9h",
        "завтра в 9", "明天下午三点",
    ],
)  # fmt: skip
def test_a_time_of_the_day_belongs_to_its_day(phrase: str) -> None:
    assert [(found.start, found.end, found.day) for found in days_ahead(phrase, THURSDAY)] == [
        (0, len(phrase), date(2026, 6, 12))
    ]


@pytest.mark.parametrize("phrase", ["when I mention Lisbon", "in 2019", "on 3 May 2020", "for two weeks"])
def test_other_phrases_mean_no_day(phrase: str) -> None:
    assert days_ahead(phrase, THURSDAY) == ()


@given(st.text(max_size=60), st.datetimes())
def test_any_text_has_days_within_it_from_the_moment_on(text: str, moment: datetime) -> None:
    for found in days_ahead(text, moment):
        assert 0 <= found.start < found.end <= len(text)
        assert found.day >= moment.date()
