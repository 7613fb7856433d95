"""The result of an import, and the estimated cost of a model reading it.

The estimate is rather high. The questions are known: one for each batch of turns that are not noise, with the turns
before them. The replies are not: the figures below are averages over conversations of people with assistants. Tokens
are estimated; of long histories, from a share of the turns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Literal

from mcp_memory.core.config import Settings
from mcp_memory.core.text import one_line
from mcp_memory.core.token_counts import estimate_tokens
from mcp_memory.core.types import NewTurn, Recorded, Stage, Turn
from mcp_memory.integrations.importers.reader import Layout
from mcp_memory.integrations.importers.records import ImportProblem, SkippedParts
from mcp_memory.longterm.extraction import BACKGROUND_CHARS, MAX_CHARS, TURN_CHARS
from mcp_memory.longterm.turns import small_talk_kind
from mcp_memory.service.due_stages import WaitingJobs

State = Literal["stored", "known", "refused", "seen"]

_KEYS = 12


@dataclass(kw_only=True)
class ImportCounts:
    """Counts of an import. `first` and `last` are the earliest and latest known times of its turns."""

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
    notes: list[str] = field(default_factory=list[str])
    session: str | None = None
    """The session of a log; None for other files and for a log without a conversation (yet)."""
    kept: int = 0
    small: int = 0
    """Tool results large enough to be kept, and the others."""
    statements: int = 0
    """Statements of another memory; `told` of them are new, and `held` of the new ones wait for review."""
    told: int = 0
    held: int = 0
    repeated: int = 0

    def count(self, said_at: datetime | None) -> None:
        """Count a turn."""
        self.turns += 1
        if said_at is not None:
            self.first = min(self.first or said_at, said_at)
            self.last = max(self.last or said_at, said_at)

    def add(self, done: Recorded) -> None:
        """Add the outcome of storing turns."""
        self.stored += len(done.stored)
        self.duplicates += done.duplicates
        self.forgotten += done.forgotten
        self.emptied += done.emptied

    def counts(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(ImportCounts)}


@dataclass(kw_only=True)
class FileReport(ImportCounts):
    """The result of importing a file, or of a preview.

    `state`: `stored`; `known` (read before, and not read again); `refused` (`bad` places, of which `wrong` lists the
    first; nothing was stored); `seen` (a dry run). `noise`, of a dry run: turns that no model would be shown.
    """

    file: str
    state: State
    wrong: list[str] = field(default_factory=list[str])
    noise: int | None = None
    cost: CostEstimate | None = None


@dataclass(kw_only=True)
class Survey(ImportCounts):
    """The contents of a file, after the first pass over it. `undated` counts turns without a time.

    `wrong` are the first of the `bad` places; `remarks` name skipped members of the file.
    """

    layout: Layout
    undated: int = 0
    without_text: int = 0
    wrong: list[ImportProblem] = field(default_factory=list[ImportProblem])
    torn: ImportProblem | None = None
    renamed: dict[str, str] = field(default_factory=dict[str, str])
    passed: SkippedParts = field(default_factory=SkippedParts)
    remarks: list[str] = field(default_factory=list[str])

    def report(self, file: str, state: State, *, start: datetime, **more: Any) -> FileReport:
        """Return the report of the file; `start` is the guessed time of its first turn."""
        wrong = [str(one) for one in self.wrong]
        counts = {**self.counts(), "notes": list(self._notes(start))}
        if state == "refused":
            counts |= {"kept": 0, "small": 0}
        return FileReport(file=file, state=state, wrong=wrong, **counts, **more)

    def _notes(self, start: datetime) -> Iterator[str]:
        passed = self.passed
        yield from self.remarks
        if self.undated:
            yield (
                f"{_many(self.undated, 'turn names', 'turns name')} no time: each got that of the turn before and "
                f"100 ms, or that of the file, {start.astimezone():%Y-%m-%d %H:%M}."
            )
        if passed.misdated:
            yield _misdated(passed.misdated)
        if self.renamed:
            name, kept = next(iter(self.renamed.items()))
            yield (
                f"{_many(len(self.renamed), 'session has a name', 'sessions have names')} that cannot be part of a "
                f"file name: {one_line(name, 40)!r} is kept as {kept!r}."
            )
        if self.without_text:
            yield f"{_many(self.without_text, 'turn is', 'turns are')} without text and left out."
        if passed.parts:
            yield f"{_many(passed.parts, 'part of a content is', 'parts of contents are')} no text and left out."
        if passed.left:
            left = ", ".join(f"{what} ({count:,})" for what, count in sorted(passed.left.items()))
            yield f"Left out, for they are no part of the talk as it stands: {left}."
        if passed.mended:
            yield f"{_many(passed.mended, 'text has', 'texts have')} half a character, which is kept as U+FFFD."
        if passed.keys:
            keys = sorted(passed.keys)
            more = f" and {len(keys) - _KEYS:,} more" if len(keys) > _KEYS else ""
            shown = ", ".join(one_line(key, 30) for key in keys[:_KEYS])
            yield f"Not kept, for they are not known here: {shown}{more}."
        if self.torn:
            yield f"{self.torn}"


def log_notes(bad: int, misdated: int, *, torn: bool) -> list[str]:
    """Return notes on skipped lines and unreadable times of a log."""
    notes = [f"{_many(bad, 'line', 'lines')} of it cannot be read, and were passed over."] if bad else []
    notes += [_misdated(misdated)] if misdated else []
    return [*notes, "Its last line is not whole yet, and will be read when it is."] if torn else notes


def _misdated(count: int) -> str:
    return (
        f"{_many(count, 'time', 'times')} cannot be read: what stands beside one has the time of what is before it, "
        "or that of the file."
    )


def _many(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"


# --- the cost ---------------------------------------------------------------------------------------

Price = Callable[[str, int, int], float | None]
"""Returns what a model costs in dollars for tokens read and written; None if unknown."""

_ALL_OF = 2_000  # turns whose tokens are estimated; of those that follow, every 50th
_EVERY = 50
_BEFORE = 1_000  # characters that show whether a turn answers the one before
_HEAD = 12  # tokens of the mark before a turn: its id and who

_ATOMS_PER_TURN = 0.35
_PER_QUESTION: dict[Stage, tuple[int, int]] = {
    "extract": (3_000, 20),  # instructions 1,800, schema 400, names and statements that are known; an empty reply
    "merge": (2_000, 40),
    "scenes": (4_000, 900),  # instructions 1,300, the relevant scenes in full; the lines that change
    "persona": (3_500, 500),
    "summaries": (8_000, 900),
    "canvas": (6_000, 1_200),
}
"""Tokens in and out, by `estimate_tokens`, as high as the rest."""
_PER_ATOM: dict[Stage, tuple[int, int]] = {
    "extract": (0, 85),
    "merge": (260, 60),  # itself and candidates for a duplicate
    "scenes": (60, 0),
}
_DRAFTS = 150  # for one question on merging: an extraction decides on nearly all
_TOLD = 25  # atoms of a question on scenes
_RESULTS = 8  # of a question on summaries


@dataclass(frozen=True, slots=True, kw_only=True)
class CostEstimate:
    """`price` is in dollars, None if a model's is unknown; `days` is None if the caps forbid all calls."""

    model: str
    questions: int
    prompt_tokens: int
    completion_tokens: int
    price: float | None
    days: int | None


