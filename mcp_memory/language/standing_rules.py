"""Detect standing rules that a user states in passing: "no ORM, ever", "siezen, nie duzen", "I'm allergic to nuts".

`standing_rules` finds the sentences of a turn that instruct for good (kind `instruction`) or state a lasting limit of
a person (kind `constraint`), by the grammar of sixteen languages and without a model. It is precise rather than
complete: a rule found here is put in front of an agent. Stories ("I have never been there"), questions, orders of the
moment ("don't commit that yet"), quotations and code are not rules, nor is what somebody else says, wants or imagines
(`is_reported`); a person by their own name looks like a thing.

Works on one sentence at a time. Subject and duration of a rule stay unknown: `strength` says how surely the wording is
that of a lasting rule. Rules that are stated as plain facts ("table names are singular") are found only under a heading
such as "rules:". Pure text; never raises.

`data/standing_rules/` has one file a language; `sv` is Swedish, Danish and Norwegian:

    narrative                               words of a narrative clause
        \\b(?:i|he|she)\\b
    instruction 0.9 before: never ever      kind, strength, guard, and the words of which a sentence needs one
        \\bnever {DO}
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Literal, cast

from mcp_memory.language import pattern_of, patterns_of
from mcp_memory.language.quoted import FILL, own_part

RuleKind = Literal["instruction", "constraint"]
Guard = Literal["none", "before", "clause"]

READ = 4_000
"""Characters of a text that are read; what follows is a document more often than words of a person."""

_LONG = 1_200  # characters from which a text is likely to be pasted, so that only clear wording counts
_SURE = 0.6
_HEADING, _UNDER_HEADING = 0.7, 0.55
_LISTED = 5  # sentences under a heading
_SHORTEST = 8  # characters of a sentence under a heading
_WORD = re.compile(r"\w+")
_DENSE = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_KANA = re.compile("[\u3040-\u30ff]")
_HANGUL = re.compile("[\uac00-\ud7af]")
_SPACED = ("en", "de", "nl", "sv", "fr", "es", "pt", "it", "ru", "pl", "tr")


@dataclass(frozen=True, slots=True)
class RulePattern:
    """One way to say a rule in one language.

    `words`: the pattern is tried only on sentences with one of these words (lower case); none: on every sentence.
    `strength`: how surely a match is a lasting rule, in (0, 1].
    `source`: a regular expression over a sentence in lower case, its quotations masked with `quoted.FILL`.
    `guard`: which part of the clause around the match has to be free of `narrative` words: nothing, the part up to the
    end of the match, or the clause.
    """

    kind: RuleKind
    strength: float
    words: str
    source: str
    guard: Guard
    narrative: str


@dataclass(frozen=True, slots=True)
class Rule:
    """A sentence that states a standing rule: `text[start:end]`, with its `strength` in (0, 1]."""

    start: int
    end: int
    strength: float
    kind: RuleKind


@cache
def _compiled(source: str) -> re.Pattern[str]:
    return re.compile(source)


@cache
def _rule_patterns(language: str) -> list[RulePattern]:
    patterns: list[RulePattern] = []
    narrative = ""
    for head, source in patterns_of("mcp_memory.language", "data", "standing_rules", f"{language}.txt"):
        if head == "narrative":
            narrative = source
        elif not head.startswith("define "):
            how, _, words = head.partition(":")
            kind, strength, guard = how.split()
            patterns.append(
                RulePattern(cast("RuleKind", kind), float(strength), words, source, cast("Guard", guard), narrative)
            )
    return patterns


@cache
def _by_word() -> dict[str, list[RulePattern]]:
    """Return the patterns of all languages with spaces, by each word that may call for one."""
    index: dict[str, list[RulePattern]] = {}
    for language in _SPACED:
        for row in _rule_patterns(language):
            for word in dict.fromkeys(_WORD.findall(row.words)):
                index.setdefault(word, []).append(row)
    return index


_in_sentences = partial(pattern_of, "mcp_memory.language", "data/sentences.txt")
_reported = partial(pattern_of, "mcp_memory.language", "data/reported.txt")


def people() -> re.Pattern[str]:
    """Return a pattern of people by their relation to the speaker, in lower case: "my sister", "mein Chef"."""
    return _reported("RELATIVES")


def is_reported(sentence: str) -> bool:
    """Tell whether a sentence, in lower case, is not a lasting order: about others, imagined, or for once."""
    plain = sentence.replace("’", "'")
    return _reported("REPORTED").search(plain) is not None or (
        _reported("ONCE").search(plain) is not None and _reported("HENCEFORTH").search(plain) is None
    )


def is_question(sentence: str) -> bool:
    """Tell whether a sentence, in lower case, only asks: "no emoji, ok?" does not."""
    return _in_sentences("QUESTION").search(sentence) is not None and _in_sentences("TAG").search(sentence) is None


def standing_rules(text: str) -> list[Rule]:
    """Return the standing rules that a user's turn states, in the order of the text; at most one for each sentence."""
    rules: list[Rule] = []
    listed = 0  # sentences that may still belong under a heading such as "rules:"
    reached = 0  # where the sentence before ends, without white space
    masked = _masked(text[:READ])
    least = 0.0 if len(text) <= _LONG else _SURE
    for start, end in sentences(masked):
        sentence = masked[start:end]
        inner = start + len(sentence) - len(sentence.lstrip())
        new_paragraph = "\n\n" in masked[reached:inner] and listed < _LISTED  # a list may begin below its heading
        listed = 0 if new_paragraph else listed - 1
        reached = start + len(sentence.rstrip())
        if is_question(sentence):
            continue
        rule = _rule_of(sentence)
        if rule and rule[0] == "instruction" and is_reported(sentence):
            rule = None
        if _in_sentences("HEADINGS").search(sentence):
            listed = _LISTED
            rule = max(rule or ("instruction", _HEADING), ("instruction", _HEADING), key=lambda one: one[1])
        elif listed > 0 and rule is None and len(sentence) > _SHORTEST:
            rule = ("instruction", _UNDER_HEADING)
        if rule and rule[1] >= least:
            rules.append(Rule(inner, reached, rule[1], rule[0]))
    return rules


