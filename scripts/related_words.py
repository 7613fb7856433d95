"""Make `related.safetensors` for the bundled model: for each word of its vocabulary, the nearest words.

    python scripts/related_words.py

It needs only the package: a word's vector is that of its token, minus the mean of all words, because
static vectors share most of their length. Function words are left out on both sides.
"""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

import numpy as np
from safetensors.numpy import load, save_file  # pyright: ignore[reportUnknownVariableType]
from tokenizers import Tokenizer

from mcp_memory.language.words import function_words, index_terms
from mcp_memory.models.embed.classifiers import RELATED_FILE

NEIGHBOURS = 12
LEAST = 0.4  # cosine
_WORD = re.compile("[a-z]{3,}")


def main() -> None:
    folder = Path(str(resources.files("mcp_memory.models.embed") / "model"))
    vocabulary = Tokenizer.from_str((folder / "tokenizer.json").read_text(encoding="utf-8")).get_vocab()
    idle = function_words(("en",))
    words = sorted(word for word in vocabulary if _WORD.fullmatch(word) and word not in idle)
    stems = np.array([index_terms(word)[0] for word in words])
    rows = load((folder / "model.safetensors").read_bytes())["embeddings"]
    vectors = _unit(rows[[vocabulary[word] for word in words]].astype(np.float32))
    vectors = _unit(vectors - vectors.mean(axis=0))
    neighbours = np.zeros((len(words), NEIGHBOURS), np.uint16)
    nearness = np.zeros((len(words), NEIGHBOURS), np.uint8)
    for start in range(0, len(words), 512):
        for place, scores in enumerate(vectors[start : start + 512] @ vectors.T, start=start):
            scores[stems == stems[place]] = 0.0  # other forms of the word itself
            found = _one_of_each_stem(np.argsort(-scores, kind="stable")[: NEIGHBOURS * 4], stems)
            found = [other for other in found if scores[other] >= LEAST]
            neighbours[place, : len(found)] = found
            nearness[place, : len(found)] = np.rint(scores[found] * 255)
    text = np.frombuffer("\n".join(words).encode(), np.uint8)
    save_file({"words": text, "neighbours": neighbours, "nearness": nearness}, folder / RELATED_FILE)
    print(f"{len(words):,} words, {(nearness > 0).sum():,} pairs, {(folder / RELATED_FILE).stat().st_size:,} bytes")


def _unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-6)


def _one_of_each_stem(order: np.ndarray, stems: np.ndarray) -> list[int]:
    first: dict[str, int] = {}
    for other in order.tolist():
        first.setdefault(str(stems[other]), other)
    return list(first.values())[:NEIGHBOURS]


if __name__ == "__main__":
    main()
