"""What forgetting, purging and keeping for a while say to the store and hear from it: frozen values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

__all__ = ["How", "Keeping", "Policy", "Purge", "Purged", "Reach", "Which"]

How = Literal["ids", "query", "session", "time", "retention", "import"]
"""How it was said what is to be forgotten."""

Keeping = Literal["turns", "results", "purge"]
"""What a policy is about: turns, tool results, or what a policy forgot and is to be purged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Which:
    """What to look for: all of it must hold. `terms` are of `text.base_terms`; times are of what was said or taken."""

    terms: Sequence[str] = ()
    session: str | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """All that goes when some ids are forgotten.

    `along` are the atoms that nobody named: what they rest on goes. `notes` are turns of role `note`, which go with
    what was told by them. `said_in` are the turns that stay and have the words that an atom which goes rests on.
    """

    turns: Sequence[str]
    atoms: Sequence[str]
    refs: Sequence[str]
    notes: Sequence[str] = ()
    along: Sequence[str] = ()
    facts: int = 0
    records: int = 0
    """Records whose line tells of a ref that goes."""
    scenes: Sequence[str] = ()
    """Pages that lose lines, by slug."""
    said_in: Sequence[str] = ()

    @property
    def ids(self) -> list[str]:
        """What is out of every search then, by name."""
        return [*self.turns, *self.atoms, *self.refs]


@dataclass(frozen=True, slots=True, kw_only=True)
class Purge:
    """What is to be erased: tombstones by id, and what the layers above made of their words, rewritten without."""

    tombstones: Sequence[str]
    personas: Mapping[int, str] = field(default_factory=dict[int, str])
    """Pages by version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Purged:
    """What was erased, counted; `texts` are the words, for whoever proves that they are gone."""

    tombstones: Sequence[str]
    turns: int
    atoms: int
    refs: int
    texts: Sequence[bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How many days a space keeps something; `ran_at` is when it was last followed."""

    what: Keeping
    days: int
    at: datetime
    ran_at: datetime | None = None
    took: int = 0
    """How many it forgot, or purged, so far."""
