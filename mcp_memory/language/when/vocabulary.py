"""The classes of words in a time expression, and the reader of a language's file (`words/en.txt`).

A text becomes a row of tokens, each of one class; a shape is a pattern over classes. Only a language's file knows
its words, only `meaning` knows what a set of classes denotes, so a new language is one file of words:

    UNIT week: week, weeks              a class, its value, the forms
    EDGE 0 1/3: early, beginning of     a value of several parts; `-` is none
    shape: EDGE DASH? MAY               a pattern of this language alone (see `shapes`)
    cue past: was|were|had              a regular expression; several lines are alternatives
    ordinals: st, nd                    endings of numbers in digits
    spaced: no                          words are not separated by spaces
    form MONTH: (\\d{1,2})月             without spaces: the pattern of a number with its mark
    tail: (?:에서|에)?                   without spaces: what may follow a word

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
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from importlib import resources
from typing import Any

__all__ = ["ANCHORS", "LETTER", "PREPOSITIONS", "Language", "read_language"]

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """The words of a language by class, each form with its value, and the shapes that only this language has.

    `cues` are for turns, not for questions: for each direction ("past", "future", "habit", or "unsure": birthdays,
    what might be) a pattern of words that show it in a sentence.
    """

    words: Mapping[str, Mapping[str, Any]]
    shapes: str
    ordinals: frozenset[str]
    spaced: bool
    forms: Mapping[str, str]
    tail: str | None
    cues: Mapping[str, str]


def read_language(code: str) -> Language:
    """Read the file of a language, named by its ISO 639-1 code."""
    words: dict[str, dict[str, Any]] = {}
    forms: dict[str, str] = {}
    cues: dict[str, str] = {}
    rest: dict[str, list[str]] = {}
    text = resources.files(__package__).joinpath("words", f"{code}.txt").read_text("utf-8")
    for line in text.splitlines():
        key, _, listed = line.partition(": ")
        name, *value = key.split()
        match name:
            case "#":
                continue
            case "cue":
                cues[value[0]] = f"{cues[value[0]]}|{listed}" if value[0] in cues else listed
            case "form":
                forms[value[0]] = listed
            case _ if name in LETTER:
                words.setdefault(name, {}).update(dict.fromkeys(listed.split(", "), _value(name, value)))
            case _:
                rest.setdefault(name, []).append(listed)
    return Language(
        words=words,
        shapes="\n".join(rest.get("shape", ())),
        ordinals=frozenset(form for line in rest.get("ordinals", ()) for form in line.split(", ")),
        spaced=rest.get("spaced") != ["no"],
        forms=forms,
        tail=rest["tail"][0] if "tail" in rest else None,
        cues=cues,
    )


_NAMED = {"-": None, "yes": True, "no": False}


def _value(name: str, parts: list[str]) -> Any:
    values = [_part(part) for part in parts]
    if name == "DAYPART":
        return values[0], (values[1], values[2])
    return tuple(values) if len(values) > 1 else values[0] if values else None


def _part(text: str) -> Any:
    if text in _NAMED:
        return _NAMED[text]
    if "/" in text:
        return float(Fraction(text))
    return text if text.isalpha() else int(text)
