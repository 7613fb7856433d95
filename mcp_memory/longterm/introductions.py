"""Finds the people whom a user's sentence introduces: "my sister Ines", "meine Chefin Frau Roth", "我的同事小李".

The patterns miss names rather than invent them. In German, where every noun has a capital, a name needs a title, a
comma or the beginning of the sentence. The relation is the user's own word ("sister", "hermana"). Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from mcp_memory.language import pattern_of
from mcp_memory.language.sentences import is_person
from mcp_memory.language.words import function_words, languages_of
from mcp_memory.longterm.turns import kinds_of_phrases
from mcp_memory.models.embed.classifiers import related_words

_pattern = partial(pattern_of, "mcp_memory.longterm", "words/sentences.txt")
_NATIONAL = re.compile(r"(?:ish|an|ian|ese|ic)$")  # "I'm Irish"
_UNCASED = "\u2e80"  # from here on, scripts have no capitals
_WORD = re.compile(r"[^\W\d_]+")
_INSIDE = re.compile(r"(?:(?<![\w'’\"“„«])[^\W_]+(?:['’](?!s)\w+)?|[,;&]) $")
"""What is before a word inside a sentence. A word behind a quotation mark may be the first of a title."""
_OF_ANOTHER = re.compile(r"['’]s [^\W\d_a-z]")  # "Gardener's Delight"
_HYPHENATED = re.compile(r"[^\W\d_a-z]\w+-[^\W\d_a-z]\w+")
_SHORTEST = 2  # characters of a name
_AND = frozenset(("and", "und", "et", "en", "y", "e"))
_NOUN_CAPITALS = frozenset(("de",))
_CALENDAR = re.compile(
    r"(?:(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?|(?:Jan|Febr)uary|March|April|May|June|July|August|(?:Septem|Octo"
    r"|Novem|Decem)ber|(?:Mon|Diens|Donners|Frei|Sams|Sonn)tag|Mittwoch|Januar|Februar|März|Mai|Juni|Juli|Oktober"
    r"|Dezember|I)\b"
)


class Introduced(NamedTuple):
    """A name that a sentence gives, and the relation of its bearer to the user.

    The relation is `name` for the user, and "" if it is not stated.
    """

    name: str
    relation: str


def introduced(sentence: str, *, opening: bool = False, language_of: str = "") -> list[Introduced]:
    """Return the names that a sentence certainly introduces, each once; not in the order of the sentence.

    `opening` means that the sentence is in the user's first turn of a session, where "I'm Anna" nearly always gives a
    name.
    `language_of` is a longer text in the same language.
    """
    has_capitals = _nouns_have_capitals(language_of or sentence)
    by_name = {person.name: person for person in (*_han(sentence), *_cased(sentence, opening, has_capitals))}
    return list(by_name.values())


def certain_names(sentence: str, *, language_of: str = "") -> list[str]:
    """Return the certain names in a sentence, of people, places, projects and things, in order.

    They have a capital inside the sentence. At its beginning, where any word may have one, several words count:
    before a comma or a bracket, with a hyphen and two capitals, and in English if the first is no word of the language.
    Languages, nationalities, days, months and words in capitals alone do not count. In languages that capitalise every
    noun, only names with a title are certain. Two names with an "and" of another language between them are one: "Naald
    en Draad" in English.
    """
    text = language_of or sentence
    words = _WORD.findall(text)
    languages = languages_of(words) or ("en",)
    spoken = languages_of([word for word in words if word not in _AND])
    has_capitals = not _NOUN_CAPITALS.isdisjoint(languages)
    foreign = _AND - function_words(spoken) if spoken else frozenset[str]()
    names: list[tuple[int, int]] = []
    for match in _pattern("NAME").finditer(sentence):
        is_sure = _pattern("TITLED").match(match[0]) is not None or (
            not has_capitals
            and not _OF_ANOTHER.match(sentence, match.end())
            and (_INSIDE.search(sentence, 0, match.start()) is not None or _is_sure_at_start(match, languages))
        )
        if is_sure and _is_like_a_name(match[0], function_words(languages)):
            start, end = match.span()
            if names and sentence[names[-1][1] : start].strip() in foreign:
                start, _ = names.pop()
            names.append((start, end))
    return list(dict.fromkeys(sentence[start:end] for start, end in names))


def without_title(name: str) -> str:
    """Return a name without a title before it: "Roth" for "Frau Roth"."""
    return _pattern("TITLED").sub("", name, count=1)


def _is_sure_at_start(match: re.Match[str], languages: Sequence[str]) -> bool:
    """Return whether capitalised words at the beginning of a sentence are a name."""
    first, *others = match[0].split()
    if not others:
        return _HYPHENATED.fullmatch(first) is not None
    is_set_off = match.string.startswith((",", " ("), match.end())
    return is_set_off or ("en" in languages and not related_words(first.lower()))


def _is_like_a_name(name: str, idle: Collection[str] | None = None) -> bool:
    """Return whether capitalised words may be a name; false for "Easter Monday", "Also Podcasts" and "JE SAIS".

    `idle` are the function words of the text's language, if that is known.
    """
    words = name.split()
    if name.isupper() or len(words[-1]) < _SHORTEST or max(name) >= _UNCASED or any(map(_CALENDAR.fullmatch, words)):
        return False
    if _pattern("NO_NAME").match(name):
        return False
    if idle is None:
        idle = function_words(languages_of(words) or ("en",)) | function_words(("en", "de"))
    return words[0].lower() not in idle


def _nouns_have_capitals(text: str) -> bool:
    return not _NOUN_CAPITALS.isdisjoint(languages_of(_WORD.findall(text)))


def _han(sentence: str) -> Iterator[Introduced]:
    for match in _pattern("HAN_NAME").finditer(sentence):
        if is_person(match[1]):
            yield Introduced(match[2] or match[3], match[1])
    for match in _pattern("HAN_SELF").finditer(sentence):
        yield Introduced(match[1], "name")


def _cased(sentence: str, opening: bool, nouns_have_capitals: bool) -> Iterator[Introduced]:
    for match in _pattern("CALLED").finditer(sentence):
        if (name := _name_at(sentence, match.end())) and is_person(match[1]):
            yield Introduced(name, match[1].lower())
    for match in _pattern("RELATED").finditer(sentence):
        name = _name_at(sentence, match.end())
        if name and is_person(match[1]) and _is_apposed(sentence, match, name, nouns_have_capitals):
            yield Introduced(name, match[1].lower())
    for match in _pattern("NAME").finditer(sentence):
        behind = _pattern("APPOSITION").match(sentence, match.end())
        if behind and is_person(behind[1]) and _is_one_name(match[0], sentence[: match.start()]):
            yield Introduced(match[0], behind[1].lower())
    for match in _pattern("NAMED").finditer(sentence):
        if name := _name_at(sentence, match.end()):
            yield Introduced(name, "name")
    for match in _pattern("SELF").finditer(sentence):
        name = _name_at(sentence, match.end())
        if name and _is_own_name(sentence, match, name, opening, nouns_have_capitals):
            yield Introduced(name, "name")


def _name_at(sentence: str, place: int) -> str:
    """Return the name that begins at a place; empty if there is none."""
    match = _pattern("NAME").match(sentence, place)
    name = match[0] if match else ""
    return name if len(name) > 1 and max(name) < _UNCASED and not _CALENDAR.match(name) else ""


def _is_one_name(name: str, before: str) -> bool:
    """Return whether capitalised words are a single name. The first word of a sentence may be any word."""
    return _is_like_a_name(name) and (" " not in name or bool(before.strip()))


def _is_apposed(sentence: str, match: re.Match[str], name: str, nouns_have_capitals: bool) -> bool:
    """Return whether the name after "my sister" is hers. In German it may be another noun."""
    after = sentence[match.end() + len(name) :][:1]
    if match[0].rstrip().endswith(","):  # in "when I asked my sister, Paul came" Paul is somebody else
        return after in (",", ".", ")", "")
    is_first = not sentence[: match.start()].strip(" ,")
    has_title = _pattern("TITLED").match(name) is not None
    return not nouns_have_capitals or is_first or has_title or after in (",", ".", ";", ")", "")


def _is_own_name(sentence: str, match: re.Match[str], name: str, opening: bool, nouns_have_capitals: bool) -> bool:
    """Return whether the user introduces themselves: true for "Hi, I'm Anna.", false for "I'm Irish"."""
    after = sentence[match.end() + len(name) :][:1]
    if name.isupper() or _NATIONAL.search(name) or after not in (",", ".", "!", ""):
        return False
    if nouns_have_capitals:
        return " " in name
    return opening or "greeting" in (kinds_of_phrases(sentence[: match.start()]) or ())
