"""A standby that answers reads, and never an older state than the primary has acknowledged.

Before a snapshot the primary is asked how far its log is on disk, which is one cheap statement, and the standby whether
it has replayed the log up to there. So a read sees every write that was acknowledged before it began, by whichever
server. A standby that does not get there soon, is away, or follows another primary is left alone for a while, and reads
go to the primary.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from typing import Any

import psycopg

from mcp_memory.store.postgres.deadlines import TimedConnection
from mcp_memory.store.postgres.pool import Pool, PoolExhausted

logger = logging.getLogger(__name__)

_CATCH_UP = 0.05  # seconds that a read waits for the standby
_POLL = 0.005
_NEAR = 2.0  # seconds for a connection and the question
_BEHIND = 1.0  # seconds until a standby that was behind is asked again
_AWAY = 10.0  # and one that did not answer

Position = tuple[str, int, int]
"""A position in the log of a primary: LSN, timeline and the identifier of the cluster."""

_POSITION = """
    SELECT pg_current_wal_flush_lsn(), ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int,
        system_identifier
    FROM pg_control_system()
"""
_HAS_REPLAYED = """
    SELECT pg_is_in_recovery() AND pg_last_wal_replay_lsn() >= %s::pg_lsn AND min_recovery_end_timeline = %s
        AND system_identifier = %s
    FROM pg_control_system(), pg_control_recovery()
"""


def position_of(con: psycopg.Connection[Any]) -> Position:
    """Return up to where the log of a primary is on disk."""
    lsn, timeline, cluster = con.execute(_POSITION).fetchone() or ("", 0, 0)
    return lsn, timeline, cluster


class Replica:
    """The standbys that a pool connects to. `problem` is why reads go to the primary now, or None."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._left_until = 0.0
        self.problem: str | None = None

    def close(self) -> None:
        self._pool.close()

    @property
    def is_asked(self) -> bool:
        """Whether a read may try the standby now."""
        return time.monotonic() >= self._left_until

    @contextmanager
    def connection(self, position: Position, deadline: float) -> Generator[TimedConnection | None]:
        """Lend a connection whose next snapshot is not older than a position of the primary; None if there is none."""
        with ExitStack() as stack:
            con = self._lend(stack, position, deadline)
            if con is None:
                stack.close()
            try:
                yield con
            except psycopg.Error as error:
                if con is not None:
                    self._leave(_AWAY, f"it failed: {error}")
                raise

    def _lend(self, stack: ExitStack, position: Position, deadline: float) -> TimedConnection | None:
        began, left_until = time.monotonic(), self._left_until
        if self.problem is not None:
            self._left_until = began + _AWAY  # other reads do not wait for the outcome of this one
        try:
            con = stack.enter_context(self._pool.connection(min(deadline, began + _NEAR)))
            until = time.monotonic() + _CATCH_UP
            while con.execute(_HAS_REPLAYED, position).fetchone() != (True,):
                if time.monotonic() > until:
                    self._leave(_BEHIND, "it has not replayed the newest writes")
                    return None
                time.sleep(_POLL)
        except PoolExhausted:
            self._left_until = left_until
            return None
        except psycopg.Error as error:
            self._leave(_AWAY, str(error))
            return None
        if self.problem is not None:
            logger.warning("the standby answers reads again")
        self.problem, self._left_until = None, left_until
        con.start(deadline)
        return con

    def _leave(self, seconds: float, reason: str) -> None:
        if self.problem is None:
            logger.warning("reads go to the primary: the standby for reads is away or behind")
        self._left_until = time.monotonic() + seconds
        reason = " ".join(reason.split())[:200]
        self.problem = f"Reads go to the primary, and not to the standby of MCP_MEMORY_STORE_READS: {reason}."
