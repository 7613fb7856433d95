"""Words that make a line worth reading: of trouble, of warnings, and of totals.

`lines_with` finds the lines of a large text that have such a word many times faster than a pattern does line by line.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

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
    return Signals(*(lines_with(words.split(), lowered, most) for words in (_TROUBLE, _WARNING, _TOTAL)))


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
    joined, starts = lowered
    found: set[int] = set()
    for word in words:
        open_end, stem = word.endswith("*"), word.rstrip("*").replace("_", " ")
        at = joined.find(stem)
        if at < 0 or joined.count(stem) > most:
            continue
        while at >= 0:
            end = at + len(stem)
            if open_end or not joined[end : end + 1].isalpha():
                line = bisect_right(starts, at) - 1
                found.add(line)
                at = joined.find(stem, starts[line + 1])
            else:
                at = joined.find(stem, end)
    return found
