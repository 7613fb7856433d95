"""Standing rules that a user states in a turn: orders to the agent that are valid until they are revoked.

`standing_rules` judges each candidate of `language.sentences` with the bundled encoder (`embed.classifiers`). It is
strict, because a rule found here may be shown to an agent unasked. These are not rules: statements and wishes of other
people, habits and facts (such as an allergy), past, imagined, one-time or revoked orders, slogans, log lines and
quotations. A sentence is judged alone and between its neighbours. Without the encoder's files, words alone decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from mcp_memory.core.errors import EmbeddingFailed
from mcp_memory.language.rule_words import word_score
from mcp_memory.language.sentences import RuleCandidate, is_question, is_reported, rule_candidates
from mcp_memory.models.embed.classifiers import probability, rule_probability, rule_scores

STATES = 0.75
"""Probability from which a sentence is called a standing rule: a precision of 92 % among near misses, of 95 % in a
natural mixture (`fixtures/rules/left_out.json`: all authors, and `labelled`)."""
SUPPORTS = 0.3
"""Probability from which a sentence of the user may support a remembered rule."""

_NO_ORDER = 0.06
"""Probability below which a sentence is clearly no rule, such as a fact or a request of the moment."""
_LONG = 1_200  # characters from which a text is likely to be pasted, so that only clear wording counts
_SURELY = 0.95
_LISTED = STATES  # strength of a plain statement under a heading such as "rules:"


@dataclass(frozen=True, slots=True)
class Rule:
    """A sentence, `text[start:end]`, that states a standing rule, with its certainty from 0 to 1 (`strength`)."""

    start: int
    end: int
    strength: float


def standing_rules(text: str) -> list[Rule]:
    """Return the standing rules that a user's turn states, in the order of the text; at most one for each sentence."""
    least = STATES if len(text) <= _LONG else _SURELY
    return [rule for rule in judged(text) if rule.strength >= least]


def possible_rules(text: str) -> list[Rule]:
    """Return the sentences of a user's turn that may support a remembered rule."""
    return [rule for rule in judged(text) if rule.strength >= SUPPORTS]


@lru_cache(maxsize=4_096)
def judged(text: str) -> tuple[Rule, ...]:
    """Return the sentences of a user's turn that may be rules, each with its certainty."""
    candidates = list(rule_candidates(text))
    strengths = _strengths(candidates)
    return tuple(
        Rule(candidate.start, candidate.end, max(strength, _LISTED) if _is_stated(candidate) else strength)
        for candidate, strength in zip(candidates, strengths, strict=True)
    )


def may_be_order(sentence: str) -> bool:
    """Return whether a sentence of the user may state a rule; false for questions, reports and most facts."""
    lower = sentence.lower().strip()
    if is_question(lower) or is_reported(lower):
        return False
    try:
        (score,) = rule_scores([sentence])
    except EmbeddingFailed:
        score = word_score(sentence)
    return probability(score) >= _NO_ORDER


def _is_stated(candidate: RuleCandidate) -> bool:
    return candidate.listed and "?" not in candidate.text


def _strengths(candidates: Sequence[RuleCandidate]) -> list[float]:
    texts = list(dict.fromkeys(text for candidate in candidates for text in (candidate.text, candidate.context)))
    try:
        scores = rule_scores(texts)
    except EmbeddingFailed:
        scores = [word_score(text) for text in texts]
    score_of = dict(zip(texts, scores, strict=True))
    return [rule_probability(score_of[candidate.text], score_of[candidate.context]) for candidate in candidates]
