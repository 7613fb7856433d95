"""From what a recogniser found to the preview: header, facts, and a body of lines and gist.

The budget is in characters and never exceeded. It stands beside the summary and does not say again what that says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mcp_memory.shortterm.synopsis.body import body, page_pieces
from mcp_memory.shortterm.synopsis.focus import Focus
from mcp_memory.shortterm.synopsis.gist import Piece
from mcp_memory.shortterm.synopsis.page import Page, clean, clip
from mcp_memory.shortterm.synopsis.uses import USES, Use

__all__ = ["SUMMARY", "Draft", "counted", "listed", "preview"]

SUMMARY = 200
FEW_LINES = 200
"""Up to so many lines nobody needs to be told how many there are to ask for."""
WHOLE = 400
"""A result this short is its own preview, whatever room it earns."""
FACTS_SHARE = 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What one recogniser has to say. `picks`: raw line number → weight of a line worth showing as it is."""

    kind: str
    content_type: str = "text/plain"
    summary: str
    score: int
    facts: tuple[str, ...] = ()
    picks: Mapping[int, float] = field(default_factory=dict[int, float])
    form: str = ""
    """All of it in a shorter form, shown where it fits."""
    use: Use = "report"
    """What such a result is wanted for: a verdict, names to work with, values, what a text says; or not at all."""
    edges: bool = False
    """Whether the first and the last lines tell more than others."""
    pieces: Sequence[Piece] = ()
    """What the gist is drawn from, where that is not the lines."""
    parts: bool = False
    """Whether pieces are parts of their own (rows, values of keys), of which no two go into one run."""


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def listed(items: list[str] | tuple[str, ...], limit: int) -> str:
    """The first few, and how many more."""
    more = len(items) - limit
    return ", ".join(items[:limit]) + (f" and {more:,} more" if more > 0 else "")


def preview(draft: Draft, page: Page, focus: Focus, *, summary: str, budget: int | None) -> str:
    """The synopsis as an agent reads it beside its summary, at most `budget` characters; None: by what it holds."""
    if budget is None:
        budget = WHOLE if page.chars <= WHOLE else USES[draft.use].of(page.chars)
    budget = max(0, budget)
    whole = clean(page.raw) if page.chars <= budget else ""
    if whole and len(whole) <= budget:
        return whole
    parts = [clip(_header(draft, page), budget)]
    room = budget - len(parts[0])
    facts_room = int(room * FACTS_SHARE) if draft.use != "nothing" else room
    for fact in draft.facts:
        shown = clip(clean(fact), facts_room - 1)
        if len(shown) < min(40, len(fact)):
            break
        parts.append(shown)
        facts_room -= len(shown) + 1
    room = budget - len("\n".join(parts)) - 1
    if draft.form and len(draft.form) <= room:
        parts.append(draft.form)
    elif room > 0 and draft.use != "nothing":
        parts.append(
            body(
                draft.pieces or page_pieces(page),
                focus,
                picks=draft.picks,
                use=draft.use,
                parts=draft.parts,
                edges=draft.edges,
                said="\n".join([summary, *parts]),
                room=room,
            )
        )
    return clip("\n".join(part for part in parts if part), budget)


def _header(draft: Draft, page: Page) -> str:
    """What the summary does not say: how many lines there are to ask for, and what was not read."""
    told = [counted(page.total_lines, "line")] if page.total_lines > FEW_LINES else []
    if not page.whole:
        told.append("head and tail were read, not the middle")
    if page.first_file_line is not None and page.lines and page.first_file_line != page.lines[0].number:
        told.append(f"line {page.lines[0].number} is {page.first_file_line} of the file")
    return "; ".join(told)
