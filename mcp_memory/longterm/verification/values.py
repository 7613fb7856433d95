"""Checks that the numbers, dates and names of a statement occur in the words that it is based on.

A value is grounded if it was said, or follows from the words and the day of the turn by the rules in the prompt for
models: "tomorrow" is a date, "for 15 years" began some 15 years ago, 4 pm is 16:00. The check ignores meaning, so a
false statement with true values passes. Names are compared within one language. In German, where every noun has a
capital, only words after a title and words that no dictionary has are compared.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cache, cached_property
from typing import Any, NamedTuple

from mcp_memory.core.secrets.values import is_word
from mcp_memory.language.when.annotate import with_dates
from mcp_memory.language.when.intervals import back, spans_in
from mcp_memory.language.when.vocabulary import LANGUAGES, lexicon
from mcp_memory.language.words import fold, function_words, languages_of
from mcp_memory.longterm.change_values import values_in
from mcp_memory.longterm.verification.comparison import differ, pattern, sentences_of, word_list

_NUMBER = re.compile(r"\d{1,3}(?:[.,' \u00a0\u202f]\d{3})+(?!\d)|\d{1,18}(?:[.,]\d{1,9})?(?!\d)")
_GROUPED = re.compile(r"\d{1,3}(?:[.,' \u00a0\u202f]\d{3})+")
_ISO_DAY = re.compile(r"(?<!\d)(\d{4})-(\d\d)-(\d\d)(?!\d)")
_CLOCK = re.compile(r"(?<![\d:.])([01]?\d|2[0-4])[:.h]([0-5]\d)(?![\d:])")
_YEAR = re.compile(r"(?<!\d)(?:1[6-9]|20|21)\d\d(?!\d)")
_WORD = re.compile(r"[^\W\d_]+(?:[-'’][^\W\d_]+)*")
_CAPITAL = re.compile(r"(?<![\w'’-])[^\W\d_a-zа-яё\u0e00-\uffff][^\W_]*(?:[-'’][^\W_]+)*")
ADDRESS = re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]*\w|(?:[\w-]+\.)+[a-z]{2,}\b(?:/[\w.-]+)*")
_SENTENCE_START = re.compile(r"(?:^|[.!?:;–—\"“„«(]\s*)$")
_QUARTERS = (15, 30, 45)  # minutes that are said without a number: "half past eight"
_MAX_DAYS = 31  # longest period whose single days count as stated
_NEAR_DAYS = 14  # around a day that was said, in which a weekday may be meant
_AROUND = range(-31, 46)  # days around a turn in which a day without a month may be
_LONGEST_SPAN = 3_000  # days
_STEM, _ENDING = 4, 2  # letters of a name that are compared at least, and of an ending
_APART = 3  # words between a number and its unit
_SPELLED_FROM = 2  # "one" and its like need not be a number


class DatedText(NamedTuple):
    """A text and when it was said, if known."""

    text: str
    said_at: datetime | None = None


@dataclass(frozen=True)
class KnownValues:
    """The values that some texts say or imply. `names` are further names that are known."""

    texts: Sequence[DatedText]
    names: Collection[str] = ()

    def missing(self, statement: str) -> list[str]:
        """Return the addresses, numbers, dates and names of a statement that are not known, as it writes them."""
        dates = list(_dates_in(statement))
        rest = _blank(statement, [day.at for day in dates])
        missing = [address for address in ADDRESS.findall(statement) if address.casefold() not in self._whole]
        missing += [statement[slice(*day.at)] for day in dates if not self._has_date(day)]
        missing += [match[0] for match in _CLOCK.finditer(rest) if not self._has_time(int(match[1]), int(match[2]))]
        rest = _CLOCK.sub(" ", rest)
        missing += [word for word, month in _months_in(rest) if month not in self._months]
        missing += [word for word, day in _weekdays_in(rest) if day not in self._weekdays]
        missing += [
            written
            for written, value in (*_written_numbers(rest), *_spelled_in(rest))
            if value not in self.numbers and not self._implies(value)
        ]
        return [*dict.fromkeys([*missing, *self._strange_names(rest)])]

    def lacks_number_of(self, quote: str, statement: str) -> bool:
        """Return whether a statement lacks a number that a quote has in digits."""
        quoted = {value for _, value in _written_numbers(quote)}
        return bool(quoted - numbers_in(statement) - spelled_numbers(statement))

    @cached_property
    def numbers(self) -> frozenset[float]:
        """All numbers in the texts, in digits and in words."""
        stated = frozenset[float]().union(*(numbers_in(text.text) | spelled_numbers(text.text) for text in self.texts))
        dated = (number for text in self._annotated for number in numbers_in(text))
        return stated | frozenset(dated)

    def _implies(self, value: float) -> bool:
        """Return whether a number follows from the texts.

        It may be an hour of the afternoon, the length of a list, a year near that of a turn, the year in which a
        duration began, or the duration since a year.
        """
        if (12 < value <= 24 and value - 12 in self.numbers) or value in self._counts:
            return True
        if not _YEAR.fullmatch(f"{value:.0f}"):
            return any(abs(day.year - value - number) <= 1 for day in self._days for number in self._years)
        began = {day.year - number for day in self._days for number in self.numbers}
        return self._has_year(int(value)) or any(abs(year - value) <= 1 for year in began)

    @cached_property
    def _counts(self) -> frozenset[float]:
        """The lengths of the lists in the texts: "my daughters Ana and Eva" gives 2."""
        sentences = (sentence for text in self.texts for sentence in sentences_of(text.text))
        lists = (len(pattern("CLAUSE").split(sentence)) for sentence in sentences)
        return frozenset(float(count) for count in lists if count > 1)

    def _has_time(self, hour: int, minute: int) -> bool:
        hours = {hour, hour % 12, hour % 12 + 12, hour % 12 + 1}  # "halb neun" is 8:30
        if not hours & self.numbers:
            return False
        return minute == 0 or minute in self.numbers or minute in _QUARTERS

    def _has_date(self, written: _Date) -> bool:
        days_match = written.day in self.numbers
        if days_match and written.month in self._months and (written.year is None or self._has_year(written.year)):
            return True
        if days_match and any(written.includes(day + timedelta(days=more)) for day in self._days for more in _AROUND):
            return True  # "on the 3rd"
        return any(written.includes(day) for day in (*self._derived, *self._next_weekdays))

    def _has_year(self, year: int) -> bool:
        """Return whether a year was said, or is within a year of a turn and the first text has no year."""
        near = {day.year + more for day in self._days for more in (-1, 0, 1)}
        is_named = any(_YEAR.search(text.text) for text in self.texts[:1])
        return year in self._years or (not is_named and year in near)

    @cached_property
    def _years(self) -> frozenset[int]:
        return frozenset(int(number) for number in self.numbers if _YEAR.fullmatch(f"{number:.0f}"))

    @cached_property
    def _whole(self) -> str:
        return "\n".join((*(text.text for text in self.texts), *self.names)).casefold()

    @cached_property
    def _annotated(self) -> list[str]:
        return [with_dates(text.text, text.said_at) for text in self.texts if text.said_at]

    @cached_property
    def _days(self) -> list[date]:
        """The days of the turns."""
        return [text.said_at.date() for text in self.texts if text.said_at]

    @cached_property
    def _derived(self) -> frozenset[date]:
        """The days of the turns, and the days that time phrases in them denote."""
        days = {*self._days}
        for text in self.texts:
            if text.said_at:
                days.update(_days_of_phrases(text.text, text.said_at))
                days.update(_days_of_durations(text.text, text.said_at))
        for annotated in self._annotated:
            days.update(day for match in _ISO_DAY.finditer(annotated) if (day := _day(*map(int, match.groups()))))
        return frozenset(days)

    @cached_property
    def _next_weekdays(self) -> list[date]:
        """The days within two weeks of a turn, or of a date that was said, that have a weekday that was said."""
        written = [written_date for text in self.texts for written_date in _dates_in(text.text)]
        years = {day.year + more for day in self._days for more in (-1, 0, 1)}
        dates = [
            _day(year, written_date.month, written_date.day)
            for written_date in written
            for year in ({written_date.year} if written_date.year else years)
        ]
        weekdays = {day for text in self.texts for _, day in _weekdays_in(text.text)}
        anchors = [*self._days, *filter(None, dates)]
        around = (day + timedelta(days=more) for day in anchors for more in range(-_NEAR_DAYS, _NEAR_DAYS + 1))
        return [day for day in around if day.weekday() in weekdays]

    @cached_property
    def _months(self) -> frozenset[int]:
        """The months that were said and, if the first text names none, those of the derived days."""
        months = {month for text in self.texts for _, month in _months_in(text.text)}
        months |= {day.month for text in self.texts for day in _dates_in(text.text)}
        is_named = any(True for text in self.texts[:1] for _ in _months_in(text.text))
        return frozenset(months if is_named else months | {day.month for day in self._derived})

    @cached_property
    def _weekdays(self) -> frozenset[int]:
        """The weekdays that were said and, if the first text names none, those of the derived days."""
        weekdays = {day for text in self.texts for _, day in _weekdays_in(text.text)}
        is_named = any(True for text in self.texts[:1] for _ in _weekdays_in(text.text))
        return frozenset(weekdays if is_named else weekdays | {day.weekday() for day in self._derived})

    def _is_said(self, name: str) -> bool:
        """Return whether a folded name was said, perhaps with another ending, or begins or ends with a said word."""
        stem = name[: max(_STEM, len(name) - _ENDING)] if len(name) > _STEM else name
        if stem in self._whole or fold(stem) in fold(self._whole):
            return True
        return any(len(word) >= _STEM and (name.startswith(word) or name.endswith(word)) for word in self._words)

    @cached_property
    def _words(self) -> frozenset[str]:
        return frozenset(_words(self._whole))

    def _strange_names(self, statement: str) -> Iterator[str]:
        """Yield the capitalised words of a statement that are likely names and occur in no text or known name.

        Nothing if the statement is in another language than the first text, which may write names in another way.
        """
        german = "de" in languages_of(statement.split())
        if any(differ(text.text, statement) for text in self.texts[:1]):
            return  # another language may write them in another way
        for match in _CAPITAL.finditer(statement):
            name = re.sub(r"['’]s?$", "", match[0])
            folded = name.casefold()
            if len(name) < 2 or any(map(str.isdigit, name)) or folded in _no_names() | _TITLES or self._is_said(folded):
                continue
            is_first = _SENTENCE_START.search(statement[: match.start()]) is not None
            if (german or is_first) and is_word(name) and not _follows_a_title(statement, match.start()):
                continue
            yield name


_TITLES = frozenset(("herr", "herrn", "frau", "dr", "prof", "familie"))


def _follows_a_title(statement: str, start: int) -> bool:
    return not _TITLES.isdisjoint(word.lower() for word in _WORD.findall(statement[:start])[-1:])


@cache
def _no_names() -> frozenset[str]:
    """Return words that may be capitalised without being names (months, polite pronouns …), in lower case."""
    calendars = {
        name for what in ("MONTH", "MON", "WEEKDAY", "WDAY", "SEASON", "FEAST") for name in _calendar_words(what)
    }
    users = word_list("users") | word_list("calendar") | word_list("polite")
    return users | function_words(("en", "de", "fr", "es", "it", "pt", "nl", "ru")) | calendars


# --- numbers ----------------------------------------------------------------------------------------


def numbers_in(text: str) -> frozenset[float]:
    """Return the numbers that a text has in digits; a decimal fraction counts as its parts too."""
    numbers = {value for _, value in _written_numbers(text)}
    numbers |= {float(digits) for digits in re.findall(r"\d{1,18}", _GROUPED.sub(" ", text))}
    for value in values_in(text):  # 72k, 4 pm
        if isinstance(value.reading, float):
            numbers |= set(divmod(value.reading, 60)) if value.kind == "clock" else {value.reading}
    return frozenset(numbers)


def spelled_numbers(text: str) -> frozenset[float]:
    """Return the numbers that a text has in words."""
    named = _calendar_words("WORD") | _calendar_words("NTH")
    return frozenset(float(named[word]) for word in _words(text) if word in named)


def _written_numbers(text: str) -> Iterator[tuple[str, float]]:
    for match in _NUMBER.finditer(text):
        is_grouped = _GROUPED.fullmatch(match[0])
        digits = re.sub(r"\D", "", match[0]) if is_grouped else match[0].replace(",", ".")
        yield match[0], float(digits)


def _spelled_in(text: str) -> Iterator[tuple[str, float]]:
    named = _calendar_words("WORD", languages_of(text.split()))
    yield from ((word, float(named[word])) for word in _words(text) if named.get(word, 0) >= _SPELLED_FROM)


def _words(text: str) -> list[str]:
    return [part for word in _WORD.findall(text.lower()) for part in (word, *word.split("-"))]


@cache
def _calendar_words(what: str, languages: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the words of a class of the calendars with their values, by default of all languages."""
    chosen = [language for language in LANGUAGES if not languages or language in languages]
    return {name: value for language in chosen for name, value in lexicon(language).words.get(what, {}).items()}


