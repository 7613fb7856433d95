"""Whether a sentence is about the past or the future, by its own words.

"On Friday" is the Friday before or the one after. In what somebody said only the words around it decide, and each
language lists those in its file (`Language.cues`). The cue that is nearest decides, within the clause of the date:
the last before the date, else the first after it. It does not parse: reported speech and irony are taken at their word.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Literal, NamedTuple

from mcp_memory.language.when.languages import lexicon

__all__ = ["Direction", "Sentence", "sentence_of"]

Direction = Literal["past", "future", "unsure", "habit"]


class _Cue(NamedTuple):
    start: int
    direction: Direction


class Sentence(NamedTuple):
    """A sentence of one language: its cues in order, and the characters at which a clause ends."""

    cues: list[_Cue]
    cuts: list[int]

    def direction(self, start: int, end: int) -> Direction | None:
        """Return the direction of a date that stands from `start` to `end`, or None without a cue."""
        if any(cue.direction in ("unsure", "habit") for cue in self.cues):
            return "unsure"
        left = max((cut for cut in self.cuts if cut <= start), default=-1)
        right = min((cut for cut in self.cuts if cut >= end), default=1 << 30)
        outside = [cue for cue in self.cues if not start <= cue.start < end]
        inside = [cue for cue in outside if left <= cue.start < right]
        if not inside and start - left <= _AT_THE_BEGINNING:  # "On Sunday, I slept in": it belongs to what follows
            inside = [cue for cue in outside if cue.start > start]
        return _nearest(inside, start)

    def has(self, direction: Direction, start: int, end: int) -> bool:
        """Tell whether any cue outside the place from `start` to `end` shows this direction."""
        return any(cue.direction == direction and not start <= cue.start < end for cue in self.cues)


def sentence_of(text: str, language: str) -> Sentence:
    """Find the cues of a sentence, as one language reads it."""
    cues = [_Cue(match.start(), _NAMES[match.lastgroup or "unsure"]) for match in _pattern(language).finditer(text)]
    return Sentence(cues[:_MOST], [match.start() for match in _CUT.finditer(text)][:_MOST])


_MOST = 40
"""Cues and cuts that are looked at: a longer run of words without an end is no sentence, and must not cost more."""
_AT_THE_BEGINNING = 12
"""Characters of a clause before a date with which it begins."""
_NAMES: dict[str, Direction] = {"past": "past", "future": "future", "unsure": "unsure", "habit": "habit"}
_CUT = re.compile(r"[,;:()，、；：（）]|\s[–—-]\s")


@cache
def _pattern(language: str) -> re.Pattern[str]:
    spoken = lexicon(language).language
    edge = r"\b" if spoken.spaced else ""
    groups = "|".join(f"(?P<{name}>{spoken.cues[name]})" for name in ("habit", "unsure", "future", "past"))
    return re.compile(f"{edge}(?:{groups}){edge}", re.IGNORECASE)


def _nearest(cues: list[_Cue], start: int) -> Direction | None:
    before = [cue for cue in cues if cue.start < start]
    if before:
        return before[-1].direction
    return cues[0].direction if cues else None
