"""Sessions of Kiro's command line, `~/.kiro/sessions/cli/<session>.jsonl`.

    line   {version, kind: Prompt | AssistantMessage | ToolResults | …, data: {message_id, content: [part, …], meta}}
    part   {kind: text | toolUse | toolResult, data}

`<session>.json` in the same folder has the title.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mcp_memory.integrations.importers.chat import Chat, Message
from mcp_memory.integrations.importers.format import Format, any_line, has
from mcp_memory.integrations.importers.parts import CALL, RESULT, WORDS, output_text
from mcp_memory.integrations.importers.records import find, items_of, object_of, part_of
from mcp_memory.integrations.importers.session_files import chat_records, json_at, load_lines

_ROLES: dict[str, Any] = {"Prompt": "user", "AssistantMessage": "assistant", "ToolResults": "tool"}


def _session(path: Path, lines: list[Any]) -> dict[str, Any]:
    return {"session_id": path.stem, **(object_of(json_at(path.with_suffix(".json"))) or {}), "messages": lines}


def _parts(line: Message) -> Iterator[Any]:
    for part in items_of(part_of(line, "data"), "content"):
        kind, data = find(part, "kind"), find(part, "data")
        match kind:
            case "text":
                yield {"type": WORDS, "text": data}
            case "toolUse":
                yield {**(object_of(data) or {}), "type": CALL, "id": find(data, "toolUseId")}
            case "toolResult":
                outputs = [output_text(find(item, "data")) for item in items_of(data, "content")]
                yield {"type": RESULT, "id": find(data, "toolUseId"), "output": "\n".join(outputs)}
            case _:
                yield {"type": str(kind)}


FORMAT = Format(
    title="a session of Kiro's command line",
    location="`~/.kiro/sessions/cli`",
    unit="lines",
    matches=any_line(has("data.message_id", kind=str)),
    load=load_lines(_session),
    parts=lambda path: [path.with_suffix(".json")],
    records=chat_records(
        Chat(
            client="kiro-cli",
            expected="session of Kiro's command line",
            id=("session_id",),
            key=("data.message_id",),
            time=("data.meta.timestamp",),
            speaker=lambda line: _ROLES.get(str(line.get("kind"))),
            split=_parts,
        )
    ),
)