# --- dates ------------------------------------------------------------------------------------------


class _Date(NamedTuple):
    """A day of a month as a statement writes it, and where."""

    at: tuple[int, int]
    year: int | None
    month: int
    day: int

    def includes(self, day: date) -> bool:
        return (day.month, day.day) == (self.month, self.day) and self.year in (None, day.year)


@cache
def _written_date() -> re.Pattern[str]:
    names = "|".join(
        sorted(
            map(re.escape, (*_calendar_words("MONTH"), *_calendar_words("MON"), *_calendar_words("MAY"))),
            key=len,
            reverse=True,
        )
    )
    year = r"(?:,?\s(?:de\s|del\s)?(?P<y{0}>\d{{4}})(?!\d))?"
    return re.compile(
        rf"(?<![\d-])(?P<iso>\d{{4}})-(?P<m1>\d\d)-(?P<d1>\d\d)(?!\d)"
        rf"|(?P<cjk>\d{{4}})?年?(?P<m2>\d{{1,2}})[月월]\s?(?P<d2>\d{{1,2}})[日号號일]"
        rf"|(?<!\d)(?P<d3>[0-3]?\d)(?:st|nd|rd|th|er|º|\.)?\s(?:of\s|de\s)?(?P<m3>{names})\b\.?{year.format(3)}"
        rf"|\b(?P<m4>{names})\b\.?\s(?:the\s)?(?P<d4>[0-3]?\d)(?:st|nd|rd|th)?(?!\d|[.:,]\d){year.format(4)}"
        rf"|(?<![\d.])(?P<d5>[0-3]?\d)\.(?P<m5>[01]?\d)\.(?P<y5>\d{{4}})?(?!\d)",
        re.IGNORECASE,
    )


