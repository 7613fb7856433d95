"""Patterns of standing rules: the words that one needs, and its strength."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

__all__ = ["Grammar", "RuleKind", "RulePattern"]

RuleKind = Literal["instruction", "constraint"]


@dataclass(frozen=True)
class RulePattern:
    """One way to say a rule in one language.

    `words`: the pattern is tried only on sentences with one of these words (lower case); none: on every sentence.
    `strength`: how surely a match is a lasting rule, in (0, 1].
    `source`: a regular expression over a sentence in lower case, its quotations masked with `quoted.FILL`.
    `guard`: which part of the clause around the match has to be free of the grammar's `narrative` words: nothing, the
    part up to the end of the match, or the clause.
    """

    kind: RuleKind
    strength: float
    words: str
    source: str
    guard: Literal["none", "before", "clause"] = "before"

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(self.source)


@dataclass(frozen=True)
class Grammar:
    """The patterns of a language. `narrative`: words of a clause that tells a story (subjects, auxiliaries, past)."""

    language: str
    narrative: str
    patterns: Sequence[RulePattern]

    @cached_property
    def tells(self) -> re.Pattern[str]:
        return re.compile(self.narrative)
