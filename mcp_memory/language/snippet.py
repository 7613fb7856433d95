"""Finds the part of a long text that matches a question. Pure text, no I/O.

A word matches if one of the terms is among its terms that do not depend on the language of the text
(`words.base_terms_of_word`). Of a very long text only the beginning is read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from mcp_memory.language.sentences import sentences
from mcp_memory.language.words import base_terms_of_word, beginnings_of, may_give, without_punctuation

_READ = 60_000  # characters
_CHUNK = re.compile(r"\S+")
_WORD_END = 24  # characters a cut may move to fall between words
_MAX_WORDS = 12


class TermMatch(NamedTuple):
    """The place of a term in a text."""

    start: int
    end: int
    term: str


def matches(text: str, terms: AbstractSet[str]) -> list[TermMatch]:
    """Return the places of terms (of `query_terms`) in a text, in order."""
    runs = set(text[:_READ].split()) if terms else ()
    beginnings = beginnings_of(terms)
    inside: dict[str, list[TermMatch]] = {}
    for run in runs:
        if may_give(run if run.isalpha() else without_punctuation(run), beginnings):
            present = terms & frozenset(base_terms_of_word(run))
            if present:
                inside[run] = _inside(run, present)
    return [
        TermMatch(chunk.start() + start, chunk.start() + end, term)
        for chunk in (_CHUNK.finditer(text, 0, _READ) if inside else ())
        for start, end, term in inside.get(chunk[0], ())
    ]


def _inside(chunk: str, present: AbstractSet[str]) -> list[TermMatch]:
    """Return the places of terms in a run without spaces: a word, or a whole page of Chinese.

    Places do not overlap: the first term counts (the longest, if several begin there), then the next after its end.
    """
    lower = chunk.lower()
    terms = sorted(present, key=len, reverse=True)
    ahead = {term: place for term in terms if (place := lower.find(term)) >= 0}  # their next places
    places: list[TermMatch] = []
    while ahead:
        term = min(ahead, key=ahead.__getitem__)
        start, at = ahead[term], ahead[term] + len(term)
        if at <= len(chunk):
            places.append(TermMatch(start, at, term))
        for other in [other for other, place in ahead.items() if place < at]:
            if (place := lower.find(other, at)) >= 0:
                ahead[other] = place
            else:
                del ahead[other]
    return places or [TermMatch(0, len(chunk), terms[0])]  # a stem or a folded word may be spelled differently


def words(text: str, terms: AbstractSet[str]) -> list[str]:
    """Return the text's matching words in lower case, each once; at most twelve."""
    unique: dict[str, None] = {}
    for match in matches(text, terms):
        word = text[match.start : match.end]
        if match.term.isascii():  # a term of a script with spaces is the beginning of a word
            start = next((i for i in range(match.start, 0, -1) if not text[i - 1].isalnum()), 0)
            end = next((i for i in range(match.end, len(text)) if not text[i].isalnum()), len(text))
            word = text[start:end]
        unique[word.strip(".,;:!?\"'()[]").lower()] = None
        if len(unique) == _MAX_WORDS:
            break
    return list(unique)


def snippet(text: str, width: int, term_matches: Sequence[TermMatch]) -> tuple[str, int]:
    """Return an excerpt of at most `width` characters with most of the different terms, and the length left out.

    Excerpts consist of whole sentences if the sentences with most of the terms fit, else of whole words. `…` marks
    omitted text.
    """
    if len(text) <= width:
        return text, 0
    first, last = _closest(term_matches, width)
    edges = _edges(text, first, last, width)
    inside = [match for match in term_matches if first <= match.start and match.end <= last]
    core = _sentences_of(inside or [TermMatch(0, 1, "")], edges, width)
    start, end = _filled(core, edges, first, last, width) if core else _whole_words(text, first, last, width)
    shown = text[start:end].strip()
    return f"{'…' if start else ''}{shown}{'…' if end < len(text) else ''}", len(text) - len(shown)


def _edges(text: str, first: int, last: int, width: int) -> list[int]:
    """Return the sentence boundaries around the window, in order."""
    start, end = max(0, last - width), min(first + width, len(text))
    ends = [start + stop for _, stop in sentences(text[start:end])]
    if ends and ends[-1] == end < len(text):
        ends.pop()  # cut off, perhaps not ended
    return [0, *ends] if start == 0 else ends


def _sentences_of(term_matches: Sequence[TermMatch], edges: Sequence[int], width: int) -> tuple[int, int] | None:
    """Return the span of the sentences with all terms or else of the best sentence, at most `width` characters long.

    Return None if no such span has at least half of the terms, by weight.
    """
    spans = [(term_matches[0].start, term_matches[-1].end), *((match.start, match.end) for match in term_matches)]
    weights: dict[tuple[int, int], int] = {}
    for first, last in spans:
        start = max((edge for edge in edges if edge <= first), default=-1)
        end = min((edge for edge in edges if edge >= last), default=-1)
        if 0 <= start < end <= start + width and (start, end) not in weights:
            inside = {match.term for match in term_matches if start <= match.start < end}
            weights[start, end] = sum(map(_weight, inside))
    best = max(weights, key=weights.__getitem__, default=None)
    enough = sum(map(_weight, {match.term for match in term_matches})) / 2
    return best if best and weights[best] >= enough else None


def _filled(core: tuple[int, int], edges: Sequence[int], first: int, last: int, width: int) -> tuple[int, int]:
    """Extend `core` by the sentences around it that fit, preferably with a third of the remaining width in front."""
    start, end = core
    before = max(_start(first, last, width), end - width)
    start = min(edge for edge in [start, *edges] if min(before, start) <= edge <= start)
    end = max(edge for edge in edges if edge <= start + width)
    return min(edge for edge in edges if edge >= end - width), end


def _start(first: int, last: int, width: int) -> int:
    """Return the start of a window around the terms, with a third of the remaining width in front of them."""
    return first - (width - (last - first)) // 3


def _whole_words(text: str, first: int, last: int, width: int) -> tuple[int, int]:
    start = max(0, min(_start(first, last, width), len(text) - width))
    end = min(len(text), start + width)
    if start:
        start = next((i + 1 for i in range(start, min(start + _WORD_END, first)) if text[i].isspace()), start)
    if end < len(text):
        end = next((i for i in range(end, max(end - _WORD_END, last), -1) if text[i].isspace()), end)
    return start, end


def _closest(term_matches: Sequence[TermMatch], width: int) -> tuple[int, int]:
    """Return the span, at most `width` long, with the highest total weight of different terms; (0, 0) without terms."""
    inside: Counter[str] = Counter()
    best, span, weight, left = 0, (0, 0), 0, 0
    for match in term_matches:
        inside[match.term] += 1
        weight += _weight(match.term) if inside[match.term] == 1 else 0
        while term_matches[left].start < match.start and match.end - term_matches[left].start > width:
            inside[term_matches[left].term] -= 1
            weight -= _weight(term_matches[left].term) if inside[term_matches[left].term] == 0 else 0
            left += 1
        if weight > best:
            best, span = weight, (term_matches[left].start, min(match.end, term_matches[left].start + width))
    return span


def _weight(term: str) -> int:
    return min(len(term), 8)  # long words are rarer, and a pair of characters says more than one
