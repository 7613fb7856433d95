"""The part of a text that is about a query, and the places of the query's words in it."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from mcp_memory.core.secrets.masking import mask
from mcp_memory.language.snippet import matches, snippet
from mcp_memory.longterm.search.literals import Literal, places_in

WIDTH = 600
"""Characters of an excerpt."""


def excerpt(text: str, words: AbstractSet[str]) -> str:
    """Return the part of a text with the most of these words (`content_words`), without secrets."""
    return mask(text if len(text) <= WIDTH else snippet(text, WIDTH, matches(text, words))[0])


def marks(text: str, literals: Sequence[Literal], words: AbstractSet[str]) -> list[tuple[int, int]]:
    """Return the places of these literals and words in order, words extended to their ends."""
    places = places_in(text, literals)
    for match in matches(text, words):
        end = match.end
        while match.term.isascii() and end < len(text) and text[end].isalnum():
            end += 1
        places.append((match.start, end))
    chosen: list[tuple[int, int]] = []
    for start, end in sorted(places, key=lambda place: (place[0], -place[1])):
        if not chosen or start >= chosen[-1][1]:
            chosen.append((start, end))
    return chosen
