"""The bundled model: the English word table and the multilingual encoder, side by side in one vector.

The table (`static`) is the better one for English, where rare words count; the encoder knows paraphrases and sixteen
languages. A text's vector is both halves, each of length one, so a cosine is the mean of the two cosines. A question
weighs the halves by its language instead. Neither needs a network, a key or a GPU.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mcp_memory.language.function_words import languages_of
from mcp_memory.models.embed import encoder, static
from mcp_memory.models.embed.protocol import unit_rows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["IDENTITY", "BundledEmbedder", "encoder_alone"]

# The end is the start of the SHA-256 of the encoder's files; a test holds it to them.
IDENTITY = f"{static.IDENTITY}+use-multilingual-v3:256:e6346363"

ENGLISH, UNCERTAIN, OTHER = 0.45, 0.6, 0.9
"""What the encoder counts in a question in English, in one whose language does not show, and in any other."""
_WORD = re.compile(r"[^\W\d_]+")


class BundledEmbedder:
    """Embeds with the models of this package. All instances in a process share the loaded models (some 65 MB)."""

    identity = IDENTITY
    dimensions = static.DIMENSIONS + encoder.DIMENSIONS
    local = True

    def __init__(self) -> None:
        self._table = static.StaticEmbedder()
        self._encoder = encoder.Encoder()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        import numpy as np

        words, sense = self._table.embed(texts), self._encoder.embed(texts)
        # A text without a word that the table knows still needs that half: without it, its cosines would be higher.
        words[sense.any(axis=1) & ~words.any(axis=1), 0] = 1.0
        return unit_rows(np.concatenate([words, sense], axis=1))

    def embed_query(self, text: str) -> NDArray[np.float32]:
        import numpy as np

        share = encoder_share(text)
        halves = (1 - share) * self._table.embed_query(text), share * self._encoder.embed([text])[0]
        return unit_rows(np.concatenate(halves)[None, :])[0]


def encoder_alone(question: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return a question's vector (one row) without the word table's half; zeros where the encoder has none."""
    alone = question.copy()
    alone[:, : static.DIMENSIONS] = 0
    return unit_rows(alone)


def encoder_share(question: str) -> float:
    """Return how much of a question's vector is the encoder's."""
    languages = languages_of(_WORD.findall(question))
    if not languages:
        return UNCERTAIN if question.isascii() else OTHER
    return ENGLISH if languages == ("en",) else OTHER
