"""What the store keeps of the economy of contexts: the edits of message lists, and what was saved and spent."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

__all__ = ["MessageEdit", "Saved", "Saving", "SavingKind"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageEdit:
    """What stands in a compressed list of messages between two places of its conversation, see `compression`.

    `texts` by part of the one message there, or a `note` in place of all messages between the two. `shown` is the
    digest of what stands there; `refs` hold what is gone. `id` grows with time; 0 where it was not stored yet.
    """

    id: int = 0
    session: str
    before: str
    after: str
    shown: str
    texts: dict[int, str] = field(default_factory=dict[int, str])
    note: str | None = None
    refs: tuple[str, ...] = ()
    calls: int = 0
    """How many calls of the model it stands for."""


SavingKind = Literal["offload", "expand", "canvas", "compress"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """Something that saved or cost tokens of a context.

    `saved` no longer stand there, `spent` do instead; `cache_broken` had been read and are read anew.
    """

    session: str
    at: datetime
    kind: SavingKind
    saved: int = 0
    spent: int = 0
    cache_broken: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """Sums over the savings of one kind. `…_later`: once for each later call of the session that the ledger proves."""

    kind: SavingKind
    times: int
    saved: int
    spent: int
    cache_broken: int
    saved_later: int
    spent_later: int
