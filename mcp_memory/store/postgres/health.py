"""Settings of a server that risk the loss or exposure of data, and two servers that are both the primary."""

from __future__ import annotations

from typing import Any

import psycopg

from mcp_memory.store.postgres import migrations
from mcp_memory.store.postgres.standby import HAS_LOST_STANDBY

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


def setting_problems(con: psycopg.Connection[Any]) -> list[str]:
    """Return the settings of the server that risk the loss or exposure of data."""
    row = con.execute(
        "SELECT rolbypassrls"
        " OR pg_has_role((SELECT relowner FROM pg_class WHERE oid = 'migration'::regclass), 'MEMBER'),"
        " current_setting('synchronous_commit') = 'off',"
        " current_setting('synchronous_standby_names') = ''"
        " AND EXISTS (SELECT 1 FROM pg_stat_replication WHERE application_name <> 'pg_basebackup')"
        f" AND NOT ({HAS_LOST_STANDBY})"  # which `Standby.problem` says
        " FROM pg_roles WHERE rolname = current_user"
    ).fetchone()
    problems = [text for text, is_so in zip((_ABOVE, _NOT_FLUSHED, _NOT_SENT), row or (), strict=False) if is_so]
    if missing := migrations.missing_settings(con):
        problems.append(_MISSING.format(", ".join(missing)))
    return problems
