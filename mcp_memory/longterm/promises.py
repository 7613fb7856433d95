"""Finds the open promises, and those that a prompt calls for.

A promise is a statement of the user with the label `promise`: "Next time I mention Lisbon, tell me that Bruno owes me
40 euros." It is open until another statement supersedes it, which closes it as done, or it is forgotten, which
dismisses it.

A prompt calls for a promise if it is about the promise's trigger (`promise_parts`). A logistic regression over nine
features decides, by meaning and by words; `scripts/fit_promises.py` fits it to `fixtures/promises`. Its limit depends
on the number of open promises, so that only one in a hundred prompts that call for no promise gets any. The model knows
nothing about the world beyond its vectors: "LIS" is not Lisbon to it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mcp_memory.core.errors import EmbeddingFailed
from mcp_memory.core.types import Atom
from mcp_memory.language.sentences import sentences
from mcp_memory.language.when.annotate import ADDITION
from mcp_memory.language.when.intervals import local
from mcp_memory.language.words import fold, function_words_of, index_terms
from mcp_memory.longterm.promise_parts import ParsedPromise, parse_promise
from mcp_memory.longterm.search.search import SearchContext
from mcp_memory.longterm.validity import current_atoms, validity
from mcp_memory.models.embed.bundled import STATIC_DIMENSIONS, StaticEmbedder, encoder_vector
from mcp_memory.models.embed.protocol import unit_rows
from mcp_memory.store.sql import turn_rows
from mcp_memory.store.values import Filters

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]


MODEL_FILE = Path(__file__).with_name("promises.json")
_READ = 10_000  # open promises
_MAX_COMPARED = 100  # newest open promises that are compared with a prompt
_PROMPT_CHARS = 2_000
_BEFORE_CHARS = 240  # characters of a turn before its promise
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_SENTENCE_START = re.compile(r"(?:^|[.!?:。！？\n])\W*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """An open promise. `context` is the promise after the sentences before it, which may show who "him" is."""

    atom: Atom
    said_at: datetime
    parts: ParsedPromise
    context: str

    def is_due(self, today: date) -> bool:
        """Return whether its day has come; without a day it is always due."""
        return self.parts.due is None or self.parts.due <= today

    def is_stated_in(self, text: str) -> bool:
        """Return whether a text has the words of the promise."""
        return _plain(ADDITION.sub("", self.atom.text)) in _plain(text)


class PromiseFeatures(NamedTuple):
    """Features of a promise and a prompt."""

    trigger: float
    """Cosine of what the trigger is about and the prompt, by the multilingual encoder."""
    context: float
    """Cosine of `context` and the prompt, by the multilingual encoder."""
    trigger_words: float
    """Cosine of what the trigger is about and the prompt, by the English word table."""
    context_words: float
    shared: float
    """Share of the trigger's terms that the prompt has."""
    common: float
    """Share of the prompt's content words that `context` has."""
    name: float
    """Flag: a name in the context is in the prompt."""
    length: float
    """Logarithm of the number of content words in the prompt."""
    breadth: float
    """Logarithm of the number of content words in the trigger."""


class PromiseModel(NamedTuple):
    """The fitted model. `weights` has one number for each feature, the constant last.

    `limits` pairs numbers of open promises with log-odds, at which one in a hundred prompts that call for no promise
    gets any. `center` and `scale`, one number for each dimension of the bundled model, make its cosines comparable.
    """

    weights: tuple[float, ...]
    limits: tuple[tuple[int, float], ...]
    center: Floats
    scale: Floats

    def score(self, features: PromiseFeatures) -> float:
        """Return the log-odds that a prompt calls for a promise."""
        return sum(w * value for w, value in zip(self.weights, features, strict=False)) + self.weights[-1]

    def limit(self, promises: int) -> float:
        """Return the log-odds from which a promise is shown, by the number of open promises."""
        return next((limit for count, limit in self.limits if count >= promises), self.limits[-1][1])


@cache
def promise_model() -> PromiseModel:
    import numpy as np

    stored = json.loads(MODEL_FILE.read_text(encoding="utf-8"))
    return PromiseModel(
        weights=tuple(stored["weights"][name] for name in (*PromiseFeatures._fields, "constant")),
        limits=tuple((int(count), limit) for count, limit in stored["limits"].items()),
        center=np.array(stored["center"], np.float32),
        scale=np.array(stored["scale"], np.float32),
    )


# --- open promises ----------------------------------------------------------------------------------


LISTED = (Filters(label="promise", unheld=True), _READ)
"""The list of statements, as filters and a limit, that `open_promises` reads."""


