"""Sessions of Factory's Droid, `~/.factory/sessions/<folder>/<session>.jsonl`.

first line   {type: "session_start", id, title, sessionTitle, cwd}
message      {type: "message", id, parentId, timestamp, message: {role, content: [part, …]}}
"""

from __future__ import annotations

from mcp_memory.integrations.importers.chat import Chat, Message
from mcp_memory.integrations.importers.format import Format, any_line
from mcp_memory.integrations.importers.parts import HIDDEN, SUMMARIES
from mcp_memory.integrations.importers.records import object_of


def _left_out(message: Message) -> str | None:
    kind = message.get("type")
    return None if kind == "message" else SUMMARIES if kind == "compaction_state" else HIDDEN


FORMAT = Format(
    title="a session of Factory Droid",
    location="`~/.factory/sessions`",
    unit="lines",
    matches=any_line(lambda line: (object_of(line) or {}).get("type") == "session_start"),
    records=Chat(
        client="factory-droid",
        expected="session of Factory Droid",
        title=("sessionTitle", "title"),
        began=("timestamp",),
        messages=("",),
        skip=lambda line: line.get("type") in ("session_start", "session_end", "todo_state"),
        role=("message.role",),
        time=("timestamp",),
        content=("message.content",),
        left_out=_left_out,
        client_tags=("system-reminder",),
    ).records,
)
