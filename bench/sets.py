"""Reads a retrieval set: sessions, and questions that are each asked of their haystack and of nothing else.

`sessions.jsonl.gz` holds `{"session_id", "turns": [{"id", "role", "name"?, "content"}]}` a line, and
`questions.jsonl.gz` `{"id", "type", "question", "asked_at"?, "haystack": [{"session_id", "started_at"?}],
"evidence_turns": [turn id], "evidence_sessions": [session id]}`; other keys are passed over.

A time without an offset is taken for UTC, so that a set gives the same figures on every machine.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from mcp_memory.errors import InvalidInput
from mcp_memory.types import Role

__all__ = ["Haystack", "Question", "RetrievalSet", "Session", "Turn", "read_set"]


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


Moment = Annotated[datetime, AfterValidator(_aware)]


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True)


class Turn(_Line):
    """A message of a session; its id is the set's own."""

    id: str
    role: Role
    name: str | None = None
    content: str


class Part(_Line):
    """A session's place in a haystack: the same session may have another date in another one."""

    session_id: str
    started_at: Moment | None = None


class Question(_Line):
    """`asked_at` is when it was asked, where the set knows. Evidence may be empty: nothing answers it."""

    id: str
    type: str
    text: Annotated[str, Field(alias="question")]
    asked_at: Moment | None = None
    haystack: tuple[Part, ...]
    evidence_turns: frozenset[str]
    evidence_sessions: frozenset[str]


class _SessionLine(_Line):
    session_id: str
    turns: tuple[Turn, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A session as it stands in one haystack."""

    id: str
    started_at: datetime | None
    turns: tuple[Turn, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Haystack:
    """One store's worth of sessions, in order, and the questions asked of it."""

    sessions: tuple[Session, ...]
    questions: tuple[Question, ...]

    def turns(self) -> Iterator[tuple[str, Turn]]:
        """Yield (session id, turn) in order."""
        for session in self.sessions:
            for turn in session.turns:
                yield session.id, turn


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalSet:
    """A set, its questions grouped by haystack; `name` is its folder's."""

    name: str
    haystacks: tuple[Haystack, ...]

    @property
    def questions(self) -> list[Question]:
        return [question for haystack in self.haystacks for question in haystack.questions]


def read_set(folder: Path, *, limit: int | None = None) -> RetrievalSet:
    """Read a set; `limit` keeps that many of its questions, spread evenly over the file.

    Raises InvalidInput, which names the file and what is wrong with it.
    """
    sessions = {line.session_id: line.turns for line in _read(folder / "sessions.jsonl.gz", _SessionLine)}
    questions = list(_read(folder / "questions.jsonl.gz", Question))
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
