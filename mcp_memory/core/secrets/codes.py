"""Codes of alarms, doors, safes, SIM and bank cards: "the alarm code is 4711", `Türcode: 2580#`.

Such codes are short, so both a word for a code and the thing that it opens must precede the number, in a language of
`words.txt`. Error codes, country codes and codes of books open nothing. The words PIN, PUK and CVV imply both; some
words may follow them ("of my card", "meiner EC-Karte") before a copula or colon and the digits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from mcp_memory.core.secrets.places import Places, places_of
from mcp_memory.core.secrets.values import any_of, word_list

_OPTIONAL = re.compile(r"^.\?")
_LONGEST_BEFORE, _LONGEST_BEHIND = 48, 110
_NUMBER = r"[#*]?\d(?:[ -]?\d){2,9}[#*]?|[A-Z]\d{3,7}|\d{3,7}[A-Z]|\d{1,4}[A-Z]\d{1,5}"
_BEFORE_NUMBER = re.compile(r"[^\W\d_][^\d\n]{1,90}\d[\dA-Z -]{2}")
_JOINT = (
    r"[\"'`*_)\]]{0,4}(?:(?P<said>\s{0,2}[:：=—–]\s{0,3}(?:\*\*)?"
    rf"|[ ](?:(?:was |is |has been )?(?:changed |set |reset )to|{any_of('joints of statements')}|será|wird)[ ]"
    r"(?:now |set to |jetzt |nun |still |le |el |il |nu |ahora |teraz |теперь )?"
    r"|[是为為はがえ은는]\s?:?\s?|['’]s )|[ ]?(?P<bracket>[(\[（])|[ ])[\"'`“„«「*]{0,2}"
)
_BEHIND_NUMBER = (
    r"(?![A-Za-z0-9_#*]|[.,/:-]\d|[ ]?(?:%|€|\$|USD|EUR|km|kg|m[msV]?\b|h\b|min|px"
    r"|pins?\b|digits|Uhr|years?|days?|times))"
    r"(?(bracket)(?=[\"'`”»*]{0,2}[)\]）]))"
)

_CJK = "\u2e80-\uffff"
_CLAUSE = re.compile(r"[.,;:!?\n]")
_OBJECT = re.compile(r" (?:my|our|your|his|her|their|the|an?|this|that)\b")
_LENGTHS = (
    (re.compile(r"(?i)puk"), (8, 8)),
    (re.compile(r"(?i)cv|sec|séc|seg|sicur|prüf|crypto"), (3, 4)),  # on the back of a card
    (re.compile(""), (4, 8)),
)
"""Least and most digits of personal numbers, by a part of their word."""
_MAX_WORDS = 3
"""Words between a PIN's word and its digits, without a copula or colon."""

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


@cache
def _personal_number() -> re.Pattern[str]:
    """Return a pattern of a PIN, PUK or card code: its word, a complement of some words, a copula or colon, digits."""
    form = rf"[ -]?(?:{any_of('codes')}|{any_of('words for numbers')})[^\W\d_{_CJK}]{{0,6}}|['’-][^\W\d_]{{1,5}}"
    statement = rf"(?:[^\W\d_]{{1,5}}[ ])?(?:it['’]s|{any_of('joints of statements')})[ ]"
    return re.compile(
        rf"(?<![^\W_{_CJK}])(?P<word>(?i:{any_of('personal numbers')}))(?P<form>(?i:{form}))?(?![^\W_{_CJK}])"
        r"(?P<complement>(?:[ ](?!(?:is|was|are|ist|est|es|è|é|er|är)[ ])[^\W\d_](?:[^\W\d_]|['’-]){0,24},?){0,7}?)"
        rf"(?:(?P<asked>[ ]?[?？][ ]{{1,2}}(?i:{statement})?)|(?i:{_JOINT}))"
        rf"(?P<value>\d{{3,8}}){_BEHIND_NUMBER}"
    )


@cache
def _owner() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return patterns of a possessive ("my", "meiner") and of a thing that has a personal number."""
    things = "|".join(any_of(title) for title in ("cards", "devices", "what codes open"))
    return (
        re.compile(rf"(?i)(?<![^\W_])(?:{any_of('words of possession')})(?![^\W_])"),
        re.compile(rf"(?i)(?<![^\W_{_CJK}])(?:{things})"),
    )


@cache
def code_words() -> frozenset[str]:
    """Return words, in lower case, of which every text with a code contains at least one."""
    titles = ("codes", "codes of their own", "personal numbers")
    return frozenset(_OPTIONAL.sub("", word) for title in titles for word in word_list(title))


@cache
def _personal_words() -> frozenset[str]:
    return frozenset(word_list("personal numbers"))


def find_codes(text: str, places: Places, *, prose: bool) -> Iterator[tuple[int, int]]:
    """Yield the spans of codes. Without `prose`, a word such as "is", or a colon, must precede the number."""
    end = 0
    for place in places_of(code_words(), places):
        if place < end or _BEFORE_NUMBER.match(text, place) is None:
            continue
        match = _pattern().search(text, max(0, place - _LONGEST_BEFORE), place + _LONGEST_BEHIND)
        if match and match.start("value") > place and (prose or match["said"]):
            end = match.end()
            yield match.span("value")
    yield from _personal_numbers(text, places, prose=prose)


def _personal_numbers(text: str, places: Places, *, prose: bool) -> Iterator[tuple[int, int]]:
    """Yield the spans of the digits of PINs, PUKs and card codes, as the words around them show."""
    end = 0
    for place in places_of(_personal_words(), places):
        match = _personal_number().match(text, place) if place >= end else None
        if match is not None and _is_personal(text, match, prose=prose):
            end = match.end()
            yield match.span("value")


def _is_personal(text: str, match: re.Match[str], *, prose: bool) -> bool:
    """Return whether the digits after "PIN", "PUK" or "CVV" are a personal number, not a year or a pin of a chip."""
    word, complement, joint = match["word"], match["complement"], match["said"] or match["asked"]
    least, most = next(digits for part, digits in _LENGTHS if part.search(word))
    if not least <= len(match["value"]) <= most:
        return False
    if joint == " to " and _OBJECT.match(complement):
        return False  # pin my notes to 2025
    possessive, thing = _owner()
    before = _CLAUSE.split(text[max(0, match.start() - _LONGEST_BEFORE) : match.start()])[-1]
    is_owned = any(pattern.search(part) for pattern in (possessive, thing) for part in (before, complement))
    is_pin = word.lower() in ("pin", "пин")
    if len(match["value"]) == _INDIAN_PLACE and not (
        thing.search(before) or thing.search(complement) or (possessive.search(before) and not complement)
    ):
        return False
    is_said_owned = (joint or match["bracket"]) and is_owned
    if not prose and not (is_said_owned or (joint and not is_pin and ":" in joint)):
        return False
    if joint:
        return is_owned or (bool(match["form"]) or word.isupper() if is_pin else " " not in word)
    *others, last = complement.split(" ")
    if complement:
        return len(others) <= _MAX_WORDS and thing.match(last) is not None
    return is_owned or bool(match["form"]) or (not is_pin and " " not in word)
