"""Threads of Jan, `threads/<id>/messages.jsonl` with `thread.json`; also OpenAI's threads in the same form.

{id, object: "thread.message", thread_id, role, content: [{type: "text", text: {value}}], created_at}
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mcp_memory.integrations.importers.chat import Chat
from mcp_memory.integrations.importers.format import Format
from mcp_memory.integrations.importers.records import find, items_of, object_of
from mcp_memory.integrations.importers.session_files import beside, json_at, load_lines


def _thread(path: Path, messages: list[Any]) -> dict[str, Any]:
    fields = object_of(json_at(path.with_name("thread.json"))) or {}
    instructions = [text for assistant in items_of(fields, "assistants") if (text := find(assistant, "instructions"))]
    return {**fields, "id": path.parent.name, "instructions": instructions, "messages": messages}


FORMAT = Format(
    title="a thread of Jan",
    location="the folder `threads` of Jan",
    unit="path",
    path=r"(?:^|/)threads/[^/]+/messages\.jsonl$",
    load=load_lines(_thread),
    parts=beside("thread.json"),
    records=Chat(
        client="jan",
        expected="thread of Jan",
        began=("created", "created_at"),
        instructions=("instructions",),
        time=("created_at",),
    ).records,
)
