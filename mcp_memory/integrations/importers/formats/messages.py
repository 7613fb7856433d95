"""Conversations as programs send them to models, one JSON object each. Other messages with roles are generic JSON.

    Anthropic       {system, messages: [{role, content: text | [part, …]}]}
    OpenAI          {messages: [{role, content, tool_calls, tool_call_id}]}, alone or as `request` with a `response`
                    {object: "response", output: [item, …]}      {object: "list", data: [item, …]}
    Gemini          {contents: [{role, parts: [{text} | {functionCall} | …]}]}
    AI SDK          {id, messages: [{id, role, parts | content, createdAt, toolInvocations}]}
    LangChain       {messages: [{type: human | ai | tool, content | data: {content}} | {lc: 1, id: […, class], kwargs}]}
    ShareGPT        {id, conversations: [{from: human | gpt | system, value}]}

A list of such messages alone is `message_list`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mcp_memory.core.types import Role
from mcp_memory.integrations.importers.chat import Chat, Message
from mcp_memory.integrations.importers.format import Format
from mcp_memory.integrations.importers.parts import CALL, PARTS, THOUGHTS
from mcp_memory.integrations.importers.records import (
    ROLES,
    find,
    find_first,
    items_of,
    list_of,
    object_of,
    objects_in,
    part_of,
)

CITATIONS = "citations"
_LISTS = (
    "messages",
    "request.messages",
    "contents",
    "output",
    "data",
    "conversations",
    "items",
    "choices",
    "conversation",
    "history",
)
_CLASSES = {"HumanMessage": "human", "AIMessage": "ai", "AIMessageChunk": "ai", "ToolMessage": "tool"}
_ROLES: Mapping[str, Role] = {**ROLES, "gpt": "assistant", "chatgpt": "assistant", "aimessagechunk": "assistant"}
_ITEMS = {"function_call": "assistant", "reasoning": "assistant", "function_call_output": "tool"}
"""Items of OpenAI's Responses that are not messages."""


def is_message(value: Any) -> bool:
    """Return whether a value is a message in a form of these programs, with more fields than a role and a text."""
    message = object_of(value) or {}
    if message.get("lc") == 1:
        return "kwargs" in message
    if message.get("type") in ("human", "ai", "system", "tool", "AIMessageChunk") and "role" not in message:
        return "content" in message or object_of(message.get("data")) is not None
    if str(message.get("type")) in _ITEMS:
        return True
    has_parts = any(
        "type" in (object_of(part) or {}) for key in ("content", "parts") for part in items_of(message, key)
    )
    return "role" in message and (has_parts or any(key in message for key in ("tool_calls", "toolInvocations")))


def _is_conversation(value: Any) -> bool:
    listed = next(((path, items) for path in _LISTS if (items := list_of(find(value, path)))), None)
    if listed is None:
        return False
    path, items = listed
    first = object_of(items[0]) or {}
    match path:
        case "messages" | "conversation" | "history":
            return any(map(is_message, items))
        case "contents":
            return "role" in first and list_of(first.get("parts")) is not None
        case "conversations" | "items":
            return "from" in first and "value" in first
        case "choices":
            return object_of(first.get("message")) is not None
        case "output" | "data":
            return find(value, "object") in ("response", "list") and any(map(is_message, items))
        case _:
            return "role" in first


def _conversations(value: Any) -> Iterator[Any]:
    thing = object_of(value) or {}
    path = next((path for path in _LISTS if list_of(find(thing, path))), "")
    items = [value] if path == "choices" else list_of(value) or list_of(find(thing, path)) or []
    if "choices" in part_of(thing, "response"):
        items = [*items, thing["response"]]
    messages = [_message(message) for message in objects_in(items) if message]
    if thing.get("object") == "response":
        messages = [{"created_at": thing.get("created_at"), **message} for message in messages]
    own_id = None if thing.get("object") == "response" or path == "choices" else thing.get("id")
    yield {**thing, "id": own_id, "messages": messages}


def _message(thing: dict[str, Any]) -> dict[str, Any]:
    """Return a message whose fields have the names that `CHAT` reads."""
    if "choices" in thing:
        first = object_of(items_of(thing, "choices")[0]) if items_of(thing, "choices") else {}
        thing = {"id": thing.get("id"), "created": thing.get("created"), **part_of(first or {}, "message")}
    if thing.get("lc") == 1:
        names = list_of(thing.get("id")) or [""]
        thing = {"type": _CLASSES.get(str(names[-1]), "system"), **part_of(thing, "kwargs")}
    elif (data := object_of(thing.get("data"))) is not None and isinstance(thing.get("type"), str):
        thing = {**data, "type": thing["type"]}
    if role := _ITEMS.get(str(thing.get("type"))):
        thing = {"id": thing.get("id"), "role": role, "content": [thing]}
    files = [part for key in ("parts", "content") for part in items_of(thing, key) if _is_named_file(part)]
    return {**thing, "files": files} if files else thing


def _is_named_file(part: Any) -> bool:
    return find(part, "type") == "file" and find(part, "filename") is not None


def _parts(message: Message) -> Iterator[Any]:
    content = find_first(message, ("parts", "content", "value"))
    parts = list_of(content) or ([] if content is None else [content])
    calls = 0
    for part in parts:
        fields = object_of(part) or {}
        kind = str(fields.get("type"))
        is_call = PARTS.get(kind) == CALL or kind.startswith("tool-") or kind == "dynamic-tool"
        calls += is_call
        if kind.startswith("tool-") and kind != "tool-invocation":
            yield {"toolName": kind.removeprefix("tool-"), **fields, "type": CALL}
        elif kind != "step-start" and not _is_named_file(part):
            yield {**fields, "type": CALL} if kind == "dynamic-tool" else part
    if not calls:
        for call in [*items_of(message, "tool_calls"), *items_of(message, "toolInvocations")]:
            yield {**(object_of(call) or {}), "type": CALL}
    if isinstance(message.get("reasoning"), str) and list_of(content) is None:
        yield {"type": THOUGHTS}


CHAT = Chat(
    client="",
    expected="conversation, with its messages",
    conversations=_conversations,
    id=("conversation.id", "conversation_id", "conversationId", "session_id", "thread_id", "id"),
    began=("createdAt", "created_at", "created"),
    instructions=("system", "instructions", "systemInstruction", "system_instruction", "request.system"),
    role=("role", "from", "type"),
    roles={**_ROLES, "observation": "tool"},
    time=("createdAt", "created_at", "created", "timestamp", "ts", "time", "meta.sentAt", "usage.timestamp"),
    split=_parts,
    parts={"source-url": CITATIONS, "source-document": CITATIONS},
    attachments=("experimental_attachments", "files"),
    attachment_name=("filename", "name"),
)

FORMAT = Format(
    title="a conversation in the form of a model's API",
    location="logs of requests to OpenAI, Anthropic or Gemini, messages of LangChain or the AI SDK, ShareGPT",
    is_last=True,
    matches=_is_conversation,
    records=CHAT.records,
)
