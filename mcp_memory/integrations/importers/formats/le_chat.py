"""Exports of Le Chat (Mistral): a file for each chat, `chat-<id>.json`, an array of messages in no order.

{id, chatId, role, content, contentChunks: [part, …], createdAt, files: [{type, name}]}
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mcp_memory.integrations.importers.chat import Chat, Message
from mcp_memory.integrations.importers.format import Format, has
from mcp_memory.integrations.importers.records import items_of, list_of, objects_in

CITATIONS = "citations"


def _in_order(value: Any) -> Iterator[Any]:
    yield sorted(objects_in(list_of(value) or []), key=lambda message: str(message.get("createdAt")))


def _parts(message: Message) -> Iterator[Any]:
    """Yield the parts of a message; texts that citations divide are one."""
    parts = objects_in(items_of(message, "contentChunks"))
    texts = [text for part in parts if part.get("type") == "text" and isinstance(text := part.get("text"), str)]
    yield from (part for part in parts if part.get("type") != "text")
    yield "".join(texts) or message.get("content")


FORMAT = Format(
    title="an export of Le Chat",
    location="the zip that Le Chat sends, or a `chat-<id>.json` of it",
    unit="document",
    matches=has("chatId", "role", "createdAt"),
    records=Chat(
        client="le-chat",
        expected="chat of Le Chat",
        conversations=_in_order,
        id=("chatId",),
        began=("createdAt",),
        messages=("",),
        time=("createdAt",),
        split=_parts,
        parts={"reference": CITATIONS},
        attachments=("files",),
    ).records,
)
