"""The forms under which one word is found: stems by script and language, and the parts of compounds.

Each word has one form that depends on its script alone (Latin is stemmed as English, Cyrillic as Russian, and so
on). It is what texts of any language, and queries of one word, agree on. The forms of a language come on top
where the text's language is known. The stemmers are Snowball's, except for Arabic and Hebrew, where stripping
what is written together with the word finds more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from mcp_memory.language.words.folding import fold

__all__ = ["STEMMED", "forms"]

STEMMED = {
    "de": "german", "fr": "french", "es": "spanish", "it": "italian", "pt": "portuguese", "nl": "dutch",
    "sv": "swedish", "da": "danish", "no": "norwegian", "fi": "finnish", "hu": "hungarian", "tr": "turkish",
    "ro": "romanian", "pl": "polish", "cs": "czech", "id": "indonesian", "ca": "catalan", "sr": "serbian",
    "fa": "persian",
}  # fmt: skip
_SCRIPTS = (
    ("\u0370", "\u03ff", "greek"), ("\u1f00", "\u1fff", "greek"), ("\u0400", "\u052f", "russian"),
    ("\u0531", "\u058f", "armenian"), ("\u0900", "\u097f", "hindi"), ("\u0b80", "\u0bff", "tamil"),
)  # fmt: skip
_COMPOUNDING = {"de", "nl", "sv", "da", "no", "fi", "hu"}
_LONG = 8
_PART = 4
_REST = 3
_SURE = 3  # among more languages than this a word is not taken apart
_ONSET = re.compile(
    "(?:s?ch?[lmnrw]?|s[pt]r?|[bdfgkptvw]r|[bfgkps]l|[bcdfghjklmnprstvwz]|[gks]n|pf|qu|s[jkmvw]|[kt]v|[bfh]j|zw|th)?"
    "[aeiouyäöüåøæáéíóőúű]"
)
_HEAD = re.compile(r"\w*[aeiouyäöüåøæáéíóőúű]\w*[^vjqwc]")
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ø": "oe", "å": "aa"})

_PLURAL = re.compile("(?:õe|ãe|ão)s$")  # reuniões, pães, mãos

_ARABIC_PREFIX = re.compile("^و?(?:[بكف]?ال|لل)(?=.{2})|^و(?=.{3})")
_ARABIC_SUFFIX = re.compile("(?<=.{3})(?:ت?(?:ها|نا|ي|ك)|هم|كم|ان|ات|ون|ين|يه|[هي])$|(?<=.{2})(?:ه|ات)$")
_HEBREW_PREFIX = re.compile("^(?:וה|וב|ול|ומ|ש?ב|ש?ה|של|כש|מה|[ושהבכלמ])(?=.{3})")
_HEBREW_SUFFIX = re.compile("(?<=.{3})(?:יות|ים|ות|יי|[הת])$")
_FINAL = str.maketrans("ךםןףץ", "כמנפצ")
_CYRILLIC_SUFFIX = re.compile(
    "(?<=...)(?:ього|ому|ого|ими|ами|ями|ата|ите|ята|ове|еве|ові|еві|ість|ості|іст|ють|ять|ти|[аеиії]м|[ая]х|ой|ий|ій|"
    "ом|ем|ям|ів|їв|ею|ою|єю|та|то|те|ът|ят|[аеиоуюяіїєьй])$"
)


@lru_cache(maxsize=16_384)
def forms(word: str, languages: tuple[str, ...]) -> tuple[str, ...]:
    """Return the distinct forms of a word of letters, the one by its script first; never empty."""
    low = word.casefold()
    found = dict.fromkeys(_by_script(low))
    for language in languages:
        found.update(dict.fromkeys(_by_language(word, low, language, loose=len(languages) > _SURE)))
    found.pop("", None)
    return tuple(found) or (low,)


def _by_script(low: str) -> Iterator[str]:
    first, folded = low[0], fold(low)
    if first < "\u0250" or "\u1e00" <= first <= "\u1eff":
        yield _stem("english", folded)
        if not low.isascii() and (spelled := low.translate(_UMLAUTS)) != low:
            yield _stem("english", fold(spelled))
    elif "\u0590" <= first <= "\u05ff":
        yield folded.translate(_FINAL)
        bare = _HEBREW_PREFIX.sub("", folded)
        yield bare.translate(_FINAL)
        yield _HEBREW_SUFFIX.sub("", bare).translate(_FINAL)
    elif "\u0600" <= first <= "\u06ff":
        yield folded
        yield _arabic(folded)
    else:
        algorithm = next((name for start, end, name in _SCRIPTS if start <= first <= end), None)
        yield fold(_stem(algorithm, low)) if algorithm else folded


def _by_language(word: str, low: str, language: str, *, loose: bool) -> Iterator[str]:
    if language == "tr":
        low = _stem("turkish", word.replace("İ", "i").replace("I", "ı").casefold())  # one pass leaves cases behind
    elif language == "pt":
        low = _PLURAL.sub("ão", low)
    if language in ("uk", "bg"):
        yield fold(_CYRILLIC_SUFFIX.sub("", low))
    elif algorithm := STEMMED.get(language):
        yield fold(_stem(algorithm, low))
        if language in _COMPOUNDING and not loose and _LONG <= len(low) <= 40:
            yield from (stem for part in _parts(low) if len(stem := fold(_stem(algorithm, part))) >= _REST)


def _arabic(word: str) -> str:
    """Return the word without the article, particles and endings (after Larkey's light10, 2002)."""
    word = _ARABIC_PREFIX.sub("", word)
    while (shorter := _ARABIC_SUFFIX.sub("", word)) != word:
        word = shorter
    return word


def _parts(word: str) -> Iterator[str]:
    """Yield what may be the first and last parts of a compound, cut where a new word can begin.

    Most are no words. They cost room in the index and nothing else, for nobody asks for them.
    """
    for cut in range(_REST, len(word) - _REST + 1):
        if _ONSET.match(word, cut) and _HEAD.fullmatch(word, 0, cut) and not _ENDING.fullmatch(word, cut):
            if len(word) - cut >= _PART:
                yield word[cut:]
            if cut >= _PART:
                yield word[:cut]


_ENDING = re.compile(
    "e?(?:[rln]?ung|isch|lich|[kh]?eit|schaft|ier|r?in|nd|n|s)(?:e[nrsm]?|s|nen|t)?|[aeiouyäöü][lnrst]?[aeiouyäöü]?[lnrst]?"
)


def _stem(language: str, word: str) -> str:
    return _stemmer(language).stemWord(word)


@lru_cache(maxsize=64)
def _stemmer(language: str) -> Any:
    import Stemmer  # loaded late: the server starts without it

    # Without a cache of its own: `forms` has one, and 10,000 words of each language would be 1 MB each.
    return Stemmer.Stemmer(language, 0)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
