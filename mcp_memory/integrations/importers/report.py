"""The result of an import, and the estimated cost of extraction by a model.

The estimate is rather high. The prompts are known: one for each batch of turns that are not noise, with the turns
before them. The replies are unknown: the figures below are averages over conversations of people with assistants.
Tokens are estimated; for long histories, from a sample of the turns.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Literal

from mcp_memory.core.config import Settings
from mcp_memory.core.text import one_line, plural
from mcp_memory.core.token_counts import estimate_tokens
from mcp_memory.core.types import NewTurn, Recorded, Stage, Turn
from mcp_memory.integrations.importers.format import Format
from mcp_memory.integrations.importers.reader import Layout
from mcp_memory.integrations.importers.records import ImportProblem, SkippedParts
from mcp_memory.longterm.turn_batches import BACKGROUND_CHARS, MAX_CHARS, TURN_CHARS
from mcp_memory.longterm.turns import small_talk_kind
from mcp_memory.service.due_stages import WaitingJobs
from mcp_memory.service.verbs.administration import ImportedStatementsReport

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
    """Turns with only text that was recalled from this memory."""
    bad: int = 0
    titles: int = 0
    """Turns that are only the title of a conversation."""
    notes: list[str] = field(default_factory=list[str])
    session: str | None = None
    """The session of a log; None for other files and for a log without a conversation (yet)."""
    kept: int = 0
    small: int = 0
    """Tool results that are too small to be kept; `kept` counts the large results."""
    statements: int = 0
    """Statements of another memory. `stored_statements` are new, and `quarantined` of the new ones are quarantined."""
    stored_statements: int = 0
    quarantined: int = 0
    repeated: int = 0

    def count(self, said_at: datetime | None) -> None:
        """Count a turn."""
        self.turns += 1
        if said_at is not None:
            self.first = min(self.first or said_at, said_at)
            self.last = max(self.last or said_at, said_at)

    def add_turns(self, done: Recorded) -> None:
        self.stored += len(done.stored)
        self.duplicates += done.duplicates
        self.forgotten += done.forgotten
        self.emptied += done.emptied

    def add_statements(self, done: ImportedStatementsReport) -> None:
        self.stored_statements += done.stored
        self.quarantined += done.quarantined
        self.repeated += done.repeated
        self.forgotten += done.forgotten

    def counts(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(ImportCounts)}


@dataclass(kw_only=True)
class FileReport(ImportCounts):
    """The result of importing a file, or of a preview.

    `state` is `stored`, `known` (nothing new since the last import), `refused` (nothing was stored, because of `bad`
    problems, the first of them in `wrong`), or `seen` (a preview). A preview counts as `noise` the turns that no model
    would be shown.
    """

    file: str
    state: State
    wrong: list[str] = field(default_factory=list[str])
    noise: int | None = None
    cost: CostEstimate | None = None


@dataclass(kw_only=True)
class Survey(ImportCounts):
    """The contents of a file, from the first pass. `undated` counts turns without a time.

    `wrong` has the first problem of each kind, and `alike` the number of its kind.
    """

    layout: Layout | Format
    start: datetime
    """The guessed time of the first turn."""
    undated: int = 0
    without_text: int = 0
    wrong: list[ImportProblem] = field(default_factory=list[ImportProblem])
    alike: Counter[str] = field(default_factory=Counter[str])
    torn: ImportProblem | None = None
    renamed: dict[str, str] = field(default_factory=dict[str, str])
    skipped: SkippedParts = field(default_factory=SkippedParts)

    def report(self, file: str, state: State, **more: Any) -> FileReport:
        wrong = [
            str(problem)
            + (f" ({self.alike[problem.kind] - 1:,} more like this)" if self.alike[problem.kind] > 1 else "")
            for problem in self.wrong
        ]
        counts = {**self.counts(), "notes": list(self._notes())}
        if state == "refused":
            counts |= {"kept": 0, "small": 0}
        return FileReport(file=file, state=state, wrong=wrong, **counts, **more)

    def _notes(self) -> Iterator[str]:
        skipped = self.skipped
        if self.undated:
            yield (
                f"{plural(self.undated, 'turn has', 'turns have')} no time: each got that of the turn before plus "
                f"100 ms, or that of the file, {self.start.astimezone():%Y-%m-%d %H:%M}."
            )
        if skipped.misdated:
            yield _misdated_note(skipped.misdated)
        if self.renamed:
            name, kept = next(iter(self.renamed.items()))
            yield (
                f"{plural(len(self.renamed), 'session has a name', 'sessions have names')} that cannot be part of a "
                f"file name: {one_line(name, 40)!r} is kept as {kept!r}."
            )
        if self.without_text:
            yield f"{plural(self.without_text, 'turn has no text and is', 'turns have no text and are')} left out."
        if skipped.parts:
            parts = plural(skipped.parts, "content part is not text and is", "content parts are not text and are")
            yield f"{parts} left out."
        yield from left_out_note(skipped.left_out)
        if skipped.unread:
            yield f"Not read, because they are of no known format or not safe: {skipped.describe_unread()}."
        if skipped.repaired:
            texts = plural(skipped.repaired, "text has", "texts have")
            yield f"{texts} an invalid character, which is kept as U+FFFD."
        if skipped.keys:
            keys = sorted(skipped.keys)
            more = f" and {len(keys) - _KEYS:,} more" if len(keys) > _KEYS else ""
            shown = ", ".join(one_line(key, 30) for key in keys[:_KEYS])
            yield f"Unknown fields, not kept: {shown}{more}."
        if self.torn:
            yield f"{self.torn}"


def left_out_note(left_out: Mapping[str, int]) -> list[str]:
    """Return a note that counts skipped messages and parts by category; empty if there are none."""
    left = ", ".join(f"{what} ({count:,})" for what, count in sorted(left_out.items()) if count)
    return [f"Left out, because they are not part of the conversation as last shown: {left}."] if left else []


def log_notes(bad: int, misdated: int, left_out: Mapping[str, int], *, torn: bool) -> list[str]:
    """Return notes on skipped lines and unreadable times of a log."""
    notes = [f"{plural(bad, 'line', 'lines')} cannot be read, and were skipped."] if bad else []
    notes += [_misdated_note(misdated)] if misdated else []
    notes += left_out_note(left_out)
    return [*notes, "Its last line is incomplete, and will be read when it is complete."] if torn else notes


def _misdated_note(count: int) -> str:
    return (
        f"{plural(count, 'time', 'times')} cannot be read: each is replaced by the time of the entry before, "
        "or that of the file."
    )


# --- the cost ---------------------------------------------------------------------------------------

Price = Callable[[str, int, int], float | None]
"""Returns the price in dollars of a model for prompt and completion tokens; None if unknown."""

_ALL_OF = 2_000  # turns whose tokens are all estimated; after those, every 50th
_EVERY = 50
_BEFORE = 1_000  # characters that decide whether a turn answers the turn before
_HEAD = 12  # tokens of the header of a turn: its id and role

_ATOMS_PER_TURN = 0.35
_PER_JOB: dict[Stage, tuple[int, int]] = {
    "extract": (3_000, 20),  # instructions 1,800, schema 400, known names and statements; an empty reply
    "merge": (2_000, 40),
    "scenes": (4_000, 900),  # instructions 1,300, the relevant scenes in full; the lines that change
    "persona": (3_500, 500),
    "summaries": (8_000, 900),
    "canvas": (6_000, 1_200),
}
"""Prompt and completion tokens of a job, by `estimate_tokens`; rather high."""
_PER_ATOM: dict[Stage, tuple[int, int]] = {
    "extract": (0, 85),
    "merge": (260, 60),  # the statement and candidates for a duplicate
    "scenes": (60, 0),
}
_STATEMENTS_PER_MERGE_JOB = 150  # statements per merge job; extraction already decides on nearly all
_ATOMS_PER_SCENES_JOB = 25
_RESULTS_PER_SUMMARY_JOB = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class CostEstimate:
    """The estimated cost. `price` is in dollars, None if unknown; `days` is None if the caps forbid all calls."""

    model: str
    questions: int
    prompt_tokens: int
    completion_tokens: int
    price: float | None
    days: int | None


class HistorySize:
    """Measures what extracting a history takes: the number of jobs (`questions`), and the tokens of their prompts.

    A job has at most `batch_turns` turns. `signal` counts the turns to be read, `noise` the others: small talk, and
    roles that are never read. Turns must be added in order. Each is also added to `within`, if given, which measures
    several histories together.
    """

    def __init__(self, batch_turns: int, within: HistorySize | None = None) -> None:
        self.signal = self.noise = self.questions = 0
        self._within = within
        self._batch_turns = batch_turns
        self._open = batch_turns, 0
        """Turns and characters of the job being filled; short sessions share a job."""
        self._read_in: dict[str, int] = {}
        """The last job that shows each session."""
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
        self._last[session] = _stored_turn(session, turn, last=_BEFORE)

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
        """Estimate the tokens of turns in all prompts: each turn once, some again as background of the next job."""
        if not self._sampled:
            return 0
        a_character = self._tokens / self._sampled
        again = min(self._continued * background_turns, self.signal)
        new = self._chars * a_character + _HEAD * self.signal
        return round(new + again * (self._background / self.signal * a_character + _HEAD))


def _stored_turn(session: str, turn: NewTurn, *, last: int) -> Turn:
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


def estimate_cost(
    size: HistorySize, settings: Settings, price: Price, *, waiting: WaitingJobs | None = None
) -> CostEstimate | None:
    """Estimate the cost of extracting the history and waiting jobs with the configured models; None without a model."""
    if settings.llm == "none":
        return None
    waits = waiting or WaitingJobs()
    new = math.ceil(size.signal * _ATOMS_PER_TURN)
    atoms: dict[Stage, int] = {"extract": new, "merge": new + waits.drafts, "scenes": new + waits.drafts + waits.atoms}
    asked: dict[Stage, int] = {
        "extract": size.questions,
        "merge": math.ceil(atoms["merge"] / _STATEMENTS_PER_MERGE_JOB),
        "scenes": math.ceil(atoms["scenes"] / _ATOMS_PER_SCENES_JOB),
        "persona": max(waits.persona, math.ceil(atoms["scenes"] / settings.persona_every)),
    }
    if waits.results:
        asked["summaries"] = math.ceil(waits.results / _RESULTS_PER_SUMMARY_JOB)
    if waits.canvases:
        asked["canvas"] = waits.canvases
    turns = size.tokens(settings.background_turns)
    read, written, prices = 0, 0, list[float | None]()
    for stage, questions in asked.items():
        into, out = (
            questions * of_question + atoms.get(stage, 0) * of_atom
            for of_question, of_atom in zip(_PER_JOB[stage], _PER_ATOM.get(stage, (0, 0)), strict=True)
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
        price=None if None in prices else sum(dollars or 0 for dollars in prices),
        days=math.ceil((read + written) / a_day) if a_day else None,
    )
