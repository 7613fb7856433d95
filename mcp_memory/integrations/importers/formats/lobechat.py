"""Exports of LobeChat: {state | data: {messages: [message, …], topics: [{id, title}], …}}.

{id, role, content, createdAt, sessionId, topicId}; messages of a topic are a conversation, and so are those without
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mcp_memory.integrations.importers.chat import Chat
from mcp_memory.integrations.importers.format import Format, first_of, has
from mcp_memory.integrations.importers.records import find, find_first, items_of, object_of

_has_messages = first_of("messages", lambda message: has("role")(message) and "sessionId" in (object_of(message) or {}))


def _topics(value: Any) -> Iterator[Any]:
    state = find_first(value, ("state", "data"))
    titles = {find(topic, "id"): find(topic, "title") for topic in items_of(state, "topics")}
    talks: dict[str, list[Any]] = {}
    for message in items_of(state, "messages"):
        talks.setdefault(str(find_first(message, ("topicId", "sessionId")) or ""), []).append(message)
    for id, messages in talks.items():
        yield {"id": id, "title": titles.get(id), "messages": messages}


FORMAT = Format(
    title="an export of LobeChat",
    location="the JSON file of its export in the settings",
    matches=lambda value: _has_messages(find_first(value, ("state", "data"))),
    records=Chat(
        client="lobechat",
        expected="export of LobeChat, with its messages",
        conversations=_topics,
        time=("createdAt",),
    ).records,
)
