"""What it would cost to have a model read a history: questions, tokens, dollars, days. An estimate, and rather high.

What is sent is known: a question for each batch of turns that are no noise, with the turns before them. How much comes
of it is not: the figures below are what conversations of people with assistants came to. Tokens are estimated, and of
long histories from a share of the turns.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from mcp_memory.core.config import Settings
from mcp_memory.core.tokens import estimate_tokens
from mcp_memory.core.types import NewTurn, Stage, Turn
from mcp_memory.longterm.l1_atoms.batch import BACKGROUND_CHARS, MAX_CHARS, TURN_CHARS
from mcp_memory.longterm.l1_atoms.noise import label

__all__ = ["Cost", "Size", "cost"]

Price = Callable[[str, int, int], float | None]
"""What a model takes, in dollars, for tokens read and written; None where that is not known."""

_ALL_OF = 2_000  # turns whose tokens are estimated; of those that follow, every 50th
_EVERY = 50
_BEFORE = 1_000  # characters that tell whether a turn answers the one before
_HEAD = 45  # tokens of the mark before a turn: its id, who and when

_ATOMS_PER_TURN = 0.35
_PER_QUESTION: dict[Stage, tuple[int, int]] = {
    "extract": (3_600, 60),  # instructions 2,300, schema 1,100, known names; an empty reply
    "merge": (2_000, 40),
    "scenes": (7_000, 2_400),  # the scenes that matter in full; those that change, written anew
    "persona": (9_000, 900),
}
"""Tokens in and out, by `estimate_tokens`, as high as the rest."""
_PER_ATOM: dict[Stage, tuple[int, int]] = {
    "extract": (0, 110),
    "merge": (260, 60),  # itself and what it may repeat
    "scenes": (60, 0),
    "persona": (0, 0),
}
_DRAFTS = 14  # that a question on merging has
_TOLD = 25  # atoms that a question on scenes has


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """`price` is in dollars, None where a model's is not known; `days` None where the caps forbid all calls."""

    model: str
    questions: int
    prompt_tokens: int
    completion_tokens: int
    price: float | None
    days: int | None


class Size:
    """How much of a history a model would read, in questions of so many turns. Add its turns in order.

    What is added counts for `within` too: the histories that it is one of.
    """

    def __init__(self, batch_turns: int, within: Size | None = None) -> None:
        self.signal = self.noise = self.questions = 0
        self._within = within
        self._batch_turns = batch_turns
        self._open: dict[str, tuple[int, int]] = {}
        """Turns and characters of the question that is being filled, by session."""
        self._last: dict[str, Turn] = {}
        self._chars = self._background = self._sampled = self._tokens = 0

    def add(self, session: str, turn: NewTurn) -> None:
        if self._within is not None:
            self._within.add(session, turn)
        if turn.role not in TURN_CHARS:
            self.noise += 1
            return
        if label(_as_stored(session, turn), self._last.get(session)) is None:
            self.signal += 1
            self._measure(session, turn.content[: TURN_CHARS[turn.role]])
        else:
            self.noise += 1
        self._last[session] = _as_stored(session, turn, last=_BEFORE)

    def _measure(self, session: str, shown: str) -> None:
        size = len(shown)
        turns, chars = self._open.get(session, (self._batch_turns, 0))
        if turns == self._batch_turns or chars + size > MAX_CHARS:
            self.questions += 1
            turns = chars = 0
        self._open[session] = turns + 1, chars + size
        self._chars += size
        self._background += min(size, BACKGROUND_CHARS)
        if self.signal <= _ALL_OF or self.signal % _EVERY == 0:
            self._sampled += size
            self._tokens += estimate_tokens(shown)

    def tokens(self, background_turns: int) -> int:
        """Return the tokens of all turns, each shown once as new and some before the next question's."""
        if not self._sampled:
            return 0
        a_character = self._tokens / self._sampled
        again = min((self.questions - len(self._open)) * background_turns, self.signal)
        new = self._chars * a_character + _HEAD * self.signal
        return round(new + again * (self._background / self.signal * a_character + _HEAD))


def _as_stored(session: str, turn: NewTurn, *, last: int = 0) -> Turn:
    at = turn.said_at or datetime.min
    return Turn(
        id="",
        session=session,
        position=0,
        role=turn.role,
        name=turn.name,
        content=turn.content[-last:],
        said_at=at,
        learned_at=at,
        sha256="",
    )


def cost(size: Size, settings: Settings, price: Price) -> Cost | None:
    """Return what reading it all would cost with the models that are set; None where none is."""
    if settings.llm == "none":
        return None
    atoms = math.ceil(size.signal * _ATOMS_PER_TURN)
    asked: dict[Stage, int] = {
        "extract": size.questions,
        "merge": math.ceil(atoms / _DRAFTS),
        "scenes": math.ceil(atoms / _TOLD),
        "persona": math.ceil(atoms / settings.persona_every),
    }
    turns = size.tokens(settings.background_turns)
    read, written, dollars = 0, 0, 0.0
    unknown = False
    for stage, questions in asked.items():
        into = questions * _PER_QUESTION[stage][0] + atoms * _PER_ATOM[stage][0] + (turns if stage == "extract" else 0)
        out = questions * _PER_QUESTION[stage][1] + atoms * _PER_ATOM[stage][1]
        one = price(_model(settings, stage), into, out)
        read, written, dollars, unknown = read + into, written + out, dollars + (one or 0), unknown or one is None
    a_day = min(settings.llm_daily_tokens, 24 * settings.llm_hourly_tokens)
    return Cost(
        model=settings.llm,
        questions=sum(asked.values()),
        prompt_tokens=read,
        completion_tokens=written,
        price=None if unknown else dollars,
        days=math.ceil((read + written) / a_day) if a_day else None,
    )


def _model(settings: Settings, stage: Stage) -> str:
    named: dict[Stage, str | None] = {
        "extract": settings.llm_extract,
        "merge": settings.llm_merge,
        "scenes": settings.llm_scenes,
        "persona": settings.llm_persona,
    }
    return named[stage] or settings.llm
