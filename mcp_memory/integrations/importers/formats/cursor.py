"""Chats of Cursor in its databases, `User/globalStorage/state.vscdb` and `User/workspaceStorage/<id>/state.vscdb`.

    cursorDiskKV   composerData:<chat>        {composerId, name, createdAt, fullConversationHeadersOnly: [{bubbleId}]}
                                              or, before, with `conversation: [bubble, …]`
                   bubbleId:<chat>:<bubble>   {bubbleId, type: 1 (user) | 2, text, createdAt, thinking, toolFormerData}
    ItemTable      workbench.panel.aichat.view.aichat.chatdata   {tabs: [{tabId, chatTitle, bubbles: [bubble, …]}]}

Bubbles that are missing from the list of their chat were edited or rewound.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mcp_memory.integrations.importers.chat import Chat, Message
from mcp_memory.integrations.importers.format import Format
from mcp_memory.integrations.importers.parts import ATTACHED, BRANCHES, CALL, IMAGE, THOUGHTS, WORDS, parse_object
from mcp_memory.integrations.importers.records import (
    find,
    find_first,
    items_of,
    objects_in,
    part_of,
    text_of,
)
from mcp_memory.integrations.importers.session_files import load_database, write_ahead_log
from mcp_memory.integrations.importers.sqlite_file import Database

_TABS = "workbench.panel.aichat.view.aichat.chatdata"


def _chats(database: Database) -> Iterator[tuple[str, Any]]:
    for row in database.rows("cursorDiskKV", prefix={"key": "composerData:"}, order="key"):
        chat = parse_object(row["value"])
        start = f"bubbleId:{chat.get('composerId')}:"
        stored = {
            row["key"].removeprefix(start): parse_object(row["value"])
            for row in database.rows("cursorDiskKV", prefix={"key": start}, order="key")
        }
        heads = objects_in(items_of(chat, "fullConversationHeadersOnly"))
        named = [str(head.get("bubbleId")) for head in heads]
        shown = [{**head, **stored[id]} for id, head in zip(named, heads, strict=True) if id in stored]
        gone = [{**bubble, "undone": True} for id, bubble in stored.items() if id not in named and bubble]
        messages = [*shown, *gone] or items_of(chat, "conversation")
        if messages:
            yield f"chat {chat.get('composerId')}", {**chat, "messages": messages}
    for row in database.rows("ItemTable", equal={"key": _TABS}):
        for tab in objects_in(items_of(parse_object(row["value"]), "tabs")):
            yield f"chat {tab.get('tabId')}", {**tab, "messages": items_of(tab, "bubbles")}


def _parts(bubble: Message) -> Iterator[dict[str, Any]]:
    if text_of(part_of(bubble, "thinking"), "text"):
        yield {"type": THOUGHTS}
    tool = part_of(bubble, "toolFormerData")
    if tool:
        arguments = find_first(tool, ("rawArgs", "params"))
        fields = {"name": tool.get("name"), "toolCallId": tool.get("toolCallId"), "args": arguments}
        yield {"type": CALL, **fields, "output": tool.get("result")}
    yield {"type": WORDS, "text": text_of(bubble, "text", "rawText") or ""}
    yield from ({"type": IMAGE} for _ in items_of(bubble, "images"))
    files = [*items_of(part_of(bubble, "context"), "fileSelections"), *items_of(bubble, "selections")]
    yield from ({"type": ATTACHED} for _ in files)


def _speaker(bubble: Message) -> Any:
    return {1: "user", "user": "user", 2: "assistant", "ai": "assistant"}.get(_plain(bubble.get("type")))


def _plain(value: Any) -> str | int:
    return value if isinstance(value, str | int) else ""


FORMAT = Format(
    title="chats of Cursor",
    location="`state.vscdb` in Cursor's `User/globalStorage` and `User/workspaceStorage`",
    unit="path",
    path=r"(?:^|/)state\.vscdb$",
    load=load_database(_chats),
    parts=write_ahead_log,
    records=Chat(
        client="cursor",
        expected="chat of Cursor",
        id=("composerId", "tabId"),
        title=("name", "chatTitle"),
        began=("createdAt", "lastSendTime"),
        key=("bubbleId", "id"),
        time=("createdAt", "timingInfo.clientEndTime", "timingInfo.clientStartTime"),
        speaker=_speaker,
        split=_parts,
        left_out=lambda bubble: BRANCHES if find(bubble, "undone") is True else None,
    ).records,
)
