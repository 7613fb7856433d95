"""Dates behind relative expressions in what somebody said: which are added, which are not, and what stays the same."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.language.when.annotate import ADDITION, with_dates

MONDAY = datetime(2026, 3, 16, 12, 0)
THURSDAY = datetime(2026, 3, 19, 12, 0)

ENGLISH = [
    # days
    "I saw Ada yesterday [15 March 2026] at the market.",
    "Let's talk tomorrow [17 March 2026]; the boat leaves the day after tomorrow [18 March 2026].",
    "We had soup last night [15 March 2026], and this morning [16 March 2026] I baked.",
    "I missed yesterday's [15 March 2026] rehearsal.",
    "The kiln arrives a week on Thursday [26 March 2026].",
    "The kiln arrives on Thursday week [26 March 2026], not tomorrow week [24 March 2026].",
    "We close a fortnight on Friday [3 April 2026] and open a week from tomorrow [24 March 2026].",
    "three days ago [13 March 2026] the pump broke",
    "My exam is in ten days [26 March 2026].",
    # weekdays
    "The choir meets next Friday [20 or 27 March 2026].",
    "The choir meets next Monday [23 March 2026].",
    "It starts Thursday next [19 or 26 March 2026].",
    "last Friday [13 March 2026] it rained",
    "We leave on Tuesday of next week [24 March 2026].",
    "I met Bo on Friday [13 March 2026].",
    "I will meet Bo on Friday [20 March 2026].",
    "He said he'll call on Friday [20 March 2026].",
    "Please send it by Wednesday [18 March 2026].",
    "It has been raining since Friday [13 March 2026].",
    "They are coming on Saturday the 21st [21 March 2026].",
    # weeks and more
    "last week [9–15 March 2026] was long",
    "Let's do it the week after next [30 March – 5 April 2026].",
    "Any plans for this weekend [21–22 March 2026]?",
    "We moved two weeks ago [about 2 March 2026].",
    "The lease ends in two weeks [about 30 March 2026].",
    "In a fortnight [about 30 March 2026] we are moving.",
    "I quit two months ago [about January 2026].",
    "I will retire next year [2027], maybe next month [April 2026].",
    "Ten years ago [about 2016] we met.",
    # without a year
    "The deadline is 31 March [2026].",
    "We will fly on Friday, April 3 [2026].",
    "I got a new bike in November [2025].",
    "We're getting married on 14 May [2026].",
    "The floor will be finished on 14 May [2026].",
    "we got married on 14 November [2025]",
    "1. March 28th [2026]: the fair",
    "Six people at 20 euros each, on Saturday the 28th of March [2026].",
    "I'll always remember our trip last year [2025].",
    "last October [2025] the roof leaked",
]
OTHERS = [
    "Übermorgen [2026-03-18] fahren wir, heute in einer Woche [2026-03-23] sind wir zurück.",
    "Freitag in einer Woche [2026-03-27] ist Probe.",
    "Am Freitag [2026-03-20] kommt Ute, am Samstag [2026-03-14] war Jan da.",
    "Letzte Woche [2026-03-09 – 2026-03-15] war ich krank, übernächste Woche [2026-03-30 – 2026-04-05] nicht.",
    "Kommenden Freitag [2026-03-20] wird gestrichen.",
    "Am 7. April [2026] ziehen wir um.",
    "El domingo que viene [2026-03-22] hay mercado.",
    "La cita es de mañana en ocho [2026-03-24].",
    "El martes [2026-03-10] fui al médico, el jueves [2026-03-19] tengo que volver.",
    "El 12 de abril [2026] tengo examen.",
    "Viene el técnico el jueves 19 [2026-03-19].",
    "Ayer [2026-03-15] llovió, y la semana pasada [2026-03-09 – 2026-03-15] también.",
    "Je pars jeudi en huit [2026-03-26], pas demain [2026-03-17].",
    "Samedi [2026-03-14] j'ai vu Paul, on se revoit mercredi.",
    "Hier soir [2026-03-15] il a plu.",
    "On se voit dans deux semaines [~2026-03-30].",
    "Il mercato è giovedì a otto [2026-03-26].",
    "Ci vediamo fra due settimane [~2026-03-30].",
    "No sábado [2026-03-14] fui à praia, na quinta-feira [2026-03-19] vou ao médico.",
    "A reunião é na semana que vem [2026-03-23 – 2026-03-29].",
    "Volto daqui a duas semanas [~2026-03-30].",
    "Послезавтра [2026-03-18] придёт мастер, через неделю [~2026-03-23] всё будет готово.",
    "下周五 [2026-03-27]我们开会，明天 [2026-03-17]不用来。",
    "我周六 [2026-03-14]去了公园，周五 [2026-03-20]要开会。每周一我去游泳。",
    "上个月 [2026-02]我搬家了。",
    "来週の金曜日 [2026-03-27]に会議があります。",
    "明後日 [2026-03-18]は休みです。",
    "다음 주 금요일 [2026-03-27]에 만나요.",
    "사흘 뒤 [~2026-03-19]에 시험을 볼 거예요.",
]


@pytest.mark.parametrize("expected", [*ENGLISH, *OTHERS])
def test_a_relative_expression_is_followed_by_its_date(expected: str) -> None:
    assert with_dates(ADDITION.sub("", expected), MONDAY) == expected


@pytest.mark.parametrize(
    "text",
    [
        # nothing to add: absolute, or no time
        "We met on 5 May 2024 and on 2025-02-01.", "Guten Morgen, hier ist Ute.", "in May 2027", "May I ask?",
        # more than one time is meant
        "The shop is closed on Friday.", "I played football every Friday.", "next weekend", "next May", "in summer",
        "a few weeks ago", "the last three months", "a couple of days ago", "recently", "for two weeks", "at Christmas",
        "I train twice a week on Thursday.", "I lost weight in two weeks.", "We did five flights in two months.",
        "I will learn it in a day.", "two and a half years ago", "It feels like yesterday.",
        "My birthday is on 3 April.", "I prepped soup on the weekend.", "Saturday, March 15", "The plan of 1999 says 3 April.", "He arrived on 5 August.",
        "If it rains on Friday, we stay.", "Ich war heute Nacht wach.", "la mañana siguiente", "三天后他走了",
        "The soup lasted me until Wednesday.", "They come from 3 May 2027 and stay until Thursday.", "We met on Monday.",
        # not what the speaker says
        "In today's world", "[today's date]", "Tasks: This Week", "`yesterday` is a variable", "```\nlast_week = tomorrow\nrun tomorrow\n```", "https://a.example/yesterday/x",
        "notes/tomorrow/next.md", 'She said "see you tomorrow" and left.', "> see you tomorrow",
    ],
)  # fmt: skip
def test_what_is_not_certain_or_needs_no_date_is_left_alone(text: str) -> None:
    assert with_dates(text, MONDAY) == text


JANUARY = datetime(2025, 1, 14, 12)


@pytest.mark.parametrize(
    "expected",
    [
        "We will go to Norway in July [2025].", "I'd like to repeat the hike we did in July [2024].", "We moved in July [2024] and will paint the flat.",
        "I'm flexible, but I'm thinking of going in July [2025] or August [2025].", "Can you tell me where I can swim as soon as in May [2025]?",
        "Wir wollen im Juli [2025] nach Norwegen.", "Im Juli [2024] waren wir in Norwegen.", "Vamos a Noruega en julio [2025].",
        "Andremo in Norvegia a luglio [2025].", "Vamos à Noruega em julho [2025].",
        "В июле [2025] поедем в Норвегию.", "我们七月 [2025]要去挪威。", "7月 [2025]にノルウェーへ行く予定です。", "7월 [2025]에 노르웨이에 갈 거예요.",
    ],
)  # fmt: skip
def test_a_month_alone_is_the_last_one_of_what_is_over_and_the_next_one_of_what_is_to_come(expected: str) -> None:
    assert with_dates(ADDITION.sub("", expected), JANUARY) == expected


@pytest.mark.parametrize(
    "text",
    [
        # a month of something that is only mentioned
        "I want to write about our trip to Norway in July.", "We should look at the sales in July.", "I must thank Otto for the help in July.",
        "Ich werde über die Reise im Juli schreiben.", "Im Juli sind wir nach Norwegen gefahren.", "Quiero escribir sobre mi viaje en julio.",
        "Je dois payer la facture en juillet.", "Devo descrivere il viaggio a luglio.", "Preciso falar da nossa viagem em julho.",
        "Хочу написать про нашу поездку в июле.", "我要打印七月的照片。", "7月の写真を印刷してください。", "7월의 사진을 인쇄해 주세요.",
        # a phrase beside its date
        "Last weekend I ran a race on Saturday, 12 March.", "I ran last weekend. It was on Saturday, 12 March.", "last week (3 January 2025)",
        "Letztes Wochenende, am Samstag, dem 12. März, lief ich.", "El fin de semana pasado, el sábado 12 de marzo, corrí.",
        "Yesterday, 2025-01-13, it rained.", "The weekend before last, on 4 January 2025, it snowed.",
    ],
)  # fmt: skip
def test_a_month_that_is_only_mentioned_and_a_phrase_beside_its_date_get_none(text: str) -> None:
    assert with_dates(text, JANUARY) == text


@pytest.mark.parametrize(
    "expected",
    [
        "Yesterday [13 January 2025] I booked flights for 2 February.",
        "Last week [6–12 January 2025] I booked flights for 2 February.",
        "I went to a retreat last year [2024] in November.",
    ],
)
def test_a_date_of_something_else_near_by_takes_no_date_away(expected: str) -> None:
    assert with_dates(ADDITION.sub("", expected), JANUARY) == expected


def test_a_weekday_of_the_same_week_that_has_passed_has_two_readings() -> None:
    assert with_dates("last Tuesday it rained", THURSDAY) == "last Tuesday [10 or 17 March 2026] it rained"
    assert with_dates("next Tuesday", THURSDAY) == "next Tuesday [24 March 2026]"


def test_a_span_over_a_turn_of_the_year_names_both_years() -> None:
    assert with_dates("last week", datetime(2026, 1, 6, 12)) == "last week [29 December 2025 – 4 January 2026]"


def test_words_for_days_are_left_alone_in_the_small_hours() -> None:
    assert with_dates("see you tomorrow", datetime(2026, 3, 16, 1, 30)) == "see you tomorrow"
    assert with_dates("see you tomorrow", datetime(2026, 3, 16)) == "see you tomorrow [17 March 2026]"


def test_a_date_that_the_writer_added_is_not_added_twice() -> None:
    assert with_dates("see you tomorrow [2026-03-17], not today", MONDAY) == (
        "see you tomorrow [2026-03-17], not today [16 March 2026]"
    )


def test_a_phrase_of_another_language_is_read_within_a_sentence() -> None:
    assert with_dates("love it, but mañana más, this is all for now", MONDAY) == (
        "love it, but mañana [2026-03-17] más, this is all for now"
    )


# --- laws -------------------------------------------------------------------------------------------

SAID = st.sampled_from([ADDITION.sub("", text) for text in (*ENGLISH, *OTHERS)])
MARKS = st.sampled_from([" [2026]", " [9–15 March 2026]", " [~2026-03-30]", "`", '"', "```", "\n", " ", ".", "[", "] "])
TEXTS = st.lists(SAID | MARKS | st.text(max_size=6), max_size=6).map("".join)


@given(TEXTS | st.text(), st.datetimes())
def test_a_second_run_adds_nothing(text: str, said_at: datetime) -> None:
    once = with_dates(text, said_at)
    assert with_dates(once, said_at) == once


@given(TEXTS | st.text(), st.datetimes())
def test_without_the_additions_the_text_is_as_it_was(text: str, said_at: datetime) -> None:
    assert ADDITION.sub("", with_dates(text, said_at)) == ADDITION.sub("", text)


@given(st.lists(SAID | st.text("ab .,!\n'", max_size=8), max_size=6).map("".join), st.datetimes())
def test_taking_out_the_additions_gives_back_a_text_without_brackets(text: str, said_at: datetime) -> None:
    assert ADDITION.sub("", with_dates(text, said_at)) == text
