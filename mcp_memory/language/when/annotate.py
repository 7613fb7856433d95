"""Adds dates after "tomorrow" and the like in a turn, for readers who do not know when it was said.

    tomorrow [17 March 2026] · a week on Thursday [26 March 2026] · last week [9–15 March 2026]
    31 March [2026] · two months ago [about January 2026] · next Friday [20 or 27 March 2026]
    übermorgen [2026-03-18] · in zwei Wochen [~2026-03-30] · la semaine prochaine [2026-03-23 – 2026-03-29]

Guarantees: the text is unchanged except for the additions (`ADDITION` removes them), and a second run adds nothing. A
wrong date is worse than none, so ambiguous phrases get none: a weekday or month whose sentence does not show its
direction, seasons, feasts, "a few weeks ago", "the last three months", times of the clock. Neither does a phrase next
to its date ("last weekend, on Saturday, 12 March"), which may differ from the date computed here. Quotations, code,
addresses and paths are not changed. Not supported: time zones of speakers, reported speech without quotation marks, a
story in the present tense.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from mcp_memory.core.text import MONTHS, day_in_words
from mcp_memory.language.when.intervals import local
from mcp_memory.language.when.phrases import Phrase, Sentence, phrases_in, sentence_of
from mcp_memory.language.when.relative import MeantDays, days_of, is_to_come, names_day
from mcp_memory.language.when.vocabulary import (
    time_languages,
    without_overlaps,
)
from mcp_memory.language.words import languages_of as spoken_in

_NAMES = "|".join(MONTHS)
_FULL = rf"(?:(?:\d{{1,2}} )?(?:(?:{_NAMES}) )?\d{{4}}|\d{{4}}-\d\d(?:-\d\d)?)"
_PART = rf"(?:\d{{1,2}}(?: (?:{_NAMES}))?(?: \d{{4}})?|\d{{4}}-\d\d-\d\d)"
ADDITION = re.compile(rf" \[(?:about |~)?(?:{_PART}(?:–| – | or | / ))?{_FULL}\]")
"""What `with_dates` adds: a space and a date, two days or a span of days in square brackets."""


def with_dates(text: str, said_at: datetime) -> str:
    """Return the text with the date in brackets after each expression that is relative to `said_at`.

    `said_at` is converted to the local time zone of this machine, unless it is naive. An expression that lacks only its
    year gets the year. English gets `[26 March 2026]`, other languages `[2026-03-26]`; `about` and `~` mark approximate
    dates. Takes time in proportion to the length of the text. Never raises.
    """
    if not time_languages(text):
        return text
    bare, removed = "", 0
    added: dict[int, str] = {}
    """Additions by their places in the text without them."""
    for match in ADDITION.finditer(text):
        place = match.start() - removed
        bare += text[len(bare) + removed : match.start()]
        removed += len(match[0])
        added[place] = added.get(place, "") + match[0]
    bare += text[len(bare) + removed :]
    for place, addition in _additions(bare, said_at):
        added.setdefault(place, addition)
    for place, addition in sorted(added.items(), reverse=True):
        bare = f"{bare[:place]}{addition}{bare[place:]}"
    return bare


_LEFT_ALONE = re.compile(
    r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|`[^`\n]*`"
    r"|(?<!\w)\w{2,12}://\S+|(?<!\w)www\.\S+|(?<![\w.+-])[\w.+-]{1,64}@[\w-]"
    r"|(?<![\w.~-])[\w.~-]*[/\\][^\s,;:!?]*"  # paths
    r"|(?<![\w.-])[\w-]+\.(?:\w+\.)*[a-z]\w{0,4}\b"  # files
    r"|(?m:^[ \t]*>.*$)"  # quoted lines
    r"|(?m:^[ \t]*\d{1,3}[.)][ \t])"  # the number of a list: "1. March 18th" is not 1 March
    r"|\[[^\[\]\n]{1,60}\](?!\()"  # [today's date], a place to be filled in
    r"|\b[Ii]n today['’]s\b|\b(?:This|Next|Last) (?:Week|Weekend|Month|Year)\b"  # nowadays; headings
    r'|"[^"\n]{1,300}"|“[^”\n]{1,300}”|„[^“”\n]{1,300}[“”]|«[^»\n]{1,300}»|「[^」\n]{1,300}」|『[^』\n]{1,300}』',
    re.DOTALL,
)
_SENTENCE = re.compile(r"[!?;\n。！？；…]|(?<=[^\W\d_]{3})\.(?=\s)")
_YEAR = re.compile(r"(?<!\d)(?:1[89]|2[01])\d\d(?!\d)")
_POSSESSIVE = re.compile(r"['’]s\b")


class _Dated(NamedTuple):
    """A phrase with its place in the text and the days that it means, None if uncertain."""

    start: int
    end: int
    phrase: Phrase
    language: str
    days: MeantDays | None


def _additions(text: str, said_at: datetime) -> Iterator[tuple[int, str]]:
    """Yield the places of additions, in order, and their texts."""
    readable = _LEFT_ALONE.sub(lambda match: "`" + " " * (len(match[0]) - 1), text)
    now = local(said_at)
    years = {int(year) for year in _YEAR.findall(readable)}
    japanese = "ja" in time_languages(readable)
    phrases: list[_Dated] = []
    start = 0
    for end in (*(match.end() for match in _SENTENCE.finditer(readable)), len(readable)):
        phrases.extend(_dated_phrases(readable[start:end], start, now, japanese=japanese))
        start = end
    with_date = [dated for dated in phrases if names_day(dated.phrase)]
    for before, dated in zip((None, *phrases), phrases, strict=False):
        days = dated.days
        if days is None or _has_its_date(dated, with_date, now) or _has_its_year(days, before, dated.start):
            continue
        if days.only_year and years and days.first.year not in years:
            continue  # it may be in the year that the text names
        possessive = _POSSESSIVE.match(text, dated.end)
        place = possessive.end() if possessive else dated.end
        yield place, f" [{_format_days(days, english=dated.language == 'en')}]"


_BESIDE, _NEAR = 6, 60  # most characters between the phrases of an apposition, and between two dates of one event


def _has_its_date(dated: _Dated, with_date: Sequence[_Dated], now: datetime) -> bool:
    """Return whether the text already gives the date of a phrase: "last weekend, on Saturday, 12 March".

    "Yesterday" needs an adjacent date. For a past weekend, week or weekday, a past date nearby is enough; a future date
    may belong to a plan.
    """
    if names_day(dated.phrase) or dated.days is None or dated.days.unit != "day":
        return False
    for other in with_date:
        gap = max(other.start - dated.end, dated.start - other.end)
        is_vague = dated.days.first <= now.date() and dated.phrase.words.keys().isdisjoint(("DAY", "AGO"))
        if gap <= _BESIDE or (gap <= _NEAR and is_vague and not is_to_come(other.phrase, now.date())):
            return True
    return False


def _has_its_year(days: MeantDays, before: _Dated | None, start: int) -> bool:
    """Return whether the phrase just before a date without its year names that year: "last year in November"."""
    if before is None or before.days is None or before.days.unit != "year" or before.days.only_year:
        return False
    return days.only_year and start - before.end <= _BESIDE and days.first.year == before.days.first.year


def _dated_phrases(sentence: str, offset: int, now: datetime, *, japanese: bool) -> list[_Dated]:
    """Return the phrases in order; of overlapping phrases, that of the likelier language."""
    languages = time_languages(sentence)
    if not languages:
        return []
    if japanese:
        languages = ["ja" if language == "zh" else language for language in languages]
    spoken = spoken_in(_WORD.findall(sentence))
    dated: list[_Dated] = []
    for language in sorted(languages, key=lambda language: language not in spoken):
        phrases = phrases_in(sentence, language)
        cues = sentence_of(sentence, language) if phrases else None
        dated.extend(
            _Dated(offset + phrase.start, offset + phrase.end, phrase, language, _certain_days(phrase, cues, now))
            for phrase in phrases
            if cues and (not spoken or language in spoken or _is_unmistakable(phrase, language))
        )
    return without_overlaps(dated, lambda phrase: (phrase.start, phrase.end))


_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")


def _is_unmistakable(phrase: Phrase, language: str) -> bool:
    """Return whether a phrase is a time even in a sentence of another language: "love it. mañana más".

    Names are not ("Latinoamérica Hoy"), nor are words of both languages: "hier" means "here" in German.
    """
    if language == "en":  # the default: few of its words have another meaning elsewhere
        return True
    if "DAY" in phrase.words:
        is_hier = language == "fr" and phrase.texts["DAY"] == "hier" and "PART" not in phrase.words
        return not is_hier and (phrase.head.islower() or not phrase.before)
    return bool(phrase.kind) or phrase.words.keys() - _JOINING != {"UNIT"}


_JOINING = frozenset(("IN", "ON", "AT", "FROM", "THE", "OF", "AND", "DOT", "COMMA"))


def _certain_days(phrase: Phrase, cues: Sentence, now: datetime) -> MeantDays | None:
    try:
        return days_of(phrase, cues, now)
    except (ValueError, OverflowError, OSError):  # before the year 1, after 9999
        return None


# --- how a date is shown ----------------------------------------------------------------------------


def _format_days(days: MeantDays, *, english: bool) -> str:
    first, last = days.first, days.last
    about = ("about " if english else "~") if days.about else ""
    if days.unit == "year":
        return f"{about}{first.year:04}"
    if days.unit == "month":
        return about + (
            f"{MONTHS[first.month - 1]} {first.year:04}" if english else f"{first.year:04}-{first.month:02}"
        )
    if first == last:
        return about + (day_in_words(first) if english else first.isoformat())
    if not english:
        return f"{first.isoformat()}{' / ' if days.either else ' – '}{last.isoformat()}"
    between = " or " if days.either else "–" if first.month == last.month else " – "
    if first.year != last.year:
        return f"{day_in_words(first)}{between}{day_in_words(last)}"
    return f"{first.day if first.month == last.month else day_in_words(first)[:-5]}{between}{day_in_words(last)}"
