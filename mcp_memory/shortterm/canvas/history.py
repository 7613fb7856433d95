"""Other tasks by their metadata: what was worked on, how it stands and what came of it last, a line each.

Guarantees: never more tokens than the budget; the task worked on last comes first, and none is left out before an
older one; the text is the same until one of these tasks moves on. A canvas that cannot be read is told by its row.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from mcp_memory.core.errors import Damaged
from mcp_memory.core.types import CanvasRow
from mcp_memory.shortterm.canvas.flowchart import Canvas, padded, read
from mcp_memory.shortterm.canvas.label import clean
from mcp_memory.shortterm.canvas.place import latest
from mcp_memory.store.protocol import Store

if TYPE_CHECKING:
    from mcp_memory.core.tokens import TokenCounter

__all__ = ["history"]

LOOKED_AT = 40
LENGTHS = (110, 60, 0)
"""Characters of what came of a task last; where it does not fit, less of it is told."""


def history(
    store: Store,
    space: str,
    *,
    session: str | None = None,
    but: Collection[int] = (),
    budget_tokens: int,
    counter: TokenCounter,
) -> str:
    """Return the tasks of a session (of the space), but for some, a line each; "" where none fits or there is none.

    `003 fix-login: Fix the login test (done, 34 steps, 2 dead ends, 2026-04-16 22:19); last: leeway of 30 s …`
    """
    rows = store.canvases(space, session=session, limit=LOOKED_AT + len(but))
    kept = ""
    for row in rows:
        if row.number in but:
            continue
        line = next((each for each in _lines(row) if counter.fits(f"{kept}{each}\n", budget_tokens)), None)
        if line is None:
            break
        kept += f"{line}\n"
    return kept.rstrip("\n")


def _lines(row: CanvasRow) -> Iterator[str]:
    """The line of a task, in several lengths, the longest first."""
    head = f"{padded(row.number)} {row.label}"
    try:
        canvas = read(row)
    except Damaged:
        yield f"{head} ({row.status}, {row.updated:%Y-%m-%d %H:%M})"
        return
    told = f"{head}: {clean(canvas.task_goal, 100)} ({', '.join(_state(canvas))})"
    last = latest(canvas)
    words = (last.summary or last.title) if last else ""
    for length in LENGTHS:
        yield f"{told}; last: {clean(words, length)}" if length and words else told


def _state(canvas: Canvas) -> Iterator[str]:
    yield canvas.status
    yield f"{len(canvas.nodes)} step{'s' * (len(canvas.nodes) != 1)}"
    if dead := sum(node.status == "blocked" for node in canvas.nodes):
        yield f"{dead} dead end{'s' * (dead != 1)}"
    yield f"{canvas.updated:%Y-%m-%d %H:%M}"
