"""Whether a synchronous standby confirms commits.

A user without further rights sees how many standbys are connected, but not their states. If none is connected, that is
certain; a standby that is connected and silent is found only by a commit.
"""

from __future__ import annotations

from mcp_memory.store.postgres.deadlines import TimedConnection

_CONNECTED = """
    SELECT EXISTS (SELECT 1 FROM pg_stat_replication WHERE application_name <> 'pg_basebackup')
    WHERE current_setting('synchronous_standby_names') <> '' AND NOT pg_is_in_recovery()
    AND current_setting('synchronous_commit') NOT IN ('off', 'local')
"""
_COMMIT = "SELECT pg_logical_emit_message(true, 'mcp-memory', ''), set_config('client_min_messages', 'warning', true)"
"""The smallest transaction that waits for a standby. It changes nothing."""


def standby_problem(con: TimedConnection, *, try_commit: bool) -> str | None:
    """Return why commits are not confirmed by a synchronous standby, or None if they are or no standby is required.

    With `try_commit`, one is tried until the deadline of the connection.
    """
    row = con.execute(_CONNECTED).fetchone()
    if row is None:
        return None
    (is_connected,) = row
    if not is_connected:
        problem = "none is connected"
    elif try_commit and not _is_confirmed(con):
        problem = "none answers"
    else:
        return None
    return (
        f"Writes are not confirmed: synchronous_standby_names requires a standby, and {problem}. Start it, or change"
        " that setting to write without it."
    )


def _is_confirmed(con: TimedConnection) -> bool:
    con.execute(_COMMIT)
    return not con.has_warned
