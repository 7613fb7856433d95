r"""The patterns of standing rules in a language, read from its file (`patterns/en.txt`).

A file has blocks. Each begins at the margin; its lines are indented by four columns and joined:

    define DO                               words that patterns name as {DO}
        (?:add|address
        |answer)\b
    narrative                               words of a clause that tells a story
        \b(?:i|he|she)\b
    instruction 0.9 before: never ever      kind, strength, guard, and the words of which a sentence needs one
        \bnever {DO}
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from typing import Literal, cast

__all__ = ["Grammar", "RuleKind", "RulePattern", "grammar"]

RuleKind = Literal["instruction", "constraint"]
Guard = Literal["none", "before", "clause"]


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
    guard: Guard

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(self.source)


@dataclass(frozen=True)
class Grammar:
    """The patterns of a language. `narrative`: words of a clause that tells a story (subjects, auxiliaries, past)."""

    narrative: str
    patterns: Sequence[RulePattern]

    @cached_property
    def tells(self) -> re.Pattern[str]:
        return re.compile(self.narrative)


_DEFINED = re.compile(r"\{([A-Z_]+)\}")


@cache
def grammar(language: str) -> Grammar:
    """Read the grammar of a language, named by its ISO 639-1 code."""
    defined: dict[str, str] = {}
    patterns: list[RulePattern] = []
    narrative = ""
    for head, source in _blocks(
        resources.files(__package__).joinpath("patterns", f"{language}.txt").read_text("utf-8")
    ):
        source = _DEFINED.sub(lambda name: defined[name[1]], source)
        if head.startswith("define "):
            defined[head.removeprefix("define ")] = source
        elif head == "narrative":
            narrative = source
        else:
            how, _, words = head.partition(":")
            kind, strength, guard = how.split()
            patterns.append(RulePattern(cast("RuleKind", kind), float(strength), words, source, cast("Guard", guard)))
    return Grammar(narrative, patterns)


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yield each line that begins at the margin, with the indented lines below it joined."""
    head, parts = "", list[str]()
    for line in text.splitlines():
        if line.startswith("    "):
            parts.append(line[4:])
        elif line and not line.startswith("#"):
            if head:
                yield head, "".join(parts)
            head, parts = line, []
    yield head, "".join(parts)
