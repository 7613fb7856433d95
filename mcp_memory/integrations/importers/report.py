"""What it would cost to have a model read a history: questions, tokens, dollars, days. An estimate, and rather high.

What is sent is known: a question for each batch of turns that are no noise, with the turns before them. How much comes
of it is not: the figures below are what conversations of people with assistants came to. Tokens are estimated, and of
long histories from a share of the turns.

What became of a file, or would: the answer of an import, for people and programs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from mcp_memory.core.config import Settings
from mcp_memory.core.text import one_line
from mcp_memory.core.tokens import estimate_tokens
from mcp_memory.core.types import NewTurn, Stage, Turn
from mcp_memory.integrations.importers.reader import ImportSource
from mcp_memory.longterm.extraction import BACKGROUND_CHARS, MAX_CHARS, TURN_CHARS
from mcp_memory.longterm.turns import label
from mcp_memory.store.protocol import Imported

if TYPE_CHECKING:
    from mcp_memory.integrations.importers.follow import FollowReport
    from mcp_memory.integrations.importers.history import Survey

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
class CostEstimate:
    """`price` is in dollars, None where a model's is not known; `days` None where the caps forbid all calls."""

    model: str
    questions: int
    prompt_tokens: int
    completion_tokens: int
    price: float | None
    days: int | None


class HistorySize:
    """How much of a history a model would read, in questions of so many turns. Add its turns in order.

    What is added counts for `within` too: the histories that it is one of.
    """

    def __init__(self, batch_turns: int, within: HistorySize | None = None) -> None:
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


def estimate_cost(size: HistorySize, settings: Settings, price: Price) -> CostEstimate | None:
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
    return CostEstimate(
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


State = Literal["stored", "known", "refused", "seen"]

_KEYS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    """What became of a file, or would.

    `state`: `stored`; `known` (it was read before, and was not read again); `refused` (places in it are wrong, and
    nothing of it was stored); `seen` (a dry run). `bad` counts what is wrong in it, and `wrong` begins the list.
    """

    file: str
    state: State
    turns: int = 0
    sessions: int = 0
    first: datetime | None = None
    last: datetime | None = None
    stored: int = 0
    duplicates: int = 0
    forgotten: int = 0
    emptied: int = 0
    """Turns that held nothing but text recalled from this memory."""
    bad: int = 0
    wrong: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])
    session: str | None = None
    """Of a log: the session that it is, whose tool results were `kept`, or were too `small` for that."""
    kept: int = 0
    small: int = 0
    statements: int = 0
    """What another memory held to be true; of these `told` are new, and `held` of the new ones wait for review."""
    told: int = 0
    held: int = 0
    repeated: int = 0
    noise: int | None = None
    """On a dry run: turns that no model would be shown."""
    cost: CostEstimate | None = None


def unchanged(source: ImportSource, known: Imported) -> ImportReport:
    note = f"It was imported on {known.at:%Y-%m-%d} and has not changed; --again reads it once more."
    return ImportReport(file=source.name, state="known", turns=known.turns, notes=[note])


def of_log(
    name: str, done: FollowReport, *, state: State, noise: int | None = None, cost: CostEstimate | None = None
) -> ImportReport:
    """Return what became of a log, or would; what is wrong in it is passed over, for its client goes on writing."""
    notes = list(done.notes)
    if done.bad:
        notes.append(f"{_many(done.bad, 'line', 'lines')} of it cannot be read, and were passed over.")
    if done.misdated:
        notes.append(_misdated(done.misdated))
    if done.torn:
        notes.append("Its last line is not whole yet, and will be read when it is.")
    return ImportReport(
        file=name,
        state=state,
        turns=done.turns,
        sessions=1 if done.turns else 0,
        first=done.first,
        last=done.last,
        stored=done.stored,
        duplicates=done.duplicates,
        forgotten=done.forgotten,
        emptied=done.emptied,
        bad=done.bad,
        notes=notes,
        session=done.session,
        kept=done.kept,
        small=done.small,
        noise=noise,
        cost=cost,
    )


def answer(
    source: ImportSource,
    found: Survey,
    *,
    state: State,
    stored: int = 0,
    duplicates: int = 0,
    forgotten: int = 0,
    emptied: int = 0,
    kept: int = 0,
    told: int = 0,
    held: int = 0,
    repeated: int = 0,
    noise: int | None = None,
    cost: CostEstimate | None = None,
) -> ImportReport:
    return ImportReport(
        file=source.name,
        state=state,
        turns=found.turns,
        sessions=found.sessions,
        first=found.first,
        last=found.last,
        stored=stored,
        duplicates=duplicates,
        forgotten=forgotten,
        emptied=emptied,
        bad=found.bad,
        wrong=[str(one) for one in found.wrong],
        notes=list(_notes(source, found)),
        kept=found.kept if state == "seen" else kept,
        small=found.small if state != "refused" else 0,
        statements=found.statements,
        told=told,
        held=held,
        repeated=repeated,
        noise=noise,
        cost=cost,
    )


def _notes(source: ImportSource, found: Survey) -> Iterator[str]:
    """Yield what the reader should know of how the file was read."""
    from mcp_memory.integrations.importers.history import start

    yield from found.remarks
    if found.undated:
        yield (
            f"{_many(found.undated, 'turn names', 'turns name')} no time: each got that of the turn before and 100 ms, "
            f"or that of the file, {start(source, 0).astimezone():%Y-%m-%d %H:%M}."
        )
    if found.passed.misdated:
        yield _misdated(found.passed.misdated)
    if found.renamed:
        name, kept = next(iter(found.renamed.items()))
        yield (
            f"{_many(len(found.renamed), 'session has a name', 'sessions have names')} that cannot be part of a file "
            f"name: {one_line(name, 40)!r} is kept as {kept!r}."
        )
    if found.without_text:
        yield f"{_many(found.without_text, 'turn is', 'turns are')} without text and left out."
    if found.passed.parts:
        yield f"{_many(found.passed.parts, 'part of a content is', 'parts of contents are')} no text and left out."
    if found.passed.left:
        left = ", ".join(f"{what} ({count:,})" for what, count in sorted(found.passed.left.items()))
        yield f"Left out, for they are no part of the talk as it stands: {left}."
    if found.passed.mended:
        yield f"{_many(found.passed.mended, 'text has', 'texts have')} half a character, which is kept as U+FFFD."
    if found.passed.keys:
        keys = sorted(found.passed.keys)
        more = f" and {len(keys) - _KEYS:,} more" if len(keys) > _KEYS else ""
        yield f"Not kept, for they are not known here: {', '.join(one_line(key, 30) for key in keys[:_KEYS])}{more}."
    if found.torn:
        yield f"{found.torn}"


def _misdated(count: int) -> str:
    return (
        f"{_many(count, 'time', 'times')} cannot be read: what stands beside one has the time of what is before it, "
        "or that of the file."
    )


def _many(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"
