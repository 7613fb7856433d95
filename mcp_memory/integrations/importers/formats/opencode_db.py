"""The database of opencode, `~/.local/share/opencode/opencode.db`: tables session, message and part.

The columns `data` of messages and parts are the objects that `opencode export` prints, without their ids.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mcp_memory.integrations.importers.format import Format
from mcp_memory.integrations.importers.formats.opencode import session_records
from mcp_memory.integrations.importers.records import SourceValue
from mcp_memory.integrations.importers.session_files import object_in
from mcp_memory.integrations.importers.sqlite_file import open_database


def _load(path: Path) -> Iterator[SourceValue]:
    with open_database(path) as database:
        for number, session in enumerate(database.rows("session", order="id"), start=1):
            info = {
                "id": session["id"],
                "title": session.get("title"),
                "parentID": session.get("parent_id"),
                "revert": object_in(session.get("revert")),
                "time": {"created": session.get("time_created")},
            }
            parts: dict[str, list[Any]] = {}
            for part in database.rows("part", equal={"session_id": session["id"]}, order="id"):
                parts.setdefault(part["message_id"], []).append(object_in(part["data"]))
            messages = [
                {"info": {**object_in(message["data"]), "id": message["id"]}, "parts": parts.get(message["id"], [])}
                for message in database.rows("message", equal={"session_id": session["id"]}, order="id")
            ]
            yield SourceValue({"info": info, "messages": messages}, f"session {session['id']}", number, path.as_posix())


FORMAT = Format(
    title="the database of opencode",
    found="`~/.local/share/opencode/opencode.db`",
    unit="path",
    path=r"(?:^|/)opencode(?:-\w+)?\.db$",
    load=_load,
    parts=lambda path: [path.with_name(f"{path.name}-wal")],
    records=session_records,
)
