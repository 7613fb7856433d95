"""Exports of Claude.ai.

    conversation   {uuid, name, created_at, chat_messages: [message, …]}
    message        {uuid, sender: human | assistant, text, content: [part, …], created_at, parent_message_uuid,
                    attachments: [{file_name, extracted_content}], files: [{file_name}]}
    part           {type: text | thinking | tool_use | tool_result | voice_note | …, text}
    tool_use       {id, name, input}      tool_result  {tool_use_id, name, content: [{text}]}

Messages that name their parent form a tree; a message without a parent answers the message before it. The words are
read from `content` if it is not empty, because `text` mixes them with thoughts. Attachments follow the words, up to a
limit. Tool results are imported separately, and so are documents that the assistant wrote with a tool.
"""

from __future__ import annotations

import re

from mcp_memory.integrations.importers.chat import Chat, Message, Talk
from mcp_memory.integrations.importers.format import Format, has
from mcp_memory.integrations.importers.records import text_of

_PLACEHOLDER = "```\nThis block is not supported on your current device yet.\n```"
_GAPS = re.compile(r"\n{3,}")


def _without_placeholders(text: str, _role: str) -> str:
    """Return a text without the placeholders of its tool calls."""
    if _PLACEHOLDER not in text:
        return text
    return _GAPS.sub("\n\n", text.replace(_PLACEHOLDER, "")).strip("\n")


def _document(talk: Talk, arguments: Message) -> str:
    """Return the document that a call writes: a new document, or a change of the last document with that id."""
    document = text_of(arguments, "content", "file_text", "code") or ""
    key = text_of(arguments, "id", "path") or ""
    old, new = arguments.get("old_str"), arguments.get("new_str")
    if not document and isinstance(old, str) and isinstance(new, str) and old and old in talk.notes.get(key, ""):
        document = talk.notes[key].replace(old, new, 1)
    if document:
        talk.notes[key] = document
    return document


CHAT = Chat(
    client="claude-ai",
    expected="conversation of Claude.ai, with its chat_messages",
    id=("uuid", "id"),
    title=("name", "title"),
    began=("created_at",),
    messages=("chat_messages",),
    leaf=("current_leaf_message_uuid",),
    key=("uuid", "id"),
    parent=("parent_message_uuid",),
    roots=("00000000-0000-4000-8000-000000000000",),
    role=("sender", "role"),
    roles={"human": "user", "user": "user", "assistant": "assistant"},
    time=("created_at",),
    content=("content", "text"),
    attachments=("attachments", "files"),
    attachment_name=("file_name", "name"),
    attachment_text=("extracted_content",),
    document=_document,
    clean=_without_placeholders,
)

FORMAT = Format(
    title="an export of Claude.ai",
    location="the zip that Claude.ai sends, or its conversations.json",
    matches=has(chat_messages=list),
    records=CHAT.records,
)
