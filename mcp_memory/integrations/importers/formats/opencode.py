"""Sessions of opencode as `opencode export` prints them; `opencode_db` and `opencode_files` read its storage.

    {info: {id, title, parentID, revert: {messageID}, time: {created}}, messages: [{info, parts}]}
    info    {id, role, time: {created}, summary}
    part    {type: text | reasoning | tool | file | …, text, synthetic, callID, tool, state: {input, output}}

Ids ascend with time. Messages from `revert.messageID` on were undone. Sessions with a parent are of sub-agents.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mcp_memory.integrations.importers.chat import Chat, Message
from mcp_memory.integrations.importers.format import Format, first_of, has
from mcp_memory.integrations.importers.parts import ATTACHED, BRANCHES, INJECTED, SUMMARIES
from mcp_memory.integrations.importers.records import find, items_of, object_of, objects_in
from mcp_memory.integrations.importers.session_files import chat_records


def _conversations(value: Any) -> Iterator[Any]:
    """Yield the session with its messages in order, those marked that were undone."""
    undone = find(value, "info.revert.messageID")
    messages = sorted(objects_in(items_of(value, "messages")), key=lambda message: str(find(message, "info.id")))
    yield {
        **(object_of(value) or {}),
        "messages": [
            {**message, "undone": isinstance(undone, str) and str(find(message, "info.id")) >= undone}
            for message in messages
        ],
    }


def _left_out(message: Message) -> str | None:
    if message.get("undone") is True:
        return BRANCHES
    return SUMMARIES if find(message, "info.summary") is True else None


def _parts(message: Message) -> Iterator[Any]:
    for part in objects_in(items_of(message, "parts")):
        if part.get("synthetic") is True or part.get("ignored") is True:
            yield {"type": INJECTED}
        elif part.get("type") == "file" and not str(part.get("mime")).startswith("image/"):
            yield {"type": ATTACHED}
        else:
            yield part


_CHAT = Chat(
    client="opencode",
    expected="session of opencode, with its messages",
    conversations=_conversations,
    id=("info.id",),
    title=("info.title",),
    began=("info.time.created",),
    key=("info.id",),
    role=("info.role",),
    time=("info.time.created",),
    split=_parts,
    joined="\n\n",
    left_out=_left_out,
)

session_records = chat_records(_CHAT, sub_agent=lambda source: find(source.value, "info.parentID") is not None)

FORMAT = Format(
    title="a session of opencode",
    location="what `opencode export` prints",
    matches=lambda value: has("info.id")(value) and first_of("messages", has("info.role", parts=list))(value),
    records=session_records,
)
