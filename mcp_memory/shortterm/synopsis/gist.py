"""The gist of what is not shown: each telling word once, in the order of the text, behind the lines it stands in.

Words that stand in one clause stay together, as a telegram has them: `help operate machine speed, changing approach`.

What the reader has already (the call, the talk, what the preview shows) is left out, so that the room goes to what
would be lost. Words win by what they cost: short ones over long paths, what running text says (comments and
docstrings too) over what code repeats, what comes again and again over what is said once. Bounds: `SEEN` words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from mcp_memory.language.function_words import function_words_of

__all__ = ["GAP", "Piece", "gist", "terms_in"]

SEEN = 12_000
ALIKE = 3
"""Of names that differ in their numbers only, such as test_1, test_2, so many; of values, all."""
GAP = len("\n … ")
LONGEST = 90
TERM = re.compile(
    r"\d{4}-\d\d-\d\dT[\d:.]{4,20}Z?|\d{0,8}[^\W\d][\w./@-]{0,200}|\d[\d.,:-]{2,40}"
    r"|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7ff]{2,12}"
)
PARTS = re.compile(r"[A-Z]?[a-z]{1,12}|[A-Z]+|\d{1,3}|[^\w\s]+|_+|[^\W\d_a-zA-Z]")
SIGNS = re.compile(r"[(){}\[\]=<>_\"'`;|\\]")
ID = re.compile(r"(?=.*[A-Z])(?=.*\d)[A-Z0-9]{4,10}|[A-Za-z]+(?:[_-][A-Za-z]+)*[_-]\d{3,12}")
DIGITS = re.compile(r"\d+")
CODE = re.compile(r"[A-Z0-9]{3}")
WORDS = re.compile(r"[^\W\d_]{2,}")
OWNERS = re.compile(r"(?:self|this|cls)\.")
KEYWORDS = frozenset(
    "None True False null true false elif else return import from class def function const static void public private"
    " protected while except finally raise throw throws catch assert yield async await lambda pass break continue"
    " self this super begin then endif define include using namespace export default switch case type".lower().split()
)
SPOKEN, COUNTED, PLACED = 1.5, 0.4, 0.5
REPEATED = (1.0, 1.25, 1.7)
"""In running text what is said twice, or three times, is what it is about."""
UNGUESSED = 2.0
"""An id says nothing and cannot be said in another way: it is worth more than its tokens."""
PHRASE = 6
SKIPPED = 3
"""So many words of a clause may be left out between two that stay together."""
COMMA = 0.3
"""What it takes to part a phrase from the one before, in tokens; less than one, since long phrases read better."""
STOPS = re.compile(r"[.,;:!?()\[\]|\n—。，<>{}=]")
GOLDEN = 0.618033988749895
"""Multiples of it, without their whole part, lie evenly: of words worth the same, some of every part are taken."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A line, or a part of a structure: what it is called, and what it says. `at` orders and groups."""

    at: int
    text: str
    name: str = ""


@dataclass(slots=True)
class _Word:
    at: int
    place: int
    worth: float
    spoken: bool
    joined: bool
    """Whether it goes on the clause of the word before it."""


def terms_in(text: str) -> list[str]:
    """Words of four letters and more, codes and numbers of three, names and paths; in order."""
    return [term for term, _ in _terms(text)]


def _terms(text: str) -> Iterator[tuple[str, str]]:
    """Yield each term with what stands between it and the one before."""
    end = 0
    for found in TERM.finditer(text):
        term = OWNERS.sub("", found[0]).strip("./-,:")
        if 3 < len(term) <= LONGEST or (len(term) == 3 and CODE.fullmatch(term)):
            yield term, text[end : found.start()]
            end = found.start() + len(found[0].rstrip("./-,:"))


