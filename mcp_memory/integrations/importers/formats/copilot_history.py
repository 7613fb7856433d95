"""Sessions of GitHub Copilot CLI before version 0.0.34x, `~/.copilot/history-session-state/session_<id>_<ms>.json`.

    {sessionId, startTime, timeline: [{id, timestamp, type: "user" | "copilot" | "tool_call_completed" | "info", text}],
     chatMessages: [message, …]}

`chatMessages` are the messages as the model saw them, without times: they are read only if the timeline is empty.
"""

from __future__ import annotations

from dataclasses import replace

from mcp_memory.integrations.importers.chat import Chat
from mcp_memory.integrations.importers.format import Format, has
from mcp_memory.integrations.importers.formats.copilot_cli import CHAT
from mcp_memory.integrations.importers.records import items_of

_TIMELINE = replace(CHAT, id=("sessionId",), began=("startTime",), messages=("timeline",))
_MESSAGES = Chat(
    client="copilot",
    expected="session of GitHub Copilot CLI",
    id=("sessionId",),
    began=("startTime",),
    messages=("chatMessages",),
    client_tags=("current_datetime", "reminder", "tagged_files", "ide_selection", "sql_tables"),
)

FORMAT = Format(
    title="an older session of GitHub Copilot CLI",
    location="`~/.copilot/history-session-state`",
    matches=has("sessionId", "startTime", chatMessages=list),
    records=lambda source, skipped: (_TIMELINE if items_of(source.value, "timeline") else _MESSAGES).records(
        source, skipped
    ),
)
