"""The storage of opencode before version 1.2, `~/.local/share/opencode/storage`: a file for each part of a message.

    session/<project>/<session>.json    message/<session>/<message>.json    part/<message>/<part>.json

The files have the objects that `opencode export` prints.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from mcp_memory.integrations.importers.format import Format
from mcp_memory.integrations.importers.formats.opencode import session_records
from mcp_memory.integrations.importers.reader import read_json
from mcp_memory.integrations.importers.records import SourceValue


def _messages(session: Path) -> list[Path]:
    return sorted((session.parents[2] / "message" / session.stem).glob("*.json"))


def _parts(message: Path) -> list[Path]:
    return sorted((message.parents[2] / "part" / message.stem).glob("*.json"))


def _load(path: Path) -> Iterator[SourceValue]:
    messages = [{"info": read_json(at), "parts": [read_json(part) for part in _parts(at)]} for at in _messages(path)]
    yield SourceValue({"info": read_json(path), "messages": messages}, path.name, path=path.as_posix())


def _files(path: Path) -> Sequence[Path]:
    return [file for message in _messages(path) for file in (message, *_parts(message))]


FORMAT = Format(
    title="the storage of opencode",
    location="`~/.local/share/opencode/storage`",
    unit="path",
    path=r"/storage/session/[^/]+/ses_\w+\.json$",
    load=_load,
    parts=_files,
    records=session_records,
)
