"""A table of words and stems as something to search a text for, fast enough to try many tables on every clause."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

__all__ = ["Forms", "any_of"]

_STEM = 3  # letters
_WORD = re.compile(r"[^\W\d_]+")
_LITERAL = re.compile(r"(?:[^\W\d_](?![*+?]))*")
_DENSE_FROM = "\u0e00"


def any_of(tables: Sequence[str]) -> str:
    """Return a pattern of whole words in scripts with spaces, and of parts in the others."""
    forms = _forms(tables)
    spaced = "|".join(sorted((form for form in forms if form < _DENSE_FROM), key=len, reverse=True))
    dense = "|".join(sorted((form for form in forms if form > _DENSE_FROM), key=len, reverse=True))
    return rf"(?<![^\W_])(?:{spaced})(?![^\W_])" + (f"|{dense}" if dense else "")


class Forms:
    """Any of the forms of some tables (see `vocabulary`), in either case.

    The pattern is tried only where the text has the longest word of a form: most texts have none.
    """

    def __init__(self, tables: Sequence[str]) -> None:
        self._pattern = re.compile(any_of(tables), re.IGNORECASE)
        forms = _forms(tables)
        self._telling = frozenset(_telling(form) for form in forms if form < _DENSE_FROM)
        self._open = "" in self._telling
        self._dense = any(form > _DENSE_FROM for form in forms)

    def are_in(self, text: str) -> bool:
        return self._may_be_in(text) and self._pattern.search(text) is not None

    def taken_out(self, text: str) -> str:
        """Return the text with a space in place of each form."""
        return self._pattern.sub(" ", text) if self._may_be_in(text) else text

    def _may_be_in(self, text: str) -> bool:
        if self._open or (self._dense and not text.isascii() and max(text) > _DENSE_FROM):
            return True
        return not self._telling.isdisjoint(_words_of(text))


def _forms(tables: Sequence[str]) -> list[str]:
    return [form for table in tables for form in table.split("|")]


def _telling(form: str) -> str:
    """Return the longest word that stands wherever the form does, as `stem*` where only its first letters are known.

    Empty where the form leaves all of them open.
    """
    words = [(literal[0].lower(), part) for part in form.split(" ") if (literal := _LITERAL.match(part))]
    word, part = max(words, key=lambda one: len(one[0]), default=("", ""))
    is_whole = len(word) == len(part) or not (part[len(word)].isalpha() or part[len(word)] in r"\[(?*+")
    return word if is_whole or not word else f"{word[:_STEM]}*"


@lru_cache(maxsize=1_024)
def _words_of(text: str) -> frozenset[str]:
    words = set(_WORD.findall(text.lower()))
    return frozenset(words.union([f"{word[:_STEM]}*" for word in words]))
