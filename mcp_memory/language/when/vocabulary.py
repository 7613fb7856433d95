r"""Vocabulary and grammar of time expressions: word classes, the lexicon of each language, and matching of shapes.

A text becomes a sequence of tokens, each with a class; a shape is a pattern over classes. Only a language's file
(`data/times/en.txt`) contains its words, and only `interval_of` interprets classes, so a new language is a new file:

    UNIT week: week, weeks              a class, its value, the forms
    EDGE 0 1/3: early, beginning of     a value of several parts; `-` is None
    shape: EDGE DASH? MAY               a pattern of this language alone (see below)
    cue past: was|were|had              a regular expression; several lines are alternatives
    cue definite: the|my                words that make a noun definite
    ordinals: st, nd                    endings of numbers in digits
    spaced: no                          words are not separated by spaces
    form MONTH: (\d{1,2})月             without spaces: the pattern of a number with its mark
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
| FUNC, NOT | a function word · a phrase that looks like a time and is not | |

In a shape a name matches a token of its class; `?`, `|`, brackets and look-around are as in regular expressions.
`~OF` means: not followed by a token of that class. The part before `:` must precede the phrase and is not part of it.
"""

from __future__ import annotations

import re
import string
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from fractions import Fraction
from functools import cache
from importlib import resources
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

from mcp_memory.language import blocks_of
from mcp_memory.language.words import fold

_CLASSES = (
    "NUM ORD YEAR DATE WORD ONE HALF FEW NTH UNIT AMOUNT MONTH MON MAY WEEKDAY WDAY SEASON QUARTER PART FEAST DAY "
    "DAYPART LATELY REL RELP SHIFT WEEKOF NTHOF PAST AGO PRIOR EDGE IN ON AT FROM THE OF AND THAT EVERY FUNC NOT "
    "PLAIN NAME COMMA DOT DASH APOS MARK AHEAD"
)

LETTER: Mapping[str, str] = dict(zip(_CLASSES.split(), string.ascii_letters, strict=False))
"""The letter that stands for a class where a row of tokens is matched as a string."""

_ANCHORS = "UNIT AMOUNT MONTH MON MAY WEEKDAY WDAY SEASON QUARTER PART FEAST DAY DAYPART LATELY SHIFT WEEKOF"
ANCHORS = frozenset(_ANCHORS.split())
"""Every time phrase has a token of these classes, except dates and years in digits."""

_VARIANTS = {"MON": "MONTH", "MAY": "MONTH", "WDAY": "WEEKDAY", "RELP": "REL"}  # allowed in other places
CLASS: Mapping[str, str] = {letter: _VARIANTS.get(name, name) for name, letter in LETTER.items()}
"""The class of each letter, for a variant such as MON its main class."""

PREPOSITIONS = frozenset(LETTER[name] for name in ("IN", "ON", "AT", "FROM", "THE", "OF"))
"""Letters of tokens that may surround a phrase without being part of it."""

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


_Row = TypeVar("_Row")


class TimeToken(NamedTuple):
    """A word, number or mark of a text, from character `start` to `end`; `letter` is its class (see `LETTER`)."""

    start: int
    end: int
    letter: str
    value: Any = None


class TimeLexicon(NamedTuple):
    """The parsed file of a language.

    `words` maps each class to its forms and their values. `entries` maps the first word of a phrase to the rest of
    each such phrase, longest first; in scripts without spaces the keys are whole phrases. `cues`, which only turns
    need, maps each direction ("past", "future", "habit", or "unsure": birthdays, possibilities) to a pattern of words
    that indicate it. `longest` is the length of the longest phrase in characters. `beginnings` has the first
    characters of phrases and numbers.
    """

    words: Mapping[str, Mapping[str, Any]]
    entries: Mapping[str, list[tuple[tuple[str, ...], str, Any]]]
    shapes: list[str]
    cues: Mapping[str, str]
    ordinals: frozenset[str]
    spaced: bool
    forms: list[tuple[str, re.Pattern[str]]]
    tail: re.Pattern[str] | None
    longest: int
    beginnings: frozenset[str]


