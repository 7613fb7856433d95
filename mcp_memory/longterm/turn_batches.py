"""Batches of turns that extraction reads: the next turns of some sessions that are not small talk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic import BaseModel

from mcp_memory.core.types import Turn
from mcp_memory.longterm.turns import own_words, small_talk_kind
from mcp_memory.store.protocol import Store
from mcp_memory.store.sql import quarantine_rows, turn_rows
from mcp_memory.store.values import UNJUDGED

MAX_CHARS = 24_000  # characters of a batch
TURN_CHARS = {"user": 6_000, "assistant": 600}  # an assistant's turns are long, and seldom evidence
BACKGROUND_CHARS = 500  # characters of a turn that an earlier batch contained
MOST_READ = 1_000  # turns at once, where nearly all are noise
_PAGE = 100
_LOOK_BACK = 40
_TALK = ("user", "assistant")


class SessionPart(BaseModel):
    """The turns of a session from position `start` up to, but not including, `stop`."""

    session: str
    start: int
    stop: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnBatch:
    """New turns with content, and earlier turns as `background`.

    `read` counts all turns of people and assistants; of these, `skipped` are small talk and `quarantined` wait for
    review.
    """

    turns: Sequence[Turn]
    background: Sequence[Turn]
    read: int
    skipped: int
    quarantined: int
    parts: Sequence[SessionPart]
    """The positions that the batch covers, session by session."""

    @property
    def characters(self) -> int:
        return sum(len(shorten(turn)) for turn in self.turns)


def read_batch(
    store: Store, space: str, parts: Sequence[SessionPart], *, most: int | None = None, background: int = 0
) -> TurnBatch:
    """Return the batch of these parts; `background` is the number of earlier turns to add for each.

    With `most`, a part ends after that many turns that are not small talk, or at `MAX_CHARS`. It always ends before a
    turn that has not been judged yet.
    """
    batches = [_read_part(store, space, part, most=most, background=background) for part in parts]
    return TurnBatch(
        turns=[turn for batch in batches for turn in batch.turns],
        background=[turn for batch in batches for turn in batch.background],
        read=sum(batch.read for batch in batches),
        skipped=sum(batch.skipped for batch in batches),
        quarantined=sum(batch.quarantined for batch in batches),
        parts=[part for batch in batches for part in batch.parts],
    )


def _read_part(store: Store, space: str, part: SessionPart, *, most: int | None, background: int) -> TurnBatch:
    earlier = _turns(store, space, part.session, max(0, part.start - _LOOK_BACK), part.start)
    before = [turn for turn, reasons in earlier if turn.role in _TALK and not reasons]
    previous = before[-1] if before else None
    new: list[Turn] = []
    read = skipped = quarantined = characters = 0
    end = part.start
    for turn, reasons in _turns(store, space, part.session, part.start, part.stop):
        if turn.role in _TALK:
            if UNJUDGED in reasons:
                break  # it is read once it has been judged
            is_quarantined = bool(reasons)
            is_chatter = not is_quarantined and small_talk_kind(turn.content, previous) is not None
            if not (is_quarantined or is_chatter):
                size = len(shorten(turn))
                if most is not None and new and (len(new) == most or characters + size > MAX_CHARS):
                    break
                new.append(turn)
                characters += size
            previous = turn
            read, skipped, quarantined = read + 1, skipped + is_chatter, quarantined + is_quarantined
        end = turn.position + 1
    context: list[Turn] = []
    if background:
        pairs = zip(before, [None, *before], strict=False)
        context = [turn for turn, prior in pairs if small_talk_kind(turn.content, prior) is None][-background:]
    passed = SessionPart(session=part.session, start=part.start, stop=end)
    return TurnBatch(turns=new, background=context, read=read, skipped=skipped, quarantined=quarantined, parts=[passed])


def _turns(store: Store, space: str, session: str, start: int, stop: int) -> Iterator[tuple[Turn, Sequence[str]]]:
    """Yield the turns between two positions, each with the reasons for its quarantine."""
    while start < stop:
        page = store.read(space, turn_rows.session_turns, session, start=start, limit=min(_PAGE, stop - start))
        rows = store.read(space, quarantine_rows.list_quarantined, [turn.id for turn in page])
        reasons = {row.id: row.reasons for row in rows if row.is_quarantined}
        yield from ((turn, reasons.get(turn.id, ())) for turn in page if turn.position < stop)
        if not page:
            return
        start = page[-1].position + 1


def shorten(turn: Turn) -> str:
    return cut_middle(own_words(turn.content), TURN_CHARS[turn.role])


def cut_middle(text: str, limit: int) -> str:
    """Return the text, without its middle if it is longer than `limit`."""
    if len(text) <= limit:
        return text
    head, tail = limit * 2 // 3, limit // 3
    return f"{text[:head]}\n[… {len(text) - head - tail:,} characters left out …]\n{text[-tail:]}"
