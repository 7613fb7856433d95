"""Key words of the lines that a preview does not quote, in runs that begin with the number or the name of their line.

Each word once, in the order of the text; words of a clause stay together, like a telegram: `help operate machine speed,
changing approach`. Words that the reader already has (in the call, the talk, the preview so far) are omitted, except
defined names. Cheap words are preferred: short words to long paths, running text (comments and docstrings too) to code,
repeated words to single words. At most `SEEN` words are considered.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mcp_memory.language.words import function_words_of
from mcp_memory.shortterm.synopsis.page import PageLine, located_terms

SEEN = 12_000
ALIKE = 3
"""The most names that differ only in numbers (test_1, test_2, …); values are not limited."""
GAP = len("\n … ")
PARTS = re.compile(r"[A-Z]?[a-z]{1,12}|[A-Z]+|\d{1,3}|[^\w\s]+|_+|[^\W\d_a-zA-Z]")
SIGNS = re.compile(r"[(){}\[\]=<>_\"'`;|\\]")
ID = re.compile(r"(?=.*[A-Z])(?=.*\d)[A-Z0-9]{4,10}|[A-Za-z]+(?:[_-][A-Za-z]+)*[_-]\d{3,12}")
DIGITS = re.compile(r"\d+")
WORDS = re.compile(r"[^\W\d_]{2,}")
KEYWORDS = frozenset(
    "None True False null true false elif else return import from class def function const static void public private"
    " protected while except finally raise throw throws catch assert yield async await lambda pass break continue"
    " self this super begin then endif define include using namespace export default switch case type".lower().split()
)
SPOKEN, COUNTED, PLACED = 1.5, 0.4, 0.5
NAMED = 3.0
"""The worth of a defined name relative to other words, because its run is about it."""
REPEATED = (1.0, 1.25, 1.7)
"""The worth of words that running text has once, twice, or more often; repeated words show the subject."""
UNGUESSED = 2.0
"""The worth of an id, which is higher than its tokens suggest because it cannot be paraphrased."""
PHRASE = 6
SKIPPED = 3
"""The most omitted words of a clause between two words of a phrase."""
COMMA = 0.3
"""Tokens of the separator between phrases; less than 1, because long phrases read better."""
STOPS = re.compile(r"[.,;:!?()\[\]|\n—。，<>{}=]")
GOLDEN = 0.618033988749895
"""The fractional parts of its multiples are evenly spread, so equally good words come from all parts of the text."""


@dataclass(slots=True)
class _GistWord:
    """A key word: the number of its piece (`at`), its place among all words, and its worth per token."""

    at: int
    place: int
    worth: float
    spoken: bool
    joined: bool
    """Whether it continues the clause of the previous word."""


def key_words(
    pieces: Sequence[PageLine],
    *,
    seen: Iterable[str],
    breaks: Iterable[int],
    span: int,
    room: int,
    numbers: float = COUNTED,
    listed: bool = True,
    defined: Iterable[str] = (),
) -> list[PageLine]:
    """Return runs of key words, each named after its first piece, in at most `room` characters with a `GAP` for each.

    Words in `seen` are omitted. A run ends before a number in `breaks`, or `span` after its first piece. `numbers` is
    the worth of a number relative to a word: low in code, where many are line numbers, equal in data. With `listed`,
    names and values next to a phrase are separated from it like words of running text. Names in `defined` are
    preferred, even if seen.
    """
    words = _words(pieces, {word.lower() for word in seen} - {name.lower() for name in defined}, numbers)
    for term in words.keys() & set(defined):
        words[term].worth *= NAMED
    ranked = sorted(
        _phrases(words), key=lambda phrase: (-_gain(phrase, words, listed), words[phrase[0]].place * GOLDEN % 1)
    )
    ends = sorted(breaks)
    names = {piece.number: _name(piece) for piece in pieces}
    chosen: list[str] = []
    left = room
    for word in (word for phrase in ranked for word in phrase):
        if len(word) < left:
            chosen.append(word)
            left -= len(word) + 1
    least, most, best = 0, len(chosen), list[PageLine]()
    while least < most:  # the most words that fit with the frames of their runs
        some = (least + most + 1) // 2
        runs = _runs(names, {word: words[word] for word in chosen[:some]}, ends, span, listed)
        if sum(len(run.name) + len(run.text) + GAP for run in runs) <= room:
            least, best = some, runs
        else:
            most = some - 1
    return best


def _name(piece: PageLine) -> str:
    return piece.name or str(piece.number)


def _words(pieces: Sequence[PageLine], seen: set[str], numbers: float) -> dict[str, _GistWord]:
    """Return the candidate words in order, each at its first occurrence."""
    plain = function_words_of([word for piece in pieces[:200] for word in WORDS.findall(piece.text)])
    words_by_key: dict[str, _GistWord] = {}
    counts: Counter[str] = Counter()
    alike: Counter[str] = Counter()
    for piece, terms in zip(pieces, located_terms([piece.text for piece in pieces]), strict=True):
        spoken = _is_spoken(piece.text)
        between = "."
        for term, gap in terms:
            between += gap
            low = term.lower()
            if low in seen or low in plain or low in KEYWORDS:
                between += term
                continue
            counts[low] += 1
            stem = DIGITS.sub("#", low)
            if counts[low] == 1 and numbers < 1.0 and not low.isdigit():
                alike[stem] += 1
            if counts[low] > 1 or alike[stem] > ALIKE:
                between += term
                continue
            joined = spoken and not STOPS.search(between) and len(between.split()) <= SKIPPED
            words_by_key[term] = _GistWord(piece.number, len(words_by_key), _worth(term, numbers), spoken, joined)
            between = ""
            if len(words_by_key) >= SEEN:
                break
    for term, word in words_by_key.items():
        if word.spoken:
            word.worth *= SPOKEN * REPEATED[min(counts[term.lower()], len(REPEATED)) - 1]
    return words_by_key


def _phrases(words: dict[str, _GistWord]) -> list[list[str]]:
    phrases: list[list[str]] = []
    for term, word in words.items():
        if word.joined and phrases and len(phrases[-1]) < PHRASE:
            phrases[-1].append(term)
        else:
            phrases.append([term])
    return phrases


def _gain(phrase: list[str], words: dict[str, _GistWord], listed: bool) -> float:
    """Return the worth of a phrase per token, including its comma."""
    costs = [len(PARTS.findall(term)) for term in phrase]
    comma = COMMA if listed or words[phrase[0]].spoken else 0.0
    return sum(words[term].worth * cost for term, cost in zip(phrase, costs, strict=True)) / (sum(costs) + comma)


def _is_spoken(text: str) -> bool:
    """Return whether a text is running text: at least four words and few signs of code."""
    return len(WORDS.findall(text)) >= 4 and 14 * len(SIGNS.findall(text)) <= len(text.strip())


def _worth(term: str, numbers: float) -> float:
    """Return the worth of a term per token, estimated from its parts."""
    parts = len(PARTS.findall(term))
    if ID.fullmatch(term):
        return UNGUESSED / parts
    kind = numbers if term[0].isdigit() else PLACED if "/" in term else 1.0
    return kind / parts


def _runs(
    names: Mapping[int, str], words: dict[str, _GistWord], ends: list[int], span: int, listed: bool
) -> list[PageLine]:
    """Join words to runs; a run ends at the next of `ends`, or `span` after its first piece."""
    runs: list[PageLine] = []
    last = part = -1  # the place of the last word, and the ends around it
    goes_on = {word.place for word in words.values() if word.joined} & {word.place + 1 for word in words.values()}
    for term, word in sorted(words.items(), key=lambda item: item[1].place):
        before, part = part, bisect_right(ends, word.at)
        if runs and part == before and word.at - runs[-1].number < span:
            between_phrases = word.place not in goes_on and (last in goes_on or word.place + 1 in goes_on)
            is_separate = (listed or word.spoken) and between_phrases
            runs[-1] = PageLine(runs[-1].number, f"{runs[-1].text}{',' * is_separate} {term}", runs[-1].name)
        else:
            runs.append(PageLine(word.at, term, names[word.at]))
        last = word.place
    return runs
