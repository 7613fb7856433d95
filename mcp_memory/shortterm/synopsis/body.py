"""The body of a preview: lines as they are, by weight, and after each the gist of what follows it.

All in the order of the text: `33 def close(gate): … lock ferry_gate` is line 33 and words of the lines below it;
`40 … words` begins at line 40. Where lines say little (values, running text) nothing but words stands behind a place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mcp_memory.shortterm.synopsis.focus import Focus
from mcp_memory.shortterm.synopsis.gist import Piece, gist, terms_in
from mcp_memory.shortterm.synopsis.page import Page, clip, one_line
from mcp_memory.shortterm.synopsis.uses import USES, Use

__all__ = ["body", "page_pieces"]

GIST_LINES = 3_000
LINE_LEAST, LINE_SHOWN = 70, 160
EDGE = 2
SHORTEST_RUN = 8


def page_pieces(page: Page) -> tuple[Piece, ...]:
    """Return the lines of a page under their numbers; of very many those at the beginning and the end."""
    lines = page.lines
    if len(lines) > GIST_LINES:
        lines = (*lines[: GIST_LINES * 3 // 4], *lines[-GIST_LINES // 4 :])
    return tuple(Piece(line.number, line.text, str(line.number)) for line in lines)


def body(
    pieces: Sequence[Piece],
    focus: Focus,
    *,
    picks: Mapping[int, float],
    use: Use,
    parts: bool,
    edges: bool,
    said: str,
    room: int,
) -> str:
    """Return at most `room` characters; `picks`, `use`, `parts` and `edges` are the draft's, `said` is not repeated."""
    share = USES[use]
    weights = _weights(pieces, picks, None if use == "text" else focus)
    if parts:  # a row is shown as it is where it is the one that was asked for
        best = max(weights.values(), default=0.0)
        near = {at: weight for at, weight in weights.items() if weight > 0.5 * best}
        weights = near if len(near) <= 2 < len(pieces) else {}
    if edges:
        _weigh_edges(pieces, weights)
    lines = _lines(pieces, weights, focus, said=said, room=int(room * share.lines), insist=use != "text")
    known = {*focus.known, *(term.lower() for term in terms_in(" ".join([said, *lines.values()])))}
    runs = gist(
        pieces,
        known=known,
        breaks=lines,
        span=1 if parts else max(SHORTEST_RUN, len(pieces) // share.runs),
        room=room - sum(len(shown) + 1 for shown in lines.values()),
        numbers=share.numbers,
        listed=use != "data",
    )
    return _joined(lines, runs, mark="" if use in ("data", "text") else "… ")


def _weights(pieces: Sequence[Piece], picks: Mapping[int, float], focus: Focus | None) -> dict[int, float]:
    """What is worth showing as it is: picked, or what the call asked for; equal texts once."""
    weights: dict[int, float] = {}
    seen: set[str] = set()
    for piece in pieces:
        weight = picks.get(piece.at, 0.0) + (focus.of(piece.text) if focus else 0.0)
        if weight > 0 and piece.text.strip() and piece.text not in seen:
            weights[piece.at] = weight
            seen.add(piece.text)
    return weights


def _weigh_edges(pieces: Sequence[Piece], weights: dict[int, float]) -> None:
    filled = [piece for piece in pieces if piece.text.strip()]
    for place, piece in enumerate(filled[:EDGE]):
        weights[piece.at] = weights.get(piece.at, 0) + 100 - place
    for place, piece in enumerate(reversed(filled[-EDGE:])):
        weights[piece.at] = weights.get(piece.at, 0) + 99 - place


def _lines(
    pieces: Sequence[Piece], weights: Mapping[int, float], focus: Focus, *, said: str, room: int, insist: bool
) -> dict[int, str]:
    """Place → the piece as it is shown, the heaviest first, as long as each has something new.

    `insist`: the heaviest is shown even where its words are known, for it says that they stand here.
    """
    by_place = {piece.at: piece for piece in pieces if piece.at in weights}
    width = min(LINE_SHOWN, max(LINE_LEAST, room // 2), max(20, room - 8))
    known = {*focus.known, *(term.lower() for term in terms_in(said))}
    chosen: dict[int, str] = {}
    for rank, at in enumerate(sorted(by_place, key=lambda at: (-weights[at], at))):
        text = by_place[at].text.strip()
        shown = f"{by_place[at].name} {_narrow(text, focus, width)}"
        fresh = {term.lower() for term in terms_in(text)} - known
        if len(shown) + 1 <= room and text not in said and (fresh or (insist and rank == 0)):
            chosen[at] = shown
            known |= fresh
            room -= len(shown) + 1
        if room < 12:
            break
    return chosen


def _joined(lines: Mapping[int, str], runs: Sequence[Piece], *, mark: str) -> str:
    told: list[str] = []
    after_line = False
    for one in sorted([*(Piece(at, "", shown) for at, shown in lines.items()), *runs], key=lambda one: one.at):
        if not one.text:
            told.append(one.name)
        elif after_line:
            told[-1] += f" … {one.text}"
        else:
            told.append(f"{one.name} {mark}{one.text}")
        after_line = not one.text
    return "\n".join(told)


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
