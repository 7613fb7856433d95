"""Exports of Open WebUI, and of sites that are built on it: an array of chats, by Export chats.

    chat      {id, title, created_at, chat: {history: {messages: {id: message, …}, currentId}, params: {system}}}
    message   {id, parentId, childrenIds, role, content, timestamp, files: [{name, file: {data: {content}}}]}

Thoughts and results of tools are in the content, as `<details type="reasoning">` and `<details type="tool_calls">`.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from typing import Any

from mcp_memory.integrations.importers.chat import Chat, Message
from mcp_memory.integrations.importers.format import Format, has
from mcp_memory.integrations.importers.parts import RESULT, THOUGHTS, WORDS

_DETAILS = re.compile(r'<details type="(\w+)"([^>]*)>.*?</details>\n*', re.DOTALL)
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')


def _parts(message: Message) -> Iterator[dict[str, Any]]:
    """Yield the parts of a content, as other programs write them."""
    text, at = str(message.get("content") or ""), 0
    for found in _DETAILS.finditer(text):
        yield {"type": WORDS, "text": text[at : found.start()].strip()}
        at = found.end()
        fields: dict[str, Any] = {key: html.unescape(value) for key, value in _ATTRIBUTE.findall(found[2])}
        if found[1] != "tool_calls":
            yield {"type": THOUGHTS}
        elif "result" in fields:
            yield {"type": RESULT, **fields, "result": _plain(fields["result"])}
    yield {"type": WORDS, "text": text[at:].strip()}


def _plain(text: str) -> str:
    """Return a text that is quoted as JSON, once or twice."""
    for _ in range(2):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            break
        if not isinstance(value, str):
            break
        text = value
    return text


FORMAT = Format(
    title="an export of Open WebUI",
    found="the JSON file of Export chats",
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
