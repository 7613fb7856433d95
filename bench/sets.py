"""Reads a retrieval set: sessions, and questions, each of which is asked of its haystack only.

`sessions.jsonl.gz` holds `{"session_id", "turns": [{"id", "role", "name"?, "content"}]}` a line, and
`questions.jsonl.gz` `{"id", "type", "question", "answer"?, "asked_at"?, "haystack": [{"session_id", "started_at"?}],
"evidence_turns": [turn id], "evidence_sessions": [session id], "alternatives"?: [[turn id]]}`; other keys are
ignored. `alternatives` has several sets of turns, each of which is sufficient to answer. A folder may also contain
`nothing.jsonl.gz`, `{"id", "prompt"}` a line: prompts that the memory cannot help with.

A time without an offset is in UTC, so that a set gives the same figures on every machine.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Set
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.text import is_blank
from mcp_memory.core.types import Role

SESSIONS, QUESTIONS, NOTHING = "sessions.jsonl.gz", "questions.jsonl.gz", "nothing.jsonl.gz"


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


Moment = Annotated[datetime, AfterValidator(_aware)]


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True)


class Turn(_Line):
    """A message of a session, with its id in the set."""

    id: str
    role: Role
    name: str | None = None
    content: str


class Part(_Line):
    """A session in a haystack. The same session may have different dates in different haystacks."""

    session_id: str
    started_at: Moment | None = None


def _one_set(fields: dict[str, Any]) -> tuple[frozenset[str], ...]:
    evidence: frozenset[str] = fields["evidence_turns"]
    return (evidence,) if evidence else ()


class Question(_Line):
    """A question. `asked_at` is the time of the question, if known. Without evidence, no turn answers it.

    Each of `alternatives` is sufficient evidence; by default `evidence_turns` is the only alternative.
    """

    id: str
    type: str
    text: Annotated[str, Field(alias="question")]
    answer: str | None = None
    asked_at: Moment | None = None
    haystack: tuple[Part, ...]
    evidence_turns: frozenset[str]
    evidence_sessions: frozenset[str]
    alternatives: Annotated[tuple[Annotated[frozenset[str], Field(min_length=1)], ...], Field(default_factory=_one_set)]

    def is_covered_by(self, turns: Set[str]) -> bool:
        """Return whether `turns` contain all turns of an alternative."""
        return any(one <= turns for one in self.alternatives)


class Prompt(_Line):
    """A prompt for which a memory should return nothing."""

    id: str
    text: Annotated[str, Field(alias="prompt")]


class _SessionLine(_Line):
    session_id: str
    turns: tuple[Turn, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A session with its date in a haystack."""

    id: str
    started_at: datetime | None
    turns: tuple[Turn, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Haystack:
    """The sessions of a store, in order, and the questions asked of it."""

    sessions: tuple[Session, ...]
    questions: tuple[Question, ...]

    def turns(self) -> Iterator[tuple[str, Turn]]:
        """Yield (session id, turn) in order."""
        for session in self.sessions:
            for turn in session.turns:
                yield session.id, turn

    def first(self, most: int) -> Haystack:
        """Return the first `most` turns that have text, and the questions that they answer."""
        sessions: list[Session] = []
        left = most
        for session in self.sessions:
            turns = tuple(turn for turn in session.turns if not is_blank(turn.content))[:left]
            if turns:
                sessions.append(Session(id=session.id, started_at=session.started_at, turns=turns))
            left -= len(turns)
        held = {turn.id for session in sessions for turn in session.turns}
        asked = tuple(one for one in self.questions if one.evidence_turns and one.evidence_turns <= held)
        return Haystack(sessions=tuple(sessions), questions=asked)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalSet:
    """A set, its questions grouped by haystack; `name` is its folder's. `nothing` may be empty."""

    name: str
    haystacks: tuple[Haystack, ...]
    nothing: tuple[Prompt, ...] = ()

    @property
    def questions(self) -> list[Question]:
        return [question for haystack in self.haystacks for question in haystack.questions]

    def first(self, most: int) -> RetrievalSet:
        """Return the set with the first `most` turns of each haystack."""
        return replace(self, haystacks=tuple(haystack.first(most) for haystack in self.haystacks))


def read_sets(folder: Path) -> list[RetrievalSet]:
    """Read the set of a folder, or the sets of the folders in it, by name.

    Raises InvalidInput, as `read_set` does.
    """
    if not (folder / SESSIONS).exists() and folder.is_dir():
        inner = sorted(path.parent for path in folder.glob(f"*/{SESSIONS}"))
        if inner:
            return [read_set(path) for path in inner]
    return [read_set(folder)]


def read_set(folder: Path, *, limit: int | None = None) -> RetrievalSet:
    """Read a set; `limit` keeps that many of its questions, spread evenly over the file.

    Raises InvalidInput, which names the file and the problem.
    """
    sessions = {line.session_id: line.turns for line in _read(folder / SESSIONS, _SessionLine)}
    questions = list(_read(folder / QUESTIONS, Question))
    if limit is not None and limit < len(questions):
        questions = [questions[place * len(questions) // limit] for place in range(limit)]
    together: dict[tuple[Part, ...], list[Question]] = {}
    for question in questions:
        together.setdefault(question.haystack, []).append(question)
    missing = {part.session_id for parts in together for part in parts} - sessions.keys()
    if missing:
        raise InvalidInput(f"{folder}: its questions name sessions it does not hold, such as {min(missing)!r}.")
    return RetrievalSet(
        name=folder.resolve().name,
        haystacks=tuple(
            Haystack(
                sessions=tuple(
                    Session(id=part.session_id, started_at=part.started_at, turns=sessions[part.session_id])
                    for part in parts
                ),
                questions=tuple(asked),
            )
            for parts, asked in together.items()
        ),
        nothing=tuple(_read(folder / NOTHING, Prompt)) if (folder / NOTHING).exists() else (),
    )


_AnyLine = TypeVar("_AnyLine", bound=_Line)


def _read(path: Path, kind: type[_AnyLine]) -> Iterator[_AnyLine]:
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                try:
                    yield kind.model_validate_json(line)
                except ValidationError as error:
                    first = error.errors(include_url=False)[0]
                    where = ".".join(map(str, first["loc"]))
                    raise InvalidInput(f"{path}, line {number}: {where} {first['msg']}".rstrip()) from None
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read: {error}.") from None
