"""From what a recogniser found to the preview: header, facts, names, and lines with their numbers.

The budget is in characters and never exceeded. Facts come first, in the order given; then the lines that weigh
most, shown in the order of the text with the head and the tail; then names that would be lost otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mcp_memory.shortterm.synopsis.focus import Focus
from mcp_memory.shortterm.synopsis.gist import Piece, gist, terms_in
from mcp_memory.shortterm.synopsis.page import Line, Page, clean, clip, one_line
from mcp_memory.shortterm.synopsis.uses import USES, Use

__all__ = ["SUMMARY", "Draft", "counted", "listed", "preview"]

SUMMARY = 200
FEW_LINES = 200
WHOLE = 400
FACTS_SHARE = 0.6
GIST_LINES = 3_000
LINE_LEAST, LINE_SHOWN = 70, 160
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
        return "\n".join([*(part for part in parts if part), draft.form])
    room = budget - len("\n".join(parts)) - 1
    if room > 0 and draft.use != "nothing":
        parts.append(_body(draft, page, focus, said="\n".join([summary, *parts]), room=room))
    return clip("\n".join(part for part in parts if part), max(0, budget))


def _header(draft: Draft, page: Page) -> str:
    """What the summary does not say: how many lines there are to ask for, and what was not read."""
    told = [counted(page.total_lines, "line")] if page.total_lines > FEW_LINES else []
    if not page.whole:
        told.append("head and tail were read, not the middle")
    if page.first_file_line is not None and page.lines and page.first_file_line != page.lines[0].number:
        told.append(f"line {page.lines[0].number} is {page.first_file_line} of the file")
    return "; ".join(told)


def _body(draft: Draft, page: Page, focus: Focus, *, said: str, room: int) -> str:
    """Lines as they are, by weight, and after them the gist of what follows; all in the order of the text."""
    uses = USES[draft.use]
    pieces = draft.pieces or tuple(Piece(line.number, line.text, str(line.number)) for line in _looked_at(page))
    lines = _lines(draft, pieces, focus, said=said, room=int(room * uses.lines))
    known = {*focus.known, *(term.lower() for term in terms_in(" ".join([said, *lines.values()])))}
    left = room - sum(len(shown) + 1 for shown in lines.values())
    span = 1 if draft.parts else max(8, len(pieces) // uses.runs)
    runs = gist(pieces, known=known, breaks=lines, span=span, room=left, numbers=uses.numbers)
    told: list[str] = []
    after_line = False
    for run in sorted([*(Piece(at, "", shown) for at, shown in lines.items()), *runs], key=lambda one: one.at):
        if not run.text:
            told.append(run.name)
        elif after_line:
            told[-1] += f" … {run.text}"
        else:
            told.append(f"{run.name} {run.text}" if draft.use in ("data", "text") else f"{run.name} … {run.text}")
        after_line = not run.text
    return "\n".join(told)


def _looked_at(page: Page) -> Sequence[Line]:
    if len(page.lines) <= GIST_LINES:
        return page.lines
    return (*page.lines[: GIST_LINES * 3 // 4], *page.lines[-GIST_LINES // 4 :])


def _lines(draft: Draft, pieces: Sequence[Piece], focus: Focus, *, said: str, room: int) -> dict[int, str]:
    """Head, tail, the picked pieces and those that the call asked for, by weight: place → as it is shown."""
    filled = [piece for piece in pieces if piece.text.strip()]
    weights: dict[int, float] = {}
    seen: set[str] = set()
    for piece in filled:
        asked = focus.of(piece.text) if draft.use != "text" else 0.0
        weight = draft.picks.get(piece.at, 0.0) + asked
        if weight > 0 and piece.text not in seen:
            weights[piece.at] = weight
            seen.add(piece.text)
    if draft.parts:  # a row is shown as it is where it is the one that was asked for
        best = max(weights.values(), default=0.0)
        weights = {at: weight for at, weight in weights.items() if weight > 0.5 * best}
        weights = weights if len(weights) <= 2 < len(filled) else {}
    if draft.edges:
        for place, piece in enumerate(filled[:EDGE]):
            weights[piece.at] = weights.get(piece.at, 0) + 100 - place
        for place, piece in enumerate(reversed(filled[-EDGE:])):
            weights[piece.at] = weights.get(piece.at, 0) + 99 - place
    by_place = {piece.at: piece for piece in filled if piece.at in weights}
    width = min(LINE_SHOWN, max(LINE_LEAST, room // 2), max(20, room - 8))
    known = {*focus.known, *(term.lower() for term in terms_in(said))}
    chosen: dict[int, str] = {}
    ranked = sorted(weights, key=lambda at: (-weights[at], at))
    first = ranked[0] if ranked else None
    for at in ranked:
        piece = by_place[at]
        shown = f"{piece.name} {_narrow(piece.text.strip(), focus, width)}"
        fresh = {term.lower() for term in terms_in(piece.text)} - known
        if (
            len(shown) + 1 <= room
            and (fresh or (at == first and draft.use != "text"))
            and piece.text.strip() not in said
        ):
            chosen[at] = shown
            known |= fresh
            room -= len(shown) + 1
        if room < 12:
            break
    return chosen


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
