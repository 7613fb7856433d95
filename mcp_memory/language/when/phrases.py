"""The phrases of a turn that name a day, and whether their sentence looks back or ahead.

"On Friday" is the Friday before or the one after. In a turn only the words around it decide, and each language lists
those in its file (`cue past`, `cue future`). The nearest cue decides, within the clause of the date: the last before
the date, else the first after it. Nothing is parsed: reported speech and irony count as they are written.

Turns have shapes beside those of questions (`intervals`); both are matched, and of overlapping phrases the longest is
kept, so that "the last week of May" is never read as "last week".
"""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from mcp_memory.language.when.intervals import compiled, shapes_of
from mcp_memory.language.when.vocabulary import (
    ANCHORS,
    LETTER,
    PREPOSITIONS,
    TimeToken,
    lexicon,
    tokens_of,
    without_overlaps,
)
from mcp_memory.language.words import fold

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


class Phrase(NamedTuple):
    """A row of tokens that fits a shape. `kind` is empty for shapes of questions.

    `words` holds the values by class name and `said` the folded text by class name, of the last of each class; `head`
    is the text of the first token; `before` is the folded text of up to three tokens in front, nearest last; `after` is
    that of the next token. `start` and `end` are characters of the sentence.
    """

    kind: str
    start: int
    end: int
    words: dict[str, Any]
    said: dict[str, str]
    head: str
    before: list[str]
    after: str
    among: bool = False
    """A date of the sentence stands before it, or right after it, that a bare weekday may count from."""


_NAME = {letter: name for name, letter in LETTER.items()}
_SAME = {"MON": "MONTH", "MAY": "MONTH", "WDAY": "WEEKDAY", "RELP": "REL"}
_TELLING = frozenset(LETTER[name] for name in ANCHORS)
_TRAILING = PREPOSITIONS | {LETTER["DOT"], LETTER["COMMA"]}
_LEADING = frozenset(LETTER[name] for name in ("IN", "ON", "AT", "FROM", "THE", "FUNC", "AHEAD"))


class _ShapeMatch(NamedTuple):
    kind: str
    first: int
    last: int


def phrases_in(text: str, language: str) -> list[Phrase]:
    """Return the phrases of a sentence in order, none overlapping."""
    tokens = tokens_of(text, lexicon(language))
    letters = "".join(token.letter for token in tokens)
    if _TELLING.isdisjoint(letters):
        return []
    found = [_ShapeMatch(kind, *match.span()) for kind, shape in _shapes(language) for match in shape.finditer(letters)]
    phrases = [_phrase(text, tokens, match) for match in _longest(found, letters)]
    leading = next((phrase.start for phrase in phrases if _is_more_than_a_weekday(phrase)), len(text))
    followed = {
        before.start
        for before, after in pairwise(phrases)
        if after.start - before.end <= _AND and _is_more_than_a_weekday(after)
    }
    return [
        phrase._replace(among=leading < phrase.start or phrase.start in followed or (phrase.kind == "by" and nth > 0))
        for nth, phrase in enumerate(phrases)
    ]


_AND = 8
"""Characters between two dates of one list: "on Monday and Tuesday last week"."""


def _is_more_than_a_weekday(phrase: Phrase) -> bool:
    return "WEEKDAY" not in phrase.words or not phrase.words.keys().isdisjoint(("MONTH", "UNIT", "SHIFT", "REL", "ORD"))


@cache
def _shapes(language: str) -> list[tuple[str, re.Pattern[str]]]:
    own = [(kind.strip("-"), shape) for kind, shapes in shapes_of("turn").items() for shape in compiled(shapes)]
    return own + [("", shape) for shape in compiled([*shapes_of("common")[""], *lexicon(language).language.shapes])]


def _longest(found: list[_ShapeMatch], letters: str) -> list[_ShapeMatch]:
    """Return those that do not overlap, the longer first, without counting prepositions and articles in front."""

    def size(match: _ShapeMatch) -> int:
        first = match.first
        while first < match.last and letters[first] in _LEADING:
            first += 1
        return first - match.last

    found.sort(key=lambda match: (size(match), not match.kind, match.first - match.last, match.first))
    return without_overlaps(found, lambda match: (match.first, match.last))


def _phrase(text: str, tokens: list[TimeToken], match: _ShapeMatch) -> Phrase:
    own = tokens[match.first : match.last]
    while own[-1].letter in _TRAILING and len(own) > 1:
        own = own[:-1]
    after = match.first + len(own)
    names = [_SAME.get(_NAME[token.letter], _NAME[token.letter]) for token in own]
    folded = [fold(text[token.start : token.end]) for token in own]
    return Phrase(
        kind=match.kind,
        start=own[0].start,
        end=own[-1].end,
        words={name: token.value for name, token in zip(names, own, strict=True)},
        said=dict(zip(names, folded, strict=True)),
        head=text[own[0].start : own[0].end],
        before=[fold(text[token.start : token.end]) for token in tokens[max(0, match.first - 3) : match.first]],
        after=fold(text[tokens[after].start : tokens[after].end]) if after < len(tokens) else "",
    )
