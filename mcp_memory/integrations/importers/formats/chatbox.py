"""Exports of Chatbox: {chat-sessions-list: […], session:<id>: session, …}. Threads are earlier talks of a session.

session   {id, name, messages: [message, …], threads: [{id, name, messages}]}
message   {id, role, timestamp, contentParts: [{type: text | reasoning | tool-call | image, text}] | content}
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mcp_memory.integrations.importers.chat import Chat
from mcp_memory.integrations.importers.format import Format
from mcp_memory.integrations.importers.records import items_of, list_of, object_of


def _sessions(value: Any) -> Iterator[Any]:
    for key, session in (object_of(value) or {}).items():
        if key.startswith("session:"):
            yield from items_of(session, "threads")
            yield session


FORMAT = Format(
    title="an export of Chatbox",
    location="the JSON file of its export in the settings",
    matches=lambda value: list_of((object_of(value) or {}).get("chat-sessions-list")) is not None,
    records=Chat(
        client="chatbox",
        expected="session of Chatbox, with its messages",
        conversations=_sessions,
        title=("threadName", "name"),
        time=("timestamp",),
        content=("contentParts", "content"),
        attachments=("files", "links"),
        attachment_name=("name", "title", "url"),
    ).records,
)
