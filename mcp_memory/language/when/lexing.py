"""A text as a row of tokens of one language, each with its class and value (see `vocabulary`)."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable
from datetime import date
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

from mcp_memory.language.when.vocabulary import LETTER, Language
from mcp_memory.language.words import fold

__all__ = ["Lexicon", "Token", "lexicon_of", "tokens_of", "without_overlaps"]

_Row = TypeVar("_Row")


class Token(NamedTuple):
    """`letter` is its class (see `LETTER`); `start` and `end` are characters of the text."""

    start: int
    end: int
    letter: str
    value: Any = None


class Lexicon(NamedTuple):
    """A language made ready for reading.

    `entries`: where words are told apart by spaces, each first word with the rest of its phrases, longest first;
    elsewhere each phrase whole. `longest`: characters of the longest phrase. `beginnings`: characters that a phrase or
    a number begins with.
    """

    language: Language
    entries: dict[str, list[tuple[tuple[str, ...], str, Any]]]
    forms: list[tuple[str, re.Pattern[str]]]
    tail: re.Pattern[str] | None
    longest: int
    beginnings: frozenset[str]


_DATES = (
    re.compile(r"(?<![\d.])(?P<year>\d{4})(?P<mark>[-/])(?P<month>\d{1,2})(?P=mark)(?P<day>\d{1,2})(?!\d)"),
    # with single digits 2023.5.7 is more often a version
    re.compile(r"(?<![\d.])(?P<year>\d{4})\.(?P<month>\d\d)\.(?P<day>\d\d)(?![\d.])"),
    # where dots are used, the day comes first
    re.compile(r"(?<![\d./-])(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})(?!\d)"),
    # 25/12/2023 is a date in either order or in one; 3/4/2023 is a day of March or of April, and so left out
    re.compile(r"(?<![\d./-])(?P<day>1[3-9]|[23]\d)[/-](?P<month>\d{1,2})[/-](?P<year>\d{4})(?!\d)"),
    re.compile(r"(?<![\d./-])(?P<month>\d{1,2})[/-](?P<day>1[3-9]|[23]\d)[/-](?P<year>\d{4})(?!\d)"),
    re.compile(r"(?<![\d./-])(?P<month>\d{1,2})[/-](?P<day>(?P=month))[/-](?P<year>\d{4})(?!\d)"),
)
_WORD = re.compile(r"\d+(?:\.\d+|,\d{3}(?!\d))*(?:[^\W\d_]+|[º°ª])?|[Qq][1-4](?!\w)|[^\W\d_]+|[^\w\s]|_")
_DIGITS = re.compile(r"\d+")
_MARKS = {",": LETTER["COMMA"], ".": LETTER["DOT"], "-": LETTER["DASH"], "–": LETTER["DASH"], "'": LETTER["APOS"]}
_STOPS = frozenset((LETTER["DOT"], LETTER["MARK"]))
_TENS_AND_DIGITS = "十廿卅0123456789０１２３４５６７８９"
_HANGUL = re.compile("[\uac00-\ud7a3]+")
_NUMERALS = {c: i for i, c in enumerate("〇一二三四五六七八九")} | {"零": 0, "两": 2, "兩": 2}


def lexicon_of(language: Language) -> Lexicon:
    """Make a language ready for reading."""
    entries: dict[str, list[tuple[tuple[str, ...], str, Any]]] = {}
    for name, words in language.words.items():
        for form, value in words.items():
            first, *rest = [fold(word) for word in _WORD.findall(form)] if language.spaced else [form]
            entries.setdefault(first, []).append((tuple(rest), LETTER[name], value))
    for phrases in entries.values():
        phrases.sort(key=lambda phrase: -len(phrase[0]))
    return Lexicon(
        language=language,
        entries=entries,
        forms=[(LETTER[name], re.compile(pattern)) for name, pattern in language.forms.items()],
        tail=re.compile(language.tail) if language.tail else None,
        longest=max(map(len, entries)),
        beginnings=frozenset(form[0] for form in entries) | frozenset(_NUMERALS) | frozenset(_TENS_AND_DIGITS),
    )


def tokens_of(text: str, lexicon: Lexicon) -> list[Token]:
    """Return the tokens of a text as this language reads it, in order."""
    return _spaced(text, lexicon) if lexicon.language.spaced else _dense(text, lexicon)


def _dates_in(text: str) -> dict[int, Token]:
    """Return the dates in digits by where they begin."""
    found: dict[int, Token] = {}
    for pattern in _DATES:
        for match in pattern.finditer(text):
            try:
                day = date(int(match["year"]), int(match["month"]), int(match["day"]))
            except ValueError:  # the 30th of February
                found[match.start()] = Token(*match.span(), LETTER["MARK"])
            else:
                found[match.start()] = Token(*match.span(), LETTER["DATE"], day)
    return found


# --- words told apart by spaces ---------------------------------------------------------------------


def _spaced(text: str, lexicon: Lexicon) -> list[Token]:
    text = text.replace("’", "'")
    dates = _dates_in(text)
    found = list(_WORD.finditer(text))
    words = [fold(match[0]) for match in found]
    tokens: list[Token] = []
    at = 0
    while at < len(found):
        start, end = found[at].span()
        if start in dates:
            tokens.append(dates[start])
            while at < len(found) and found[at].start() < dates[start].end:
                at += 1
            continue
        for rest, letter, value in lexicon.entries.get(words[at], ()):
            if not rest or tuple(words[at + 1 : at + 1 + len(rest)]) == rest:
                end = found[at + len(rest)].end()
                if letter == LETTER["MAY"] and text[start].isupper() and tokens and tokens[-1].letter not in _STOPS:
                    letter = LETTER["MONTH"]  # a capital within a sentence: the name, not the verb
                tokens.append(Token(start, end, letter, value))
                at += len(rest)
                break
        else:
            tokens.append(_unlisted(found[at], lexicon.language))
        at += 1
    return tokens


def _unlisted(match: re.Match[str], language: Language) -> Token:
    start, end = match.span()
    word = match[0]
    letter, value = LETTER["PLAIN" if word.islower() else "NAME"], None
    if word[0].isdecimal():
        digits = _DIGITS.match(word)
        number = digits[0] if digits else ""
        letter, value = _number(number, word[len(number) :], language)
    elif len(word) == 2 and word[0] in "Qq" and word[1].isdecimal():
        letter, value = LETTER["QUARTER"], int(word[1])
    elif not word[0].isalpha():
        letter = _MARKS.get(word, LETTER["MARK"])
    return Token(start, end, letter, value)


def _number(digits: str, rest: str, language: Language) -> tuple[str, Any]:
    if rest:
        is_ordinal = len(digits) <= 2 and fold(rest) in language.ordinals
        return (LETTER["ORD"], int(digits)) if is_ordinal else (LETTER["MARK"], None)
    if len(digits) == 4 and digits[:2] in ("19", "20", "21"):
        return LETTER["YEAR"], int(digits)
    return (LETTER["NUM"], int(digits)) if len(digits) <= 3 else (LETTER["MARK"], None)


# --- scripts without spaces, and Korean ---------------------------------------------------------------


def _dense(text: str, lexicon: Lexicon) -> list[Token]:
    dates = _dates_in(text)
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        token = dates.get(at) or _listed(text, at, lexicon) or _other(text, at)
        tokens.append(token)
        at = token.end
        if lexicon.tail and token.letter != LETTER["PLAIN"] and (tail := lexicon.tail.match(text, at)):
            at = tail.end()
    return tokens


def _listed(text: str, at: int, lexicon: Lexicon) -> Token | None:
    """Return the longest known word that begins here, or a number with its mark."""
    if text[at] not in lexicon.beginnings:
        return None
    best: Token | None = None
    for letter, pattern in lexicon.forms:
        match = pattern.match(text, at)
        if match and (best is None or match.end() > best.end) and _ends_well(text, match.end(), lexicon):
            best = Token(at, match.end(), letter, _numeral(match[1]))
    for end in range(min(len(text), at + lexicon.longest), best.end if best else at, -1):
        known = lexicon.entries.get(text[at:end])
        if known and _ends_well(text, end, lexicon):
            _, letter, value = known[0]
            return Token(at, end, letter, value)
    return best


def _ends_well(text: str, end: int, lexicon: Lexicon) -> bool:
    return lexicon.tail is None or lexicon.tail.match(text, end) is not None


def _other(text: str, at: int) -> Token:
    """Return what is no known word: a run of digits or of Hangul, or one character."""
    if digits := _DIGITS.match(text, at):
        is_count = len(digits[0]) <= 3
        return Token(at, digits.end(), LETTER["NUM" if is_count else "MARK"], int(digits[0]) if is_count else None)
    if hangul := _HANGUL.match(text, at):
        return Token(at, hangul.end(), LETTER["PLAIN"])
    return Token(at, at + 1, _MARKS.get(text[at], LETTER["PLAIN" if text[at].isalnum() else "MARK"]))


def _numeral(text: str) -> int:
    """Return the number that digits or Chinese numerals write: `12`, `十二`, `二〇二三`."""
    if text.isdecimal():
        return int(text)
    text = text.replace("廿", "二十").replace("卅", "三十")
    tens, ten, ones = text.partition("十")
    if not ten:
        return int("".join(str(_NUMERALS.get(c, 0)) for c in text))
    return 10 * _NUMERALS.get(tens or "一", 1) + _NUMERALS.get(ones, 0)


def without_overlaps(rows: Iterable[_Row], place: Callable[[_Row], tuple[int, int]]) -> list[_Row]:
    """Return the rows in order of their places `(start, end)`; of those that overlap, the earliest of `rows`.

    No place may be empty. Takes n log n comparisons.
    """
    chosen: list[tuple[tuple[int, int], _Row]] = []
    for row in rows:
        at = place(row)
        after = bisect_left(chosen, at, key=itemgetter(0))
        if (not after or chosen[after - 1][0][1] <= at[0]) and (after == len(chosen) or at[1] <= chosen[after][0][0]):
            chosen.insert(after, (at, row))
    return [row for _, row in chosen]
