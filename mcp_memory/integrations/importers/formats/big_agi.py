"""Conversations of big-AGI: {conversations: [conversation, …]}, or one.

conversation   {id, userTitle, autoTitle, systemPurposeId, created, messages: [message, …]}
message        {id, role, created, fragments: [{ft, part: {pt: text | ma | error | …, text}}]} | {…, text}
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mcp_memory.integrations.importers.chat import Chat, Message
from mcp_memory.integrations.importers.format import Format, first_of, has
from mcp_memory.integrations.importers.parts import CALL, HIDDEN, RESULT, THOUGHTS, WORDS
from mcp_memory.integrations.importers.records import find, items_of, object_of

_KINDS = {"text": WORDS, "ma": THOUGHTS, "error": HIDDEN, "tool_invocation": CALL, "tool_response": RESULT}
_is_conversation = has("systemPurposeId", messages=list)


def _conversations(value: Any) -> Iterator[Any]:
    yield from [value] if _is_conversation(value) else items_of(value, "conversations")


def _parts(message: Message) -> Iterator[Any]:
    yield message.get("text") or ""
    for part in (find(fragment, "part") for fragment in items_of(message, "fragments")):
        fields = object_of(part) or {}
        kind = str(fields.get("pt"))
        yield {**fields, "type": _KINDS.get(kind, kind)}


FORMAT = Format(
    title="a conversation of big-AGI",
    location="the JSON file of Export",
    matches=lambda value: _is_conversation(value) or first_of("conversations", _is_conversation)(value),
    records=Chat(
        client="big-agi",
        expected="conversation of big-AGI, with its messages",
        conversations=_conversations,
        title=("userTitle", "autoTitle"),
        began=("created",),
        time=("created",),
        split=_parts,
    ).records,
)
