"""What became of a file, or would: the answer of an import, for people and programs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from mcp_memory.core.text import one_line
from mcp_memory.integrations.importers.cost import Cost
from mcp_memory.integrations.importers.follow import Followed
from mcp_memory.integrations.importers.reader import Source
from mcp_memory.integrations.importers.survey import Survey, start
from mcp_memory.store.protocol import Imported

__all__ = ["Brought", "answer", "of_log", "unchanged"]

State = Literal["stored", "known", "refused", "seen"]

_KEYS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
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
    cost: Cost | None = None


def unchanged(source: Source, known: Imported) -> Brought:
    note = f"It was imported on {known.at:%Y-%m-%d} and has not changed; --again reads it once more."
    return Brought(file=source.name, state="known", turns=known.turns, notes=[note])


def of_log(name: str, done: Followed, *, state: State, noise: int | None = None, cost: Cost | None = None) -> Brought:
    """Return what became of a log, or would; what is wrong in it is passed over, for its client goes on writing."""
    notes = list(done.notes)
    if done.bad:
        notes.append(f"{_many(done.bad, 'line', 'lines')} of it cannot be read, and were passed over.")
    if done.misdated:
        notes.append(_misdated(done.misdated))
    if done.torn:
        notes.append("Its last line is not whole yet, and will be read when it is.")
    return Brought(
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
    source: Source,
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
    cost: Cost | None = None,
) -> Brought:
    return Brought(
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


def _notes(source: Source, found: Survey) -> Iterator[str]:
    """Yield what the reader should know of how the file was read."""
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