def open_promises(context: SearchContext) -> list[Promise]:
    """Return the open promises that the user made, newest first, without those that become valid later.

    Requests of an assistant, a tool, a web page or an import are not orders of the user; nor are doubted statements.
    """
    store, space, now = context.store, context.space, context.now
    filters, limit = LISTED
    possible = current_atoms(store, space, filters, now, limit=limit)
    of_user = [atom for atom in possible if atom.source == "user" and not atom.doubts]
    atoms = [atom for atom in of_user if validity(atom, now) == "current"]
    turns = {turn.id: turn for turn in store.read(space, turn_rows.by_ids, [atom.evidence for atom in atoms])}
    promises: list[Promise] = []
    for atom in atoms:
        turn = turns.get(atom.evidence)
        # An agent may store a promise after it was made (valid_from is earlier), or let it become valid later.
        said_at = min(atom.valid_from, atom.learned_at) if turn is None or turn.role == "note" else turn.said_at
        words = ADDITION.sub("", atom.text)
        with_context = with_words_before(turn.content, words) if turn else words
        promises.append(Promise(atom=atom, said_at=said_at, parts=parse_promise(words, said_at), context=with_context))
    return sorted(promises, key=lambda promise: promise.said_at, reverse=True)


def with_words_before(turn: str, promise: str) -> str:
    """Return a promise with the sentences before it in its turn; alone if the turn does not have it verbatim."""
    at = turn.find(promise)
    starts = [start for start, _ in sentences(turn[: max(0, at)]) if at - start <= _BEFORE_CHARS]
    return f"{turn[starts[0] : at].strip()} {promise}" if starts else promise


# --- promises that a prompt makes due ---------------------------------------------------------------


def called_for(promises: Sequence[Promise], prompt: str, now: datetime) -> list[Promise]:
    """Return the due promises whose trigger, other than a mere day, a prompt is about, the most likely first.

    Of `promises`, newest first, only the first 100 are compared. A prompt that states a promise does not call for it.
    Without the encoder's files a prompt calls for a promise if it has all terms of its trigger.
    """
    today = local(now).date()
    possible = [promise for promise in promises if not promise.parts.is_date and promise.is_due(today)][:_MAX_COMPARED]
    possible = [promise for promise in possible if not promise.is_stated_in(prompt)]
    if not possible or not _plain(prompt):
        return []
    model, prompt = promise_model(), prompt[:_PROMPT_CHARS]
    try:
        scores = [model.score(promise_features(promise.parts, promise.context, prompt)) for promise in possible]
    except EmbeddingFailed:
        return [promise for promise in possible if _share_of_terms(promise.parts, prompt) == 1]
    limit = model.limit(len(possible))
    ranked = sorted(zip(scores, possible, strict=True), key=lambda pair: -pair[0])
    return [promise for score, promise in ranked if score >= limit]


def promise_features(parts: ParsedPromise, context: str, prompt: str) -> PromiseFeatures:
    """Return the features of a promise and a prompt. Raises EmbeddingFailed if the package's files cannot be read."""
    about = parts.about or parts.trigger
    asked, trigger, around = (_halves(text) for text in (prompt, about, context))
    words, context_words = _content_words(prompt), _content_words(context)
    return PromiseFeatures(
        trigger=float(trigger.sense @ asked.sense),
        context=float(around.sense @ asked.sense),
        trigger_words=float(trigger.words @ asked.words),
        context_words=float(around.words @ asked.words),
        shared=_share_of_terms(parts, prompt),
        common=len(words & context_words) / max(1, len(words)),
        name=float(not words.isdisjoint(_names(context))),
        length=math.log1p(len(words)),
        breadth=math.log1p(len(_content_words(about))),
    )


def _share_of_terms(parts: ParsedPromise, prompt: str) -> float:
    terms = set(index_terms(parts.about or parts.trigger))
    return len(terms.intersection(index_terms(prompt))) / max(1, len(terms))


@dataclass(frozen=True, slots=True, eq=False)
class _Halves:
    """The parts of a text's vector by the word table and by the encoder, both scaled and of length one."""

    words: Floats
    sense: Floats


@lru_cache(maxsize=512)
def _halves(text: str) -> _Halves:
    model = promise_model()
    vector = ((bundled_vector(text) - model.center) / model.scale)[None, :]
    return _Halves(unit_rows(vector[:, :STATIC_DIMENSIONS])[0], unit_rows(vector[:, STATIC_DIMENSIONS:])[0])


def bundled_vector(text: str) -> Floats:
    """Return the vector of a text by the bundled model: both halves, each of length one, joined into one array.

    Raises EmbeddingFailed if the package's files cannot be read.
    """
    import numpy as np

    return np.concatenate([StaticEmbedder().embed([text])[0], encoder_vector(text)])


@lru_cache(maxsize=512)
def _content_words(text: str) -> frozenset[str]:
    """Return the folded words of a text without the function words of its language."""
    words = _WORD.findall(text)
    ordinary = function_words_of([word.lower() for word in words])
    return frozenset(fold(word) for word in words if word.lower() not in ordinary)


@lru_cache(maxsize=512)
def _names(text: str) -> frozenset[str]:
    """Return the capitalised words within the sentences of a text, folded."""
    words = ((match.start(), match[0]) for match in _WORD.finditer(text))
    return frozenset(
        fold(word)
        for at, word in words
        if word[0].isupper() and len(word) > 1 and not _SENTENCE_START.search(text[:at])
    )


def _plain(text: str) -> str:
    return " ".join(fold(text).split()).strip(" .!?。！？")
