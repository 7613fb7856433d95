"""Automatic recall before a prompt: little, and nothing for prompts that do not need the memory.

A program that puts text before every prompt must not get in the way of those that need none. So this has a gate of its
own, where an explicit recall shows the closest there is. The gate adds up

    prompt   does it lean on earlier conversations (`embed.classifiers`)? It does where it names a speaker of the memory
    weight   how much of the prompt the best row holds (`relevance`)
    cosine   how near the nearest row is by meaning
    size     in a larger memory the best of many rows looks good by chance, so there it takes more

The weights were fitted on the development sets (`bench.recall`, `bench.week_one`).

Whether a question asks to continue an earlier conversation: then recall shows the end of that one.

Such a question ("where were we?", "continue with yesterday's work") has hardly a content word that a row could
share. One pattern per language, matched anywhere, case-insensitive. They are few on purpose: search covers the rest.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from mcp_memory.core.errors import EmbeddingFailed
from mcp_memory.longterm.recall.dynamic import (
    RecallLimits,
    RecallLine,
    asks_to_continue,
    dynamic_lines,
    last_conversation,
)
from mcp_memory.longterm.recall.relevance import WeighedRow
from mcp_memory.longterm.search.ranking import without_speakers
from mcp_memory.longterm.search.search import SearchContext
from mcp_memory.longterm.turns import small_talk_kind
from mcp_memory.models.embed.classifiers import leans_on_memory
from mcp_memory.store.values import Filters

__all__ = ["RelevanceGate", "automatic_lines"]

_REACH = RecallLimits(
    turns=24,
    rules=4,
    rules_for_question=1,
    before_rules=6,
    rule_width=120,
    widths=(320, 240, 160, 160, 120),
    assistant_widths=(640, 320, 160, 120),
    unsure_widths=(120,),
    certain="maybe",
    unsure="maybe",
    outputs=False,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RelevanceGate:
    """Weights of the gate: it opens where their weighted sum exceeds 0."""

    weight: float = 4.2
    most_weight: float = 1.5
    cosine: float = 8.0
    usual_cosine: float = 0.36
    """Used where there is no cosine, or one of another model than the bundled one, whose scale differs."""
    prompt: float = 0.8
    named: float = 2.0
    """The least that a prompt says of itself, as log-odds, where it names who speaks in the memory."""
    size: float = 3.0
    """For each e-fold by which a memory is larger than `small` turns, up to `large`."""
    small: int = 100
    large: int = 300
    bar: float = 5.25

    def score(self, rows: Sequence[WeighedRow], prompt: float, size: int, *, bundled: bool) -> float:
        """Return the score of the rows found, a prompt's log-odds and the number of turns in the memory."""
        weight = max((row.weight for row in rows if not row.is_echo), default=0.0)
        cosine = max((row.cosine for row in rows), default=0.0) if bundled else 0.0
        larger = math.log(max(self.small, min(size, self.large)) / self.small)
        return (
            self.weight * min(weight, self.most_weight)
            + self.cosine * (cosine or self.usual_cosine)
            + self.prompt * prompt
            - self.size * larger
            - self.bar
        )


def automatic_lines(
    desk: SearchContext, prompt: str, *, known: str, there: Collection[str], gate: RelevanceGate = RelevanceGate()
) -> Iterator[RecallLine]:
    """Yield lines for a prompt whose writer did not ask for a recall.

    Leaves out everything in `known`, the turns `there` and atoms extracted from them. The conversation itself is not
    searched for: the reader sees it.
    """
    if asks_to_continue(prompt):
        return iter([] if there else last_conversation(desk, there))
    if small_talk_kind(prompt) is not None:
        return iter(())
    outline = desk.store.turn_metadata(desk.space, filters=Filters())
    bundled = desk.settings.embedder == "bundled"
    names_speaker = without_speakers(prompt, outline) != prompt

    def is_open(rows: Sequence[WeighedRow]) -> bool:
        leaning = max(_leaning(prompt), gate.named if names_speaker else -math.inf)
        return gate.score(rows, leaning, len(outline.rows), bundled=bundled) > 0

    return dynamic_lines(desk, prompt, [], known=known, there=there, reach=_REACH, gate=is_open)


def _leaning(prompt: str) -> float:
    try:
        return leans_on_memory(prompt)
    except EmbeddingFailed:
        return 0.0
