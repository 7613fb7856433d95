"""Words that make a line worth reading: of trouble, of warnings, and of totals.

`lines_with` finds the lines of a large text that have such a word many times faster than a pattern does line by line.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import NamedTuple

from mcp_memory.core.substrings import FindPlaces, place_finder

_TROUBLE = (
    "error* exception* fail failed fails failing failure* fatal panic* traceback denied refused cannot could_not"
    " not_found no_such invalid unable critical killed timed_out timeout* segfault segmentation oops bug nan not_saved"
    " crash* abort* unhealthy backoff back-off blocker severe vulnerab*"
)
_WARNING = "warn* deprecated obsolete skipped retry* duplicate* unlike"
_TOTAL = (
    "total* summary passed passes found finished result results status exit* succe* complete* done built took test"
    " tests transmitted received loss average version count failure* error* pending duration licence license"
    " state http/*"
)
"""Beginnings of words end in `*`; `_` is a blank."""
COMMON_IN = 500


def _pattern(listed: str) -> re.Pattern[str]:
    words = listed.split()
    parts = (re.escape(word.rstrip("*").replace("_", " ")) + r"\w*" * word.endswith("*") for word in words)
    camel = "|".join(word.rstrip("*").capitalize() for word in words if word.isalpha() or word.endswith("*"))
    return re.compile(rf"(?i:(?<![^\W_])(?:{'|'.join(parts)})(?!\w))|(?<=[a-z])(?:{camel})(?![a-z])|\bFailed[A-Z]\w+")


TROUBLE = _pattern(_TROUBLE)
TOTAL = _pattern(_TOTAL)


@dataclass(frozen=True, slots=True)
class Signals:
    """The indexes of the lines that have a word of each kind."""

    trouble: set[int]
    warning: set[int]
    total: set[int]


class LoweredLines(NamedTuple):
    """Lines as one text in lower case, and where each begins, then the end of the text."""

    text: str
    starts: Sequence[int]


def signals_in(lowered: LoweredLines) -> Signals:
    """Return where in the lines words of trouble, of warnings and of totals are.

    In a large text, words that very many lines have do not count.
    """
    most = max(COMMON_IN, (len(lowered.starts) - 1) // 4)
    places = _find_stems()(lowered.text)
    return Signals(*(_lines_of(words.split(), places, lowered, most) for words in (_TROUBLE, _WARNING, _TOTAL)))


@cache
def _find_stems() -> FindPlaces:
    return place_finder(set(map(_stem, f"{_TROUBLE} {_WARNING} {_TOTAL}".split())))


def _stem(word: str) -> str:
    return word.rstrip("*").replace("_", " ")


def join_lower(texts: Sequence[str]) -> LoweredLines:
    """Return the lines as one text in lower case."""
    joined = "\n".join(texts).lower()
    if len(joined) != sum(map(len, texts)) + max(0, len(texts) - 1):  # some letters are two in lower case
        joined = "\n".join("".join(char.lower()[:1] for char in text) for text in texts)
    return LoweredLines(joined, [0, *accumulate(len(text) + 1 for text in texts)])


def lines_with(words: Iterable[str], lowered: LoweredLines, most: int) -> set[int]:
    """Return the indexes of the lines that have any of the words, as words of their own or at the end of a longer one.

    Words that occur more than `most` times do not count.
    """
    listed = [*words]
    places = place_finder(set(map(_stem, listed)))(lowered.text) if listed else {}
    return _lines_of(listed, places, lowered, most)


def _lines_of(words: Iterable[str], places: Mapping[str, Sequence[int]], lowered: LoweredLines, most: int) -> set[int]:
    """Return what `lines_with` returns, given the places of the stems of the words."""
    text, starts = lowered
    found: set[int] = set()
    for word in words:
        stem = _stem(word)
        at_stem = places.get(stem, ())
        if len(at_stem) <= most:
            ends = (at + len(stem) for at in at_stem)
            found.update(
                bisect_right(starts, end - 1) - 1
                for end in ends
                if word.endswith("*") or not text[end : end + 1].isalpha()
            )
    return found
