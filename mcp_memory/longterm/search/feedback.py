"""How what people said of recalled rows changes the order of rows for questions like theirs.

A row that was helpful for a question, or wrong for it, is so for questions that are like it, as far as they are: the
likeness of two questions is the share of their words that both have. It raises or lowers the score of the row and its
probability of being part of the answer, in proportion. Where a question has all of the words and no other, a wrong row
comes last, and recall leaves it out; a question without any of the words is not affected at all. For each row only the
feedback on the likest question counts, of equally like ones the latest.

Feedback has hashes of the words, not the words, so it also counts where no question is logged.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

from mcp_memory.core.secrets.masking import mask
from mcp_memory.language.word_hashes import word_hash
from mcp_memory.longterm.search.question_words import content_words
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import feedback_rows

MAX_WORDS = 64
"""Words of a question that count, the first ones."""

NO_OPINIONS: Mapping[str, float] = MappingProxyType({})

WRONG = -1.0
"""The opinion of a row that is wrong for a question with exactly the same words."""


@lru_cache(maxsize=64)
def question_hashes(question: str) -> frozenset[str]:
    """Return the hashes of a question's content words, without those of secrets."""
    return frozenset(map(word_hash, content_words(mask(question))[:MAX_WORDS]))


def opinions(store: Store, space: str, question: str) -> Mapping[str, float]:
    """Return how far rows are helpful (up to 1) or wrong (down to -1) for a question, by id; rows without are left out.

    `question` has no private passages.
    """
    counted = store.read(space, feedback_rows.counted)
    if not counted:
        return NO_OPINIONS
    asked = question_hashes(question)
    likest: dict[str, float] = {}
    for feedback in counted:
        words = frozenset(feedback.words)
        likeness = len(words & asked) / len(words | asked) if words else 0.0
        if likeness > abs(likest.get(feedback.target, 0.0)):
            likest[feedback.target] = likeness if feedback.verdict == "helpful" else -likeness
    return likest