class HistorySize:
    """The size of a history for a model, in questions of `batch_turns`. Add its turns in order.

    They count for `within` too: the size of all histories together.
    """

    def __init__(self, batch_turns: int, within: HistorySize | None = None) -> None:
        self.signal = self.noise = self.questions = 0
        self._within = within
        self._batch_turns = batch_turns
        self._open = batch_turns, 0
        """Turns and characters of the question being filled; short sessions share one."""
        self._read_in: dict[str, int] = {}
        """The last question that shows a session."""
        self._continued = 0
        self._last: dict[str, Turn] = {}
        self._chars = self._background = self._sampled = self._tokens = 0

    def add(self, session: str, turn: NewTurn) -> None:
        if self._within is not None:
            self._within.add(session, turn)
        if turn.role not in TURN_CHARS:
            self.noise += 1
            return
        if small_talk_kind(turn.content, self._last.get(session)) is None:
            self.signal += 1
            self._measure(session, turn.content[: TURN_CHARS[turn.role]])
        else:
            self.noise += 1
        self._last[session] = _as_stored(session, turn, last=_BEFORE)

    def _measure(self, session: str, shown: str) -> None:
        size = len(shown)
        turns, chars = self._open
        if turns == self._batch_turns or chars + size > MAX_CHARS:
            self.questions += 1
            turns = chars = 0
        self._open = turns + 1, chars + size
        self._continued += self._read_in.get(session, self.questions) != self.questions
        self._read_in[session] = self.questions
        self._chars += size
        self._background += min(size, BACKGROUND_CHARS)
        if self.signal <= _ALL_OF or self.signal % _EVERY == 0:
            self._sampled += size
            self._tokens += estimate_tokens(shown)

    def tokens(self, background_turns: int) -> int:
        """Return the tokens of all turns, each shown once as new and some again as the next question's background."""
        if not self._sampled:
            return 0
        a_character = self._tokens / self._sampled
        again = min(self._continued * background_turns, self.signal)
        new = self._chars * a_character + _HEAD * self.signal
        return round(new + again * (self._background / self.signal * a_character + _HEAD))


