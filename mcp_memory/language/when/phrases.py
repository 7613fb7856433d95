"""The phrases of a turn that name a day, and whether their sentence looks back or ahead.

"On Friday" is the previous or the next Friday. In a turn only cue words decide, which are in each language's file
(`cue past`, `cue future`): the nearest cue within the clause of the date, the last before the date, else the first
after it. Sentences are not parsed: reported speech and irony are read literally.

Turns have further shapes in addition to those of questions (`spans_in`); both are matched, and of overlapping phrases
the longest is kept, so that "the last week of May" is never read as "last week".
"""

from __future__ import annotations

import re
from functools import cache, partial
from itertools import pairwise
from typing import Any, Literal, NamedTuple, cast

from mcp_memory.language import pattern_of
from mcp_memory.language.when.vocabulary import (
    ANCHORS,
    CLASS,
    LETTER,
    PREPOSITIONS,
    ShapeMatch,
    TimeToken,
    lexicon,
    shapes_in,
    without_overlaps,
)
from mcp_memory.language.words import fold

Direction = Literal["past", "future", "unsure", "habit"]


_MAX_CUES = 40
"""The most cues and cuts that are read, because an endless run of words must not cost more."""
_AT_THE_BEGINNING = 12
"""The most characters of a clause before a date at its beginning."""
_CUT = re.compile(r"[,;:()，、；：（）]|\s[–—-]\s")


_words = partial(pattern_of, "mcp_memory.language", "data/time_words.txt")


class Sentence(NamedTuple):
    """A sentence with its cues of a language, each with its place, and the places of clause ends."""

    text: str
    definite: list[int]
    """Places of "the", "my" and the like."""
    cues: list[tuple[int, Direction]]
    cuts: list[int]

    def direction(self, start: int, end: int) -> Direction | None:
        """Return the direction of the date from `start` to `end`, None without a cue."""
        if any(shown in ("unsure", "habit") for _, shown in self.cues):
            return "unsure"
        left = max((cut for cut in self.cuts if cut <= start), default=-1)
        right = min((cut for cut in self.cuts if cut >= end), default=1 << 30)
        outside = [cue for cue in self.cues if not start <= cue[0] < end]
        inside = [cue for cue in outside if left <= cue[0] < right]
        if not inside and start - left <= _AT_THE_BEGINNING:  # "On Sunday, I slept in": it belongs to what follows
            inside = [cue for cue in outside if cue[0] > start]
        before: list[Direction] = [shown for at, shown in inside if at < start]
        return before[-1] if before else next((shown for _, shown in inside), None)

    def is_aside(self, start: int, end: int) -> bool:
        """Return whether a date may belong to a noun instead of the verb: "write about our trip in July", "七月的照片".

        The noun's time may be past although the verb is in the future.
        """
        cue = max((at for at, _ in self.cues if at < start), default=start)
        return any(cue < at < start for at in self.definite) or _words("of_it").match(self.text, end) is not None

    def has(self, direction: Direction, start: int, end: int) -> bool:
        """Return whether any cue outside the place from `start` to `end` shows this direction."""
        return any(shown == direction and not start <= at < end for at, shown in self.cues)


def sentence_of(text: str, language: str) -> Sentence:
    """Find the cues of a language in a sentence."""
    cues: list[tuple[int, Direction]] = [
        (match.start(), cast("Direction", match.lastgroup)) for match in _cues(language).finditer(text)
    ]
    definite = [match.start() for match in _definite(language).finditer(text)][:_MAX_CUES]
    return Sentence(text, definite, cues[:_MAX_CUES], [match.start() for match in _CUT.finditer(text)][:_MAX_CUES])


@cache
def _cues(language: str) -> re.Pattern[str]:
    words = lexicon(language)
    edge = r"\b" if words.spaced else ""
    groups = "|".join(f"(?P<{name}>{words.cues[name]})" for name in ("habit", "unsure", "future", "past"))
    return re.compile(f"{edge}(?:{groups}){edge}", re.IGNORECASE)


@cache
def _definite(language: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{lexicon(language).cues.get('definite', '(?!)')})\b", re.IGNORECASE)


class Phrase(NamedTuple):
    """Tokens that match a shape. `kind` is empty for shapes of questions.

    `words` has the value and `texts` the folded text of the last token of each class, by class name; `head` is the text
    of the first token; `before` the folded texts of up to three preceding tokens, the nearest last; `after` that of the
    next token. `start` and `end` are offsets in the sentence.
    """

    kind: str
    start: int
    end: int
    words: dict[str, Any]
    texts: dict[str, str]
    head: str
    before: list[str]
    after: str
    among: bool = False
    """Whether a bare weekday may count from a date before it or right after it."""


_TELLING = frozenset(LETTER[name] for name in ANCHORS)
_TRAILING = PREPOSITIONS | {LETTER["DOT"], LETTER["COMMA"]}
_LEADING = frozenset(LETTER[name] for name in ("IN", "ON", "AT", "FROM", "THE", "FUNC", "AHEAD"))
_AND = 8
"""Characters between two dates of one list: "on Monday and Tuesday last week"."""


def phrases_in(text: str, language: str) -> list[Phrase]:
    """Return the phrases of a sentence in order, without overlaps."""
    tokens, letters, matches = shapes_in(text, language, "turn", _TELLING)
    phrases = [_phrase(text, tokens, match) for match in _longest(matches, letters)]
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


def _is_more_than_a_weekday(phrase: Phrase) -> bool:
    return "WEEKDAY" not in phrase.words or not phrase.words.keys().isdisjoint(("MONTH", "UNIT", "SHIFT", "REL", "ORD"))


def _longest(matches: list[ShapeMatch], letters: str) -> list[ShapeMatch]:
    """Sort the matches by length, without leading prepositions and articles, and return them without overlaps."""

    def size(match: ShapeMatch) -> int:
        first = match.first
        while first < match.last and letters[first] in _LEADING:
            first += 1
        return first - match.last

    matches.sort(key=lambda match: (size(match), not match.kind, match.first - match.last, match.first))
    return without_overlaps(matches, lambda match: (match.first, match.last))


def _phrase(text: str, tokens: list[TimeToken], match: ShapeMatch) -> Phrase:
    own = tokens[match.first : match.last]
    while own[-1].letter in _TRAILING and len(own) > 1:
        own = own[:-1]
    after = match.first + len(own)
    names = [CLASS[token.letter] for token in own]
    folded = [fold(text[token.start : token.end]) for token in own]
    return Phrase(
        kind=match.kind,
        start=own[0].start,
        end=own[-1].end,
        words={name: token.value for name, token in zip(names, own, strict=True)},
        texts=dict(zip(names, folded, strict=True)),
        head=text[own[0].start : own[0].end],
        before=[fold(text[token.start : token.end]) for token in tokens[max(0, match.first - 3) : match.first]],
        after=fold(text[tokens[after].start : tokens[after].end]) if after < len(tokens) else "",
    )
