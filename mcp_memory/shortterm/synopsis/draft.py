"""From what a recogniser found to the preview: header, facts, names, and lines with their numbers.

The budget is in characters and never exceeded. Facts come first, in the order given; then the lines that weigh
most, shown in the order of the text with the head and the tail; then names that would be lost otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mcp_memory.shortterm.synopsis.focus import Focus
from mcp_memory.shortterm.synopsis.names import telling_names
from mcp_memory.shortterm.synopsis.page import Page, clean, clip, one_line, size

__all__ = ["SUMMARY", "Draft", "counted", "listed", "preview"]

SUMMARY = 200
FACTS_SHARE = 0.6
NAMES_SHARE = 0.45
LINE_SHOWN = 160
EDGE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What one recogniser has to say. `picks`: raw line number → weight of a line worth showing as it is."""

    kind: str
    content_type: str = "text/plain"
    summary: str
    score: int
    facts: tuple[str, ...] = ()
    picks: Mapping[int, float] = field(default_factory=dict[int, float])
    forms: tuple[str, ...] = ()
    """The same content in several lengths, longest first: the first that fits is shown, else the last, cut."""
    lines_shown: bool = True
    """False where raw lines say nothing beyond the facts, as in JSON on one line."""


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def listed(items: list[str] | tuple[str, ...], limit: int) -> str:
    """The first few, and how many more."""
    more = len(items) - limit
    return ", ".join(items[:limit]) + (f" and {more:,} more" if more > 0 else "")


def preview(draft: Draft, page: Page, focus: Focus, *, budget: int) -> str:
    """The synopsis as an agent reads it, at most `budget` characters."""
    whole = clean(page.raw) if page.chars <= budget else ""
    if whole and len(whole) <= budget:
        return whole
    parts = [clip(_header(draft, page), budget)]
    room = budget - len(parts[0])
    facts_room = room if not draft.lines_shown else int(room * FACTS_SHARE)
    for fact in draft.facts:
        shown = clip(clean(fact), facts_room - 1)
        if len(shown) < min(40, len(fact)):
            break
        parts.append(shown)
        facts_room -= len(shown) + 1
    if draft.forms:
        room = budget - len("\n".join(parts)) - 1
        parts.append(next((form for form in draft.forms if len(form) <= room), clip(draft.forms[-1], room)))
    room = budget - len("\n".join(parts))
    if draft.lines_shown and room > 0:
        parts.append(_lines(draft, page, focus, room=int(room * (1 - NAMES_SHARE))))
    if not draft.forms:
        so_far = "\n".join(part for part in parts if part)
        parts.append(telling_names(page, focus, shown=so_far, room=budget - len(so_far) - 1))
    return clip("\n".join(part for part in parts if part), max(0, budget))


def _header(draft: Draft, page: Page) -> str:
    told = f"{draft.kind}, {counted(page.total_lines, 'line')}, {size(page.chars)}"
    if page.exit_code:
        told += f", exit code {page.exit_code}"
    if not page.whole:
        told += "; head and tail were read, not the middle"
    if page.first_file_line is not None and page.lines and page.first_file_line != page.lines[0].number:
        told += f"; raw line {page.lines[0].number} is line {page.first_file_line} of the file"
    return told


def _lines(draft: Draft, page: Page, focus: Focus, *, room: int) -> str:
    """Head, tail, the picked lines and those that the call asked for, by weight, in the order of the text."""
    filled = [line for line in page.lines if line.text.strip()]
    weights: dict[int, float] = {}
    seen: set[str] = set()
    for line in filled:
        weight = draft.picks.get(line.number, 0.0) + focus.of(line.text)
        if weight > 0 and line.text not in seen:
            weights[line.number] = weight
            seen.add(line.text)
    for place, line in enumerate(filled[:EDGE]):
        weights[line.number] = weights.get(line.number, 0) + 100 - place
    for place, line in enumerate(reversed(filled[-EDGE:])):
        weights[line.number] = weights.get(line.number, 0) + 99 - place
    width = max(20, min(LINE_SHOWN, room // 3))
    gutter = len(str(page.total_lines))
    indent = min((len(line.text) - len(line.text.lstrip()) for line in page.sample), default=0)
    chosen: dict[int, str] = {}
    for number in sorted(weights, key=lambda n: (-weights[n], n)):
        line = page.line(number)
        shown = f"{number:>{gutter}} {_narrow(line.text[indent:].rstrip() if line else '', focus, width)}"
        if len(shown) + 1 <= room:
            chosen[number] = shown
            room -= len(shown) + 1
        if room < 12:
            break
    return "\n".join(chosen[number] for number in sorted(chosen))


def _narrow(text: str, focus: Focus, width: int) -> str:
    """A line of at most `width` characters, cut so that the first word that was asked for stays."""
    text = text.replace("\t", "  ")
    if len(text) <= width:
        return text
    found = focus.pattern.search(text) if focus.pattern else None
    if found is None or found.end() < width:
        return clip(text, width)
    start = max(0, found.start() - width // 3)
    return clip("…" + one_line(text[start:]), width)
