"""The database of OpenClaw since 2026, `~/.openclaw/agents/<agent>/agent/openclaw-agent.sqlite`.

The column `event_json` of the table `transcript_events` has the lines that `openclaw` reads from files.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from mcp_memory.integrations.importers.format import Format
from mcp_memory.integrations.importers.formats.openclaw import CHAT, of_program, session_of
from mcp_memory.integrations.importers.parts import parse_object
from mcp_memory.integrations.importers.session_files import chat_records, load_database, write_ahead_log
from mcp_memory.integrations.importers.sqlite_file import Database


def _sessions(database: Database) -> Iterator[tuple[str, Any]]:
    keys = _keys(database)
    rows = database.rows("transcript_events", order="session_id")
    for id, group in groupby(rows, key=lambda row: str(row["session_id"])):
        lines = [parse_object(row["event_json"]) for row in sorted(group, key=lambda row: int(row["seq"]))]
        yield f"session {id}", {**session_of(lines, keys.get(id, "")), "id": id}


def _keys(database: Database) -> dict[str, str]:
    """Return the keys of sessions, in versions that have them in a table."""
    rows = (row for table in ("sessions", "session_entries") for row in database.rows(table))
    return {
        str(row["session_id"]): str(row["session_key"]) for row in rows if {"session_id", "session_key"} <= row.keys()
    }


FORMAT = Format(
    title="the database of OpenClaw",
    location="`~/.openclaw/agents/<agent>/agent/openclaw-agent.sqlite`",
    unit="path",
    path=r"(?:^|/)openclaw-agent\.sqlite$",
    load=load_database(_sessions),
    parts=write_ahead_log,
    records=chat_records(CHAT, sub_agent=of_program),
)
