"""Exports of DeepSeek: conversations.json of the zip that chat.deepseek.com sends.

    conversation   {id, title, inserted_at, mapping: {id: node, …}}
    node           {id, parent, children, message: {inserted_at, files, fragments: [{type, content}]}}

The tree is that of ChatGPT's export, with fragments (REQUEST, RESPONSE, THINK, SEARCH …) instead of an author and a
content. Ids of nodes are unique within their conversation. The current branch is not named: it is the newest.
"""

from __future__ import annotations

from collections.abc import Mapping

from mcp_memory.core.types import Role
from mcp_memory.integrations.importers.chat import Chat
from mcp_memory.integrations.importers.format import Format, values_of
from mcp_memory.integrations.importers.parts import CALLS, HIDDEN, THOUGHTS, WORDS
from mcp_memory.integrations.importers.records import find, items_of, list_of, object_of

NOTICES = "notices of the page"


def _is_deepseek(value: object) -> bool:
    return any(list_of(find(node, "message.fragments")) is not None for node in values_of(find(value, "mapping")))


def _speaker(message: Mapping[str, object]) -> Role:
    kinds = {(object_of(fragment) or {}).get("type") for fragment in items_of(message, "fragments")}
    return "user" if "REQUEST" in kinds else "assistant"


FORMAT = Format(
    title="an export of DeepSeek",
    location="the zip that DeepSeek sends, or its conversations.json",
    matches=_is_deepseek,
    before=("chatgpt",),
    records=Chat(
        client="deepseek",
        expected="conversation of DeepSeek, with its mapping",
        began=("inserted_at",),
        messages=("mapping",),
        message="message",
        key=(),
        parent=("parent",),
        speaker=_speaker,
        time=("inserted_at",),
        content=("fragments",),
        parts={
            "REQUEST": WORDS,
            "RESPONSE": WORDS,
            "THINK": THOUGHTS,
            "TIP": NOTICES,
            **dict.fromkeys(("SEARCH", "READ_LINK", "TOOL_SEARCH", "TOOL_OPEN"), CALLS),
            "TEMPLATE_RESPONSE": HIDDEN,
        },
        attachments=("files",),
        attachment_text=("content",),
    ).records,
)
