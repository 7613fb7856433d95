"""The database of OpenClaw since 2026, `~/.openclaw/agents/<agent>/agent/openclaw-agent.sqlite`.

The column `event_json` of the table `transcript_events` has the lines that `openclaw` reads from files. A long line is
compressed instead, in `event_zstd`; `navigation_json` then has its id and parent. Python can read that from 3.14 on; an
older one counts the line, which our plugin hands over all the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from itertools import groupby
from typing import Any

from mcp_memory.integrations.importers.format import Format
from mcp_memory.integrations.importers.formats.openclaw import CHAT, of_program, session_of
from mcp_memory.integrations.importers.parts import parse_object
from mcp_memory.integrations.importers.records import part_of
from mcp_memory.integrations.importers.session_files import chat_records, load_database, write_ahead_log
from mcp_memory.integrations.importers.sqlite_file import Database


def _sessions(database: Database) -> Iterator[tuple[str, Any]]:
    keys = _keys(database)
    rows = database.rows("transcript_events", order="session_id")
    for id, group in groupby(rows, key=lambda row: str(row["session_id"])):
        lines = [_line(row) for row in sorted(group, key=lambda row: int(row["seq"]))]
        yield f"session {id}", {**session_of(lines, keys.get(id, "")), "id": id}


def _line(row: Mapping[str, Any]) -> dict[str, Any]:
    if row.get("event_json") is not None:
        return parse_object(row["event_json"])
    known = {**part_of(parse_object(row.get("navigation_json")), "navigation"), "compressed": True}
    try:
        zstd: Any = import_module("compression.zstd")
    except ImportError:
        return known
    try:
        return parse_object(zstd.decompress(row["event_zstd"]))
    except zstd.ZstdError:
        return known


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
