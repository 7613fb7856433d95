"""The bundled model: a vector for each token of all-MiniLM-L6-v2, and a text is their weighted sum.

It needs no network, no key and no neural network at run time: a short text costs a tenth of a millisecond at
most. How it was made, and the figures behind its size, stand in `model/README.md`.

The files are in model2vec's format and give the vectors that model2vec would, read here with numpy and
tokenizers alone: importing model2vec costs another 16 MB and 0.1 s for what loading does not need.

Only the first 256 known tokens of a text, about a thousand characters of English, are embedded, sought in
its first 2,048 characters: reading more helped on one set and hurt on another, and the lexical leg of the
search reads texts whole. What it does not know: word order, negation, and meaning in any language but
English, where it sees letters or nothing.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from typing import TYPE_CHECKING

from mcp_memory.core.errors import EmbeddingFailed
from mcp_memory.models.embed.protocol import unit_rows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

__all__ = ["StaticEmbedder"]

DIMENSIONS = 256
TOKENS_READ = 256
CHARACTERS_READ = 2048
KEPT_WORD = 40  # characters; a longer one is a path or a blob, seen once, and 16,384 of them would be 100 MB

_SPACE = re.compile("[ \\t\\n\\r]+")
_ASCII_WORD = re.compile(r"[A-Za-z0-9]+|[!-/:-@\[-`{-~]")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")  # the tokenizer drops these, joining what they part

# The end is the start of the SHA-256 of the model's files; a test holds it to them.
IDENTITY = "bundled/1:all-MiniLM-L6-v2:256:9ddecc46"

_loading = threading.Lock()


class StaticEmbedder:
    """Embeds with the model of this package. All of them in a process share one loaded model (20 MB)."""

    identity = IDENTITY
    dimensions = DIMENSIONS
    local = True

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        import numpy as np

        model = _model()
        vectors = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
        for vector, text in zip(vectors, texts, strict=True):
            ids = _known_tokens(model, text)
            vector[:] = model.weights[ids] @ model.rows[ids].astype(np.float32)
        return unit_rows(vectors)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        return self.embed([text])[0]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Model:
    """`rows` is int8, `weights` float32: the vector of token i is `weights[i] * rows[i]`."""

    tokenizer: Tokenizer
    rows: NDArray[np.int8]
    weights: NDArray[np.float32]
    unknown: int | None
    vocabulary: dict[str, int]


def _model() -> _Model:
    with _loading:
        return _load()


@cache
def _load() -> _Model:
    from safetensors import SafetensorError
    from safetensors.numpy import load  # pyright: ignore[reportUnknownVariableType]
    from tokenizers import Tokenizer

    folder = resources.files("mcp_memory.models.embed") / "model"
    try:
        tensors = load((folder / "model.safetensors").read_bytes())
        tokenizer = Tokenizer.from_str((folder / "tokenizer.json").read_text(encoding="utf-8"))
    except (OSError, SafetensorError) as error:
        raise EmbeddingFailed(
            f"The bundled embedding model cannot be read ({error}). Install mcp-memory again; until then search "
            "goes by words alone."
        ) from error
    return _Model(
        tokenizer=tokenizer,
        rows=tensors["embeddings"],
        weights=tensors["weights"],
        unknown=tokenizer.token_to_id("[UNK]"),
        vocabulary=tokenizer.get_vocab(),
    )


def _known_tokens(model: _Model, text: str) -> list[int]:
    """Return the first tokens that the model knows.

    Word by word, because no token spans a space (nor, in ASCII, a sign), and the words of a language come
    again and again: kept, they make this ten times as fast as the tokenizer alone.
    """
    head = text[:CHARACTERS_READ]
    if head.isascii() and not _CONTROL.search(head):
        words = _ASCII_WORD.findall(head)
    else:
        words = _SPACE.split(head.encode("utf-8", "replace").decode())  # a lone surrogate is no text to tokenizers
    ids: list[int] = []
    for word in words:
        ids += _kept_tokens(model, word) if len(word) <= KEPT_WORD else _tokens(model, word)
    return ids[:TOKENS_READ]


def _tokens(model: _Model, word: str) -> tuple[int, ...]:
    if len(word) <= KEPT_WORD and word.isascii() and word.isalnum():
        return _pieces(model.vocabulary, word.lower())
    # One text at a time: having used the threads of `encode_batch` makes tokenizers warn at every later fork.
    ids: list[int] = model.tokenizer.encode(word, add_special_tokens=False).ids
    return tuple(ids) if model.unknown not in ids else tuple(id for id in ids if id != model.unknown)


def _pieces(vocabulary: dict[str, int], word: str) -> tuple[int, ...]:
    """Return what WordPiece makes of a plain word, always the longest piece first, at a fifth of the call's time.

    A word with a piece that is not in the vocabulary is unknown as a whole.
    """
    ids: list[int] = []
    start, before = 0, ""
    while start < len(word):
        for end in range(len(word), start, -1):
            piece = vocabulary.get(before + word[start:end])
            if piece is not None:
                ids.append(piece)
                start, before = end, "##"
                break
        else:
            return ()
    return tuple(ids)


_kept_tokens = lru_cache(maxsize=16_384)(_tokens)
