"""The database of opencode, `~/.local/share/opencode/opencode.db`: tables session, message and part.

The columns `data` of messages and parts are the objects that `opencode export` prints, without their ids.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mcp_memory.integrations.importers.format import Format
from mcp_memory.integrations.importers.formats.opencode import session_records
from mcp_memory.integrations.importers.parts import parse_object
from mcp_memory.integrations.importers.session_files import load_database, write_ahead_log
from mcp_memory.integrations.importers.sqlite_file import Database


def _sessions(database: Database) -> Iterator[tuple[str, Any]]:
    for session in database.rows("session", order="id"):
        info = {
            "id": session["id"],
            "title": session.get("title"),
            "parentID": session.get("parent_id"),
            "revert": parse_object(session.get("revert")),
            "time": {"created": session.get("time_created")},
        }
        parts: dict[str, list[Any]] = {}
        for part in database.rows("part", equal={"session_id": session["id"]}, order="id"):
            parts.setdefault(part["message_id"], []).append(parse_object(part["data"]))
        messages = [
            {"info": {**parse_object(message["data"]), "id": message["id"]}, "parts": parts.get(message["id"], [])}
            for message in database.rows("message", equal={"session_id": session["id"]}, order="id")
        ]
        yield f"session {session['id']}", {"info": info, "messages": messages}


FORMAT = Format(
    title="the database of opencode",
    location="`~/.local/share/opencode/opencode.db`",
    unit="path",
    path=r"(?:^|/)opencode(?:-\w+)?\.db$",
    load=load_database(_sessions),
    parts=write_ahead_log,
    records=session_records,
)
