"""The bundled embedding model: an English word table and a multilingual encoder, side by side in one vector.

The table (`StaticEmbedder`) is better for English, where rare words count; the encoder knows paraphrases and sixteen
languages. A text's vector is both halves, each of length one, so a cosine is the mean of the two cosines. The halves
of a question are weighed by its language instead. Neither half needs a network, a key or a GPU. `model/README.md`
describes how both were made.

The table has a vector for each token of all-MiniLM-L6-v2; a text is their weighted sum, in a tenth of a millisecond.
The files are in model2vec's format and give the same vectors, but are read with numpy alone, and texts are split into
tokens here: the tokenizers library takes 11 MB and 30 ms to load. Only the first 256 known tokens, within 2,048
characters, are embedded: reading more helped on one test set and hurt on another. The table ignores word order and
negation.

The encoder is the Universal Sentence Encoder multilingual v3, computed with numpy: word pieces, windows of two, three
and five pieces through two small convolutions, their sum through four dense layers. Languages: ar de en es fr it ja
ko nl pl pt ru th tr zh. A question takes 2 ms on one core, a turn of a hundred words 6 ms; the first 128 pieces of a
text are read. Texts are computed one by one, so that a vector does not depend on its batch. The table of pieces (30
MB) is memory-mapped. The encoder ignores numbers and negation, and gives names much weight, so leave out the name of
the speaker.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unicodedata import category

from mcp_memory.core.errors import EmbeddingFailed
from mcp_memory.core.lru import LRU
from mcp_memory.core.text import normalize
from mcp_memory.language.words import languages_of
from mcp_memory.models.embed.mapped_files import PieceNumbers, drop_pages, mapped_tensors
from mcp_memory.models.embed.protocol import unit_rows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]


STATIC_DIMENSIONS = 256
TOKENS_READ = 256
STATIC_CHARACTERS = 2048
STATIC_KEPT_WORD = 40  # characters; longer words are paths or blobs, seen once, and 16,384 of them would be 100 MB

_SPACE = re.compile("[ \\t\\n\\r]+")
_ASCII_WORD = re.compile(r"[A-Za-z0-9]+|[!-/:-@\[-`{-~]")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")  # these are dropped, and the parts joined
_IDEOGRAPH = re.compile(
    "[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002b81f\U0002b920-\U0002ceaf"
    "\U0002f800-\U0002fa1f]"
)
_LONGEST_WORD = 100  # characters of a word that has tokens

# The end is the start of the SHA-256 of the model's files; a test holds it to them.
STATIC_IDENTITY = "bundled/1:all-MiniLM-L6-v2:256:9ddecc46"

MODEL = Path(__file__).with_name("model")
_loading = threading.Lock()


@contextmanager
def reading(what: str, *, meanwhile: str = "") -> Generator[None]:
    """Turn errors of the body into EmbeddingFailed with a message that `what` cannot be read, then `meanwhile`."""
    try:
        yield
    except (OSError, KeyError, ValueError, RuntimeError) as error:  # the last is a trie's
        raise EmbeddingFailed(f"{what} cannot be read ({error}). Install mcp-memory again{meanwhile}.") from error


_BY_WORDS = "; until then search goes by words alone"


class StaticEmbedder:
    """Embeds with the word table of this package. All instances in a process share the loaded table."""

    identity = STATIC_IDENTITY
    dimensions = STATIC_DIMENSIONS
    local = True

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        import numpy as np

        with _loading:
            model = _load_static()
        vectors = np.zeros((len(texts), STATIC_DIMENSIONS), dtype=np.float32)
        for vector, text in zip(vectors, texts, strict=True):
            ids = _known_tokens(model, text)
            vector[:] = model.weights[ids] @ model.rows[ids].astype(np.float32)
        drop_pages(model.rows)
        return unit_rows(vectors)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        return self.embed([text])[0]


@dataclass(frozen=True, kw_only=True, eq=False)
class _StaticModel:
    """The word table. The vector of token i is `weights[i] * rows[i]`."""

    pieces: PieceNumbers
    rows: NDArray[np.int8]
    weights: NDArray[np.float32]


STATIC_WEIGHTS, STATIC_PIECES = "model.safetensors", "table_pieces"


@cache
def _load_static() -> _StaticModel:
    with reading("The bundled embedding model", meanwhile=_BY_WORDS):
        tensors = mapped_tensors(MODEL / STATIC_WEIGHTS)
        pieces = PieceNumbers(MODEL, STATIC_PIECES)
    return _StaticModel(pieces=pieces, rows=tensors["embeddings"], weights=tensors["weights"].copy())


def _known_tokens(model: _StaticModel, text: str) -> list[int]:
    """Return the first `TOKENS_READ` tokens of a text that the model knows.

    No token spans a space (nor, in ASCII, a punctuation mark), so words are tokenized one by one, with a cache.
    """
    head = text[:STATIC_CHARACTERS]
    if head.isascii() and not _CONTROL.search(head):
        words = _ASCII_WORD.findall(head)
    else:
        words = _SPACE.split(head.encode("utf-8", "replace").decode())  # a lone surrogate counts as "?"
    ids: list[int] = []
    for word in words:
        ids += _kept_tokens(model, word) if len(word) <= STATIC_KEPT_WORD else _tokens(model, word)
    return ids[:TOKENS_READ]


def _tokens(model: _StaticModel, text: str) -> tuple[int, ...]:
    """Return the known tokens of a text without the special ones, as BERT's uncased tokenizer splits it.

    Characters newer than Unicode 8 may differ: categories are those of Python's version of Unicode.
    """
    words = [text.lower()] if text.isascii() and text.isalnum() else "".join(map(_spaced, text)).split()
    return tuple(id for word in words if len(word) <= _LONGEST_WORD for id in _pieces(model.pieces, word))


@lru_cache(maxsize=4_096)
def _spaced(character: str) -> str:
    """Return a character in lower case and without accents.

    Punctuation and ideographs, each a word, are put between spaces. A control character becomes an empty text, white
    space a space.
    """
    if character == "\ufffd" or (category(character) in {"Cc", "Cf", "Co"} and character not in "\t\n\r"):
        return ""
    if character.isspace():
        return " "
    letters = (letter for letter in normalize("NFD", character) if category(letter) != "Mn")
    spaced = "".join(f" {letter} " if _is_punctuation(letter) else letter.lower() for letter in letters)
    return f" {spaced} " if _IDEOGRAPH.match(character) else spaced


def _is_punctuation(letter: str) -> bool:
    return category(letter)[0] == "P" or (letter.isascii() and category(letter)[0] == "S")


def _pieces(vocabulary: PieceNumbers, word: str) -> tuple[int, ...]:
    """Return the WordPiece tokens of a word or a sign, each the longest that fits.

    Empty if a part of the word is not in the vocabulary.
    """
    ids: list[int] = []
    start, before = 0, ""
    while start < len(word):
        begun = vocabulary.beginning(before + word[start:])
        if not begun or begun[-1][0] <= len(before):
            return ()
        length, piece = begun[-1]
        ids.append(piece)
        start, before = start + length - len(before), "##"
    return tuple(ids)


_kept_tokens = lru_cache(maxsize=4_096)(_tokens)


TABLE, WEIGHTS, PIECES = "encoder_table.npy", "encoder.safetensors", "encoder_pieces"
ENCODER_DIMENSIONS = 256
PIECES_READ = 128
CHARACTERS_READ = 1_500
KEPT_WORD = 24  # characters; longer words are rare, and a run of Chinese hardly ever comes twice

_UNKNOWN, _BEGIN, _END = 0, 1, 2
_LONGEST_PIECE = 16
_WIDTH = 256  # features of one window
_WINDOWS = ((2, 0), (3, 1), (5, 2))  # pieces, and how many of them precede the current piece
_EPSILON = 1e-6
_PIECES_TOGETHER = 512  # pieces of short texts that are computed together, in 10 MB


class Encoder:
    """The encoder, loaded from a folder (15 MB). `shared_encoder` returns the encoder that a process shares."""

    def __init__(self, folder: Path) -> None:
        import numpy as np
        from threadpoolctl import ThreadpoolController  # pyright: ignore[reportMissingTypeStubs]

        with reading("The bundled encoder", meanwhile=_BY_WORDS):
            tensors = mapped_tensors(folder / WEIGHTS)
            self._table: NDArray[np.uint8] = np.load(folder / TABLE, mmap_mode="r")  # two levels a byte
            pieces = PieceNumbers(folder, PIECES)
        self._scales = tensors["scales"].astype(np.float32)  # of the rows of the table
        self._layers: dict[str, Floats] = {  # matrices are (inputs, outputs)
            name: tensor * tensors[f"{name}_scale"] if tensor.dtype == np.int8 else tensor.copy()
            for name, tensor in tensors.items()
            if tensor.dtype != np.float16 and not name.endswith(("_scale", "scores"))
        }
        self._mean, self._directions = tensors["mean"].copy(), tensors["directions"].astype(np.float32)
        self._segment = partial(_segment_word, pieces, memoryview(tensors["scores"].copy()))
        # Words recur.
        self._segment_again = lru_cache(maxsize=4_096)(self._segment)
        # A prompt is embedded, and judged by several classifiers.
        self._outputs_again = lru_cache(maxsize=64)(self._outputs_of)
        # Limits the matrix library to a thread. With more, which wait for each other, these small matrices take a
        # hundred times as long on a busy machine.
        libraries: Any = ThreadpoolController()  # its methods have no types
        self._one_thread = partial(libraries.limit, limits=1, user_api="blas")

    def embed(self, texts: Sequence[str]) -> Floats:
        """Return one row per text, each of length one; a row of zeros for a text without a known piece."""
        import numpy as np

        rows = np.zeros((len(texts), self._directions.shape[1]), np.float32)
        with self._computing():
            for row, text in zip(rows, texts, strict=True):
                if outputs := self._outputs_again(text):
                    _, output = outputs
                    row[:] = np.matmul(output[0] - self._mean, self._directions, dtype=np.float32)
        return unit_rows(rows)

    def features(self, texts: Sequence[str]) -> Floats:
        """Return a row of features per text, for classifiers; a row of zeros for a text without a known piece.

        Features keep more than the vector: the sum over the text's pieces and the full output of the last layer. Short
        texts are computed together, in a third of the time.
        """
        import numpy as np

        if len(texts) == 1:
            with self._computing():
                outputs = self._outputs_again(texts[0])
            return np.concatenate(outputs, axis=1) if outputs else self._no_features(1)
        pieces = [self._pieces(text) for text in texts]
        rows = self._no_features(len(texts))
        with self._computing():
            for group in _batches(pieces):
                rows[group] = np.concatenate(self._outputs([pieces[at] for at in group]), axis=1)
        return rows

    def vectors_of(self, features: Floats) -> Floats:
        """Return the vectors that `embed` gives for the texts of rows of `features`; zeros for a row of zeros."""
        import numpy as np

        output = features[:, -len(self._mean) :]
        with self._one_thread():
            rows = np.matmul(output - self._mean, self._directions, dtype=np.float32)
        rows[~features.any(axis=1)] = 0
        return unit_rows(rows)

    @contextmanager
    def _computing(self) -> Generator[None]:
        """Limit the matrix library to a thread during the block; then drop the pages of the table."""
        with self._one_thread():
            yield
        drop_pages(self._table)

    def _no_features(self, texts: int) -> Floats:
        import numpy as np

        return np.zeros((texts, len(self._layers["sum_bias"]) + len(self._mean)), np.float32)

    def _outputs_of(self, text: str) -> tuple[Floats, Floats] | None:
        """Return the `_outputs` of a text, None if it has no known piece."""
        ids = self._pieces(text)
        return self._outputs([ids]) if ids else None

    def _pieces(self, text: str) -> list[int]:
        """Return the first pieces of a text between the begin and end pieces; none for a blank or unknown text."""
        ids: list[int] = []
        for word in normalize("NFKC", text[:CHARACTERS_READ]).split():
            ids += self._segment_again(word) if len(word) <= KEPT_WORD else self._segment(word)
            if len(ids) >= PIECES_READ:
                break
        ids = ids[:PIECES_READ]
        return [_BEGIN, *ids, _END] if any(ids) else []

    def _outputs(self, texts: Sequence[Sequence[int]]) -> tuple[Floats, Floats]:
        """Return for each text the sum over its pieces, and the output of the last layer, of length one.

        Equal windows of pieces have equal features and are computed once. A sentence and the text around it share most
        of theirs.
        """
        import numpy as np

        layers = self._layers
        lengths = np.array([len(ids) for ids in texts])
        pieces, piece_at = np.unique(np.concatenate(texts), return_inverse=True)
        rows = self._rows(pieces)
        inputs = _normalise(
            rows @ layers["project"] + layers["project_bias"], layers["project_gain"], layers["project_shift"]
        )
        computed = [(rows, piece_at)]  # distinct rows, and the row of each position in the texts
        for place, (size, before) in enumerate(_WINDOWS):
            hidden, hidden_at = inputs[:, place * _WIDTH : (place + 1) * _WIDTH], piece_at
            around = _windows(lengths, size, before)
            for layer in (1, 2):
                windows, hidden_at = _distinct(np.append(hidden_at, len(hidden))[around])
                padded = np.concatenate([hidden, np.zeros((1, _WIDTH), np.float32)])
                name = f"window{size}_{layer}"
                hidden = padded[windows].reshape(len(windows), -1) @ layers[name]
                hidden += layers[f"{name}_bias"]
                np.maximum(hidden, 0, out=hidden)
                hidden += padded[windows[:, before]]
            computed.append((hidden, hidden_at))
        _, widest_at = computed[-1]  # these windows contain the others, so positions with equal ones are equal
        _, distinct = np.unique(widest_at, return_index=True)
        features = np.concatenate([part[at[distinct]] for part, at in computed], axis=1)
        features = _normalise(features, layers["gain"], layers["shift"])
        summed = np.add.reduceat(features[widest_at], np.cumsum(lengths) - lengths) @ layers["sum"]
        summed = (summed + lengths[:, None] * layers["sum_bias"]) / np.sqrt(lengths)[:, None]
        summed = summed.astype(np.float32)
        first = np.maximum(summed @ layers["skip1"] + np.maximum(summed @ layers["up1"], 0) @ layers["down1"], 0)
        last = np.tanh(first @ layers["skip2"] + np.maximum(first @ layers["up2"], 0) @ layers["out"])
        return summed, last / np.linalg.norm(last, axis=1, keepdims=True)

    def _rows(self, ids: NDArray[np.int64]) -> Floats:
        import numpy as np

        packed = self._table[ids]
        rows = np.empty((len(ids), packed.shape[1] * 2), np.float32)
        rows[:, ::2] = packed >> 4
        rows[:, 1::2] = packed & 15
        return (rows - 7.5) * self._scales[ids, None]


def _batches(pieces: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Yield groups of indices of texts that have pieces.

    A group has at most `_PIECES_TOGETHER` pieces, unless it is a single text.
    """
    group, size = list[int](), 0
    for at, ids in enumerate(pieces):
        if group and size + len(ids) > _PIECES_TOGETHER:
            yield group
            group, size = [], 0
        if ids:
            group.append(at)
            size += len(ids)
    if group:
        yield group


