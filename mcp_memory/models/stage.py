"""What a stage is, of the pyramid or of a task's canvas: a plan, a question, and what is done with the answer.

`plan` reads what is due past the stage's cursor and says so as a small `Basis`; it asks nobody and writes nothing.
`question` puts it into words, from rows alone, so that the same basis can be asked again after a restart; None
where there is nothing for a model to decide. `apply` checks the reply and commits rows, cursor and log together.

Whoever answers stands in between: a model through litellm, or the connected agent. What of a reply cannot be kept
(a quote that is not in its turn) is dropped and told in `Applied.refused`; a reply that cannot be used at all is
InvalidInput, worded for whoever gave it, and nothing is stored.

A stage that needs more than a store to work with asks for a desk of its own, which extends `Desk`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

from pydantic import BaseModel

from mcp_memory.core.config import Settings
from mcp_memory.core.types import Stage
from mcp_memory.models.metered import Question
from mcp_memory.store.protocol import Outcome, Store, Work

B = TypeVar("B", bound=BaseModel)
D = TypeVar("D", bound="Desk")
D_contra = TypeVar("D_contra", bound="Desk", contravariant=True)
B_co = TypeVar("B_co", bound=BaseModel, covariant=True)
R = TypeVar("R", bound=BaseModel)


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """What a stage works with, for one space at one moment."""

    store: Store
    space: str
    now: datetime
    settings: Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What came of a reply: sentences of what was kept and what was refused, and the counts for the log."""

    outcome: Outcome
    kept: list[str] = field(default_factory=list[str])
    refused: list[str] = field(default_factory=list[str])


class Planned(Protocol[D_contra, B_co]):
    """`session` is for extraction alone. `smaller` halves what is asked so often: a question that failed before."""

    def __call__(self, desk: D_contra, *, session: str | None, smaller: int) -> B_co | None: ...


@dataclass(frozen=True, kw_only=True)
class StageOf(Generic[D, B, R]):
    """One stage: its basis, the shape of its reply, and its three functions."""

    name: Stage
    basis: type[B]
    reply: type[R]
    plan: Planned[D, B]
    question: Callable[[D, B], Question[R] | None]
    apply: Callable[[D, Work, B, R | None], Applied]
    """The reply is None where there was no question. Raises InvalidInput, and Conflict where it came too late."""


AnyStage = StageOf[Any, Any, Any]
