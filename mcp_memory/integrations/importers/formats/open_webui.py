"""Exports of Open WebUI, and of sites that are built on it: an array of chats, by Export chats.

    chat      {id, title, created_at, chat: {history: {messages: {id: message, …}, currentId}, params: {system}}}
    message   {id, parentId, childrenIds, role, content, timestamp, files: [{name, file: {data: {content}}}]}

Thoughts and results of tools are in the content, as `<details type="reasoning">` and `<details type="tool_calls">`.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any

from mcp_memory.integrations.importers.chat import Chat, Message
from mcp_memory.integrations.importers.format import Format, has
from mcp_memory.integrations.importers.parts import RESULT, THOUGHTS, parse_or_keep, split_text

_DETAILS = re.compile(r'<details type="(\w+)"([^>]*)>.*?</details>\n*', re.DOTALL)
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')


def _parts(message: Message) -> Iterator[dict[str, Any]]:
    return split_text(str(message.get("content") or ""), _DETAILS, _details)


def _details(details: re.Match[str]) -> Iterator[dict[str, Any]]:
    fields: dict[str, Any] = {key: html.unescape(value) for key, value in _ATTRIBUTE.findall(details[2])}
    if details[1] != "tool_calls":
        yield {"type": THOUGHTS}
    elif "result" in fields:
        yield {"type": RESULT, **fields, "result": _unquote(_unquote(fields["result"]))}


def _unquote(text: str) -> str:
    """Return the text of a JSON string; other texts as they are. Open WebUI quotes results once or twice."""
    value = parse_or_keep(text)
    return value if isinstance(value, str) else text


FORMAT = Format(
    title="an export of Open WebUI",
    location="the JSON file of Export chats",
    matches=has(chat__history__messages=dict),
    records=Chat(
        client="open-webui",
        expected="chat of Open WebUI, with its history",
        title=("title", "chat.title"),
        began=("created_at", "chat.timestamp"),
        messages=("chat.history.messages",),
        leaf=("chat.history.currentId",),
        parent=("parentId",),
        time=("timestamp",),
        split=_parts,
        attachments=("files",),
        attachment_text=("file.data.content",),
        instructions=("chat.params.system",),
    ).records,
)
