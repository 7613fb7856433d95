"""A line of recall's dynamic block, and what all lines have in common: the head with the id, and the masked excerpt."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from mcp_memory.core.secrets.masking import mask
from mcp_memory.core.text import one_line
from mcp_memory.core.types import Source
from mcp_memory.language.snippet import matches, snippet

Group = Literal["promise", "scene", "fact", "atom", "rule", "turn", "output", "end", "maybe", "unsure", "overview"]
"""The part of the block that a line belongs to. `unsure` rows are only the closest, and may be irrelevant.

`promise` lines are open promises to be kept now. `overview` lines answer a question about many things. Automatic
recall has one part for all turns, `maybe`.
"""
UNSURE: tuple[Group, ...] = ("maybe", "unsure")
"""The parts for rows that may be irrelevant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallLine:
    """A line of the dynamic block, and the id of its row."""

    group: Group
    id: str
    text: str
    source: Source = "assistant"
    """The source of its text; `assistant` for pages that a model wrote."""
    said_at: datetime | None = None
    """When a turn was said, or from when a statement in an overview or with `newer` is valid; None for other rows."""
    is_suspect: bool = False
    """Whether it looks like an attack; then it is not shown."""
    session: str = ""
    position: int = 0
    """Of a turn, in its session."""
    newer: str | None = None
    """The id of the turn that replaced the value of this turn or statement."""
    beside: str | None = None
    """The id of a later turn that may contradict this turn; `layout` places this turn after it."""
    former: str = ""
    """The text on the line of replaced values, `[t12 3 March] we pay 900`; empty if it needs its own line."""


BEFORE_THAT = " ← "
"""Separator of turns that share a line."""


def head_of(id: str, *notes: str | None) -> str:
    """Return the beginning of a line, `[t12]` or `[t12 assistant · also 3 May]`.

    A list marker in front would cost two tokens more, a tenth of a recall of short turns.
    """
    return f"[{' '.join(filter(None, (id, ' · '.join(filter(None, notes)))))}]"


def excerpt_of(text: str, words: AbstractSet[str], width: int) -> str:
    """Return the part of a text with the words of the question, on one line, with its secrets masked."""
    return mask(one_line(snippet(text, width, matches(text, words))[0] if len(text) > width else text, width + 2))
