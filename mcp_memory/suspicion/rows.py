"""Patterns that are tried only where words stand that each of them needs: most texts have none.

A row is a name, the words, and a pattern. The words are groups, with `&` between them, of which each must have one in
the text: whole words where a script has words, else anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

__all__ = ["Row", "found", "rows"]

_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Row:
    """A pattern, what it is a sign of, and the groups of words that it needs."""

    name: str
    words: Sequence[frozenset[str]]
    parts: Sequence[Sequence[str]]
    """The same for scripts without words, and for signs."""
    source: str

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(self.source, re.IGNORECASE | re.MULTILINE)


def rows(*given: tuple[str, str, str]) -> tuple[Row, ...]:
    """Return rows of (name, words, pattern)."""
    made: list[Row] = []
    for name, needs, source in given:
        groups = [group.split() for group in needs.split("&")]
        words = [frozenset(one for one in group if _is_word(one)) for group in groups]
        parts = [tuple(one for one in group if not _is_word(one)) for group in groups]
        made.append(Row(name, tuple(words), tuple(parts), source))
    return tuple(made)


def found(table: Iterable[Row], text: str) -> set[str]:
    """Return what a text has signs of."""
    folded = text.casefold()
    words = set(_WORD.findall(folded))
    names: set[str] = set()
    for row in table:
        if row.name in names:
            continue
        if all(
            not whole.isdisjoint(words) or any(part in folded for part in parts)
            for whole, parts in zip(row.words, row.parts, strict=True)
        ) and row.pattern.search(text):
            names.add(row.name)
    return names


def _is_word(text: str) -> bool:
    return text.isalnum() and text[0] < "\u2e80"
