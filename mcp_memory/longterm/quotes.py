"""Finds a quote in a text.

An exact match is tried first. The next attempt ignores case, width, white space, quotation marks, kinds of dashes and
Markdown. Further attempts ignore the quote's outer punctuation, and allow marked omissions.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

_READ = 200_000  # characters at either end of a content that are searched for a quote with changes
_ELIDED = 1_000  # characters at most from the first to the last word of a quote with an omission


def locate(quote: str, content: str) -> tuple[int, int] | None:
    """Return the span of the quote in the content, None if it is missing.

    Prefers a place that is not part of a longer word.
    """
    if not quote.strip():
        return None
    return _find_exact(quote, content) or _find_exact(quote.strip(), content) or _find_similar(quote, content)


def _find_exact(quote: str, content: str) -> tuple[int, int] | None:
    first = at = content.find(quote)
    while at >= 0:
        if not _cuts_a_word(content, at, at + len(quote)):
            return at, at + len(quote)
        at = content.find(quote, at + 1)
    return None if first < 0 else (first, first + len(quote))


def _find_similar(quote: str, content: str) -> tuple[int, int] | None:
    plain_quote = _Plain(quote).text
    for start in dict.fromkeys((0, max(0, len(content) - _READ))):
        plain = _plain(content[start : start + _READ])
        span = plain.find(plain_quote) or plain.find(plain_quote.strip(_PUNCTUATION)) or _find_parts(quote, plain)
        if span is not None:
            return span[0] + start, span[1] + start
    return None


def _find_parts(quote: str, plain: _Plain) -> tuple[int, int] | None:
    """Return the span of a quote with omissions; None if one of its parts is missing, or if the span is too long."""
    parts = [part for text in _OMISSION.split(quote) if (part := _Plain(text).text.strip(_PUNCTUATION))]
    if len(parts) < 2:
        return None
    spans: list[tuple[int, int]] = []
    for part in parts:
        span = plain.find(part, spans[-1][1] if spans else 0)
        if span is None:
            return None
        spans.append(span)
    start, end = spans[0][0], spans[-1][1]
    return (start, end) if end - start <= _ELIDED else None


def _cuts_a_word(text: str, start: int, end: int) -> bool:
    before, after = text[max(0, start - 1) : start + 1], text[end - 1 : end + 1]
    return any(len(edge) == 2 and all(c.isalnum() and c < _NO_SPACES for c in edge) for edge in (before, after))


# --- text made comparable ---------------------------------------------------------------------------

_NO_SPACES = "\u0e00"  # from Thai on scripts have no spaces between words, or words are short
_PUNCTUATION = " .,;:!?'-。、…"
_OMISSION = re.compile(r"\s*[\[(（]?\s*(?:\.{3,}|…+)\s*[\])）]?\s*")
_DASHES = frozenset("-‐‑‒–—―−﹘﹣－")
_SPELLED = {"。": ".", "｡": ".", "、": ",", "､": ","}
# Quotation marks of all scripts, Markdown's marks, invisible characters: joiners, soft hyphens, variation selectors.
_DROPPED = frozenset(
    "\"'´‘’‚‛“”„‟«»‹›「」『』《》〈〉〝〞〟＂＇｢｣`*_~\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufe0e\ufe0f\ufeff"
)


class _Plain:
    """A text in comparable form, with the original span of each character."""

    def __init__(self, original: str) -> None:
        pieces = list(_comparable_characters(original))
        self.text = "".join(character for character, _ in pieces)
        self._spans = [span for _, span in pieces]

    def find(self, text: str, after: int = 0) -> tuple[int, int] | None:
        """Return the original span of a text in comparable form that begins at `after` or later, None if missing."""
        places: list[tuple[int, int]] = []
        at = self.text.find(text) if text else -1
        while at >= 0:
            end = at + len(text)
            if self._spans[at][0] >= after and self._is_whole(at, end):
                span = self._spans[at][0], self._spans[end - 1][1]
                if not _cuts_a_word(self.text, at, end):
                    return span
                places.append(span)
            at = self.text.find(text, at + 1)
        return places[0] if places else None

    def _is_whole(self, start: int, end: int) -> bool:
        """Return whether a span begins and ends between whole characters of the original, combining marks included."""
        if start and self._spans[start] == self._spans[start - 1]:
            return False
        if end == len(self.text):
            return True
        return self._spans[end] != self._spans[end - 1] and not unicodedata.combining(self.text[end])


@lru_cache(maxsize=32)
def _plain(content: str) -> _Plain:
    return _Plain(content)


@lru_cache(maxsize=8192)
def _simplify(character: str) -> str:
    if character in _DROPPED:
        return ""
    if character in _DASHES:
        return "-"
    if character.isspace():
        return " "
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", character).casefold())
    return "".join(" " if c.isspace() else _SPELLED.get(c, c) for c in folded if c not in _DROPPED)


def _comparable_characters(text: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the characters in comparable form, each with its span in the text.

    Words of scripts with spaces are separated by one space, and nothing else is; repeated dashes become one.
    """
    last, space = "", None
    for at, original in enumerate(text):
        for character in _simplify(original):
            span = at, at + 1
            if character == " ":
                space = space or span
            elif not (character == last == "-"):
                if space and last and not _needs_no_space(last) and not _needs_no_space(character):
                    yield " ", space
                yield character, span
                last, space = character, None


def _needs_no_space(character: str) -> bool:
    return character >= "\u2e80" or not (character.isalnum() or unicodedata.combining(character))
