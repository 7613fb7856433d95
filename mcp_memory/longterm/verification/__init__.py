"""Checks a statement against the words it comes from, and against whose words these are.

    contradictions   denials, swapped names and values      support   whether words support a statement or a rule
    trust            sources, and what each may claim       evidence  `verify` and `why`

The patterns and word lists of all languages are in `words/verification.txt`.
"""

from __future__ import annotations

import re
from functools import cache

from mcp_memory.language import blocks_of

__all__ = ["pattern", "sources", "word_list"]


@cache
def sources() -> dict[str, list[str]]:
    """Return the lines of each block of the file."""
    return dict(blocks_of("mcp_memory.longterm", "words", "verification.txt"))


@cache
def pattern(name: str) -> re.Pattern[str]:
    return re.compile("".join(sources()[name]))


@cache
def word_list(name: str) -> frozenset[str]:
    return frozenset(" ".join(sources()[name]).split())
