"""The clock of a database, which all of its servers share.

Rows are dated and deleted by it, so that a server whose own clock is wrong does no harm. It is asked once a minute;
between two answers the time is counted by a clock of this machine that nobody can set.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import psycopg

from mcp_memory.core.logs import SafeText

logger = logging.getLogger(__name__)

_MAX_AGE = 60.0  # seconds for which an answer is used
_TOLERATED = timedelta(minutes=1)

count_seconds: Callable[[], float] = (
    partial(time.clock_gettime, time.CLOCK_BOOTTIME)  # it goes on while the machine sleeps
    if hasattr(time, "CLOCK_BOOTTIME")
    else time.monotonic
)


@dataclass(frozen=True, slots=True)
class _Answer:
    moment: datetime
    at: float
    """`count_seconds` at that moment."""
    difference: timedelta
    """How far the clock of this machine was ahead of the database's."""


class DatabaseClock:
    """The time of the database, once `measure` was called. Safe to use from any thread."""

    def __init__(self) -> None:
        self._answer: _Answer | None = None

    def measure(self, con: psycopg.Connection[Any]) -> None:
        """Ask for the time, unless the last answer is less than a minute old. Call it outside of a transaction."""
        before = count_seconds()
        if self._answer is not None and before - self._answer.at < _MAX_AGE:
            return
        ((moment,),) = con.execute("SELECT extract(epoch FROM clock_timestamp())::double precision").fetchall()
        after, own = count_seconds(), time.time()
        middle = (after - before) / 2
        moment = datetime.fromtimestamp(moment + middle, UTC)
        known = self.problem()
        self._answer = _Answer(moment, after, datetime.fromtimestamp(own, UTC) - moment)
        problem = self.problem()
        if problem is not None and known is None:
            logger.warning("%s", SafeText(problem))

    def now(self) -> datetime:
        assert self._answer is not None, "the database was not asked"
        return self._answer.moment + timedelta(seconds=count_seconds() - self._answer.at)

    def problem(self) -> str | None:
        if self._answer is None or abs(self._answer.difference) <= _TOLERATED:
            return None
        difference = timedelta(seconds=round(abs(self._answer.difference).total_seconds()))
        side = "ahead of" if self._answer.difference > timedelta(0) else "behind"
        return (
            f"The clock of this machine is {difference} {side} the database's. Rows are dated by the database's, and"
            " this program applies no retention policy. Correct the wrong one."
        )
