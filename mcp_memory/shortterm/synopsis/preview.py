"""The preview of a result within its budget: statements, then key words of the lines that they do not quote.

The room depends on the use of a result. A report (tests, logs, tables) consists of statements. Code and search hits are
needed again name by name, so most of their room is for key words. The budget is in characters and never exceeded; the
preview does not repeat the summary.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from mcp_memory.shortterm.synopsis.key_words import key_words
from mcp_memory.shortterm.synopsis.page import Focus, PageLine, ResultPage, clean, clip, terms_in
from mcp_memory.shortterm.synopsis.statements import QUOTED, Statement, choose, in_order

Use = Literal["report", "names", "data", "text", "hits", "nothing"]


@dataclass(frozen=True, slots=True)
class Room:
    """The size of a preview. `least` and `most` are characters, `share` is the part of the result's characters."""

    least: int
    share: float
    most: int
    lines: float
    """The share of quoted lines; the remaining room is for key words."""
    runs: int
    """The least number of runs of key words in a long text."""
    numbers: float
    """The worth of a number relative to a word: low if most numbers are line numbers, 1 in data."""

    def of(self, chars: int) -> int:
        """Return the room for a result of `chars` characters."""
        return min(self.most, self.least + int(self.share * chars))


USES: dict[Use, Room] = {
    "report": Room(120, 0.07, 790, lines=1.0, runs=8, numbers=0.4),
    "names": Room(200, 0.14, 1_500, lines=0.1, runs=12, numbers=0.4),
    "data": Room(240, 0.04, 600, lines=0.1, runs=12, numbers=1.0),
    "text": Room(600, 0.06, 1_500, lines=0.4, runs=3, numbers=0.4),
    "hits": Room(550, 0.06, 1_500, lines=0.05, runs=3, numbers=0.4),
    "nothing": Room(200, 0.0, 400, lines=0.0, runs=1, numbers=0.0),
}

WITH_KEY_WORDS = frozenset(use for use, room in USES.items() if 0.0 < room.lines < 1.0)


SUMMARY = 200
WHOLE = 400
"""A result this short is shown completely."""
KEY_LINES, KEY_LEAST, KEY_CHARS = 3_000, 40_000, 66
"""The most lines from which key words are chosen, and the characters: at least, and for each character of the room."""
SHORTEST_RUN = 8
NUMBER = re.compile(r"^\d+:? ")
"""The number before a quoted line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SynopsisDraft:
    """A format's description of a result."""

    kind: str
    content_type: str = "text/plain"
    summary: str
    open: bool = False
    """Whether the summary is continued by the statements that are worth most."""
    score: int
    statements: Sequence[Statement]
    use: Use = "report"
    """The use of such a result: a verdict, names to work with, values, the content of a text, or none."""
    pieces: Sequence[PageLine] = ()
    """The source of the key words, if not the lines."""
    names: Mapping[int, str] = field(default_factory=dict[int, str])
    """Line number → the name defined there, which begins a run of key words."""
    parts: bool = False
    """Whether pieces are independent (rows, values of keys), so that a run never combines two."""


def preview(draft: SynopsisDraft, page: ResultPage, focus: Focus, *, summary: str, budget: int | None) -> str:
    """Return the preview that goes with a summary, in at most `budget` characters.

    If `budget` is None, the room depends on the use and the size of the result. A result that fits is returned whole.
    """
    use = USES[draft.use]
    if budget is None:
        budget = WHOLE if page.chars <= WHOLE else use.of(page.chars)
    budget = max(0, budget)
    whole = clean(page.raw) if page.chars <= budget else ""
    if whole and len(whole) <= budget:
        return whole
    header = ""
    if page.first_file_line is not None and page.lines and page.first_file_line != page.lines[0].number:
        header = clip(f"line {page.lines[0].number} is {page.first_file_line} of the file", budget)
    room = budget - len(header) - bool(header)
    new = [statement for statement in draft.statements if NUMBER.sub("", statement.text, count=1) not in summary]
    chosen = choose(new, room=int(room * use.lines), known=summary)
    room -= sum(len(statement.text) + 1 for statement in chosen)
    if use.lines < 1.0 and room > 0:
        words = _key_words(draft, page, focus, chosen=chosen, summary=summary, room=room)
        room -= sum(len(statement.text) + 1 for statement in words)
        rest = [statement for statement in new if statement not in chosen] if draft.parts else []
        known = "\n".join([summary, *(statement.text for statement in (*chosen, *words))])
        chosen += words + choose(rest, room=room, known=known)
    return clip("\n".join(filter(None, [header, *in_order(chosen)])), budget)


def _key_words(
    draft: SynopsisDraft, page: ResultPage, focus: Focus, *, chosen: Sequence[Statement], summary: str, room: int
) -> list[Statement]:
    """Return runs of key words as statements, in at most `room` characters."""
    use, pieces = USES[draft.use], draft.pieces or page.lines
    if len(pieces) > KEY_LINES:
        pieces = [*pieces[: KEY_LINES * 3 // 4], *pieces[-KEY_LINES // 4 :]]
    step = 1 + sum(len(piece.text) for piece in pieces) // max(KEY_LEAST, KEY_CHARS * room)
    known = "\n".join([summary, *(statement.text for statement in chosen)])
    runs = key_words(
        pieces[::step],
        seen={*focus.asked_terms, *(term.lower() for term in terms_in(known))},
        breaks=[*(int(statement.place) - QUOTED for statement in chosen), *draft.names],
        span=1 if draft.parts else max(SHORTEST_RUN, len(pieces) // use.runs),
        room=room,
        numbers=use.numbers,
        listed=draft.use in ("hits", "text"),
        defined=draft.names.values(),
    )
    mark = "" if draft.parts else "… "
    return [Statement(f"{run.name} {mark}{run.text}", 0.0, QUOTED + run.number) for run in runs]
