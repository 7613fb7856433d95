"""Whether a synchronous standby confirms commits.

A user without further rights sees how many standbys are connected and which of its own commits wait for one, but not
the states of the standbys. If none is connected, no commit is confirmed. A standby that is connected and does not
answer is found by a commit that waits, of any server, and is known to answer again by a commit that was confirmed.

A row of `commit_mark` records that the database has had a synchronous standby: a database that no longer waits for one
is then distinguished from one that never had any.
"""

from __future__ import annotations

from contextlib import suppress
from threading import Lock, Thread

import psycopg

from mcp_memory.core.errors import StoreUnavailable
from mcp_memory.store.postgres.deadlines import TimedConnection, deadline_in
from mcp_memory.store.postgres.pool import Pool, PoolExhausted
from mcp_memory.store.values import Replication

_NO_STANDBY = (
    "Writes are not confirmed: synchronous_standby_names requires a standby, and {}. Start it, or rebuild it with"
    " deploy/rebuild-standby.sh; or change that setting to write without it."
)
_NONE_CONNECTED = _NO_STANDBY.format("none is connected")
_NONE_ANSWERS = _NO_STANDBY.format("none answers")
_ALONE = (
    "Writes are acknowledged without a standby, which this memory has had: synchronous_standby_names is empty, and what"
    " is written now is lost if the disk of the primary is. Make a standby, and set it to '*' again."
)
STATE = """
    (SELECT count(*) FROM pg_stat_replication WHERE application_name <> 'pg_basebackup'),
    current_setting('synchronous_standby_names') <> ''
        AND current_setting('synchronous_commit') NOT IN ('off', 'local'),
    (SELECT max(pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn))::bigint FROM pg_stat_replication
        WHERE application_name <> 'pg_basebackup'),
    EXISTS (SELECT 1 FROM pg_stat_activity WHERE usename = current_user AND wait_event = 'SyncRep'
        AND state_change < now() - interval '5 s')
"""
HAS_LOST_STANDBY = """
    current_setting('synchronous_standby_names') = '' AND EXISTS (SELECT 1 FROM commit_mark WHERE token = -1)
"""
_RECORD = "INSERT INTO commit_mark (token, at) VALUES (-1, 'infinity') ON CONFLICT DO NOTHING"
"""The token of a transaction is never negative, and this row never becomes old."""
_COMMIT = "SELECT pg_logical_emit_message(true, 'mcp-memory', ''), set_config('client_min_messages', 'warning', true)"
"""The smallest transaction that waits for a standby. It changes nothing."""


class Standby:
    """What a process knows of the standbys of its database. Safe to use from any thread.

    `problem` is why no standby confirms commits, as last found; None if one does, or none is required.
    """

    def __init__(self, pool: Pool, seconds: float) -> None:
        """`pool` lends connections to try commits, each for `seconds` at most."""
        self._pool = pool
        self._seconds = seconds
        self._trying = Lock()
        self._is_recorded = False
        self.problem: str | None = None
        self.replication: Replication | None = None

    def look(self, con: TimedConnection) -> None:
        """Find out what is known without a commit. If there was a problem, a commit is tried in the background."""
        row = con.execute(f"SELECT {STATE}, {HAS_LOST_STANDBY} WHERE NOT pg_is_in_recovery()").fetchone()
        connected, is_required, lag, is_waited_for, is_lost = row or (0, False, None, False, False)
        self.replication = Replication(connected=connected, is_required=is_required, lag=lag)
        if not is_required:
            self.problem = _ALONE if is_lost else None
        elif not connected:
            self.problem = _NONE_CONNECTED
        else:
            self._record(con)
            has_problem = is_waited_for or self.problem not in (None, _ALONE)
            self.problem = _NONE_ANSWERS if has_problem else None
            if has_problem and not self._trying.locked():
                Thread(target=self.try_commit, name="try commit", daemon=True).start()

    def try_commit(self) -> None:
        """Find out by a commit whether a standby confirms it, if one is required and connected.

        If another thread is trying one, wait for its outcome.
        """
        if not (self.replication and self.replication.is_required and self.replication.connected):
            return
        is_first = self._trying.acquire(blocking=False)
        if not is_first and not self._trying.acquire(timeout=self._seconds):
            return
        try:
            with suppress(psycopg.Error, PoolExhausted, StoreUnavailable):  # the pool is closed at the end
                if is_first:
                    with self._pool.connection(deadline_in(self._seconds)) as con:
                        self.problem = None if _is_confirmed(con) else _NONE_ANSWERS
        finally:
            self._trying.release()

    def note_confirmed(self) -> None:
        """Note that a commit was confirmed by as many standbys as are required."""
        if self.problem != _ALONE:
            self.problem = None

    def note_silent(self) -> None:
        """Note that no standby confirmed a commit in time."""
        self.problem = _NONE_ANSWERS

    def _record(self, con: TimedConnection) -> None:
        """Record in the database that it has a synchronous standby."""
        if not self._is_recorded:
            with con.transaction():
                con.execute("SET LOCAL synchronous_commit = off")
                con.execute(_RECORD)
            self._is_recorded = True


def problem_of_commits(con: TimedConnection) -> str | None:
    """Try a commit until the deadline of the connection; return why no standby confirms it, or None."""
    connected, is_required, _, _ = con.execute(f"SELECT {STATE}").fetchone() or (0, False, None, False)
    if not is_required:
        return None
    if not connected:
        return _NONE_CONNECTED
    return None if _is_confirmed(con) else _NONE_ANSWERS


def _is_confirmed(con: TimedConnection) -> bool:
    con.execute(_COMMIT)
    return not con.has_warned
