"""The database of OpenClaw since 2026, `~/.openclaw/agents/<agent>/agent/openclaw-agent.sqlite`.

The column `event_json` of the table `transcript_events` has the lines that `openclaw` reads from files. A long line is
compressed instead, in `event_zstd`; `navigation_json` then has its id and parent. Python can read that from 3.14 on; an
older one counts the line, which our plugin hands over all the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import Any

from mcp_memory.integrations.importers.format import Format
from mcp_memory.integrations.importers.formats.openclaw import CHAT, of_program, session_of
from mcp_memory.integrations.importers.records import SourceValue, part_of
from mcp_memory.integrations.importers.session_files import beside, chat_records, object_in
from mcp_memory.integrations.importers.sqlite_file import Database, open_database


def _load(path: Path) -> Iterator[SourceValue]:
    with open_database(path) as database:
        keys = _keys(database)
        rows = database.rows("transcript_events", order="session_id")
        for number, (id, group) in enumerate(groupby(rows, key=lambda row: str(row["session_id"])), start=1):
            lines = [_line(row) for row in sorted(group, key=lambda row: int(row["seq"]))]
            session = {**session_of(lines, keys.get(id, "")), "id": id}
            yield SourceValue(session, f"session {id}", number, path.as_posix())


def _line(row: Mapping[str, Any]) -> dict[str, Any]:
    if row.get("event_json") is not None:
        return object_in(row["event_json"])
    known = {**part_of(object_in(row.get("navigation_json")), "navigation"), "compressed": True}
    try:
        zstd: Any = import_module("compression.zstd")
    except ImportError:
        return known
    try:
        return object_in(zstd.decompress(row["event_zstd"]))
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
    found="`~/.openclaw/agents/<agent>/agent/openclaw-agent.sqlite`",
    unit="path",
    path=r"(?:^|/)openclaw-agent\.sqlite$",
    load=_load,
    parts=beside("openclaw-agent.sqlite-wal"),
    records=chat_records(CHAT, sub_agent=of_program),
)
