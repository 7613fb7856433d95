"""Small classifiers on the bundled model.

Injected instructions: the sum of two linear models. The first is cheap and uses hashed word beginnings and their pairs,
in any language; the second uses the encoder's features (1 to 5 ms a sentence) and traits from the caller, alone and in
pairs. The encoder reads only sentences that the first model suspects, at most `_MAX_SENTENCES` of a text, and the
sentences of several texts together. Sentences are judged without their context, such as the speaker and quotation
marks. `scripts/fit_injected.py` fits both.

Prompts that need memory: a network with a hidden layer on the encoder's features predicts whether an answer needs
earlier conversations. `scripts/fit_prompt_gate.py` fits it to prompts in fifteen languages. It takes 2 ms and reads no
memory.

Questions about many things: a logistic regression on the encoder's features recognises questions for an order, a count,
a list, a sum, places, a summary or a development. `scripts/fit_many_things.py` fits it to prompts in sixteen languages.

Standing rules: the sum of two models is the log-odds that a sentence of a user states a rule. One is a network with a
hidden layer on the encoder's features and the cues of `language.rule_words`; the other, `language.rule_words`, weighs
words. `scripts/fit_rules.py` fits both to sentences in twenty languages. A sentence takes 2 ms, most of it the encoder.

Related words: a table made once from the word vectors (`scripts/related_words.py`), English only: *camping* to
*tent*.
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from mcp_memory.core.text import normalize
from mcp_memory.language.rule_words import cues_of, word_score
from mcp_memory.models.embed.bundled import MODEL, reading, shared_encoder
from mcp_memory.models.embed.mapped_files import mapped_tensors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


Traits = Callable[[str], Sequence[bool]]
INJECTION_FILE = "injected.safetensors"
SLOTS = 1 << 17
"""Number of weights for single words; there are as many for pairs."""

_MAX_SENTENCES = 24
_AT_ONCE = 64  # texts
_STEM = 6  # characters of a word that count: endings vary
_TOKEN = re.compile("[\u0e00-\u0e7f\u2e80-\uffef]|[^\\W\u0e00-\u0e7f\u2e80-\uffef]+")


def detect_injected(texts: Sequence[Sequence[str]], traits: Traits) -> list[bool]:
    """Return for each text (a list of its sentences) whether a sentence reads like an injected instruction.

    Raises EmbeddingFailed if the files of the package cannot be read.
    """
    return [
        verdict
        for start in range(0, len(texts), _AT_ONCE)
        for verdict in _detect_batch(texts[start:][:_AT_ONCE], traits)
    ]


def _detect_batch(texts: Sequence[Sequence[str]], traits: Traits) -> list[bool]:
    import numpy as np

    model = _injection_model()
    asked = [(at, sentence, score) for at, text in enumerate(texts) for sentence, score in _suspects(text, model)]
    is_injected = np.zeros(len(texts), bool)
    if asked:
        places, sentences, by_words = zip(*asked, strict=True)
        features = features_of(sentences, traits)
        scores = features @ model.features[:-1] + model.features[-1] + model.share * np.array(by_words)
        is_injected[np.array(places)[features.any(axis=1) & (scores > model.bar)]] = True
    return is_injected.tolist()


def _suspects(sentences: Sequence[str], model: _InjectionModel) -> list[tuple[str, float]]:
    """Return the sentences of a text that the first model suspects, each with its score, highest score first."""
    import numpy as np

    if not sentences:
        return []
    slots = [word_slots(sentence) for sentence in sentences]
    lengths = np.array([len(row) for row in slots])
    flat = np.concatenate([np.array(row, np.int64) for row in slots])
    by_words = np.add.reduceat(model.words[flat], np.cumsum(lengths) - lengths) / np.sqrt(lengths) + model.words_bias
    highest = np.argsort(-by_words)[:_MAX_SENTENCES]
    return [(sentences[at], float(by_words[at])) for at in map(int, highest) if by_words[at] > model.floor]


def features_of(sentences: Sequence[str], traits: Traits) -> NDArray[np.float32]:
    """Return one row per sentence: the encoder's features, then the traits alone and in pairs.

    A sentence without a known word piece has a row of zeros. There must be at least one sentence.
    """
    import numpy as np

    features = shared_encoder().features(sentences)
    alone = np.array([traits(sentence) for sentence in sentences], np.float32)
    first, second = np.triu_indices(alone.shape[1], 1)
    rows = np.concatenate([features, alone, alone[:, first] * alone[:, second]], axis=1)
    rows[~features.any(axis=1)] = 0
    return rows


def word_slots(sentence: str) -> list[int]:
    """Return the indices of the weights for a sentence's words and pairs of words; `[0]` if it has no words."""
    shown = sentence if sentence.isascii() else normalize("NFKC", sentence)
    words = [_hashed(word[:_STEM]) for word in _TOKEN.findall(shown.lower())]
    pairs = [(first * 31 + second) % SLOTS + SLOTS for first, second in pairwise(words)]
    return [*(word % SLOTS for word in words), *pairs] or [0]


@lru_cache(maxsize=8_192)
def _hashed(word: str) -> int:
    return zlib.crc32(word.encode("utf-8", "surrogatepass"))


@dataclass(frozen=True, slots=True, eq=False)
class _InjectionModel:
    words: NDArray[np.float32]
    words_bias: float
    features: NDArray[np.float32]
    floor: float
    """Score of the first model above which the encoder reads a sentence."""
    share: float
    """Weight of the first model's score in the sum."""
    bar: float
    """Sum of the scores above which a sentence is reported."""


