"""Older transcripts of Cursor's agent, `~/.cursor/projects/<folder>/agent-transcripts/<id>.txt`.

user:                       also `assistant:` and `A:`, alone in a line
<user_query>…</user_query>
[Thinking] text             the rest of the line
[Tool call] Name            then indented arguments
[Tool result] Name          then the output, up to the next mark
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mcp_memory.integrations.importers.format import Format
from mcp_memory.integrations.importers.formats.cursor_transcripts import transcript_records
from mcp_memory.integrations.importers.parts import CALL, RESULT, THOUGHTS
from mcp_memory.integrations.importers.records import SourceValue
from mcp_memory.integrations.importers.session_files import text_at

_MARK = re.compile(r"(?P<who>user|assistant|A):\s*$|\[(?P<kind>Thinking|Tool call|Tool result)\] ?(?P<rest>.*)$")


def _load(path: Path) -> Iterator[SourceValue]:
    newer = (path.with_suffix(".jsonl"), path.with_suffix("") / f"{path.stem}.jsonl")
    is_copy = any(other.exists() for other in newer)
    value: Any = {"is_copy": True}
    if not is_copy:
        value = [{"role": role, "message": {"content": parts}} for role, parts in _messages(path)]
    yield SourceValue(value, path.name, path=path.as_posix())


def _messages(path: Path) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the role and parts of each message."""
    role, parts, kind = "", list[dict[str, Any]](), ""
    for number, line in enumerate(text_at(path, whole=True).splitlines()):
        mark = _MARK.match(line)
        if mark and mark["who"]:
            if role:
                yield role, parts
            role, parts, kind = "user" if mark["who"] == "user" else "assistant", [], "text"
        elif mark and role == "assistant":
            kind = mark["kind"]
            if kind == "Thinking":
                parts.append({"type": THOUGHTS})
                kind = "text"
            elif kind == "Tool call":
                parts.append({"type": CALL, "name": mark["rest"].strip()})
            else:
                parts.append({"type": RESULT, "id": f"line-{number}", "name": mark["rest"].strip(), "output": ""})
        elif kind == "Tool result":
            parts[-1]["output"] += f"{line}\n"
        elif role and not (kind == "Tool call" and (not line or line[0] in " \t")):
            kind = "text"
            if not parts or "text" not in parts[-1]:
                parts.append({"type": "text", "text": ""})
            parts[-1]["text"] += f"{line}\n"
    if role:
        yield role, parts


FORMAT = Format(
    title="an older transcript of Cursor's agent",
    location="`~/.cursor/projects`",
    unit="path",
    path=r"/agent-transcripts/.*\.txt$",
    load=_load,
    records=transcript_records,
)