def _masked(text: str) -> str:
    """Return a text in lower case and of the same length, with quotations and code made unreadable."""
    own = own_part(text)
    lower = own.lower()
    if len(lower) != len(own):  # a few capital letters become two
        lower = "".join(one if len(one := c.lower()) == 1 else c for c in own)
    return _in_sentences("SPOKEN_BY_OTHERS").sub(lambda quote: FILL * len(quote[0]), lower.replace("’", "'"))


def sentences(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of sentences and of lines."""
    start = 0
    for ending in _in_sentences("ENDING").finditer(text):
        abbreviated = _in_sentences("ABBREVIATED").search(text[max(start, ending.end() - 12) : ending.end()])
        if ending[0] == "." and abbreviated:
            continue
        if text[start : ending.end()].strip():
            yield start, ending.end()
        start = ending.end()
    if text[start:].strip():
        yield start, len(text)


def _rule_of(sentence: str) -> tuple[RuleKind, float] | None:
    """Return kind and strength of the strongest rule in a sentence."""
    best: tuple[RuleKind, float] | None = None
    for row in _candidates(sentence):
        if (best is None or row.strength > best[1]) and _states(sentence, row):
            best = (row.kind, row.strength)
    return best


def _candidates(sentence: str) -> Iterator[RulePattern]:
    """Yield the patterns that have one of their words in the sentence, each once."""
    by_word = _by_word()
    yield from {id(row): row for word in set(_WORD.findall(sentence)) for row in by_word.get(word, ())}.values()
    if _DENSE.search(sentence):
        yield from _rule_patterns("ko" if _HANGUL.search(sentence) else "ja" if _KANA.search(sentence) else "zh")


def _states(sentence: str, row: RulePattern) -> bool:
    """Tell whether a pattern matches outside of narrative clauses."""
    if row.guard == "none":
        return _compiled(row.source).search(sentence) is not None
    for match in _compiled(row.source).finditer(sentence):
        start, end = _clause(sentence, match)
        if not _compiled(row.narrative).search(sentence[start : match.end() if row.guard == "before" else end]):
            return True
    return False


def _clause(sentence: str, match: re.Match[str]) -> tuple[int, int]:
    """Return the span of the clause in which a match ends."""
    last = max(match.start(), match.end() - 1)
    start = 0
    for boundary in _in_sentences("CLAUSE").finditer(sentence):
        if boundary.end() > last:
            return min(start, match.end()), max(boundary.start(), match.end())
        start = boundary.end()
    return min(start, match.end()), len(sentence)
