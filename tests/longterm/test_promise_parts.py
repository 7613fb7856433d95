"""Promises are cut into a trigger and what to say, in either order and in many languages."""

from __future__ import annotations

from datetime import date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.longterm.promise_parts import parse_promise

SAID = datetime(2026, 6, 11, 12)


@pytest.mark.parametrize(
    ("promise", "trigger", "say", "about"),
    [
        ("Next time I mention Rome, tell me that Bo is ill.", "Next time I mention Rome", "Bo is ill", "Rome"),
        ("Remind me to buy a cup when I talk about tea", "when I talk about tea", "buy a cup", "tea"),
        ("Remind me, when we get to the act, that it is old", "when we get to the act", "it is old", "act"),
        ("Wenn ich von Ulm rede, sag mir, dass Uwe fehlt", "Wenn ich von Ulm rede", "Uwe fehlt", "Ulm"),
        (
            "Sobald wir am Vertrag sitzen, erinnere mich an die Frist",
            "Sobald wir am Vertrag sitzen",
            "die Frist",
            "am Vertrag sitzen",
        ),
        (
            "La próxima vez que hable de Jerez, recuérdame que falta la firma",
            "La próxima vez que hable de Jerez",
            "falta la firma",
            "Jerez",
        ),
        ("下次我提到成都,提醒我小李还欠我两百块", "下次我提到成都", "小李还欠我两百块", "成都"),
    ],
)
def test_a_trigger_and_what_to_say_are_cut(promise: str, trigger: str, say: str, about: str) -> None:
    parts = parse_promise(promise, SAID)
    assert (parts.trigger, parts.say, parts.about, parts.due) == (trigger, say, about, None)


@pytest.mark.parametrize(
    ("promise", "day", "say"),
    [
        ("On 3 May tell me that the rent is due.", date(2027, 5, 3), "the rent is due"),
        ("Remind me on Friday to call Ana", date(2026, 6, 12), "call Ana"),
        ("on friday ping me that the pass runs out on sunday", date(2026, 6, 12), "the pass runs out on sunday"),
        ("Remind me to call Ana on Friday", date(2026, 6, 12), "call Ana"),
        ("Remind me to call Ana on Friday about the tickets", date(2026, 6, 12), "call Ana about the tickets"),
        ("Remind me before Saturday to call Ana", date(2026, 6, 12), "call Ana"),
        ("Remind me on 12.11. to call Ana", date(2026, 11, 12), "call Ana"),
        ("Tomorrow at 9 remind me to pay rent", date(2026, 6, 12), "pay rent"),
        ("On Friday at 14:00 remind me to pay rent", date(2026, 6, 12), "pay rent"),
        ("Remind me on Friday at 5pm to pay rent", date(2026, 6, 12), "pay rent"),
        ("Erinnere mich am Freitag um 15 Uhr an den Zahnarzt", date(2026, 6, 12), "den Zahnarzt"),
        ("Recuérdame el viernes a las 5 que llame a Ana", date(2026, 6, 12), "llame a Ana"),
        ("Rappelle-moi vendredi à 17h d'appeler Ana", date(2026, 6, 12), "appeler Ana"),
        ("明天下午三点提醒我开会", date(2026, 6, 12), "开会"),
        ("金曜日に薬を飲むように言って", date(2026, 6, 12), "薬を飲む"),
        ("Remind me on my birthday, 5 December, to call mum", date(2026, 12, 5), "call mum"),
        ("Remind me at the end of the month to send the bill", date(2026, 6, 30), "send the bill"),
        ("Remind me in the morning to call Ana", date(2026, 6, 12), "call Ana"),
        ("rappelle-moi demain matin d'appeler la mutuelle", date(2026, 6, 12), "appeler la mutuelle"),
        ("am 26. erinner mich, keine Jobs zu starten", date(2026, 6, 26), "keine Jobs zu starten"),
    ],
)
def test_a_day_alone_makes_a_promise_due(promise: str, day: date, say: str) -> None:
    parts = parse_promise(promise, SAID)
    assert (parts.due, parts.say, parts.is_date) == (day, say, True)


def test_a_subject_may_have_a_day_from_which_it_counts() -> None:
    parts = parse_promise("When I talk about the roof in October, tell me that Jan has the ladder", SAID)
    assert (parts.about, parts.due, parts.is_date) == ("roof", date(2026, 10, 1), False)


def test_a_sentence_without_a_trigger_is_its_own() -> None:
    parts = parse_promise("Bruno owes me 40 euros", SAID)
    assert parts.trigger == parts.say == "Bruno owes me 40 euros"


@given(st.text(max_size=120))
def test_the_trigger_stands_in_the_promise(text: str) -> None:
    assert parse_promise(text, SAID).trigger in " ".join(text.split())