def gist(
    pieces: Sequence[Piece],
    *,
    known: Iterable[str],
    breaks: Iterable[int],
    span: int,
    room: int,
    numbers: float = COUNTED,
    listed: bool = True,
) -> list[Piece]:
    """Return runs of words, each named after the piece it begins with; with `GAP` for each at most `room` characters.

    `known` are words not to say, `breaks` places where a run ends, `span` how far one may reach, `numbers` what a
    number is worth beside a word: little in code, where most are of lines; as much in data. `listed`: names
    have commas between them, like phrases; values that stand side by side need none.
    """
    words = _words(pieces, {word.lower() for word in known}, numbers)
    ranked = sorted(
        _phrases(words), key=lambda phrase: (-_gain(phrase, words, listed), words[phrase[0]].place * GOLDEN % 1)
    )
    ends = sorted(breaks)
    chosen: list[str] = []
    left = room
    for word in (word for phrase in ranked for word in phrase):
        if len(word) < left:
            chosen.append(word)
            left -= len(word) + 1
    least, most, best = 0, len(chosen), list[Piece]()
    while least < most:  # the most words that fit with the frames of their runs
        some = (least + most + 1) // 2
        told = _told(pieces, {word: words[word] for word in chosen[:some]}, ends, span, listed)
        if sum(len(run.name) + len(run.text) + GAP for run in told) <= room:
            least, best = some, told
        else:
            most = some - 1
    return best


def _words(pieces: Sequence[Piece], known: set[str], numbers: float) -> dict[str, _Word]:
    plain = function_words_of([word for piece in pieces[:200] for word in WORDS.findall(piece.text)])
    found: dict[str, _Word] = {}
    said: Counter[str] = Counter()
    spelt: dict[str, str] = {}
    alike: Counter[str] = Counter()
    for piece in pieces:
        spoken = _is_spoken(piece.text)
        between = "."
        for term, gap in _terms(piece.text):
            between += gap
            low = term.lower()
            if low in known or low in plain or low in KEYWORDS:
                between += term
                continue
            said[low] += 1
            stem = DIGITS.sub("#", low)
            if low not in spelt and numbers < 1.0 and not low.isdigit():
                alike[stem] += 1
            if low in spelt or alike[stem] > ALIKE:
                spelt.setdefault(low, term)
                between += term
                continue
            spelt[low] = term
            joined = spoken and not STOPS.search(between) and len(between.split()) <= SKIPPED
            found[term] = _Word(piece.at, len(found), _worth(term, numbers), spoken, joined)
            between = ""
            if len(found) >= SEEN:
                break
    for low, term in spelt.items():
        if term in found and found[term].spoken:
            found[term].worth *= SPOKEN * REPEATED[min(said[low], len(REPEATED)) - 1]
    return found


def _phrases(words: dict[str, _Word]) -> list[list[str]]:
    phrases: list[list[str]] = []
    for term, word in words.items():
        if word.joined and phrases and len(phrases[-1]) < PHRASE:
            phrases[-1].append(term)
        else:
            phrases.append([term])
    return phrases


def _gain(phrase: list[str], words: dict[str, _Word], listed: bool) -> float:
    """What a phrase is worth per token, its comma counted."""
    costs = [len(PARTS.findall(term)) for term in phrase]
    comma = COMMA if listed or words[phrase[0]].spoken else 0.0
    return sum(words[term].worth * cost for term, cost in zip(phrase, costs, strict=True)) / (sum(costs) + comma)


def _is_spoken(text: str) -> bool:
    """Running text: four words and few of the signs that code is made of."""
    return len(WORDS.findall(text)) >= 4 and 14 * len(SIGNS.findall(text)) <= len(text.strip())


def _worth(term: str, numbers: float) -> float:
    """Per token, as far as the parts of a name tell how many it takes."""
    parts = len(PARTS.findall(term))
    if ID.fullmatch(term):
        return UNGUESSED / parts
    kind = numbers if term[0].isdigit() else PLACED if "/" in term else 1.0
    return kind / parts


def _told(pieces: Sequence[Piece], words: dict[str, _Word], ends: list[int], span: int, listed: bool) -> list[Piece]:
    names = {piece.at: piece.name for piece in pieces}
    lines: list[tuple[int, int, str]] = []  # first piece, place of the last word, words
    bounds = iter(ends)
    end = next(bounds, None)
    for term, word in sorted(words.items(), key=lambda item: item[1].place):
        passed = False
        while end is not None and word.at >= end:
            passed, end = True, next(bounds, None)
        if lines and not passed and word.at - lines[-1][0] < span:
            first, last, said = lines[-1]
            apart = (listed or word.spoken) and not (word.joined and word.place == last + 1)
            lines[-1] = (first, word.place, f"{said}{',' * apart} {term}")
        else:
            lines.append((word.at, word.place, term))
    return [Piece(first, said, names[first]) for first, _, said in lines]
