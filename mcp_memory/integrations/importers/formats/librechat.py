"""Exports of LibreChat: one JSON document a conversation, with its messages in a list or nested as `children`.

conversation   {conversationId, title, exportAt, options, messages: [message, …]}
message        {messageId, parentMessageId, isCreatedByUser, sender, text, content: [part, …], createdAt, files}
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mcp_memory.integrations.importers.chat import Chat
from mcp_memory.integrations.importers.format import Format, first_of, has
from mcp_memory.integrations.importers.records import find_first, items_of, list_of, object_of


def _flat(messages: list[Any]) -> Iterator[Any]:
    """Yield nested messages without their answers, each before its answers."""
    waiting = list(reversed(messages))
    while waiting:
        message = object_of(waiting.pop())
        if message is not None:
            waiting += reversed(items_of(message, "children"))
            yield {key: value for key, value in message.items() if key != "children"}


def _conversations(value: Any) -> Iterator[Any]:
    messages = list_of(find_first(value, ("messages", "messagesTree")))
    yield value if messages is None or object_of(value) is None else {**value, "messages": list(_flat(messages))}


FORMAT = Format(
    title="an export of LibreChat",
    location="the JSON file of a conversation, by Export conversation",
    matches=lambda value: (
        has("conversationId")(value)
        and any(first_of(key, has("messageId", "isCreatedByUser"))(value) for key in ("messages", "messagesTree"))
    ),
    records=Chat(
        client="librechat",
        expected="conversation of LibreChat, with its messages",
        conversations=_conversations,
        id=("conversationId",),
        key=("messageId",),
        parent=("parentMessageId",),
        roots=("00000000-0000-0000-0000-000000000000",),
        role=("isCreatedByUser",),
        time=("createdAt",),
        content=("content", "text"),
        attachments=("files",),
        instructions=("options.promptPrefix", "options.system"),
    ).records,
)
