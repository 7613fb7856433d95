"""Codes that open something: of alarms, doors, safes, SIM and bank cards ("the alarm code is 4711", `Türcode: 2580#`).

They are short numbers, so both the word for a code and what it opens must stand in front, in one of the languages of
`words.txt`. Error codes, country codes and codes of books open nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from mcp_memory.core.secrets.values import any_of, word_list

_OPTIONAL = re.compile(r"^.\?")
_LONGEST_BEFORE, _LONGEST_BEHIND = 48, 110
_NUMBER = r"[#*]?\d(?:[ -]?\d){2,9}[#*]?|[A-Z]\d{3,7}|\d{3,7}[A-Z]"
_BEFORE_NUMBER = re.compile(r"[^\W\d_][^\d\n]{1,90}\d[A-Z]?(?:[ -]?\d){2}")
_JOINT = (
    r"[\"'`*_)\]]{0,4}(?:(?P<said>\s{0,2}[:：=—–]\s{0,3}(?:\*\*)?"
    rf"|[ ](?:(?:was |is |has been )?(?:changed |set |reset )to|{any_of('joints of statements')}|será|wird)[ ]"
    r"(?:now |set to |jetzt |still )?"
    r"|[是为為はがえ은는]\s?:?\s?|['’]s )|[ ])[\"'`“„«「*]{0,2}"
)
_BEHIND_NUMBER = r"(?![A-Za-z0-9_#*]|[.,/:-]\d|[ ]?(?:%|€|\$|USD|EUR|km|kg|m\b|h\b|min|Uhr|years?|days?|times))"

_INDIAN_PLACE = 6
"""Digits of a postal code of India, which is called PIN, too."""


@cache
def _pattern() -> re.Pattern[str]:
    places, codes = any_of("what codes open"), any_of("codes")
    article = r"(?:[^\W\d]{1,5}['’]?[ ]?){0,3}"
    return re.compile(
        rf"(?i:(?<![^\W_])(?:(?:{places})[^\W\d_]{{0,5}}[\s_'’.-]{{0,1}}(?:{codes})"
        rf"|(?:{codes})[ _]{article}(?:[^\W\d_-]{{3,14}}[ ])?(?:{places})[^\W\d_]{{0,6}}"
        rf"|{any_of('codes of their own')})"
        rf"(?:[ ](?:for|of|to|at|für|vom|zum|de|du|del|della|dla|для)[ ](?:[\w'’-]{{1,20}}[ ]?){{1,4}}?)?{_JOINT})"
        rf"(?P<value>{_NUMBER}){_BEHIND_NUMBER}"
    )


_PIN = re.compile(
    r"(?:(?P<whose>\b(?i:my|our|your|his|her|their|card|bank|door|sim|phone|alarm|safe|meine?|mon|ma|mi|mio|il|meu|moja|mijn)"
    r"(?:['’]s)? (?:[\w-]{1,12}[ -])?)|\b)(?:PIN|Pin|pin)(?:[ -]?(?:[Cc]ode|[Nn]umber))?"
    r"(?: (?:for|of|to|für|de|del|der) (?:[\w'’-]{1,20} ){0,3}?[\w'’-]{1,20})?"
    r"(?P<joint> is(?: now)?|:| ist| lautet| est| es| è| é| to|(?= \d)) (?P<value>\d{4,8})\b(?![-.,/:]\d)"
)


@cache
def code_words() -> tuple[str, ...]:
    """Return the words of which a text with a code has one, in small letters."""
    return tuple(_OPTIONAL.sub("", word) for word in (*word_list("codes"), *word_list("codes of their own")))


def codes(text: str, places: Mapping[str, Sequence[int]], *, prose: bool) -> Iterator[tuple[int, int]]:
    """Yield the spans of codes. Without `prose`, a word such as "is", or a colon, must be in front of the number."""
    end = 0
    for place in sorted({place for word in code_words() for place in places.get(word, ())}):
        if place < end or _BEFORE_NUMBER.match(text, place) is None:
            continue
        found = _pattern().search(text, max(0, place - _LONGEST_BEFORE), place + _LONGEST_BEHIND)
        if found and found.start("value") > place and (prose or found["said"]):
            end = found.end()
            yield found.span("value")
    yield from _personal_numbers(text, places, prose=prose)


def _personal_numbers(text: str, places: Mapping[str, Sequence[int]], *, prose: bool) -> Iterator[tuple[int, int]]:
    """Yield PINs: of four to eight digits, said to be somebody's or written in capitals before a colon."""
    end = 0
    for place in places.get("pin", ()):
        found = _PIN.search(text, max(0, place - 32), place + 96) if place >= end else None
        if found is None or not (prose or (found["whose"] and found["joint"])):
            continue
        if found["whose"] or (found["joint"] == ":" and "PIN" in found[0] and len(found["value"]) != _INDIAN_PLACE):
            end = found.end()
            yield found.span("value")
