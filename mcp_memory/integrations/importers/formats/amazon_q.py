"""Conversations of Amazon Q Developer's command line, as `/save` writes them.

{conversation_id, history: [{user: {content, timestamp}, assistant}, …]}
user        {Prompt: {prompt}} | {ToolUseResults: {tool_use_results: [{tool_use_id, content: [{Text} | {Json}]}]}}
assistant   {Response: {message_id, content}} | {ToolUse: {message_id, content, tool_uses: [{id, name, args}]}}
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mcp_memory.integrations.importers.chat import Chat
from mcp_memory.integrations.importers.format import Format, first_of, has
from mcp_memory.integrations.importers.parts import CALL, RESULT
from mcp_memory.integrations.importers.records import find, find_first, items_of, list_of, object_of

_RESULTS = ("ToolUseResults.tool_use_results", "CancelledToolUses.tool_use_results")


def _conversations(value: Any) -> Iterator[Any]:
    messages: list[dict[str, Any]] = []
    for entry in items_of(value, "history"):
        asked, answer = find(entry, "user.content"), find_first(entry, ("assistant.Response", "assistant.ToolUse"))
        parts: list[Any] = [find_first(asked, ("Prompt.prompt", "CancelledToolUses.prompt")) or ""]
        for result in list_of(find_first(asked, _RESULTS)) or []:
            texts = [find_first(part, ("Text", "Json")) for part in items_of(result, "content")]
            parts.append({"type": RESULT, "id": find(result, "tool_use_id"), "output": texts})
        messages.append({"role": "user", "ts": find(entry, "user.timestamp"), "content": parts})
        calls = [{**(object_of(call) or {}), "type": CALL} for call in items_of(answer, "tool_uses")]
        id, words = find(answer, "message_id"), find(answer, "content") or ""
        messages.append({"role": "assistant", "id": id, "content": [words, *calls]})
    yield {**(object_of(value) or {}), "messages": messages}


FORMAT = Format(
    title="a conversation of Amazon Q Developer",
    location="the file that `/save` writes",
    matches=lambda value: (
        has("conversation_id")(value) and first_of("history", has("user.content", "assistant"))(value)
    ),
    before=("messages",),
    records=Chat(
        client="amazon-q",
        expected="conversation of Amazon Q Developer, with its history",
        conversations=_conversations,
        id=("conversation_id",),
        began=(),
        time=("ts",),
    ).records,
)
