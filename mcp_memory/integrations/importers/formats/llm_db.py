"""The database of the command line tool llm, `logs.db`: tables conversations (id, name) and responses.

A row of responses is a pair of a prompt and a response, with the fields that `llm logs --json` prints.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mcp_memory.integrations.importers.format import Format
from mcp_memory.integrations.importers.formats.questions import pair_records
from mcp_memory.integrations.importers.records import SourceValue
from mcp_memory.integrations.importers.sqlite_file import open_database


def _load(path: Path) -> Iterator[SourceValue]:
    with open_database(path) as database:
        names = {row["id"]: row.get("name") for row in database.rows("conversations")}
        for number, row in enumerate(database.rows("responses", order="datetime_utc"), start=1):
            pair = {**row, "conversation_name": names.get(row.get("conversation_id"))}
            yield SourceValue(pair, f"response {row.get('id')}", number, path.as_posix())


FORMAT = Format(
    title="the database of llm",
    found="`logs.db` in `~/.config/io.datasette.llm`, or where `llm logs path` says",
    unit="path",
    path=r"(?:^|/)logs\.db$",
    load=_load,
    parts=lambda path: [path.with_name(f"{path.name}-wal")],
    records=pair_records,
)
