"""Backups of NextChat (ChatGPT-Next-Web): {chat-next-web-store: {sessions: [session, …]}, …}.

{id, topic, lastUpdate, messages: [{id, date, role, content, isError}]}; `date` is as the browser shows it, local
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mcp_memory.integrations.importers.chat import Chat
from mcp_memory.integrations.importers.format import Format
from mcp_memory.integrations.importers.formats.transcripts import shown_time
from mcp_memory.integrations.importers.records import find, items_of, list_of, objects_in

_STORE = "chat-next-web-store"
NOTICES = "notices of the program"


def _sessions(value: Any) -> Iterator[Any]:
    for session in objects_in(items_of(find(value, _STORE), "sessions")):
        messages = objects_in(items_of(session, "messages"))
        dated = [{**message, "ts": shown_time(str(message.get("date")))} for message in messages]
        yield {**session, "messages": dated}


FORMAT = Format(
    title="a backup of NextChat",
    location="the JSON file of its export in the settings",
    matches=lambda value: list_of(find(find(value, _STORE), "sessions")) is not None,
    records=Chat(
        client="nextchat",
        expected="session of NextChat, with its messages",
        conversations=_sessions,
        title=("topic",),
        began=(),
        time=("ts",),
        left_out=lambda message: NOTICES if message.get("isError") is True else None,
    ).records,
)
