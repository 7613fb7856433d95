"""Classifies sentences of a user: which kind of statement each makes, if any, and how much it is worth later.

Three logistic regressions, for the label, the worth, and whether the sentence is a fragment, on its vectors alone and
between its neighbours, the cues of `language.rule_words`, the scores of the model of standing rules, and the form
of the sentence. They are fitted to 16,741 sentences of 142 made-up authors in 25 languages (`fixtures/sentences`,
`scripts/fit_sentence_labels.py`). Nearly all of their time is the time of the encoder.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any, get_args

from mcp_memory.core.types import Label
from mcp_memory.language.rule_words import CUES, cues_of
from mcp_memory.language.sentences import may_state_rule
from mcp_memory.models.embed.bundled import MODEL, reading, shared_encoder
from mcp_memory.models.embed.classifiers import rule_probability, rule_scores_of
from mcp_memory.models.embed.mapped_files import mapped_tensors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


LABELS_FILE = "labels.safetensors"
LABELS: tuple[Label, ...] = get_args(Label)
"""The labels in the order of the model's columns; the next columns are no label, the worth, and the fragment."""

_CONTEXT = 600  # characters
_CLIP = 6.0  # standard deviations
_LIKELY_PROMISE = 0.5
_SURE_RULE = 0.75  # probability by the model of standing rules, as `longterm.standing_rules.STATES`
_POSSIBLE_RULE = 0.15
"""The least probability of the label `rule` for a sentence without a cue.

In a quarter of `fixtures/sentences` the model of standing rules is sure of 29 such sentences, of which 7 are rules.
This limit keeps these 7, and 2 others.
"""
_RULE_WORTH = 0.9
"""The mean worth of the rules of `fixtures/sentences`.

A sentence is worth at least the mean of its own worth and its worth as a rule: the model of standing rules recognises
terse rules, of which the regression has seen few.
"""
_PRONOUNS = frozenset(["i", "me", "you", "they"])
_DATE_OR_TIME = re.compile(r"\d{1,2}[:.]\d\d|\d{4}")
_QUESTION = re.compile(r"[?？؟]\W*$")


@dataclass(frozen=True, slots=True)
class SentenceInTurn:
    """A sentence of a user's turn with the sentences around it, and the assistant's words before the turn."""

    text: str
    before: str = ""
    after: str = ""
    reply_to: str = ""
    """The end of the assistant's turn before; empty if the user's turn is the first."""

    @property
    def context(self) -> str:
        return " ".join(part for part in (self.before, self.text, self.after) if part)[:_CONTEXT]


@dataclass(frozen=True, slots=True)
class Classified:
    """The probabilities of a sentence's labels, and its worth."""

    chances: Mapping[Label, float]
    """The probability of each label, 0 to 1; their sum is 1 minus the probability of no label."""
    worth: float
    """How useful it is to an assistant in later conversations: 0 for an episode or a single request, 1 for something
    that belongs on every page about the user."""
    fragment: float
    """The probability that the sentence cannot be understood alone ("she wants it in blue"), if it is a statement."""


