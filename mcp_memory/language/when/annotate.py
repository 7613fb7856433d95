"""Add dates behind "tomorrow" and the like in a turn, for readers who do not know the day it was said.

    tomorrow [17 March 2026] · a week on Thursday [26 March 2026] · last week [9–15 March 2026]
    31 March [2026] · two months ago [about January 2026] · next Friday [20 or 27 March 2026]
    übermorgen [2026-03-18] · in zwei Wochen [~2026-03-30] · la semaine prochaine [2026-03-23 – 2026-03-29]

Guarantees: the text is unchanged but for the additions (`ADDITION` removes them), and a second run adds nothing. A
wrong date is worse than none, so ambiguous phrases get none: a weekday or month whose sentence does not show its
direction, seasons, feasts, "a few weeks ago", "the last three months", times of the clock. Neither does a phrase whose
date stands beside it ("last weekend, on Saturday, 12 March"), which may not be the date counted here. Quotations, code,
addresses and paths are left alone. Not supported: time zones of speakers, reported speech without quotation marks, a
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
from mcp_memory.language.when.relative import Meant, is_to_come, meant, names_day
from mcp_memory.language.when.vocabulary import (
    languages_of,
    without_overlaps,
)
from mcp_memory.language.words import languages_of as spoken_in

_NAMES = "|".join(MONTHS)
_FULL = rf"(?:(?:\d{{1,2}} )?(?:(?:{_NAMES}) )?\d{{4}}|\d{{4}}-\d\d(?:-\d\d)?)"
_PART = rf"(?:\d{{1,2}}(?: (?:{_NAMES}))?(?: \d{{4}})?|\d{{4}}-\d\d-\d\d)"
ADDITION = re.compile(rf" \[(?:about |~)?(?:{_PART}(?:–| – | or | / ))?{_FULL}\]")
"""What `with_dates` adds: a space and a date, two days or a span of days in square brackets."""


def with_dates(text: str, said_at: datetime) -> str:
    """Return the text with the date in brackets behind each expression that only `said_at` makes clear.

    `said_at` is read in the local time zone of this machine; a naive one is local already. An expression without its
    year gets the year alone. English gets `[26 March 2026]`, other languages `[2026-03-26]`; `about` and `~` mark what
    was said roughly. Takes time in proportion to the length of the text. Never raises for any text or moment.
    """
    if not languages_of(text):
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
    r"|(?m:^[ \t]*>.*$)"  # what somebody else wrote
    r"|(?m:^[ \t]*\d{1,3}[.)][ \t])"  # the number of a list: "1. March 18th" is no 1 March
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
    days: Meant | None


def _additions(text: str, said_at: datetime) -> Iterator[tuple[int, str]]:
    """Yield where something is added, in order, and what."""
    readable = _LEFT_ALONE.sub(lambda match: "`" + " " * (len(match[0]) - 1), text)
    now = local(said_at)
    years = {int(year) for year in _YEAR.findall(readable)}
    japanese = "ja" in languages_of(readable)
    found: list[_Dated] = []
    start = 0
    for end in (*(match.end() for match in _SENTENCE.finditer(readable)), len(readable)):
        found.extend(_dated(readable[start:end], start, now, japanese=japanese))
        start = end
    named = [one for one in found if names_day(one.phrase)]
    for before, one in zip((None, *found), found, strict=False):
        days = one.days
        if days is None or _has_its_date(one, named, now) or _has_its_year(days, before, one.start):
            continue
        if days.only_year and years and days.first.year not in years:
            continue  # it may tell of that year
        possessive = _POSSESSIVE.match(text, one.end)
        yield possessive.end() if possessive else one.end, f" [{_shown(days, english=one.language == 'en')}]"


_BESIDE, _NEAR = 6, 60  # characters between phrases: for an apposition, and for two dates of one event


def _has_its_date(one: _Dated, named: Sequence[_Dated], now: datetime) -> bool:
    """Return whether the text names the date of a phrase itself: "last weekend, on Saturday, 12 March".

    "Yesterday" needs a date right beside it. For a weekend, week or weekday in the past, a past date near by is enough;
    a future date may be that of a plan.
    """
    if names_day(one.phrase) or one.days is None or one.days.unit != "day":
        return False
    for other in named:
        gap = max(other.start - one.end, one.start - other.end)
        is_vague = one.days.first <= now.date() and "DAY" not in one.phrase.words and "AGO" not in one.phrase.words
        if gap <= _BESIDE or (gap <= _NEAR and is_vague and not is_to_come(other.phrase, now.date())):
            return True
    return False


def _has_its_year(days: Meant, before: _Dated | None, start: int) -> bool:
    """Return whether the phrase before names the year: "last year in November"."""
    if before is None or before.days is None or before.days.unit != "year" or before.days.only_year:
        return False
    return days.only_year and start - before.end <= _BESIDE and days.first.year == before.days.first.year


def _dated(sentence: str, offset: int, now: datetime, *, japanese: bool) -> list[_Dated]:
    """Return the phrases in order; of overlapping phrases, the one of the likelier language."""
    languages = languages_of(sentence)
    if not languages:
        return []
    if japanese:
        languages = ["ja" if language == "zh" else language for language in languages]
    spoken = spoken_in(_WORD.findall(sentence))
    found: list[_Dated] = []
    for language in sorted(languages, key=lambda language: language not in spoken):
        phrases = phrases_in(sentence, language)
        cues = sentence_of(sentence, language) if phrases else None
        found.extend(
            _Dated(offset + phrase.start, offset + phrase.end, phrase, language, _meant(phrase, cues, now))
            for phrase in phrases
            if cues and (not spoken or language in spoken or _is_telling(phrase, language))
        )
    return without_overlaps(found, lambda one: (one.start, one.end))


_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")


def _is_telling(phrase: Phrase, language: str) -> bool:
    """Return whether a phrase is one even within a sentence of another language: "love it. mañana más".

    Names are not ("Latinoamérica Hoy"), nor are words that both languages have: "hier" is here in German.
    """
    if language == "en":  # the default: few words of it are anything else elsewhere
        return True
    if "DAY" in phrase.words:
        is_hier = language == "fr" and phrase.said["DAY"] == "hier" and "PART" not in phrase.words
        return not is_hier and (phrase.head.islower() or not phrase.before)
    return bool(phrase.kind) or phrase.words.keys() - _JOINING != {"UNIT"}


_JOINING = frozenset(("IN", "ON", "AT", "FROM", "THE", "OF", "AND", "DOT", "COMMA"))


def _meant(phrase: Phrase, cues: Sentence, now: datetime) -> Meant | None:
    try:
        return meant(phrase, cues, now)
    except (ValueError, OverflowError, OSError):  # before the year 1, after 9999
        return None


# --- how a date is shown ----------------------------------------------------------------------------


def _shown(days: Meant, *, english: bool) -> str:
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
