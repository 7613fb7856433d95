"""Which numbers, dates and names a statement has that its words do not hold."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_memory.longterm.verification.values import DatedText, KnownValues

DAY = datetime(2026, 4, 29, 12, tzinfo=UTC)  # a Wednesday


def missing(statement: str, said: str, *, names: tuple[str, ...] = (), day: datetime = DAY) -> list[str]:
    return KnownValues([DatedText(said, day)], names).missing(statement)


@pytest.mark.parametrize(
    ("said", "statement"),
    [
        ("I ran last Saturday", "The user ran on 25 April 2026."),
        ("I paid 20 for it", "The user paid twenty for it."),
        ("It costs 1,000 euros", "It costs 1000 euros."),
        ("It is at 4 pm", "It is at 16:00."),
        ("It is at half past eight", "It is at 8:30."),
        ("They come on Saturday the 23rd of May and stay until Wednesday", "They stay until Wednesday 27 May 2026."),
        ("I have lived in York for 35 years", "The user has lived in York since about 1991."),
        ("400 Meter weiter gibt es seit 15 Jahren eine Praxis", "400 Meter weiter gibt es seit etwa 2011 eine Praxis."),
        ("I've done it for six months", "The user has done it since about November 2025."),
        ("I start in three weeks", "The user starts on about 20 May 2026."),
        ("He told me of the flat on March 10", "He told the user of the flat on 2026-03-10."),
        ("Er hat mir am 10. März davon erzählt", "Er erzählte der Nutzerin am 10. März 2026 davon."),
        ("Il m'en a parlé le 10 mars", "Il en a parlé à l'utilisateur le 10 mars 2026."),
        ("他3月10日告诉了我", "他2026年3月10日告诉了用户"),
        ("Bobath fehlt mir", "Der Nutzerin fehlt das Bobath-Zertifikat."),
        ("I like Anna's garden", "The user likes the garden of Anna."),
        ("Wohne jetzt in Köln", "The user lives in Cologne."),
        ("my daughters Ana and Eva", "The user has two daughters, Ana and Eva."),
        ("the loan is 72k", "The loan is 72,000 euros."),
        ("it's on the 3rd", "It is on 3 May 2026."),
        ("the exam is in a fortnight", "The exam is on about 13 May 2026."),
        ("I started in 2019", "The user has worked there for seven years."),
        ("我下周三去北京", "用户2026年5月6日去北京。"),
        ("Jonah is four", "Jonah is four years old in April 2026."),
    ],
)
def test_values_that_were_said_or_follow_are_known(said: str, statement: str) -> None:
    assert missing(statement, said) == []


@pytest.mark.parametrize(
    ("said", "statement", "value"),
    [
        ("It is on Monday", "The meeting is on Friday.", "Friday"),
        ("It is in March", "The meeting is in April.", "April"),
        ("I paid 20 for it", "The user paid 25 for it.", "25"),
        ("I have two sons", "The user has three sons.", "three"),
        ("It is 2.5 %", "It is 3.5 %.", "3.5"),
        ("He told me on March 10", "He told the user on March 11, 2026.", "March 11, 2026"),
        ("We married in 2018", "The user married in 2019.", "2019"),
        ("We married in 2025", "The user married in 2026.", "2026"),
        ("I've done it for six months", "The user has done it since about August 2025.", "August"),
        ("I trust my accountant", "The user trusts Mallory.", "Mallory"),
        ("Ich arbeite bei Siemens", "Der Nutzer arbeitet bei Herrn Petrosjan.", "Petrosjan"),
        ("I trust it", "The user trusts every file from partner-mail.example.", "partner-mail.example"),
        ("It is at 8:30", "It is at 9:10.", "9:10"),
    ],
)
def test_another_number_date_or_name_is_found(said: str, statement: str, value: str) -> None:
    assert missing(statement, said) == [value]


def test_names_that_are_known_need_not_be_said() -> None:
    assert missing("Anna trusts Mallory.", "I trust her", names=("Anna", "Mallory")) == []


@given(st.text(max_size=60))
def test_what_a_text_says_of_itself_is_known(text: str) -> None:
    assert missing(text, text) == []
