"""A question, taken apart: what it is about, what that is called otherwise, whose words it asks for, and which time."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from mcp_memory.language.words import base_terms, index_terms, query_terms
from mcp_memory.longterm.search.whose import whose

if TYPE_CHECKING:
    from mcp_memory.core.types import Role
    from mcp_memory.language.when import Span

__all__ = ["MAX_CHARS", "Question", "read"]

MAX_CHARS = 10_000
_RELATED = 8  # words of a question whose relatives are looked for; more make a passage, which needs none
_RELATIVES = 6  # of each
_WORD = re.compile(r"[a-z]{3,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """`words` are index terms. `related` gives, for each word that has any, other terms and how near they are."""

    text: str
    words: list[str]
    related: list[Mapping[str, float]]
    role: Role | None
    """Whose turns it asks for, where it says so."""
    length: int
    """How many words it has that tell what it is about, each in one form."""
    times: list[Span]


def read(text: str, at: datetime, *, relatives: bool = True) -> Question:
    """Take apart a question asked at a moment. Of a very long one, the beginning."""
    from mcp_memory.language.when import spans_in

    text = text[:MAX_CHARS]
    words = list(dict.fromkeys(query_terms(text)))
    return Question(
        text=text,
        words=words,
        related=_related(text, set(words)) if relatives else [],
        role=whose(text),
        length=len(set(base_terms(text)).intersection(words)) or len(words),
        times=spans_in(text, at),
    )


def _related(text: str, words: set[str]) -> list[Mapping[str, float]]:
    from mcp_memory.models.embed.classifiers import related_words

    found: list[Mapping[str, float]] = []
    for word in dict.fromkeys(_WORD.findall(text.lower())):
        if not words.intersection(index_terms(word)):
            continue  # it asks, and tells nothing
        near: dict[str, float] = {}
        for other, nearness in related_words(word)[:_RELATIVES]:
            for term in index_terms(other)[:1]:
                if term not in words:
                    near.setdefault(term, nearness)
        if near:
            found.append(near)
    return found[:_RELATED]
