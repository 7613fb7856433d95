"""Values that the functions of forgetting, purging and retention take and return."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from mcp_memory.store.values import CanvasChange

How = Literal["ids", "query", "session", "time", "retention", "import", "correction"]
"""How the rows to forget were selected; `correction`: an undone correction, whose replaced atoms are current again."""

Keeping = Literal["turns", "results", "purge"]
"""The rows of a policy: turns and tool results are forgotten, and rows that a policy forgot are purged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Which:
    """Conditions on rows to forget; all must match.

    `terms` are terms of `words.base_terms`. `since` and `until` are compared with the time when a turn was said or a
    result was recorded.
    """

    terms: Sequence[str] = ()
    session: str | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """All rows that are forgotten when some ids are forgotten.

    `along` are atoms that were not named but lose all their evidence. `notes` are turns of role `note`, forgotten with
    the explicit statements they store. `said_in` are turns that are not forgotten, but are evidence of forgotten atoms.
    """

    turns: Sequence[str]
    atoms: Sequence[str]
    refs: Sequence[str]
    notes: Sequence[str] = ()
    along: Sequence[str] = ()
    facts: int = 0
    records: int = 0
    """Number of records with a forgotten ref."""
    scenes: Sequence[str] = ()
    """Pages that lose lines, by slug."""
    tasks: Sequence[str] = ()
    """Named tasks, such as `003`: their goals are forgotten."""
    said_in: Sequence[str] = ()

    @property
    def ids(self) -> list[str]:
        """The ids that are excluded from every search, and the ids of tasks."""
        return [*self.turns, *self.atoms, *self.refs, *self.tasks]


@dataclass(frozen=True, slots=True, kw_only=True)
class Purge:
    """The forgotten rows to erase, by the ids of their tombstones.

    Pages and canvases that were derived from the erased words are given in a version without these words.
    """

    tombstones: Sequence[str]
    personas: Mapping[int, str] = field(default_factory=dict[int, str])
    """Texts of persona pages by version."""
    redrawn: Sequence[CanvasChange] = ()
    """Canvases without goals that came from the erased turns and were not forgotten with them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Purged:
    """Counts of erased rows, with the erased `texts` and `names` for the purge verification."""

    tombstones: Sequence[str]
    turns: int
    atoms: int
    refs: int
    texts: Sequence[bytes]
    names: Sequence[str] = ()
    """Names of sessions, files, tools and speakers, reasons, and ids given by clients."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A retention policy: a space keeps a kind of rows for `days`. `at` is when it was set, `ran_at` its last run."""

    what: Keeping
    days: int
    at: datetime
    ran_at: datetime | None = None
    took: int = 0
    """Number of rows that it has forgotten or purged so far."""
