"""Sessions of Kiro, `~/.kiro/sessions/<folder>/sess_<id>/messages.jsonl`.

    line   {id, timestamp, payload: {type: user | assistant | tool_call | tool_result | …, content, operationType}}

`session.json` in the same folder has the id and title. Answers have the `operationType` "Say", thoughts "Reasoning".
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mcp_memory.integrations.importers.chat import Chat, Message
from mcp_memory.integrations.importers.format import Format, any_line
from mcp_memory.integrations.importers.parts import CALL, RESULT, THOUGHTS, WORDS
from mcp_memory.integrations.importers.records import find, find_first, object_of, part_of
from mcp_memory.integrations.importers.session_files import beside, chat_records, json_at, load_lines

_ROLES: dict[str, Any] = {"user": "user", "assistant": "assistant", "tool_call": "assistant", "tool_result": "tool"}


def _session(path: Path, lines: list[Any]) -> dict[str, Any]:
    about = object_of(json_at(path.with_name("session.json"))) or {}
    return {"id": path.parent.name, **about, "messages": lines}


def _parts(line: Message) -> Iterator[dict[str, Any]]:
    payload = part_of(line, "payload")
    id = find_first(payload, ("toolCallId", "id")) or line.get("id")
    match payload.get("type"):
        case "tool_call":
            yield {**payload, "type": CALL, "id": id}
        case "tool_result":
            yield {**payload, "type": RESULT, "id": id}
        case _:
            yield {"type": WORDS, "text": payload.get("content")}


def _matches(line: Any) -> bool:
    is_event = isinstance(find(line, "payload.type"), str) and find(line, "type") is None
    return is_event and find(line, "id") is not None and find(line, "timestamp") is not None


FORMAT = Format(
    title="a session of Kiro",
    location="`~/.kiro/sessions`",
    unit="lines",
    matches=any_line(_matches),
    load=load_lines(_session),
    parts=beside("session.json"),
    records=chat_records(
        Chat(
            client="kiro",
            expected="session of Kiro",
            skip=lambda line: str(find(line, "payload.type")) not in _ROLES,
            time=("timestamp",),
            speaker=lambda line: _ROLES.get(str(find(line, "payload.type"))),
            split=_parts,
            left_out=lambda line: THOUGHTS if find(line, "payload.operationType") == "Reasoning" else None,
        )
    ),
)
