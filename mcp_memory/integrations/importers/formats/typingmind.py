"""Exports of TypingMind: {data: {chats: [chat, …]}}, or the chats alone.

{chatID, chatTitle, createdAt, messages: [{role, content: text | [part, …], createdAt, uuid}]}
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mcp_memory.integrations.importers.chat import Chat
from mcp_memory.integrations.importers.format import Format, first_of, has
from mcp_memory.integrations.importers.records import find, items_of

_is_chat = has("chatID", messages=list)


def _chats(value: Any) -> Iterator[Any]:
    yield from [value] if _is_chat(value) else items_of(value, "chats") or items_of(find(value, "data"), "chats")


FORMAT = Format(
    title="an export of TypingMind",
    location="the JSON file of its export",
    matches=lambda value: any(
        test(thing)
        for test, thing in (
            (_is_chat, value),
            (first_of("chats", _is_chat), value),
            (first_of("chats", _is_chat), find(value, "data")),
        )
    ),
    records=Chat(
        client="typingmind",
        expected="chat of TypingMind, with its messages",
        conversations=_chats,
        id=("chatID",),
        title=("chatTitle",),
        key=("uuid",),
        time=("createdAt",),
    ).records,
)
