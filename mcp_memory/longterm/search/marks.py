"""The places of a query in a text: its literals, and its words extended to their ends. Pure text, no I/O."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet

from mcp_memory.language.snippet import matches
from mcp_memory.longterm.search.literals import Literal, literals_in, places_in
from mcp_memory.longterm.search.question_words import content_words


def marks_of(query: str) -> Callable[[str], list[tuple[int, int]]]:
    """Return the function that finds the places of a query in a text, as `marks`."""
    words, (literals, _) = frozenset(content_words(query)), literals_in(query)
    return lambda text: marks(text, words, literals)


def marks(text: str, words: AbstractSet[str], literals: Sequence[Literal]) -> list[tuple[int, int]]:
    """Return the start and end of each place of these words and literals, in order; they do not overlap."""
    places = places_in(text, literals)
    for match in matches(text, words):
        end = match.end
        while match.term.isascii() and end < len(text) and text[end].isalnum():
            end += 1
        places.append((match.start, end))
    apart: list[tuple[int, int]] = []
    for start, end in sorted(places, key=lambda place: (place[0], -place[1])):
        if not apart or start >= apart[-1][1]:
            apart.append((start, end))
    return apart
