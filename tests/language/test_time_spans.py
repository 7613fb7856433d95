"""Time phrases inside questions: what is found and what it denotes, in each language; and what is no time."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.language.when.intervals import Span, spans_in

NOW = datetime(2026, 11, 20, 12, 0).astimezone()  # a Friday


def found(text: str) -> list[tuple[str, str]]:
    """Each phrase with its interval: one day, its first and last day, or to the hour."""
    return [(span.text, shown(span)) for span in spans_in(text, NOW)]


def shown(span: Span) -> str:
    start, end = span.start.replace(tzinfo=None), span.end.replace(tzinfo=None)
    if start.hour or end.hour or start.minute or end.minute:
        return f"{start:%Y-%m-%d %H:%M} {end:%Y-%m-%d %H:%M}"
    last = end - timedelta(days=1)
    return f"{start:%Y-%m-%d}" if start == last else f"{start:%Y-%m-%d} {last:%Y-%m-%d}"


ENGLISH = [
    ("What did I cook last weekend?", "last weekend", "2026-11-14 2026-11-15"),
    ("the cafe I told you about two weeks ago", "two weeks ago", "2026-11-06"),
    ("What happened in March 2023?", "March 2023", "2023-03-01 2023-03-31"),
    ("What did I do on May 7th?", "May 7th", "2026-05-07"),
    ("what happened on 7 may 2023", "7 may 2023", "2023-05-07"),
    ("the second of May", "second of May", "2026-05-02"),
    ("on Tue, 5 Mar 2024", "Tue, 5 Mar 2024", "2024-03-05"),
    ("Jan. 5, 2024 was cold", "Jan. 5, 2024", "2024-01-05"),
    ("Which spot did we visit in May?", "May", "2026-05-01 2026-05-31"),
    ("in December", "December", "2025-12-01 2025-12-31"),
    ("in May last year", "May last year", "2025-05-01 2025-05-31"),
    ("last Tuesday", "last Tuesday", "2026-11-17"),
    ("last Friday", "last Friday", "2026-11-13"),
    ("Tuesday last week", "Tuesday last week", "2026-11-10"),
    ("What did I do on Sunday with Anna?", "Sunday", "2026-11-15"),
    ("since Monday", "Monday", "2026-11-16"),
    ("on Sunday afternoon", "Sunday afternoon", "2026-11-15 12:00 2026-11-15 18:00"),
    ("this morning", "this morning", "2026-11-20 04:00 2026-11-20 12:00"),
    ("last night", "last night", "2026-11-19 18:00 2026-11-20 06:00"),
    ("the day before yesterday", "the day before yesterday", "2026-11-18"),
    ("this year", "this year", "2026-01-01 2026-12-31"),
    ("last month", "last month", "2026-10-01 2026-10-31"),
    ("over the weekend", "weekend", "2026-11-14 2026-11-15"),
    ("in the past three months", "the past three months", "2026-08-20 2026-11-20"),
    ("over the last year", "the last year", "2025-11-20 2026-11-20"),
    ("a couple of weeks ago", "a couple of weeks ago", "2026-10-30 2026-11-06"),
    ("half a year ago", "half a year ago", "2026-05-20"),
    ("an hour ago", "an hour ago", "2026-11-20 11:00 2026-11-20 11:01"),
    ("a fortnight ago", "a fortnight ago", "2026-11-06"),
    ("in spring 2024", "spring 2024", "2024-03-01 2024-05-31"),
    ("last summer", "last summer", "2026-06-01 2026-08-31"),
    ("in the winter of 2023", "winter of 2023", "2023-12-01 2024-02-29"),
    ("in Q2 2024", "Q2 2024", "2024-04-01 2024-06-30"),
    ("the third quarter of 2024", "third quarter of 2024", "2024-07-01 2024-09-30"),
    ("the first half of September 2022", "the first half of September 2022", "2022-09-01 2022-09-15"),
    ("the last day of April", "the last day of April", "2026-04-30"),
    ("the first week of May", "first week of May", "2026-05-01 2026-05-07"),
    ("the first weekend of May", "first weekend of May", "2026-05-02 2026-05-03"),
    ("the last weekend of May", "the last weekend of May", "2026-05-30 2026-05-31"),
    ("last Christmas", "last Christmas", "2025-12-25"),
    ("How often did I go in 2023?", "2023", "2023-01-01 2023-12-31"),
    ("on February 29", "February 29", "2024-02-29"),
    ("on 25/12/2024", "25/12/2024", "2024-12-25"),
    ("2026/5/7", "2026/5/7", "2026-05-07"),
]
CHINESE = [
    ("我上个月去了哪里", "上个月", "2026-10-01 2026-10-31"),
    ("昨天晚上吃了什么", "昨天晚上", "2026-11-19 17:00 2026-11-20 00:00"),
    ("上周六我担心的是什么?", "上周六", "2026-11-14"),
    ("三天前", "三天前", "2026-11-17"),
    ("两周前我说了什么", "两周前", "2026-11-06"),
    ("去年夏天", "去年夏天", "2025-06-01 2025-08-31"),
    ("五月二号", "五月二号", "2026-05-02"),
    ("2023年5月2日", "2023年5月2日", "2023-05-02"),
    ("二〇二三年十二月", "二〇二三年十二月", "2023-12-01 2023-12-31"),
    ("四月最后一天", "四月最后一天", "2026-04-30"),
    ("上个月5号", "上个月5号", "2026-10-05"),
    ("上個週末", "上個週末", "2026-11-14 2026-11-15"),
    ("过去三个月", "过去三个月", "2026-08-20 2026-11-20"),
    ("今早", "今早", "2026-11-20 04:00 2026-11-20 12:00"),
    ("2024年第二季度", "2024年第二季度", "2024-04-01 2024-06-30"),
    ("五一那天我去了哪儿", "五一那天", "2026-05-01"),
    ("半年前", "半年前", "2026-05-20"),
]
JAPANESE = [
    ("先週の火曜日に何をした?", "先週の火曜日", "2026-11-10"),
    ("昨日の夜は何を食べた?", "昨日の夜", "2026-11-19 18:00 2026-11-20 06:00"),
    ("3日前に", "3日前", "2026-11-17"),
    ("二週間前の店", "二週間前", "2026-11-06"),
    ("先月のこと", "先月", "2026-10-01 2026-10-31"),
    ("5月3日に", "5月3日", "2026-05-03"),
    ("去年の夏に", "去年の夏", "2025-06-01 2025-08-31"),
    ("2023年5月の旅", "2023年5月", "2023-05-01 2023-05-31"),
    ("この前の日曜日に", "この前の日曜日", "2026-11-15"),
    ("先週末に", "先週末", "2026-11-14 2026-11-15"),
    ("過去3ヶ月で", "過去3ヶ月", "2026-08-20 2026-11-20"),
]
KOREAN = [
    ("지난주에 뭐 했지?", "지난주", "2026-11-09 2026-11-15"),
    ("지난주 월요일에", "지난주 월요일", "2026-11-09"),
    ("3일 전에", "3일 전", "2026-11-17"),
    ("2주전에 말한 카페", "2주전", "2026-11-06"),
    ("두 달 전", "두 달 전", "2026-09-20"),
    ("어제 저녁에", "어제 저녁", "2026-11-19 17:00 2026-11-20 00:00"),
    ("작년 여름에", "작년 여름", "2025-06-01 2025-08-31"),
    ("2023년 5월 7일에", "2023년 5월 7일", "2023-05-07"),
    ("지난 화요일부터", "지난 화요일", "2026-11-17"),
    ("일주일 전에", "일주일 전", "2026-11-13"),
]
GERMAN = [
    ("Was war am 3. Mai?", "3. Mai", "2026-05-03"),
    ("vor zwei Wochen", "vor zwei Wochen", "2026-11-06"),
    ("letzten Dienstag", "letzten Dienstag", "2026-11-17"),
    ("letzte Woche", "letzte Woche", "2026-11-09 2026-11-15"),
    ("im Mai 2023", "Mai 2023", "2023-05-01 2023-05-31"),
    ("gestern Abend", "gestern Abend", "2026-11-19 17:00 2026-11-20 00:00"),
    ("heute Morgen", "heute Morgen", "2026-11-20 04:00 2026-11-20 12:00"),
    ("am Wochenende", "Wochenende", "2026-11-14 2026-11-15"),
    ("vor einem halben Jahr", "vor einem halben Jahr", "2026-05-20"),
    ("in den letzten drei Monaten", "letzten drei Monaten", "2026-08-20 2026-11-20"),
    ("im Sommer 2024", "Sommer 2024", "2024-06-01 2024-08-31"),
    ("seit Montag", "Montag", "2026-11-16"),
    ("am 24.12.2025", "24.12.2025", "2025-12-24"),
]
FRENCH = [
    ("Qu'ai-je fait il y a deux semaines ?", "il y a deux semaines", "2026-11-06"),
    ("la semaine dernière", "semaine dernière", "2026-11-09 2026-11-15"),
    ("le 3 mai 2023", "3 mai 2023", "2023-05-03"),
    ("le 1er mai", "1er mai", "2026-05-01"),
    ("mardi dernier", "mardi dernier", "2026-11-17"),
    ("au printemps 2024", "printemps 2024", "2024-03-01 2024-05-31"),
    ("hier soir", "hier soir", "2026-11-19 17:00 2026-11-20 00:00"),
    ("avant-hier", "avant-hier", "2026-11-18"),
    ("l’année dernière", "année dernière", "2025-01-01 2025-12-31"),
    ("ces trois derniers mois", "trois derniers mois", "2026-08-20 2026-11-20"),
]
SPANISH = [
    ("¿Qué hice hace dos semanas?", "hace dos semanas", "2026-11-06"),
    ("la semana pasada", "semana pasada", "2026-11-09 2026-11-15"),
    ("el 3 de mayo de 2023", "3 de mayo de 2023", "2023-05-03"),
    ("el martes pasado", "martes pasado", "2026-11-17"),
    ("en mayo", "mayo", "2026-05-01 2026-05-31"),
    ("ayer por la tarde", "ayer por la tarde", "2026-11-19 12:00 2026-11-19 20:00"),
    ("anoche", "anoche", "2026-11-19 18:00 2026-11-20 06:00"),
    ("el fin de semana pasado", "fin de semana pasado", "2026-11-14 2026-11-15"),
    ("en los últimos tres meses", "los últimos tres meses", "2026-08-20 2026-11-20"),
]
PORTUGUESE = [
    ("O que fiz há duas semanas?", "há duas semanas", "2026-11-06"),
    ("duas semanas atrás", "duas semanas atrás", "2026-11-06"),
    ("na semana passada", "semana passada", "2026-11-09 2026-11-15"),
    ("3 de maio de 2023", "3 de maio de 2023", "2023-05-03"),
    ("na terça-feira passada", "terça-feira passada", "2026-11-17"),
    ("ontem à noite", "ontem à noite", "2026-11-19 18:00 2026-11-20 06:00"),
    ("no verão passado", "verão passado", "2026-06-01 2026-08-31"),
]
ITALIAN = [
    ("Cosa ho fatto due settimane fa?", "due settimane fa", "2026-11-06"),
    ("la settimana scorsa", "settimana scorsa", "2026-11-09 2026-11-15"),
    ("il 3 maggio 2023", "3 maggio 2023", "2023-05-03"),
    ("martedì scorso", "martedì scorso", "2026-11-17"),
    ("a maggio", "maggio", "2026-05-01 2026-05-31"),
    ("l'altro ieri", "l'altro ieri", "2026-11-18"),
    ("negli ultimi tre mesi", "negli ultimi tre mesi", "2026-08-20 2026-11-20"),
]
RUSSIAN = [
    ("Что я делал две недели назад?", "две недели назад", "2026-11-06"),
    ("неделю назад", "неделю назад", "2026-11-13"),
    ("на прошлой неделе", "прошлой неделе", "2026-11-09 2026-11-15"),
    ("3 мая 2023 года", "3 мая 2023 года", "2023-05-03"),
    ("в прошлый вторник", "прошлый вторник", "2026-11-17"),
    ("в мае", "мае", "2026-05-01 2026-05-31"),
    ("вчера вечером", "вчера вечером", "2026-11-19 17:00 2026-11-20 00:00"),
    ("прошлым летом", "прошлым летом", "2026-06-01 2026-08-31"),
    ("за последние три месяца", "последние три месяца", "2026-08-20 2026-11-20"),
    ("в 2023 году", "2023 году", "2023-01-01 2023-12-31"),
]


@pytest.mark.parametrize(
    ("text", "phrase", "interval"),
    [*ENGLISH, *CHINESE, *JAPANESE, *KOREAN, *GERMAN, *FRENCH, *SPANISH, *PORTUGUESE, *ITALIAN, *RUSSIAN],
)
def test_a_phrase_denotes_its_interval(text: str, phrase: str, interval: str) -> None:
    assert found(text) == [(phrase, interval)]


@pytest.mark.parametrize(
    "text",
    [
        # words that are times elsewhere
        "May I ask what may happen?", "I may 2 times go there", "this may help", "The troops march to the store",
        "Give me a second", "He is second to none", "What did April say about June?", "Was it painted by June or May?",
        "the fall of Rome", "in the spring roll", "What did I spend on Sunday roast?", "He lives on Wednesday Street",
        "Black Friday deals", "Write it in 2000 words", "FIFA 2023 and version 2024.1.3", "Sun Microsystems",
        "Guten Morgen, wie geht es dir?", "Ich sitze vor dem Haus", "mon frère aime le mardi gras", "cosa fa Anna",
        "segunda pergunta, quarta vez", "день рождения мамы", "周杰伦的歌", "五月天的演唱会", "5号线在哪", "一年级的老师",
        "名前は何ですか", "夏目漱石の本", "3일 전시회", "生日蛋糕", "전시회는 어디",
        # how long, how often, and what is told from another moment
        "How many days did it take?", "for two weeks", "What did I do in two weeks?", "I'll be back in 5 minutes",
        "for a year and a half", "How many weeks ago did I go?", "on Sundays", "on a Sunday", "every day", "the next day",
        "a year later", "the day before the wedding", "my last week at work", "last minute changes", "the last day",
        "drei Wochen lang", "jeden Montag", "pendant trois semaines", "le lundi", "chaque dimanche", "los lunes",
        "ogni sabato", "il lunedì lavoro", "каждый понедельник", "три недели подряд", "住了三个月", "每周一我去游泳",
        "三週間かかった", "毎週月曜日に", "3일 동안 뭐 했어", "매주 월요일에",
        # parts of what would be another time, or of none
        "twenty-two days ago", "2.5 weeks ago", "on 31 April", "on 03/04/2024", "2023-02-30", "99999 years ago",
    ],
)  # fmt: skip
def test_what_is_not_surely_a_time_is_left_alone(text: str) -> None:
    assert found(text) == []


def test_each_of_several_phrases_is_found() -> None:
    assert found("the two novels I finished in January and March, not on 2026-05-07") == [
        ("January", "2026-01-01 2026-01-31"),
        ("March", "2026-03-01 2026-03-31"),
        ("2026-05-07", "2026-05-07"),
    ]


def test_a_span_tells_where_it_stands_and_how_vague_it_is() -> None:
    weeks, june = spans_in("What did I read two weeks ago, and on 1 June?", NOW)
    assert (weeks.text, weeks.at, shown(weeks), weeks.slack) == (
        "two weeks ago", (16, 29), "2026-11-06", timedelta(days=3.5),
    )  # fmt: skip
    assert (june.text, june.at, shown(june), june.slack) == ("1 June", (38, 44), "2026-06-01", timedelta(0))


def test_a_span_tells_how_far_away_a_moment_is() -> None:
    (span,) = spans_in("yesterday", NOW)
    assert span.away(span.start) == timedelta(0)
    assert span.away(span.end - timedelta(minutes=1)) == timedelta(0)
    assert span.away(span.start - timedelta(hours=3)) == -timedelta(hours=3)
    assert span.away(span.end + timedelta(days=2)) == timedelta(days=2)


def test_a_winter_is_the_latest_that_has_begun() -> None:
    in_february = datetime(2026, 2, 10, 12, 0).astimezone()
    assert [shown(span) for span in spans_in("in winter", in_february)] == ["2025-12-01 2026-02-28"]
    assert [shown(span) for span in spans_in("last winter", in_february)] == ["2024-12-01 2025-02-28"]


def test_a_month_ago_on_a_day_that_the_month_lacks_is_its_last_day() -> None:
    on_the_31st = datetime(2026, 3, 31, 12, 0).astimezone()
    assert [shown(span) for span in spans_in("a month ago", on_the_31st)] == ["2026-02-28"]


# --- laws -------------------------------------------------------------------------------------------

WORDS = st.sampled_from(
    [
        "What",
        "did",
        "I",
        "cook",
        "Anna",
        "the",
        "house?",
        "我",
        "做",
        "什么",
        "Где",
        "книга",
        "chat",
        "Katze",
        "本を読む",
    ]
)


@given(st.lists(WORDS), st.dates(date(1900, 1, 1), date(2199, 12, 31)), st.lists(WORDS))
def test_a_date_written_out_is_always_found_and_is_that_day(before: list[str], day: date, after: list[str]) -> None:
    (span,) = spans_in(" ".join([*before, day.isoformat(), *after]), NOW)
    assert (span.text, shown(span)) == (day.isoformat(), day.isoformat())


@given(st.lists(WORDS).map(" ".join))
def test_a_text_without_words_for_times_holds_none(text: str) -> None:
    assert spans_in(text, NOW) == []


PHRASES = [text for table in (ENGLISH, CHINESE, JAPANESE, KOREAN, GERMAN, FRENCH, RUSSIAN) for text, _, _ in table]


@given(
    st.lists(st.sampled_from(PHRASES) | st.text(max_size=5), max_size=5).map(" ".join),
    st.datetimes(datetime(1990, 1, 1), datetime(2089, 12, 31)),
)
def test_spans_never_overlap_and_hold_the_words_that_stand_there(text: str, now: datetime) -> None:
    spans = spans_in(text, now)
    assert all(text[slice(*span.at)] == span.text for span in spans)
    assert all(before.at[1] <= after.at[0] for before, after in pairwise(spans))
    assert all(span.start < span.end for span in spans)


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    assert all(span.text in text for span in spans_in(text, NOW))