_DATES = (
    re.compile(r"(?<![\d.])(?P<year>\d{4})(?P<mark>[-/])(?P<month>\d{1,2})(?P=mark)(?P<day>\d{1,2})(?!\d)"),
    # with single digits 2023.5.7 is more often a version
    re.compile(r"(?<![\d.])(?P<year>\d{4})\.(?P<month>\d\d)\.(?P<day>\d\d)(?![\d.])"),
    # with dots, the day is first
    re.compile(r"(?<![\d./-])(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>\d{4})(?!\d)"),
    # 25/12/2023 and 12/25/2023 have one reading; 3/4/2023 is ambiguous, and so not matched
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


@cache
def lexicon(language: str) -> TimeLexicon:
    """Return the parsed file of a language."""
    words: dict[str, dict[str, Any]] = {}
    rest: dict[str, list[str]] = {}
    text = resources.files("mcp_memory.language").joinpath("data", "times", f"{language}.txt").read_text("utf-8")
    for line in text.splitlines():
        key, _, listed = line.partition(": ")
        name, *value = key.split()
        if name in LETTER:
            words.setdefault(name, {}).update(dict.fromkeys(listed.split(", "), _value(name, value)))
        elif name != "#":
            rest.setdefault(key, []).append(listed)
    spaced = "spaced" not in rest
    entries: dict[str, list[tuple[tuple[str, ...], str, Any]]] = {}
    for name, forms in words.items():
        for form, value in forms.items():
            first, *others = [fold(word) for word in _WORD.findall(form)] if spaced else [form]
            entries.setdefault(first, []).append((tuple(others), LETTER[name], value))
    for phrases in entries.values():
        phrases.sort(key=lambda phrase: -len(phrase[0]))
    return TimeLexicon(
        words=words,
        entries=entries,
        shapes=rest.get("shape", []),
        cues={key.removeprefix("cue "): "|".join(lines) for key, lines in rest.items() if key.startswith("cue ")},
        ordinals=frozenset(form for line in rest.get("ordinals", ()) for form in line.split(", ")),
        spaced=spaced,
        forms=[(LETTER[key[5:]], re.compile(lines[-1])) for key, lines in rest.items() if key.startswith("form ")],
        tail=re.compile(rest["tail"][0]) if "tail" in rest else None,
        longest=max(map(len, entries)),
        beginnings=frozenset(form[0] for form in entries) | frozenset(_NUMERALS) | frozenset(_TENS_AND_DIGITS),
    )


def tokens_of(text: str, lexicon: TimeLexicon) -> list[TimeToken]:
    """Return the tokens of a text in this language, in order."""
    return _spaced(text, lexicon) if lexicon.spaced else _dense(text, lexicon)


def _dates_in(text: str) -> dict[int, TimeToken]:
    """Return the dates in digits by their start; an impossible date is a MARK."""
    dates: dict[int, TimeToken] = {}
    for pattern in _DATES:
        for match in pattern.finditer(text):
            try:
                day = date(int(match["year"]), int(match["month"]), int(match["day"]))
            except ValueError:  # the 30th of February
                dates[match.start()] = TimeToken(*match.span(), LETTER["MARK"])
            else:
                dates[match.start()] = TimeToken(*match.span(), LETTER["DATE"], day)
    return dates


# --- scripts with spaces ----------------------------------------------------------------------------


def _spaced(text: str, lexicon: TimeLexicon) -> list[TimeToken]:
    text = text.replace("’", "'")
    dates = _dates_in(text)
    word_matches = list(_WORD.finditer(text))
    words = [fold(match[0]) for match in word_matches]
    tokens: list[TimeToken] = []
    at = 0
    while at < len(word_matches):
        start, end = word_matches[at].span()
        if start in dates:
            tokens.append(dates[start])
            while at < len(word_matches) and word_matches[at].start() < dates[start].end:
                at += 1
            continue
        for rest, letter, value in lexicon.entries.get(words[at], ()):
            if not rest or tuple(words[at + 1 : at + 1 + len(rest)]) == rest:
                end = word_matches[at + len(rest)].end()
                if letter == LETTER["MAY"] and text[start].isupper() and tokens and tokens[-1].letter not in _STOPS:
                    letter = LETTER["MONTH"]  # a capital within a sentence: the name, not the verb
                tokens.append(TimeToken(start, end, letter, value))
                at += len(rest)
                break
        else:
            tokens.append(_unlisted(word_matches[at], lexicon.ordinals))
        at += 1
    return tokens


def _unlisted(match: re.Match[str], ordinals: frozenset[str]) -> TimeToken:
    start, end = match.span()
    word = match[0]
    letter, value = LETTER["PLAIN" if word.islower() else "NAME"], None
    if word[0].isdecimal():
        digits = _DIGITS.match(word)
        number = digits[0] if digits else ""
        letter, value = _number(number, word[len(number) :], ordinals)
    elif len(word) == 2 and word[0] in "Qq" and word[1].isdecimal():
        letter, value = LETTER["QUARTER"], int(word[1])
    elif not word[0].isalpha():
        letter = _MARKS.get(word, LETTER["MARK"])
    return TimeToken(start, end, letter, value)


def _number(digits: str, rest: str, ordinals: frozenset[str]) -> tuple[str, Any]:
    if rest:
        is_ordinal = len(digits) <= 2 and fold(rest) in ordinals
        return (LETTER["ORD"], int(digits)) if is_ordinal else (LETTER["MARK"], None)
    if len(digits) == 4 and digits[:2] in ("19", "20", "21"):
        return LETTER["YEAR"], int(digits)
    return (LETTER["NUM"], int(digits)) if len(digits) <= 3 else (LETTER["MARK"], None)


# --- scripts without spaces, and Korean ---------------------------------------------------------------


def _dense(text: str, lexicon: TimeLexicon) -> list[TimeToken]:
    dates = _dates_in(text)
    tokens: list[TimeToken] = []
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        token = dates.get(at) or _longest_entry(text, at, lexicon) or _other(text, at)
        tokens.append(token)
        at = token.end
        if lexicon.tail and token.letter != LETTER["PLAIN"] and (tail := lexicon.tail.match(text, at)):
            at = tail.end()
    return tokens


def _longest_entry(text: str, at: int, lexicon: TimeLexicon) -> TimeToken | None:
    """Return the longest known word at this place, or a number with its mark."""
    if text[at] not in lexicon.beginnings:
        return None
    best: TimeToken | None = None
    for letter, pattern in lexicon.forms:
        match = pattern.match(text, at)
        if match and (best is None or match.end() > best.end) and _ends_well(text, match.end(), lexicon):
            best = TimeToken(at, match.end(), letter, _numeral(match[1]))
    for end in range(min(len(text), at + lexicon.longest), best.end if best else at, -1):
        entries = lexicon.entries.get(text[at:end])
        if entries and _ends_well(text, end, lexicon):
            _, letter, value = entries[0]
            return TimeToken(at, end, letter, value)
    return best


def _ends_well(text: str, end: int, lexicon: TimeLexicon) -> bool:
    return lexicon.tail is None or lexicon.tail.match(text, end) is not None


def _other(text: str, at: int) -> TimeToken:
    """Return an unknown run of digits or Hangul, or a single character."""
    if digits := _DIGITS.match(text, at):
        is_count = len(digits[0]) <= 3
        return TimeToken(at, digits.end(), LETTER["NUM" if is_count else "MARK"], int(digits[0]) if is_count else None)
    if hangul := _HANGUL.match(text, at):
        return TimeToken(at, hangul.end(), LETTER["PLAIN"])
    return TimeToken(at, at + 1, _MARKS.get(text[at], LETTER["PLAIN" if text[at].isalnum() else "MARK"]))


def _numeral(text: str) -> int:
    """Return the value of digits or Chinese numerals: `12`, `十二`, `二〇二三`."""
    if text.isdecimal():
        return int(text)
    text = text.replace("廿", "二十").replace("卅", "三十")
    tens, ten, ones = text.partition("十")
    if not ten:
        return int("".join(str(_NUMERALS.get(c, 0)) for c in text))
    return 10 * _NUMERALS.get(tens or "一", 1) + _NUMERALS.get(ones, 0)


# --- shapes -----------------------------------------------------------------------------------------


class ShapeMatch(NamedTuple):
    """A shape that matches the tokens from `first` until before `last`; `kind` is empty for common shapes."""

    kind: str
    first: int
    last: int


def shapes_in(
    text: str, language: str, special: str, telling: frozenset[str]
) -> tuple[list[TimeToken], str, list[ShapeMatch]]:
    """Return the tokens of a text, their letters, and the matches of common and `special` shapes.

    There are no matches without a token of the `telling` classes.
    """
    tokens = tokens_of(text, lexicon(language))
    letters = "".join(token.letter for token in tokens)
    shapes = () if telling.isdisjoint(letters) else _shapes(language, special)
    return tokens, letters, [ShapeMatch(kind, *at.span()) for kind, shape in shapes for at in shape.finditer(letters)]


@cache
def _shapes(language: str, special: str) -> list[tuple[str, re.Pattern[str]]]:
    blocks = dict(blocks_of("mcp_memory.language", "data", "time_shapes.txt"))
    shapes = [("", shape) for shape in (*blocks["common"], *lexicon(language).shapes)]
    for head, lines in blocks.items():
        block, _, kind = head.partition(" ")
        shapes += [(kind.strip("-"), shape) for shape in lines if block == special]
    return [(kind, re.compile(_letters_of(shape))) for kind, shape in shapes]


def _letters_of(shape: str) -> str:
    before, _, body = shape.rpartition(" : ")
    marked = re.sub(r"~([A-Z]+)", r"(?!\1)", f"(?<={before})(?:{body})" if before else body)
    return re.sub(r"[A-Z]+", lambda name: LETTER[name[0]], marked).replace(" ", "")


def without_overlaps(rows: Iterable[_Row], place: Callable[[_Row], tuple[int, int]]) -> list[_Row]:
    """Return the rows in order of their places `(start, end)`; of overlapping rows, only the first in `rows`.

    No place may be empty. Takes n log n comparisons.
    """
    chosen: list[tuple[tuple[int, int], _Row]] = []
    for row in rows:
        at = place(row)
        after = bisect_left(chosen, at, key=itemgetter(0))
        if (not after or chosen[after - 1][0][1] <= at[0]) and (after == len(chosen) or at[1] <= chosen[after][0][0]):
            chosen.insert(after, (at, row))
    return [row for _, row in chosen]


LANGUAGES = ("en", "de", "fr", "es", "pt", "it", "ru", "zh", "ja", "ko")

# The first script found decides, because Japanese and Korean texts have Han characters too.
_SCRIPTS = {
    "ja": re.compile("[\u3040-\u30ff]"),
    "ko": re.compile("[\uac00-\ud7a3]"),
    "zh": re.compile("[\u3400-\u9fff]"),
}
_LETTERS = re.compile(r"[^\W\d_]+")
_IN_DIGITS = re.compile(r"\d{4}|[Qq][1-4]")
_ASCII_LETTERS = bytes(ord(chr(i).lower()) if i < 128 and chr(i).isalpha() else 32 for i in range(256))


def time_languages(text: str) -> list[str]:
    """Return the languages in which a word of the text may be part of a time; fast, because most texts have none."""
    ascii_only = text.isascii()
    if ascii_only:  # several times as fast as a regular expression
        words = set(text.encode().translate(_ASCII_LETTERS).decode().split())
    else:
        words = {fold(word) for word in _LETTERS.findall(text)}
    languages = _languages_with(words, _words_of(ANCHORS))
    if _IN_DIGITS.search(text):
        languages |= _languages_with(words, _words_of(frozenset(("IN", "FROM", "EDGE"))))
        languages.add("en")  # a date in digits is the same in all languages
    if not ascii_only:
        languages |= _in_dense_script(text)
    return [language for language in LANGUAGES if language in languages]


def _languages_with(words: set[str], languages_by_word: dict[str, set[str]]) -> set[str]:
    return {language for word in words & languages_by_word.keys() for language in languages_by_word[word]}


@cache
def _words_of(classes: frozenset[str]) -> dict[str, set[str]]:
    """Return the longest word of each phrase of these classes, with its languages."""
    languages_by_word: dict[str, set[str]] = {}
    for language in LANGUAGES:
        spoken = lexicon(language)
        for name in classes & spoken.words.keys() if spoken.spaced else ():
            for form in spoken.words[name]:
                languages_by_word.setdefault(max(_LETTERS.findall(fold(form)), key=len), set()).add(language)
    return languages_by_word


def _in_dense_script(text: str) -> set[str]:
    for language, script in _SCRIPTS.items():
        if script.search(text):
            return set() if _beginnings(language).isdisjoint(text) else {language}
    return set()


@cache
def _beginnings(language: str) -> frozenset[str]:
    """Return the first characters of time words, and the marks that make a number a time."""
    spoken = lexicon(language)
    return frozenset("年月日号號년월일") | {
        form[0] for name in ANCHORS - {"PART"} for form in spoken.words.get(name, ())
    }
