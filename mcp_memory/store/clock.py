"""The clock by which a store dates rows and decides what is old enough to delete."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """The current time of a store. Its methods never block."""

    def now(self) -> datetime: ...

    def problem(self) -> str | None:
        """Return how the clock of this machine differs from that of the store, if by more than a minute."""
        ...


class SystemClock:
    """The clock of this machine, for a store in its files."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def problem(self) -> str | None:
        return None
