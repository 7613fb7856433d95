"""A second opinion on texts in which `orders` finds nothing: sentences that mean an order in words no list has.

Beside the sentence the model is told which concepts of the lexicon are in it. It reads the ends of a long text only.
Disguises are not taken off here: letters in disguise have no words.
"""

from __future__ import annotations

import logging

from mcp_memory.core.errors import EmbeddingFailed
from mcp_memory.models.embed.classifiers import any_injected
from mcp_memory.suspicion.lexicon import CONCEPTS, LANGUAGES, concepts_of, folded
from mcp_memory.suspicion.orders import SENTENCE_END

__all__ = ["means_order", "sentences", "traits"]

_READ = 140_000  # characters at either end of a text
_SHORTEST, _LONGEST = 8, 300  # characters of a sentence; a longer one is cut

logger = logging.getLogger(__name__)


def means_order(text: str) -> bool:
    """Tell whether a sentence of the text reads like an order injected for a model.

    Where the model's files cannot be read, the log says so and the answer is no.
    """
    if len(text) > 2 * _READ:
        text = f"{text[:_READ]}\n\n{text[-_READ:]}"
    try:
        return any_injected(sentences(text), traits)
    except EmbeddingFailed as error:
        logger.warning("Texts are judged by their words alone. %s", error)
        return False


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, each in one line, a long one in parts."""
    lines = (" ".join(sentence.split()) for sentence in SENTENCE_END.split(text))
    parts = (line[at : at + _LONGEST] for line in lines for at in range(0, len(line), _LONGEST))
    return [part for part in parts if len(part) >= _SHORTEST]


def traits(sentence: str) -> list[bool]:
    """Return for each concept whether a sentence has it, in the language that most of its concepts are of."""
    found = concepts_of(folded(sentence))
    bits = [1 << place for place in range(len(LANGUAGES))]
    spoken = max(bits, key=lambda bit: sum(1 for languages in found.values() if languages & bit))
    return [bool(found.get(concept, 0) & spoken) for concept in CONCEPTS]
