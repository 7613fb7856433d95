"""Design chats of Claude.ai, `design_chats/<id>.json` of its export.

{uuid, title, project, created_at, messages: [{uuid, role, created_at, content: {role, content, id, timestamp}}]}
"""

from __future__ import annotations

from mcp_memory.integrations.importers.chat import Chat
from mcp_memory.integrations.importers.format import Format, first_of, has

FORMAT = Format(
    title="a design chat of Claude.ai",
    location="the folder design_chats of its export",
    matches=first_of("messages", has("uuid", content=dict)),
    records=Chat(
        client="claude-ai",
        expected="design chat of Claude.ai, with its messages",
        id=("uuid",),
        time=("created_at", "content.timestamp"),
        content=("content.content",),
    ).records,
)
