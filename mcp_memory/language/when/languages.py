"""The languages there are, each loaded when it is first wanted, and in which of them a text may speak of a time."""

from __future__ import annotations

import re
from functools import cache

from mcp_memory.language.when.lexing import Lexicon, lexicon_of
from mcp_memory.language.when.vocabulary import ANCHORS, read_language
from mcp_memory.language.words import fold

__all__ = ["LANGUAGES", "languages_of", "lexicon"]

LANGUAGES = ("en", "de", "fr", "es", "pt", "it", "ru", "zh", "ja", "ko")

# The first script that a text has decides: Japanese has kana, and Korean Hangul, among the Han characters.
_SCRIPTS = {
    "ja": re.compile("[\u3040-\u30ff]"),
    "ko": re.compile("[\uac00-\ud7a3]"),
    "zh": re.compile("[\u3400-\u9fff]"),
}
_WORD = re.compile(r"[^\W\d_]+")
_IN_DIGITS = re.compile(r"\d{4}|[Qq][1-4]")
_ASCII_LETTERS = bytes(ord(chr(i).lower()) if i < 128 and chr(i).isalpha() else 32 for i in range(256))


@cache
def lexicon(language: str) -> Lexicon:
    """Return the words of one of `LANGUAGES`, made ready for reading."""
    return lexicon_of(read_language(language))


def languages_of(text: str) -> list[str]:
    """Return the languages in which some word of the text may belong to a time: of most texts none, in microseconds."""
    ascii_only = text.isascii()
    if ascii_only:  # several times as fast as a regular expression
        words = set(text.encode().translate(_ASCII_LETTERS).decode().split())
    else:
        words = {fold(word) for word in _WORD.findall(text)}
    found = _speaking(words, _words_of(ANCHORS))
    if _IN_DIGITS.search(text):
        found |= _speaking(words, _words_of(frozenset(("IN", "FROM", "EDGE"))))
        found.add("en")  # a date in digits reads the same in all
    if not ascii_only:
        found |= _dense(text)
    return [language for language in LANGUAGES if language in found]


def _speaking(words: set[str], known: dict[str, set[str]]) -> set[str]:
    return {language for word in words & known.keys() for language in known[word]}


@cache
def _words_of(classes: frozenset[str]) -> dict[str, set[str]]:
    """Return the words of these classes, the longest of each phrase, with the languages that have them."""
    known: dict[str, set[str]] = {}
    for language in LANGUAGES:
        spoken = lexicon(language).language
        for name in classes & spoken.words.keys() if spoken.spaced else ():
            for form in spoken.words[name]:
                known.setdefault(max(_WORD.findall(fold(form)), key=len), set()).add(language)
    return known


def _dense(text: str) -> set[str]:
    for language, script in _SCRIPTS.items():
        if script.search(text):
            return set() if _beginnings(language).isdisjoint(text) else {language}
    return set()


@cache
def _beginnings(language: str) -> frozenset[str]:
    """Return the characters that words for times begin with, and the marks that make a number one."""
    spoken = lexicon(language).language
    return frozenset("年月日号號년월일") | {
        form[0] for name in ANCHORS - {"PART"} for form in spoken.words.get(name, ())
    }
