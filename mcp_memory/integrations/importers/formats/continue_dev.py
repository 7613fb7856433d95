"""Sessions of Continue, `~/.continue/sessions/<session>.json`.

    {sessionId, title, history: [{message: {role, content, toolCalls, toolCallId}, contextItems, reasoning}, …]}

Messages have no times; `sessions.json` in the same folder has the date of each session.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mcp_memory.integrations.importers.chat import Chat, Message
from mcp_memory.integrations.importers.format import Format, first_of, has
from mcp_memory.integrations.importers.parts import ATTACHED, RESULT, THOUGHTS, call_parts
from mcp_memory.integrations.importers.records import find, items_of, list_of, object_of, part_of
from mcp_memory.integrations.importers.session_files import beside, chat_records, json_at, load_document


def _session(path: Path, value: Any) -> dict[str, Any]:
    session, index = object_of(value) or {}, list_of(json_at(path.with_name("sessions.json"))) or []
    dates = (find(entry, "dateCreated") for entry in index if find(entry, "sessionId") == session.get("sessionId"))
    return {**session, "began": next(dates, None)}


def _parts(entry: Message) -> Iterator[Any]:
    message = part_of(entry, "message")
    content = message.get("content")
    if message.get("role") == "tool":
        yield {"type": RESULT, "toolCallId": message.get("toolCallId"), "output": content}
        return
    yield from [content] if isinstance(content, str) else list_of(content) or []
    yield from [{"type": THOUGHTS}] if find(entry, "reasoning.text") else []
    yield from call_parts(message.get("toolCalls"))
    yield from ({"type": ATTACHED} for _ in items_of(entry, "contextItems"))


FORMAT = Format(
    title="a session of Continue",
    location="`~/.continue/sessions`",
    unit="document",
    matches=lambda value: has("sessionId")(value) and first_of("history", has("message.role"))(value),
    load=load_document(_session),
    parts=beside("sessions.json"),
    records=chat_records(
        Chat(
            client="continue",
            expected="session of Continue",
            id=("sessionId",),
            began=("began",),
            messages=("history",),
            role=("message.role",),
            split=_parts,
            left_out=lambda entry: THOUGHTS if find(entry, "message.role") == "thinking" else None,
        )
    ),
)
