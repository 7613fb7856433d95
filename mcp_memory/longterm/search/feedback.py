"""How what people said of recalled rows changes the order of rows for similar questions.

A row that was helpful for a question, or wrong for it, is so for similar questions in proportion to their similarity,
which is the share of the words of both questions that both have. The score of the row, and its probability of being
part of the answer, are multiplied by 1 + similarity if it was helpful, and by 1 - similarity if it was wrong. So for a
question with the same words a wrong row comes last, and recall leaves it out; a question without any of the words is
not affected. For each row only the feedback on the most similar question counts; of equally similar ones, the latest.

Feedback has hashes of the words instead of the words, so it also counts where no question is logged. Recall by words
alone (`recall.by_words`) does not read it.
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
    most_similar: dict[str, float] = {}
    for target, verdict, words in counted:
        if both := len(words & asked):
            similarity = both / len(words | asked)
            if similarity > abs(most_similar.get(target, 0.0)):
                most_similar[target] = similarity if verdict == "helpful" else -similarity
    return most_similar
