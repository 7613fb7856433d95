"""Health of a server: settings that risk the loss or exposure of data, and whether a standby confirms commits.

A user without further rights sees how many standbys are connected, but not their states. If none is connected, no
commit is confirmed; a standby that is connected and does not answer is found only by a commit.
"""

from __future__ import annotations

from typing import Any

import psycopg

from mcp_memory.store.postgres import migrations
from mcp_memory.store.postgres.deadlines import TimedConnection

_ABOVE = (
    "The user of the database owns the tables, is a superuser or may bypass row-level security, so only our own queries"
    " separate the spaces. Connect as a plain user; `mcp-memory migrate --grant USER` grants it the tables."
)
_NOT_FLUSHED = (
    "synchronous_commit is off: a crash of the server may lose writes that were acknowledged. Set it to on for the"
    " database."
)
_NOT_SENT = (
    "No standby is synchronous: after a failover to one, writes that were acknowledged may be missing. Name it in"
    " synchronous_standby_names."
)
_MISSING = (
    "The database lacks settings of mcp-memory: {}. They are lost when a dump is restored. Run `mcp-memory migrate`"
    " with the URL of the user who owns the database."
)
_NO_STANDBY = (
    "Writes are not confirmed: synchronous_standby_names requires a standby, and {}. Start it, or change that setting"
    " to write without it."
)
STANDBY_SILENT = _NO_STANDBY.format("none answers")
_CONNECTED = """
    SELECT EXISTS (SELECT 1 FROM pg_stat_replication WHERE application_name <> 'pg_basebackup')
    WHERE current_setting('synchronous_standby_names') <> '' AND NOT pg_is_in_recovery()
    AND current_setting('synchronous_commit') NOT IN ('off', 'local')
"""
_COMMIT = "SELECT pg_logical_emit_message(true, 'mcp-memory', ''), set_config('client_min_messages', 'warning', true)"
"""The smallest transaction that waits for a standby. It changes nothing."""


def setting_problems(con: psycopg.Connection[Any]) -> list[str]:
    """Return the settings of the server that risk the loss or exposure of data."""
    row = con.execute(
        "SELECT rolbypassrls"
        " OR pg_has_role((SELECT relowner FROM pg_class WHERE oid = 'migration'::regclass), 'MEMBER'),"
        " current_setting('synchronous_commit') = 'off',"
        " current_setting('synchronous_standby_names') = ''"
        " AND EXISTS (SELECT 1 FROM pg_stat_replication WHERE application_name <> 'pg_basebackup')"
        " FROM pg_roles WHERE rolname = current_user"
    ).fetchone()
    problems = [text for text, is_so in zip((_ABOVE, _NOT_FLUSHED, _NOT_SENT), row or (), strict=False) if is_so]
    if missing := migrations.missing_settings(con):
        problems.append(_MISSING.format(", ".join(missing)))
    return problems


def standby_problem(con: TimedConnection, *, try_commit: bool) -> str | None:
    """Return why commits are not confirmed by a synchronous standby, or None if they are or no standby is required.

    With `try_commit`, one is tried until the deadline of the connection.
    """
    row = con.execute(_CONNECTED).fetchone()
    if row is None:
        return None
    if row == (False,):
        return _NO_STANDBY.format("none is connected")
    return STANDBY_SILENT if try_commit and not _is_confirmed(con) else None


def _is_confirmed(con: TimedConnection) -> bool:
    con.execute(_COMMIT)
    return not con.has_warned