def _windows(lengths: NDArray[np.int64], size: int, before: int) -> NDArray[np.int64]:
    """Return, for each row, the indices of the rows in its window.

    `lengths` has the number of rows of each text. A position outside the text has the number of all rows as index.
    """
    import numpy as np

    total = int(lengths.sum())
    ends = np.cumsum(lengths)
    around: NDArray[np.int64] = np.arange(total)[:, None] + np.arange(-before, size - before)
    first, end = np.repeat(ends - lengths, lengths)[:, None], np.repeat(ends, lengths)[:, None]
    return np.where((around < first) | (around >= end), total, around)


def _distinct(windows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the windows without repetitions, and for each window its index among them."""
    import numpy as np

    base = int(windows.max()) + 1  # five digits fit into 63 bits up to a base of 6,000
    numbers = windows @ np.array([base**place for place in range(windows.shape[1])], np.int64)
    _, first, inverse = np.unique(numbers, return_index=True, return_inverse=True)
    return windows[first], inverse


def _normalise(rows: Floats, gain: Floats, shift: Floats) -> Floats:
    """Apply layer normalisation to the rows, in place, and return them."""
    import numpy as np

    rows -= rows.mean(axis=1, keepdims=True)
    rows /= np.sqrt(np.einsum("ij,ij->i", rows, rows)[:, None] / rows.shape[1] + _EPSILON)
    rows *= gain
    rows += shift
    return rows


_encoder_of = cache(Encoder)


def shared_encoder(folder: Path = MODEL) -> Encoder:
    """Return the encoder of a folder, loaded once. Raises EmbeddingFailed if its files cannot be read."""
    with _loading:
        return _encoder_of(folder)


_encoded: LRU[str, Floats] = LRU(4_096)


def encoder_vector(text: str) -> Floats:
    """Return the vector of a text by the encoder alone. Raises EmbeddingFailed if its files cannot be read."""
    (vector,) = encoder_vectors([text])
    return vector


def encoder_vectors(texts: Sequence[str]) -> Floats:
    """Return the vectors of texts by the encoder alone, a row for each. Short texts are computed together."""
    import numpy as np

    vectors = {text: vector for text in texts if (vector := _encoded.get(text)) is not None}
    if missing := [text for text in dict.fromkeys(texts) if text not in vectors]:
        encoder = shared_encoder()
        for text, vector in zip(missing, encoder.vectors_of(encoder.features(missing)), strict=True):
            vectors[text] = _encoded.put(text, vector)
    return np.stack([vectors[text] for text in texts]) if texts else np.empty((0, ENCODER_DIMENSIONS), np.float32)


def _segment_word(pieces: PieceNumbers, scores: memoryview, word: str) -> tuple[int, ...]:
    """Return the most probable pieces of a word, by SentencePiece's unigram model: scores are log probabilities."""
    text = f"▁{word}"
    unknown = scores[-1] - 10.0
    best = [0.0, *([-1e30] * len(text))]
    before: list[tuple[int, int]] = [(0, _UNKNOWN)] * (len(text) + 1)
    for start in range(len(text)):
        begun = pieces.beginning(text[start : start + _LONGEST_PIECE])
        for length, piece in (*begun, (1, _UNKNOWN)):
            end, score = start + length, best[start] + (scores[piece] if piece else unknown)
            if score > best[end]:
                best[end], before[end] = score, (start, piece)
    ids: list[int] = []
    end = len(text)
    while end:
        end, piece = before[end]
        ids.append(piece)
    return tuple(reversed(ids))


# The end is the start of the SHA-256 of the encoder's files; a test holds it to them.
IDENTITY = f"{STATIC_IDENTITY}+use-multilingual-v3:256:e6346363"

ENGLISH, UNCERTAIN, OTHER = 0.45, 0.6, 0.9
"""Weight of the encoder in a question in English, in an unknown language, and in other languages."""
_WORD = re.compile(r"[^\W\d_]+")


class BundledEmbedder:
    """Embeds with the models of this package. All instances in a process share the loaded models (some 15 MB)."""

    identity = IDENTITY
    dimensions = STATIC_DIMENSIONS + ENCODER_DIMENSIONS
    local = True

    _words = StaticEmbedder()

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        import numpy as np

        words, sense = self._words.embed(texts), shared_encoder().embed(texts)
        # A text without a word of the table still needs that half: without it, its cosines would be higher.
        words[sense.any(axis=1) & ~words.any(axis=1), 0] = 1.0
        return unit_rows(np.concatenate([words, sense], axis=1))

    def embed_query(self, text: str) -> NDArray[np.float32]:
        import numpy as np

        share = encoder_share(text)
        halves = (1 - share) * self._words.embed_query(text), share * shared_encoder().embed([text])[0]
        return unit_rows(np.concatenate(halves)[None, :])[0]


def encoder_alone(question: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return a question's vector (one row) without the word table's half; zeros if the encoder knows no word."""
    alone = question.copy()
    alone[:, :STATIC_DIMENSIONS] = 0
    return unit_rows(alone)


def encoder_halves(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the encoder's halves of vectors, a row each, of length one; zeros if the encoder knew no word."""
    return unit_rows(vectors[:, STATIC_DIMENSIONS:])


def encoder_share(question: str) -> float:
    """Return the weight of the encoder's half in a question's vector, which depends on the question's language."""
    languages = languages_of(_WORD.findall(question))
    if not languages:
        return UNCERTAIN if question.isascii() else OTHER
    return ENGLISH if languages == ("en",) else OTHER
