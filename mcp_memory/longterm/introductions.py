"""Finds the people whom a user's sentence introduces: "my sister Ines", "meine Chefin Frau Roth", "我的同事小李".

Patterns only, which prefer to miss a name to inventing one: in German, where every noun has a capital, a name needs a
title, a comma or the beginning of the sentence. The relation is the user's own word ("sister", "hermana"). Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from mcp_memory.language import pattern_of
from mcp_memory.language.sentences import is_person
from mcp_memory.language.words import languages_of
from mcp_memory.longterm.turns import phrases_of

__all__ = ["Introduced", "full_names", "introduced"]

_pattern = partial(pattern_of, "mcp_memory.longterm", "words/sentences.txt")
_AFTER = 60  # characters after a name that may say who it is
_NATIONAL = re.compile(r"(?:ish|an|ian|ese|ic)$")  # "I'm Irish"
_NOUN_CAPITALS = frozenset(("de",))
_CALENDAR = re.compile(
    r"(?:(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?|(?:Jan|Febr)uary|March|April|May|June|July|August|(?:Septem|Octo"
    r"|Novem|Decem)ber|(?:Mon|Diens|Donners|Frei|Sams|Sonn)tag|Mittwoch|Januar|Februar|März|Mai|Juni|Juli|Oktober"
    r"|Dezember|I)\b"
)


class Introduced(NamedTuple):
    """A name that a sentence gives, and what its bearer is to the user; `name` of the user; empty if not said."""

    name: str
    relation: str


def introduced(sentence: str, *, opening: bool = False) -> list[Introduced]:
    """Return the names that a sentence introduces for certain, each once, in order.

    `opening`: it is in the user's first turn of a session, where "I'm Anna" is a name and seldom anything else.
    """
    found = {one.name: one for one in (*_han(sentence), *_cased(sentence, opening))}
    return list(found.values())


def full_names(sentence: str) -> list[str]:
    """Return the names in a sentence that are surely names: with a title, or of several words with capitals."""
    found: dict[str, None] = {}
    for match in _pattern("NAME").finditer(sentence):
        name, is_first = match[0], not sentence[: match.start()].strip(" \"'(-–*")
        has_title = _pattern("TITLED").match(name) is not None
        is_set_off = not is_first or sentence[match.end() : match.end() + 1] in (",", "(")
        if " " in name and not _CALENDAR.match(name) and (has_title or is_set_off):
            found[name] = None
    return list(found)


def _han(sentence: str) -> Iterator[Introduced]:
    for match in _pattern("HAN_NAME").finditer(sentence):
        if is_person(match[1]):
            yield Introduced(match[2] or match[3], match[1])
    for match in _pattern("HAN_SELF").finditer(sentence):
        yield Introduced(match[1], "name")


def _cased(sentence: str, opening: bool) -> Iterator[Introduced]:
    languages = languages_of(re.findall(r"[^\W\d_]+", sentence))
    nouns_have_capitals = not _NOUN_CAPITALS.isdisjoint(languages)
    for match in _pattern("NAME").finditer(sentence):
        name, before = match[0], sentence[: match.start()].lower()
        if _CALENDAR.fullmatch(name) or len(name) < 2:
            continue
        after = sentence[match.end() : match.end() + _AFTER].lower()
        if relation := _relation(name, before, after, nouns_have_capitals):
            yield Introduced(name, relation)
        elif _pattern("NAMED").search(before) or _is_own_name(name, before, after, opening, nouns_have_capitals):
            yield Introduced(name, "name")


def _relation(name: str, before: str, after: str, nouns_have_capitals: bool) -> str:
    """Return what the bearer of a name is to the user: the user's word for it; empty if it is not said."""
    if (called := _pattern("CALLED").search(before)) and is_person(called[1]):
        return called[1]
    if (behind := _pattern("APPOSITION").search(after)) and is_person(behind[1]):
        return behind[1]
    related = _pattern("RELATED").search(before)
    if related is None or not is_person(related[1]):
        return ""
    stands_first = not before[: related.start()].strip(" ,")
    is_set_off = before.rstrip().endswith(",") and after[:1] in (",", ".", "", ")")
    is_named = " " in name or stands_first or is_set_off or after[:1] in (",", ".", ";", ")", "")
    if before.rstrip().endswith(",") and not is_set_off:
        return ""  # "when I asked my sister, Paul came"
    return related[1] if not nouns_have_capitals or is_named else ""


def _is_own_name(name: str, before: str, after: str, opening: bool, nouns_have_capitals: bool) -> bool:
    """Tell whether the words before a name introduce the user: "Hi, I'm Anna." does, "I'm Irish" does not."""
    said = _pattern("SELF").search(before)
    if said is None or name.isupper() or _NATIONAL.search(name) or after[:1] not in (",", ".", "!", "", " "):
        return False
    greets = phrases_of(before[: said.start()]) or set()
    if nouns_have_capitals:
        return " " in name
    return opening or "greeting" in greets