def _as_stored(session: str, turn: NewTurn, *, last: int) -> Turn:
    at = turn.said_at or datetime.min
    said: dict[str, Any] = {"role": turn.role, "name": turn.name, "content": turn.content[-last:]}
    return Turn(id="", session=session, position=0, said_at=at, learned_at=at, sha256="", **said)


def estimate_cost(
    size: HistorySize, settings: Settings, price: Price, *, beside: WaitingJobs | None = None
) -> CostEstimate | None:
    """Return the cost of reading the history and of the waiting jobs with the configured models; None without one."""
    if settings.llm == "none":
        return None
    waits = beside or WaitingJobs()
    new = math.ceil(size.signal * _ATOMS_PER_TURN)
    atoms: dict[Stage, int] = {"extract": new, "merge": new + waits.drafts, "scenes": new + waits.drafts + waits.atoms}
    asked: dict[Stage, int] = {
        "extract": size.questions,
        "merge": math.ceil(atoms["merge"] / _DRAFTS),
        "scenes": math.ceil(atoms["scenes"] / _TOLD),
        "persona": max(waits.persona, math.ceil(atoms["scenes"] / settings.persona_every)),
    }
    if waits.results:
        asked["summaries"] = math.ceil(waits.results / _RESULTS)
    if waits.canvases:
        asked["canvas"] = waits.canvases
    turns = size.tokens(settings.background_turns)
    read, written, prices = 0, 0, list[float | None]()
    for stage, questions in asked.items():
        into, out = (
            questions * of_question + atoms.get(stage, 0) * of_atom
            for of_question, of_atom in zip(_PER_QUESTION[stage], _PER_ATOM.get(stage, (0, 0)), strict=True)
        )
        into += turns if stage == "extract" else 0
        read, written = read + into, written + out
        prices.append(price(getattr(settings, f"llm_{stage}") or settings.llm, into, out))
    a_day = min(settings.llm_daily_tokens, 24 * settings.llm_hourly_tokens)
    return CostEstimate(
        model=settings.llm,
        questions=sum(asked.values()),
        prompt_tokens=read,
        completion_tokens=written,
        price=None if None in prices else sum(one or 0 for one in prices),
        days=math.ceil((read + written) / a_day) if a_day else None,
    )