def classify(sentences: Sequence[SentenceInTurn]) -> list[Classified]:
    """Return the labels and the worth of each sentence.

    Raises EmbeddingFailed if the files of the package cannot be read.
    """
    import numpy as np

    if not sentences:
        return []
    model = _label_model()
    features, rules = _features_and_rules(sentences)
    scores = scaled(features, model.mean, model.spread) @ model.weights + model.constants
    worths = (1 / (1 + np.exp(-scores[:, len(LABELS) + 1 :]))).tolist()
    labels = scores[:, : len(LABELS) + 1]
    chances = np.exp(labels - labels.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    by_label = [dict(zip(LABELS, row, strict=False)) for row in chances.tolist()]
    chances_of = [
        _with_rule(chances, rule_probability(alone, between)) if _may_be_rule(sentence.text, chances) else chances
        for sentence, chances, (alone, between) in zip(sentences, by_label, rules.tolist(), strict=True)
    ]
    return [
        Classified(chances, worth=max(worth, (worth + _RULE_WORTH * chances["rule"]) / 2), fragment=fragment)
        for chances, (worth, fragment) in zip(chances_of, worths, strict=True)
    ]


def scaled(
    rows: NDArray[np.floating[Any]], mean: NDArray[np.floating[Any]], spread: NDArray[np.floating[Any]]
) -> NDArray[np.floating[Any]]:
    """Return rows of features in standard deviations from the mean, limited to 6 in either direction."""
    import numpy as np

    return np.clip((rows - mean) / spread, -_CLIP, _CLIP)


def _may_be_rule(text: str, chances: dict[Label, float]) -> bool:
    """Return whether to ask the model of standing rules about a sentence.

    That model mistakes lists ("cups, bowls, plates") for terse rules. So a sentence without a cue such as "always" is
    passed to it only if its label may be a rule.
    """
    has_cue = any(has for name, has in zip(CUES, cues_of(text), strict=False) if name not in _PRONOUNS)
    return may_state_rule(text) and (has_cue or chances["rule"] >= _POSSIBLE_RULE)


def _with_rule(chances: dict[Label, float], rule: float) -> dict[Label, float]:
    """Return the chances with `rule`, the probability by the model of standing rules, if that model is sure.

    A likely promise keeps its chances, because that model mistakes requests for later ("next time …, tell me …") for
    rules.
    """
    if chances["promise"] >= _LIKELY_PROMISE or rule < _SURE_RULE or rule <= chances["rule"]:
        return chances
    left = (1 - rule) / (1 - chances["rule"])
    return {label: rule if label == "rule" else chance * left for label, chance in chances.items()}


def sentence_features(sentences: Sequence[SentenceInTurn]) -> NDArray[np.float32]:
    """Return one row per sentence. There must be at least one sentence."""
    return _features_and_rules(sentences)[0]


def _features_and_rules(sentences: Sequence[SentenceInTurn]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the features, and from them the scores by the model of standing rules, alone and between neighbours."""
    import numpy as np

    encoder = shared_encoder()
    texts = [sentence.text for sentence in sentences] + [sentence.context for sentence in sentences]
    # Each sentence is followed by its context, since the encoder computes equal parts of neighbouring texts once.
    together = chain.from_iterable((sentence.text, sentence.context) for sentence in sentences)
    places = {text: place for place, text in enumerate(dict.fromkeys(together))}
    features = encoder.features(list(places))[[places[text] for text in texts]]
    cues = np.array([cues_of(text) for text in texts], np.float32)
    count = len(sentences)
    rules = np.array(rule_scores_of(texts, features, cues), np.float32).reshape(2, count).T
    vectors = encoder.vectors_of(features)
    form = np.array([_form(sentence) for sentence in sentences], np.float32)
    parts = (vectors[:count], vectors[count:], cues[:count], rules, form)
    return np.concatenate(parts, axis=1), rules


def _form(sentence: SentenceInTurn) -> list[float]:
    text = sentence.text
    words = text.split()
    capitals = sum(word[:1].isupper() for word in words[1:]) / max(1, len(words))
    flags = (
        any(character.isdigit() for character in text),
        "?" in text or "？" in text,
        "!" in text,
        text[:1].isupper(),
        bool(_DATE_OR_TIME.search(text)),
        any(mark in text for mark in '"«„'),
        not sentence.before,
        bool(_QUESTION.search(sentence.reply_to)),
        bool(sentence.reply_to),
        ":" in text,
        "(" in text,
    )
    return [len(text) / 100, len(words) / 20, capitals, *map(float, flags)]


@dataclass(frozen=True, slots=True, eq=False)
class _LabelModel:
    mean: NDArray[np.float32]
    spread: NDArray[np.float32]
    weights: NDArray[np.float32]
    constants: NDArray[np.float32]


@cache
def _label_model() -> _LabelModel:
    with reading("The model of sentence labels"):
        tensors = mapped_tensors(MODEL / LABELS_FILE)
        return _LabelModel(**{name: tensors[name] for name in ("mean", "spread", "weights", "constants")})
