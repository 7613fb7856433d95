"""Interface of a stage: of the long-term layers, or of a task's canvas.

`plan` reads the rows past the stage's cursor and returns a small basis; it asks no model and writes nothing.
`question` puts the basis into words, from rows alone, so that it can be asked again after a restart; None if a model
has nothing to decide. `apply` checks the reply and commits rows, cursor and log together.

The question is answered by a model through litellm, or by the connected agent. Parts of a reply that cannot be kept
(a quote that is not in its turn) are dropped and listed in `Applied.refused`. A reply that cannot be used at all
raises InvalidInput, worded for its author, and nothing is stored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

from pydantic import BaseModel

from mcp_memory.core.config import Settings
from mcp_memory.core.types import Stage
from mcp_memory.models.metered import ModelQuestion

S = TypeVar("S")
C = TypeVar("C", bound="StageContext[Any]")
C_contra = TypeVar("C_contra", bound="StageContext[Any]", contravariant=True)
B = TypeVar("B", bound=BaseModel)
B_co = TypeVar("B_co", bound=BaseModel, covariant=True)
R = TypeVar("R", bound=BaseModel)


@dataclass(frozen=True, kw_only=True)
class StageContext(Generic[S]):
    """Store, space, time and settings for a stage; `S` is the type of the store."""

    store: S
    space: str
    now: datetime
    settings: Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """Result of a reply: sentences about kept and refused parts, and counts for the log."""

    outcome: dict[str, int]
    kept: list[str] = field(default_factory=list[str])
    refused: list[str] = field(default_factory=list[str])


class PlanFunction(Protocol[C_contra, B_co]):
    """`session` is for extraction alone. `smaller`: how many times to halve the basis, after failed attempts."""

    def __call__(self, context: C_contra, /, *, session: str | None, smaller: int) -> B_co | None: ...


@dataclass(frozen=True, kw_only=True)
class StageDefinition(Generic[C, B, R]):
    """One stage: its basis, the schema of its reply, and its three functions."""

    name: Stage
    basis: type[B]
    reply: type[R]
    plan: PlanFunction[C, B]
    question: Callable[[C, B], ModelQuestion[R] | None]
    apply: Callable[[C, Any, B, R | None], Applied]
    """Takes the leased job of the store. The reply is None where there was no question.

    Raises InvalidInput, and Conflict where it came too late.
    """


AnyStage = StageDefinition[Any, Any, Any]
