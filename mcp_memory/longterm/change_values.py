"""Finds the values in a text (dates, weekdays, times of day, amounts and versions) in a form that can be compared.

Patterns and dictionaries find them without knowing today's date: a date is a day and a month, and "Tuesday" is any
Tuesday. Numbers written as words are found only in Chinese times of day.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Literal

from mcp_memory.language import blocks_of
from mcp_memory.language.words import function_words

DENSE_FROM = "\u0e00"
"""From this character on, text counts as written without spaces between words."""

# --- phrases of `words/changes.txt` -----------------------------------------------------------------


@cache
def phrases_by_name(kind: str) -> dict[str, str]:
    """Return the phrases of a kind, joined by `|`, for each language, unit or relation."""
    blocks = ((head.partition(" "), lines) for head, lines in blocks_of("mcp_memory.longterm", "words", "changes.txt"))
    return {name: "".join(lines) for (first, _, name), lines in blocks if first == kind}


_LETTERS = re.compile(r"[^\W\d_]+")
_LITERAL = re.compile(r"(?:[^\W\d_](?![*+?]))*")
_ENDING = re.compile(r"\\w[*+](?P<letters>[^\W\d_]+)")
_BETWEEN_WORDS = re.compile(r" (?![?*])")
_FIRST_LETTERS = 3
_LOWER = str.maketrans({"ı": "i", "ſ": "s", "\u0307": None})
"""Letters that `re.IGNORECASE` takes for others, but `str.lower` does not; "İ" is lowered to an "i" with U+0307."""


def any_of(tables: Iterable[str]) -> str:
    """Return a pattern of the phrases, which match whole words only, except in scripts without spaces."""
    phrases = _split(tables)
    spaced = "|".join(sorted((phrase for phrase in phrases if phrase < DENSE_FROM), key=len, reverse=True))
    dense = "|".join(sorted((phrase for phrase in phrases if phrase > DENSE_FROM), key=len, reverse=True))
    return rf"(?<![^\W_])(?:{spaced})(?![^\W_])" + (f"|{dense}" if dense else "")


class Phrases:
    """The phrases of some tables (see `phrases_by_name`), matched without case.

    To save time, the pattern is tried only on the few texts that have the words of some phrase, as far as they are
    certain.
    """

    def __init__(self, tables: Iterable[str]) -> None:
        tables = list(tables)
        phrases = _split(tables)
        self._pattern = re.compile(any_of(tables), re.IGNORECASE)
        dense = "".join(phrase for phrase in phrases if phrase > DENSE_FROM)
        self._dense = frozenset(character for character in dense if character > DENSE_FROM)
        self._has_uncertain = False
        self._whole: dict[str, list[frozenset[str]]] = {}  # the whole words of phrases, by the longest
        self._beginnings: dict[str, tuple[str, ...]] = {}  # by their first letters, such as `cha*`
        self._endings: list[str] = []
        for longest, words in (_certain_words(phrase) for phrase in phrases if phrase < DENSE_FROM):
            if longest in words:
                self._whole.setdefault(longest, []).append(words)
            elif longest.startswith("*"):
                self._endings.append(longest[1:])
            elif len(longest) > _FIRST_LETTERS:
                first = f"{longest[:_FIRST_LETTERS]}*"
                self._beginnings[first] = (*self._beginnings.get(first, ()), longest[:-1])
            else:
                self._has_uncertain = True
        self._keys = frozenset(self._whole | self._beginnings)

    def are_in(self, text: str) -> bool:
        return self.may_be_in(text) and self._pattern.search(text) is not None

    def removed_from(self, text: str) -> str:
        """Return the text with a space in place of each phrase."""
        return self._pattern.sub(" ", text) if self.may_be_in(text) else text

    def may_be_in(self, text: str) -> bool:
        """Return False if a text surely has none of the phrases; a fast check."""
        if self._has_uncertain or not (text.isascii() or self._dense.isdisjoint(text)):
            return True
        words = _words_in(text)
        return any(self._has_rest(key, words) for key in self._keys & words) or (
            bool(self._endings) and any(word.endswith(ending) for ending in self._endings for word in words)
        )

    def _has_rest(self, key: str, words: frozenset[str]) -> bool:
        """Return whether a text with the first word or letters of some phrase has the other words or letters too."""
        if key in self._whole:
            return any(phrase <= words for phrase in self._whole[key])
        return any(word.startswith(self._beginnings[key]) for word in words)


def _split(tables: Iterable[str]) -> list[str]:
    return [phrase for table in tables for phrase in table.split("|")]


def _certain_words(phrase: str) -> tuple[str, frozenset[str]]:
    """Return the longest word that each match of a phrase has, and all its whole words.

    The longest is `chang*` or `*miete` if only a part of it is certain, and empty if no letter is.
    """
    parts = [(literal[0], part) for part in _BETWEEN_WORDS.split(phrase) if (literal := _LITERAL.match(part))]
    whole = frozenset(_lower(word) for word, part in parts if _is_whole(word, part))
    longest, part = max(parts, key=lambda pair: len(pair[0]), default=("", ""))
    if longest:
        return _lower(longest) if _is_whole(longest, part) else f"{_lower(longest)}*", whole
    ending = _ENDING.fullmatch(phrase)
    return f"*{_lower(ending['letters'])}" if ending else "", whole


def _is_whole(word: str, part: str) -> bool:
    """Return whether the literal letters at the start of a part of a phrase are a whole word."""
    rest = part[len(word) :]
    return bool(word) and (not rest or rest.startswith("(?<") or not (rest[0].isalpha() or rest[0] in r" \[(?*+"))


@lru_cache(maxsize=1_024)
def _words_in(text: str) -> frozenset[str]:
    """Return the lower-case words of a text, and the first letters of each, such as `cha*`."""
    words = set(_LETTERS.findall(_lower(text)))
    return frozenset(words.union([f"{word[:_FIRST_LETTERS]}*" for word in words]))


def _lower(text: str) -> str:
    lower = text.lower()
    return lower if lower.isascii() else lower.translate(_LOWER)


# --- values -----------------------------------------------------------------------------------------

ValueKind = Literal["date", "weekday", "clock", "amount", "version"]


@dataclass(frozen=True, slots=True)
class StatedValue:
    """A value and its span in the text.

    `reading` depends on the kind. A date is (month, day), each None if not stated. A weekday is 0 (Monday) to 6, a
    clock time is in minutes after midnight, an amount is its number, and a version is as written. `unit` is `am` if the
    half of the day of a clock time is unknown. For a version it is the name before it, and for an amount its unit, its
    currency or the beginning of the noun that it counts (`#mugs`). Otherwise it is empty.
    """

    kind: ValueKind
    reading: float | str | tuple[int | None, int | None]
    unit: str
    at: tuple[int, int]


def comparable(first: StatedValue, second: StatedValue) -> bool:
    """Return whether two values can be values of the same thing."""
    if first.kind != second.kind:
        return False
    if first.kind == "amount" and first.unit != second.unit:
        units = {first.unit, second.unit}
        return "" in units and units <= {"", *phrases_by_name("currency")}
    return True


def differ(first: StatedValue, second: StatedValue) -> bool:
    """Return whether two comparable values cannot be the same."""
    match first.reading, second.reading:
        case (tuple() as date, tuple() as other):
            return any(None not in parts and parts[0] != parts[1] for parts in zip(date, other, strict=True))
        case (float() as minutes, float() as other) if first.kind == "clock" and "am" in (first.unit, second.unit):
            return minutes % 720 != other % 720
        case _:
            return first.reading != second.reading or (first.kind == "version" and first.unit != second.unit)


def values_in(text: str) -> list[StatedValue]:
    """Return the values of a text in order, none overlapping."""
    if not may_have_values(text):
        return []
    return [value for match in _pattern().finditer(text) if (value := _value_of(match))]


def may_have_values(text: str) -> bool:
    """Return False if a text surely states no value; a fast check."""
    return _DIGIT.search(text) is not None or _words_for_values().may_be_in(text)


# --- patterns ---------------------------------------------------------------------------------------

_CLOCK_WORD = r"uhr|o'clock|h(?![a-zà-ÿ])|heures?|horas?|[时時点點시]"
_NUMBER = r"\d{1,3}(?:[.,' \u00a0\u202f]\d{3})+(?:[.,]\d{1,2})?(?!\d)|\d+(?:[.,]\d+)?"
_SCALE = r"k|tsd|million(?:en|s|es)?|mio|millones|milioni|milhões|mln|млн|тыс\w*|mil|万|萬|만"
_HAN_DIGITS = {han: value for value, han in enumerate("零一二三四五六七八九十")} | {"两": 2, "兩": 2}
_HAN = "[一二三四五六七八九十两兩]{1,3}"
_ORDINAL = r"(?:st|nd|rd|th|er|º|ª|ème|e|\.|-?го)?"


@cache
def _table(kind: str) -> dict[str, int]:
    """Return the names of months or weekdays, with their places from 0."""
    return {name: place for place, row in enumerate(phrases_by_name(kind).values()) for name in row.split("|")}


def _names(kind: str) -> str:
    return "|".join(sorted((re.escape(name) for name in _table(kind)), key=len, reverse=True))


@cache
def _pattern() -> re.Pattern[str]:
    month, weekday = _names("month"), _names("weekday")
    dense_weekdays = "|".join(name for name in _table("weekday") if name > "\u3000")
    ending = r"(?:[яьаею]|\.)?(?![^\W\d_])"
    units = "|".join(
        _escaped(names) for names in (*phrases_by_name("unit").values(), *phrases_by_name("currency").values())
    )
    signs = "|".join(re.escape(sign) for sign in ("R$", "€", "$", "£", "₽", "¥", "₩"))
    return re.compile(
        rf"""
        (?:(?<![A-Za-z])(?=[A-Za-z])|(?=[^A-Za-z\s]))  # not within a word, which is most of a text
        (?:(?P<iso>(?<![A-Za-z0-9_.-])\d{{4}}-(?P<iso_m>\d{{1,2}})-(?P<iso_d>\d{{1,2}})(?![\d-]))
        |(?P<cjk>(?:(?P<cjk_m>\d{{1,2}})\s?[月월]\s?)(?P<cjk_d>\d{{1,2}})\s?[日号號일])
        |(?P<dm>(?<![A-Za-z0-9_.,])(?P<dm_d>[0-3]?\d){_ORDINAL}\s(?:of\s|de\s|do\s)?(?P<dm_m>{month}){ending})
        |(?P<md>(?<!\w)(?P<md_m>{month})\.?\s(?:the\s)?(?P<md_d>[0-3]?\d)(?:st|nd|rd|th)?(?![\w:]|[.,]\d))
        |(?P<num>(?<![A-Za-z0-9_.,/])(?P<num_d>[0-3]?\d)(?:\.(?P<num_m>[01]?\d)\.(?:\d{{2,4}})?|/(?P<num_s>[01]?\d)(?:/\d{{2,4}})?)(?![\w/]|[.,]\d))
        |(?P<weekday>(?<![^\W\d_])(?:{weekday})(?![^\W\d_])|(?:{dense_weekdays})日?)
        |(?P<clock>(?<![A-Za-z0-9_.,:])(?P<ck_h>[0-2]?\d)(?:(?:[:h]|\.(?=\d\d(?:\s?uhr|\s?[ap]\.?m\b)))(?P<ck_m>[0-5]\d)(?:\s?uhr)?(?P<ck_p>\s?[ap]\.?m\b\.?)?|(?P<ck_q>\s?[ap]\.?m\b\.?)|\s?(?:{_CLOCK_WORD}))(?!\w(?<![가-힣一-龥ぁ-ん])|[.,]\d))
        |(?P<han>{_HAN}[点點](?:半)?)
        |(?P<noon>(?<!\w)(?:{_escaped(_NOON)})(?!\w))
        |(?P<ordinal>(?<![A-Za-z0-9_.,])(?P<or_d>[0-3]?\d)(?:st|nd|rd|th)(?!\w))
        |(?P<amount>(?:(?P<sign>{signs})\s?)?(?<![A-Za-z0-9_.,/])(?P<number>{_NUMBER})(?:\s?(?P<scale>{_SCALE})(?![a-zà-ÿа-яё])(?P<rest>\d{{4}})?)?(?:\s?(?P<unit>{units})(?![a-zà-ÿа-яё]))?)(?![\d/]|[-.,:]\d))
        """,
        re.IGNORECASE | re.VERBOSE,
    )


_DIGIT = re.compile(rf"\d|{_HAN}[点點]")
_NOON = "noon|midday|midnight|mezzogiorno|mediodía|à midi"
_BEFORE = re.compile(r"(?<![\w.])([A-Za-z][\w+#]*(?:\.js)?)[ -]?(?:v(?:ersion)? ?)?$")
_COUNTED = re.compile(r"[ -]([^\W\d_]{2,})")
_YEAR = re.compile(r"(?:19|20)\d\d")
_HALF = re.compile(r"(?:下午|晚上|午後|오후|傍晚)$")
_MORNING = re.compile(r"(?:上午|早上|午前|오전)$")


@cache
def _words_for_values() -> Phrases:
    """Return the phrases of values that are written without a digit."""
    return Phrases([*phrases_by_name("weekday").values(), _NOON])


def _escaped(names: str) -> str:
    return names.replace("$", r"\$").replace(" ", r"\s")


@cache
def _unit_patterns() -> list[tuple[str, re.Pattern[str]]]:
    named = {**phrases_by_name("currency"), **phrases_by_name("unit")}
    return [(unit, re.compile(_escaped(names), re.IGNORECASE)) for unit, names in named.items()]


@lru_cache(maxsize=1_024)
def _unit(written: str) -> str:
    for unit, pattern in _unit_patterns():
        if pattern.fullmatch(written):
            return unit
    return ""


# --- readings ---------------------------------------------------------------------------------------


def _value_of(match: re.Match[str]) -> StatedValue | None:
    at = match.span()
    match match.lastgroup:  # the outermost group, which ends last
        case "iso" | "cjk" as name:
            return _date(match[f"{name}_m"], match[f"{name}_d"], at)
        case "dm" | "md" as name:
            return _date(str(_table("month")[match[f"{name}_m"].casefold()] + 1), match[f"{name}_d"], at)
        case "num" if _is_version(match):
            return _version(match, match[0].rstrip("."))
        case "num":
            return _date(match["num_m"] or match["num_s"], match["num_d"], at)
        case "weekday":
            table, name = _table("weekday"), match[0].casefold()
            return StatedValue("weekday", float(table.get(name, table.get(name.removesuffix("日"), 7))), "", at)
        case "clock":
            return _clock(match, at)
        case "han":
            hour = _han(match[0])
            later = 720 if _HALF.search(match.string[: at[0]]) and hour < 12 else 0
            return StatedValue("clock", float(hour * 60 + (30 if match[0].endswith("半") else 0) + later), "", at)
        case "noon":
            return StatedValue("clock", 0.0 if match[0].casefold() == "midnight" else 720.0, "", at)
        case "ordinal":
            return StatedValue("date", (None, int(match["or_d"])), "", at)
        case "amount":
            return _amount(match, at)
        case _:
            return None


def _date(month: str, day: str, at: tuple[int, int]) -> StatedValue | None:
    first, second = int(month), int(day)
    if first > 12 >= second:  # 06/30
        first, second = second, first
    return StatedValue("date", (first, second), "", at) if 1 <= first <= 12 and 1 <= second <= 31 else None


def _clock(match: re.Match[str], at: tuple[int, int]) -> StatedValue | None:
    hour, minute = int(match["ck_h"]), int(match["ck_m"] or 0)
    half = (match["ck_p"] or match["ck_q"] or "").strip().casefold()[:1]
    before = match.string[: at[0]].rstrip()
    if (half == "p" or _HALF.search(before)) and hour < 12:
        hour += 12
    is_certain = bool(half or hour > 12 or match["ck_m"] or _MORNING.search(before) or _HALF.search(before))
    return StatedValue("clock", float(hour * 60 + minute), "" if is_certain else "am", at) if hour <= 24 else None


def _amount(match: re.Match[str], at: tuple[int, int]) -> StatedValue | None:
    number = _number(match["number"]) * _scale(match["scale"]) + float(match["rest"] or 0)
    unit = _unit(match["sign"] or "") or _unit((match["unit"] or "").strip())
    if unit or match["scale"]:
        return StatedValue("amount", number, unit or _counted_noun(match), at)
    if _YEAR.fullmatch(match["number"]):
        return None
    return _version(match, match["number"]) or StatedValue("amount", number, _counted_noun(match), at)


def _version(match: re.Match[str], number: str) -> StatedValue | None:
    start = match.start()
    before = _BEFORE.search(match.string, max(0, start - 24), start)
    if before and _is_product(before[1], match.string, before.start(1)):
        return StatedValue("version", number, before[1].casefold(), (before.start(1), match.end()))
    return None


def _is_version(match: re.Match[str]) -> bool:
    """Return whether a match such as `3.11.` is a version at the end of the text, not a date."""
    return match.end() == len(match.string) and match["num_m"] is not None and _version(match, "") is not None


def _counted_noun(match: re.Match[str]) -> str:
    """Return `#` and the first four letters of the noun that a number counts; empty if it counts none.

    Words of change ("940 now") and of a relation ("900 rent") are not counted nouns.
    """
    after = _COUNTED.match(match.string, match.end()) if not match["scale"] else None
    if after is None or after[1].lower() in _uncounted_words() or _uncounted_phrases().are_in(after[1]):
        return ""
    return f"#{after[1].lower()[:4]}"


@cache
def _uncounted_words() -> frozenset[str]:
    return function_words(("en", "de", "fr", "es", "it", "pt", "nl", "ru"))


@cache
def _uncounted_phrases() -> Phrases:
    return Phrases([*phrases_by_name("changed").values(), *phrases_by_name("relation").values()])


def _is_product(word: str, text: str, start: int) -> bool:
    """Return whether a word before a number names a product: MySQL 8, Node 18; not "Gate 4" at a sentence's start."""
    return len(word) > 1 and (word[0].isupper() or not word.isalpha()) and (start > 0 or not word[1:].islower())


def _number(written: str) -> float:
    bare = re.sub(r"[' \u00a0\u202f]", "", written)
    parts = re.split(r"[.,]", bare)
    if len(parts) > 1 and len(parts[-1]) != 3:
        return float("".join(parts[:-1]) + "." + parts[-1])
    return float("".join(parts))


def _scale(written: str | None) -> float:
    if not written:
        return 1.0
    low = written.casefold()
    if low in ("万", "萬", "만"):
        return 10_000.0
    return 1_000.0 if low[0] == "k" or low.startswith(("ts", "тыс")) or low == "mil" else 1_000_000.0


def _han(written: str) -> int:
    digits = [_HAN_DIGITS[sign] for sign in written if sign in _HAN_DIGITS]
    if 10 not in digits:
        return digits[0]
    return sum(digits) if digits[0] == 10 else digits[0] * 10 + sum(digits[2:])