@cache
def _injection_model() -> _InjectionModel:
    import numpy as np

    with reading("The model of injected orders"):
        tensors = mapped_tensors(MODEL / INJECTION_FILE)
        words_bias, floor, share, bar = tensors["levels"].tolist()
        words = np.zeros(2 * SLOTS, np.float32)
        words[np.unpackbits(tensors["used"]).astype(bool)] = tensors["words"] * tensors["words_scale"]
    return _InjectionModel(words, words_bias, tensors["features"], floor, share, bar)


PROMPTS_FILE = "prompts.safetensors"
_MAX_LOG_ODDS = 6.0


def leans_on_memory(prompt: str) -> float:
    """Return the log-odds, -6 to 6, that a prompt needs earlier conversations; 0 for a text without words.

    Raises EmbeddingFailed if the files of the package cannot be read.
    """
    features = shared_encoder().features([prompt])
    if not features.any():
        return 0.0
    (score,) = _prompt_network().scores(features).tolist()
    return max(-_MAX_LOG_ODDS, min(_MAX_LOG_ODDS, score))


@cache
def _prompt_network() -> _Network:
    with reading("The prompt gate"):
        return _Network.of(mapped_tensors(MODEL / PROMPTS_FILE))


@dataclass(frozen=True, slots=True, eq=False)
class _Network:
    """A network with one hidden layer (ReLU) and a direct linear part.

    `shift` is the bias of the hidden layer, `constant` that of the output.
    """

    hidden: NDArray[np.float32]
    shift: NDArray[np.float32]
    out: NDArray[np.float32]
    direct: NDArray[np.float32]
    constant: NDArray[np.float32]

    @classmethod
    def of(cls, tensors: Mapping[str, NDArray[Any]]) -> _Network:
        parts = {name: tensors[name] for name in ("shift", "out", "direct", "constant")}
        return cls(hidden=tensors["hidden"] * tensors["hidden_scale"], **parts)

    def scores(self, rows: NDArray[np.float32]) -> NDArray[np.floating[Any]]:
        """Return the log-odds of rows of features."""
        import numpy as np

        return np.maximum(rows @ self.hidden + self.shift, 0) @ self.out + rows @ self.direct + self.constant


def probability(log_odds: float) -> float:
    """Return log-odds as a probability, 0 to 1."""
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, log_odds))))


MANY_THINGS_FILE = "many_things.safetensors"


def asks_for_many_things(question: str) -> bool:
    """Return whether a question asks for many things, such as an order, a list or a sum, rather than a single fact.

    Raises EmbeddingFailed if the files of the package cannot be read.
    """
    features = shared_encoder().features([question])
    if not features.any():
        return False
    weights, constant = _many_things_model()
    return float(features[0] @ weights + constant) > 0


@cache
def _many_things_model() -> tuple[NDArray[np.float32], float]:
    with reading("The model of questions about many things"):
        tensors = mapped_tensors(MODEL / MANY_THINGS_FILE)
        return tensors["weights"], float(tensors["constant"][0])


RULES_FILE = "rules.safetensors"


def rule_scores(sentences: Sequence[str]) -> list[float]:
    """Return for each sentence the log-odds that it states a standing rule for an agent.

    Raises EmbeddingFailed if the files of the package cannot be read.
    """
    import numpy as np

    if not sentences:
        return []
    cues = np.array([cues_of(sentence) for sentence in sentences], np.float32)
    return rule_scores_of(sentences, shared_encoder().features(sentences), cues)


def rule_scores_of(sentences: Sequence[str], features: NDArray[np.float32], cues: NDArray[np.float32]) -> list[float]:
    """Return `rule_scores` of sentences from their `features` by the encoder and their `cues`, one row per sentence."""
    import numpy as np

    network, share = _rule_models()
    by_words = np.array([word_score(sentence) for sentence in sentences]) * share
    return (network.scores(np.concatenate([features, cues], axis=1)) + by_words).tolist()


_CLEAR = 3.0  # log-odds


def rule_probability(alone: float, between: float) -> float:
    """Return the probability that a sentence states a rule, from its score alone and its score between its neighbours.

    Both count equally, except that small talk around a clear rule does not weaken it.
    """
    mean = (alone + between) / 2
    return probability(max(alone, mean) if alone >= _CLEAR else mean)


def rule_features(sentences: Sequence[str]) -> NDArray[np.float32]:
    """Return one row per sentence: the encoder's features and its cues. There must be at least one sentence."""
    import numpy as np

    cues = np.array([cues_of(sentence) for sentence in sentences], np.float32)
    return np.concatenate([shared_encoder().features(sentences), cues], axis=1)


@cache
def _rule_models() -> tuple[_Network, float]:
    """Return the network, and the weight of the score by words."""
    with reading("The model of standing rules"):
        tensors = mapped_tensors(MODEL / RULES_FILE)
        return _Network.of(tensors), float(tensors["words"][0])


RELATED_FILE = "related.safetensors"


def related_words(word: str) -> list[tuple[str, float]]:
    """Return up to 12 words related to `word` (in lower case), each with its cosine (0.4 to 1), the nearest first."""
    words, neighbours, nearness = _related_words()
    shown = word.encode("utf-8", "replace")
    place = int(words.searchsorted(shown[: words.itemsize]))
    if place == len(words) or words[place] != shown:
        return []
    pairs = zip(words[neighbours[place]].tolist(), nearness[place].tolist(), strict=True)
    return [(other.decode(), near / 255) for other, near in pairs if near]


@cache
def _related_words() -> tuple[NDArray[np.bytes_], NDArray[np.uint16], NDArray[np.uint8]]:
    """Return the words in order, and for each the places and the cosines (times 255) of its related words."""
    import numpy as np

    tensors = mapped_tensors(MODEL / RELATED_FILE)
    return np.array(tensors["words"].tobytes().split(b"\n")), tensors["neighbours"], tensors["nearness"]
