"""Words related to a word, by the bundled model's own vocabulary: *camping* to *tent*, *bought* to *purchase*.

A table that was made once from the vectors (`scripts/related_words.py`): no vector is touched at run time, and no
network. English only, and single words; a word that the vocabulary lacks has none.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["FILE", "related"]

FILE = "related.safetensors"


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    words: list[str]
    place: dict[str, int]
    neighbours: NDArray[np.uint16]
    nearness: NDArray[np.uint8]


def related(word: str) -> list[tuple[str, float]]:
    """Return up to 12 words and how near they are (a cosine from 0.4 to 1), nearest first. `word` is in lower case."""
    table = _table()
    place = table.place.get(word)
    if place is None:
        return []
    return [
        (table.words[other], near / 255)
        for other, near in zip(table.neighbours[place].tolist(), table.nearness[place].tolist(), strict=True)
        if near
    ]


@cache
def _table() -> _Table:
    from safetensors.numpy import load  # pyright: ignore[reportUnknownVariableType]

    tensors = load((resources.files("mcp_memory.models.embed") / "model" / FILE).read_bytes())
    words = tensors["words"].tobytes().decode().split("\n")
    return _Table(words, {word: place for place, word in enumerate(words)}, tensors["neighbours"], tensors["nearness"])
