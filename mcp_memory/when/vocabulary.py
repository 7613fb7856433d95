"""What a language brings to the grammar of times: its words by class, and shapes of phrases of its own.

A text becomes a row of tokens, each of one class; a shape is a pattern over classes. Only a language's file knows
its words, only `meaning` knows what a set of classes denotes, so a new language is one file of words.

| class | its words | value |
|---|---|---|
| NUM, ORD, YEAR, DATE | digits: 7, 7th, 2023, 2023-05-07 | the number; the date |
| WORD, ONE, HALF, FEW | two · a · half · a couple of | the number; 1; 1; (fewest, most) |
| NTH | first, as a word | the number |
| UNIT, AMOUNT | week · fortnight | unit; (unit, how many) |
| MONTH, MON, MAY | May · Mar · may, which is also another word | 1 to 12 |
| WEEKDAY, WDAY | Tuesday · Tue | 0 (Monday) to 6 |
| SEASON, QUARTER, PART | spring · Q2 · morning | 0 to 3; 1 to 4; (from, to) in hours of the day |
| FEAST | Christmas | (month, day) |
| DAY, DAYPART | yesterday · tonight | days from today; (days, part) |
| LATELY | the other day | (unit, fewest, most) back |
| REL, RELP | last, this, next before the word they belong to · after it, or on either side | −1, 0, 1 |
| SHIFT | last week, as one word | (unit, −1, 0, 1 …) |
| WEEKOF | Tuesday of last week, as one word | (weeks, weekday) |
| NTHOF | first week (of May), as one word | (unit, 1, 2 …, −1) |
| PAST | the past (three weeks) | whether it may stand before a bare day or hour |
| AGO, PRIOR | ago after the amount · before it | |
| AHEAD | before an amount that is still to come (through two weeks, in Russian) | |
| EDGE | early, mid, late, end of | (from, to) as shares of the whole |
| IN, ON, AT, FROM, THE, OF, AND, THAT, EVERY | what joins and introduces | |
| FUNC, NOT | a known word that is no time · a phrase that looks like a time and is none | |
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["ANCHORS", "LETTER", "PREPOSITIONS", "Language", "each", "same"]

_CLASSES = (
    "NUM ORD YEAR DATE WORD ONE HALF FEW NTH UNIT AMOUNT MONTH MON MAY WEEKDAY WDAY SEASON QUARTER PART FEAST DAY "
    "DAYPART LATELY REL RELP SHIFT WEEKOF NTHOF PAST AGO PRIOR EDGE IN ON AT FROM THE OF AND THAT EVERY FUNC NOT "
    "PLAIN NAME COMMA DOT DASH APOS MARK AHEAD"
)

LETTER: Mapping[str, str] = dict(zip(_CLASSES.split(), string.ascii_letters, strict=False))
"""The letter that stands for a class where a row of tokens is matched as a string."""

_ANCHORS = "UNIT AMOUNT MONTH MON MAY WEEKDAY WDAY SEASON QUARTER PART FEAST DAY DAYPART LATELY SHIFT WEEKOF"
ANCHORS = frozenset(_ANCHORS.split())
"""Classes without which no phrase is a time, but for dates and years in digits."""

PREPOSITIONS = frozenset(LETTER[name] for name in ("IN", "ON", "AT", "FROM", "THE", "OF"))
"""Letters of what may stand around a phrase and is no part of it."""

Words = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """The words of a language by class, and shapes that only it has.

    `ordinals` are endings of numbers in digits (7th). Where words are not told apart by spaces, `spaced` is False
    and `forms` gives for a class the pattern of a number with its mark (5月); `tail` is then what may follow a
    word within its run of letters.

    `cues` are for turns, not for questions: a pattern each for words that show that a sentence tells of the "past",
    of the "future", of a "habit", or that its dates cannot be told from it ("unsure": birthdays, what might be).
    """

    words: Mapping[str, Words]
    shapes: str = ""
    ordinals: frozenset[str] = frozenset()
    spaced: bool = True
    forms: Mapping[str, str] = field(default_factory=dict[str, str])
    tail: str | None = None
    cues: Mapping[str, str] = field(default_factory=dict[str, str])


def each(values: Iterable[Any], text: str) -> dict[str, Any]:
    """Return each form with its value: values in order of the groups, which `;` parts, as `,` does their forms."""
    groups = text.split(";")
    return {form.strip(): value for value, group in zip(values, groups, strict=True) for form in group.split(",")}


def same(value: Any, text: str) -> dict[str, Any]:
    """Return each form, parted by commas, with the one value."""
    return {form.strip(): value for form in text.split(",")}