def _dates_in(text: str) -> Iterator[_Date]:
    for match in _written_date().finditer(text):
        groups = {name[0]: value for name, value in match.groupdict().items() if value and name not in ("iso", "cjk")}
        year = match["iso"] or match["cjk"] or groups.get("y")
        name = groups["m"].lower()
        month = int(name) if name.isdigit() else _month_names()[name]
        if 1 <= month <= 12 and 1 <= int(groups["d"]) <= _MAX_DAYS:
            yield _Date(match.span(), int(year) if year else None, month, int(groups["d"]))


@cache
def _month_names() -> dict[str, int]:
    return _calendar_words("MONTH") | _calendar_words("MON") | _calendar_words("MAY")


def _months_in(text: str) -> Iterator[tuple[str, int]]:
    names = _calendar_words("MONTH") | {"May": 5}  # "may" is a verb too
    for word in _WORD.findall(text):
        month = names.get(word) or _calendar_words("MONTH").get(word.lower())
        if month and (word[0].isupper() or word > "\u0e00" or len(word) > _STEM):
            yield word, month


def _weekdays_in(text: str) -> Iterator[tuple[str, int]]:
    names = _calendar_words("WEEKDAY")
    for word in _WORD.findall(text):
        day = names.get(word.lower(), names.get(word.lower().removesuffix("s")))
        if day is not None:
            yield word, day


