"""The turns that one question is about: which they are, and how a model reads them.

A batch is the next turns of a session that say something, with some before them for context. Noise, notes and what
tools and systems said, and what is held for review, are passed over and do not use it up. From the same positions the
same batch is read again.

Turns go to the model as data behind tags that nothing in them can close; very long ones without their middle.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mcp_memory.core.text import one_line
from mcp_memory.core.types import Turn
from mcp_memory.longterm.l1_atoms.noise import label, own_words
from mcp_memory.longterm.trust import held_ids
from mcp_memory.models.prompts import fenced
from mcp_memory.store.protocol import Store

__all__ = ["BACKGROUND_CHARS", "MAX_CHARS", "TURN_CHARS", "Batch", "batch_of", "next_batch", "shown", "speaker"]

MAX_CHARS = 24_000  # of a batch
TURN_CHARS = {"user": 6_000, "assistant": 1_200}  # what an assistant says is long, and seldom evidence
BACKGROUND_CHARS = 500  # of a turn that was read before
_MOST_READ = 1_000  # turns at once, where nearly all are noise
_PAGE = 100
_LOOK_BACK = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """`turns` are new and say something; `read` counts all that people and assistants said, `skipped` the noise."""

    turns: Sequence[Turn]
    background: Sequence[Turn]
    read: int
    skipped: int
    stop: int
    """The position after the last turn that is passed."""


def next_batch(store: Store, space: str, session: str, start: int, *, most: int, background: int) -> Batch:
    """Return the batch that begins at a position: up to `most` turns that say something."""
    stop = start + _MOST_READ
    aside: set[str] = set()
    stream = _turns(store, space, session, start, stop, aside)
    return _batch(store, space, session, start, stream, aside, most=most, background=background)


def batch_of(store: Store, space: str, session: str, start: int, stop: int, *, background: int) -> Batch:
    """Return the batch between two positions."""
    aside: set[str] = set()
    stream = _turns(store, space, session, start, stop, aside)
    return _batch(store, space, session, start, stream, aside, most=None, background=background)


def _batch(
    store: Store,
    space: str,
    session: str,
    start: int,
    stream: Iterator[Turn],
    aside: set[str],
    *,
    most: int | None,
    background: int,
) -> Batch:
    back = max(0, start - _LOOK_BACK)
    before = [turn for turn in _turns(store, space, session, back, start, aside) if _is_talk(turn)]
    before = [turn for turn in before if turn.id not in aside]
    said = list(before)
    new: list[Turn] = []
    read = skipped = characters = 0
    stop = start
    for turn in stream:
        if _is_talk(turn):
            noise = turn.id in aside or label(turn, said[-1] if said else None) is not None
            size = len(_shortened(turn))
            full = most is not None and new and (len(new) == most or characters + size > MAX_CHARS)
            if full and not noise:
                break
            said.append(turn)
            read, skipped = read + 1, skipped + noise
            if not noise:
                new.append(turn)
                characters += size
        stop = turn.position + 1
    telling = [turn for turn, prior in zip(before, [None, *before], strict=False) if label(turn, prior) is None]
    return Batch(
        turns=new, background=telling[-background:] if background else [], read=read, skipped=skipped, stop=stop
    )


def _is_talk(turn: Turn) -> bool:
    return turn.role in ("user", "assistant")


def _turns(store: Store, space: str, session: str, start: int, stop: int, aside: set[str]) -> Iterator[Turn]:
    """Yield the turns between two positions; `aside` gets those that are held for review."""
    while start < stop:
        page = store.session_turns(space, session, start=start, limit=min(_PAGE, stop - start))
        aside |= held_ids(store, space, [turn.id for turn in page])
        yield from (turn for turn in page if turn.position < stop)
        if not page:
            return
        start = page[-1].position + 1


# --- as a model reads them --------------------------------------------------------------------------


def shown(turns: Sequence[Turn], *, background: bool = False) -> str:
    """Return turns as the question has them, each with its id, who said it and when."""
    return "\n".join(_shown(turn, background=background) for turn in turns) or "none"


def _shown(turn: Turn, *, background: bool) -> str:
    # Without its id a turn of the background cannot be cited.
    id = "" if background else f' id="{turn.id}"'
    at = f"{turn.said_at.isoformat(timespec='minutes')} {turn.said_at:%A}"
    text = _cut(own_words(turn.content), BACKGROUND_CHARS) if background else _shortened(turn)
    text = fenced(text, "turns?", "background", "known", "question")
    return f'<turn{id} by="{speaker(turn)}" at="{at}">\n{text}\n</turn>'


def speaker(turn: Turn) -> str:
    name = one_line(re.sub(r'[<>"&]', " ", turn.name or ""), 40)
    return f"{name} ({turn.role})" if name else turn.role


def _shortened(turn: Turn) -> str:
    return _cut(own_words(turn.content), TURN_CHARS[turn.role])


def _cut(text: str, limit: int) -> str:
    """Return the text without its middle where it is longer than `limit`."""
    if len(text) <= limit:
        return text
    head, tail = limit * 2 // 3, limit // 3
    return f"{text[:head]}\n[… {len(text) - head - tail:,} characters left out …]\n{text[-tail:]}"
