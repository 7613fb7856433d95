"""Scripts that put no spaces between words, and Hangul, whose particles cling to them: no dictionary is needed.

Han and kana: each character and each pair. Thai, Lao, Khmer and Burmese: the same of written syllables, since one
letter says little. Hangul: the word without its particles, and pairs, which find the parts of compounds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from mcp_memory.language.words.folding import kana_folded

__all__ = ["DENSE", "HAN", "HANGUL", "SYLLABIC", "dense_terms", "is_kana"]

HAN = (
    "\u3005-\u3007\u3040-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\U00020000-\U0003ffff"
)
HANGUL = "\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff"
SYLLABIC = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u0edc-\u0edf\u1000-\u103f\u104e-\u109f\u1780-\u17d3\u17d7\u17dc\u17dd"
)
DENSE = HAN + HANGUL + SYLLABIC

# A consonant with all that is written around it: leading and following vowels, tones, stacked consonants, and in
# Burmese the closing consonant under its killer mark.
_SYLLABLE = re.compile(
    "[\u0e40-\u0e44]?[\u0e01-\u0e2e][\u0e31\u0e34-\u0e3a\u0e47-\u0e4e]*[\u0e30\u0e32\u0e33\u0e45]?"
    "|[\u0ec0-\u0ec4]?[\u0e81-\u0eae\u0edc-\u0edf][\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece]*[\u0eb0\u0eb2\u0eb3]?"
    "|[\u1780-\u17b3](?:\u17d2[\u1780-\u17b3]|[\u17b4-\u17d1\u17d3\u17dd])*"
    "|[\u1000-\u102a\u103f\u104e-\u1055](?:\u1039[\u1000-\u102a]|[\u102b-\u1038\u103a-\u103e\u1056-\u1060])*"
    "(?:[\u1000-\u1021][\u1037\u1038]?\u103a[\u1037\u1038]?)?"
    "|."
)
_KATAKANA = re.compile("[\u30a1-\u30f6]")
_PARTICLES = """에서부터 으로부터 에게서 한테서 이라고 이라도 이랑 에서는 에서도 에게는
    으로는 까지는 부터는 이에요 예요 입니다 이다 에서 에게 한테 께서 부터 까지 으로
    처럼 보다 마다 조차 마저 라고 라도 이나 하고 에는 에도 와는 과는 로는
    은 는 이 가 을 를 에 의 와 과 도 로 만 랑 나 께"""
_PARTICLE = re.compile("(?:" + "|".join(sorted(_PARTICLES.split(), key=len, reverse=True)) + ")$")


def dense_terms(run: str) -> Iterator[str]:
    """Return the terms of a run of one of these scripts, in order."""
    if run[0] <= "\u109f" or "\u1780" <= run[0] <= "\u17ff":
        return _singles_and_pairs(_SYLLABLE.findall(run))
    if "\uac00" <= run[0] <= "\ud7ff" or run[0] < "\u3005" or "\u3130" <= run[0] <= "\u318f":
        return _hangul(run)
    return _singles_and_pairs(kana_folded(run) if _KATAKANA.search(run) else run)


def is_kana(term: str) -> bool:
    """Tell whether a term is a lone kana, which says nothing beside other terms."""
    return len(term) == 1 and "\u3040" <= term <= "\u30ff"


def _singles_and_pairs(units: str | list[str]) -> Iterator[str]:
    yield from units
    for left, right in pairwise(units):
        yield left + right


def _hangul(word: str) -> Iterator[str]:
    stem = _PARTICLE.sub("", word) or word
    if len(stem) != 2:
        yield stem
    for left, right in pairwise(word):
        yield left + right