def _days_of_phrases(text: str, said_at: datetime) -> Iterator[date]:
    """Yield the days that phrases such as "last week" denote, and the same days a week or a year earlier or later."""
    for span in spans_in(text, said_at):
        length = span.end - span.start
        if length > timedelta(days=_LONGEST_SPAN):
            continue
        first = span.start.date()
        for shift in (0, 7, -7, 364, 365, 366):
            try:
                start = first + timedelta(days=shift)
                yield from (start + timedelta(days=day) for day in range(min(max(1, length.days), _MAX_DAYS)))
            except OverflowError:
                continue


def _days_of_durations(text: str, said_at: datetime) -> Iterator[date]:
    """Yield days before and after a turn by the amounts of time in it: "for six months", "in three weeks"."""
    amounts = _calendar_words("AMOUNT")
    units, spelled, words = (
        _calendar_words("UNIT"),
        _calendar_words("WORD") | _calendar_words("ONE"),
        re.findall(r"\d+|[^\W\d_]+", text.lower()),
    )
    for place, word in enumerate(words):
        count = int(word) if word.isdigit() and len(word) < 4 else spelled.get(word)
        near = [units[unit] for unit in words[place + 1 : place + 1 + _APART] if unit in units]
        if word in amounts:
            near, count = [amounts[word][0]], amounts[word][1]
        if not count or not near or near[0] in ("minute", "hour"):
            continue
        for amount in (count, -count):
            try:
                around = back(said_at, str(near[0]), amount).date()
                slack = {"day": 1, "week": 3, "month": 15}.get(str(near[0]), 31)
                yield from (around + timedelta(days=day) for day in range(-slack, slack + 1))
            except (ValueError, OverflowError):
                continue


def _day(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _blank(text: str, places: Iterable[tuple[int, int]]) -> str:
    for start, end in places:
        text = text[:start] + " " * (end - start) + text[end:]
    return text
