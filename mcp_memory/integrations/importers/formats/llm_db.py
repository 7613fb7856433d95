"""The database of the command line tool llm, `logs.db`: tables conversations (id, name) and responses.

A row of responses is a pair of a prompt and a response, with the fields that `llm logs --json` prints.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mcp_memory.integrations.importers.format import Format
from mcp_memory.integrations.importers.formats.questions import pair_records
from mcp_memory.integrations.importers.session_files import load_database, write_ahead_log
from mcp_memory.integrations.importers.sqlite_file import Database


def _pairs(database: Database) -> Iterator[tuple[str, Any]]:
    names = {row["id"]: row.get("name") for row in database.rows("conversations")}
    for row in database.rows("responses", order="datetime_utc"):
        yield f"response {row.get('id')}", {**row, "conversation_name": names.get(row.get("conversation_id"))}


FORMAT = Format(
    title="the database of llm",
    location="`logs.db` in `~/.config/io.datasette.llm`, or where `llm logs path` says",
    unit="path",
    path=r"(?:^|/)logs\.db$",
    load=load_database(_pairs),
    parts=write_ahead_log,
    records=pair_records,
)
