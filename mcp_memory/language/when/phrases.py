"""Phrases of a sentence that name a day, with all that is known about each. Shapes that only turns have stand here.

Questions have shapes of their own (`shapes`); both are matched, and where phrases overlap the longest is kept, so
that "the last week of May" is never read as "last week".
"""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

from mcp_memory.language.when.languages import lexicon
from mcp_memory.language.when.lexing import Token, tokens_of, without_overlaps
from mcp_memory.language.when.shapes import COMMON, compiled
from mcp_memory.language.when.vocabulary import ANCHORS, LETTER, PREPOSITIONS
from mcp_memory.language.words import fold

__all__ = ["Phrase", "phrases_in"]


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


_COUNT = "(WORD|NUM|ONE|FEW)"
_SHAPES = (
    ("ahead", f"(IN|AHEAD) ({_COUNT}|ONE? HALF ONE?) UNIT | (IN|AHEAD) ONE? AMOUNT | AHEAD UNIT"),
    ("later", f"{_COUNT} UNIT THAT | AMOUNT THAT"),
    ("from", f"({_COUNT} UNIT|ONE AMOUNT) ((ON|AT) (WEEKDAY|DAY) | DAY)"),
    ("from", f"(WEEKDAY|DAY) (IN|AHEAD) ({_COUNT} UNIT|ONE AMOUNT)"),
    ("from", "(WEEKDAY|DAY) (IN|THE) (WORD|NUM) UNIT?"),
    ("before", f"DAY PRIOR {_COUNT} UNIT"),
    ("week", "(WEEKDAY|DAY) UNIT ~NUM ~WORD ~PLAIN ~NAME"),
    ("next but one", "THE? UNIT FUNC REL"),
    ("dated", "WEEKDAY COMMA? THE? ORD | WEEKDAY NUM ~PLAIN ~NAME ~UNIT ~MARK ~OF ~WORD ~DASH | ORD OF? WEEKDAY"),
    ("dated", "WEEKDAY COMMA? THE? (ORD|NUM) DOT? OF? (MONTH|MON) DOT? (COMMA? YEAR)?"),
    ("", "WEEKDAY REL ~UNIT ~MONTH ~MON ~MAY ~WEEKDAY ~PART ~SEASON"),
    ("by", "(FUNC|FROM) WEEKDAY PART? ~NAME"),
)
_NAME = {letter: name for name, letter in LETTER.items()}
_SAME = {"MON": "MONTH", "MAY": "MONTH", "WDAY": "WEEKDAY", "RELP": "REL"}
_TELLING = frozenset(LETTER[name] for name in ANCHORS)
_TRAILING = PREPOSITIONS | {LETTER["DOT"], LETTER["COMMA"]}
_LEADING = frozenset(LETTER[name] for name in ("IN", "ON", "AT", "FROM", "THE", "FUNC", "AHEAD"))


class _Match(NamedTuple):
    kind: str
    first: int
    last: int


def phrases_in(text: str, language: str) -> list[Phrase]:
    """Return the phrases of a sentence in order, none overlapping."""
    tokens = tokens_of(text, lexicon(language))
    letters = "".join(token.letter for token in tokens)
    if _TELLING.isdisjoint(letters):
        return []
    found = [_Match(kind, *match.span()) for kind, shape in _shapes(language) for match in shape.finditer(letters)]
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
    own = [(kind, compiled(shape)[0]) for kind, shape in _SHAPES]
    return own + [("", shape) for shape in compiled(COMMON + lexicon(language).language.shapes)]


def _longest(found: list[_Match], letters: str) -> list[_Match]:
    """Return those that do not overlap, the longer first, without counting prepositions and articles in front."""

    def size(match: _Match) -> int:
        first = match.first
        while first < match.last and letters[first] in _LEADING:
            first += 1
        return first - match.last

    found.sort(key=lambda match: (size(match), not match.kind, match.first - match.last, match.first))
    return without_overlaps(found, lambda match: (match.first, match.last))


def _phrase(text: str, tokens: list[Token], match: _Match) -> Phrase:
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
