"""Settings of a server that risk the loss or exposure of data, and two servers that are both the primary."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

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
_SEVERAL = (
    "{} servers accept writes, {}: what is written to one is missing on the other. Stop the one that was the primary"
    " before, and make it a standby with deploy/rebuild-standby.sh, which keeps its data directory."
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


def double_primary(conninfo: str) -> str | None:
    """Return the problem that several hosts of a connection accept writes, or None. It takes two seconds a host."""
    parameters: dict[str, Any] = {**conninfo_to_dict(conninfo)}
    lists = {name: str(parameters[name]).split(",") for name in ("host", "hostaddr", "port") if parameters.get(name)}
    many = max(map(len, lists.values()), default=1)
    primaries = dict[Any, str]()  # by when they started: a server may have several names
    for place in range(many if many > 1 else 0):
        one = {name: values[place % len(values)] for name, values in lists.items()}
        only = make_conninfo("", **parameters | one | {"connect_timeout": 2, "target_session_attrs": "read-write"})
        with suppress(psycopg.Error), psycopg.connect(only) as con:
            ((started,),) = con.execute("SELECT pg_postmaster_start_time()").fetchall()
            host = one.get("host") or one.get("hostaddr") or "localhost"
            primaries.setdefault(started, f"{host}:{one.get('port', 5432)}")
    return _SEVERAL.format(len(primaries), " and ".join(primaries.values())) if len(primaries) > 1 else None
