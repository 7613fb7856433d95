"""Sessions of Qwen Code, `~/.qwen/projects/<folder>/chats/<session>.jsonl`.

    line   {uuid, parentUuid, sessionId, timestamp, type: user | assistant | tool_result | system, subtype, message}
    message   {role, parts: [{text, thought?} | {functionCall} | {functionResponse} | {inlineData}]}

The lines are a tree, because a rewound prompt stays in the file; the last line is on the current branch. The content of
files that a prompt mentions is between two marks in the prompt's parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mcp_memory.integrations.importers.chat import Chat, Message
from mcp_memory.integrations.importers.format import Format, any_line, has
from mcp_memory.integrations.importers.parts import ATTACHED, COMMANDS, HIDDEN, INJECTED, SUMMARIES
from mcp_memory.integrations.importers.records import find, list_of, name_of, object_of

_HOOKED = "<qwen:user-prompt-submit-context>"
_OPENS, _ENDS = "--- Content from referenced files ---", "--- End of content ---"


def _left_out(message: Message) -> str | None:
    match message.get("type"), message.get("subtype"):
        case "system", "slash_command":
            return COMMANDS
        case "system", "chat_compression":
            return SUMMARIES
        case "system", _:
            return HIDDEN
        case "user", str():
            return INJECTED
        case _:
            return None


def _parts(message: Message) -> Iterator[Any]:
    """Yield the parts of a message, with the files that it mentions as one part, and without what hooks added."""
    is_attached = False
    for part in list_of(find(message, "message.parts")) or []:
        text = str((object_of(part) or {}).get("text") or "").strip()
        if text.startswith(_HOOKED):
            continue
        if text == _OPENS:
            is_attached = True
            yield {"type": ATTACHED}
        elif not is_attached:
            yield part
        is_attached = is_attached and text != _ENDS


def _title(lines: Any) -> str | None:
    titles = (name_of({"title": find(line, "systemPayload.customTitle")}, "title") for line in list_of(lines) or [])
    return next(filter(None, titles), None)


FORMAT = Format(
    title="a session of Qwen Code",
    location="`~/.qwen/projects`",
    unit="lines",
    matches=any_line(has("uuid", "sessionId", "message.parts", "type")),
    records=Chat(
        client="qwen-code",
        expected="session of Qwen Code",
        id=("sessionId",),
        title_of=_title,
        began=("timestamp",),
        messages=("",),
        is_last_current=True,
        key=("uuid",),
        parent=("parentUuid",),
        role=("type",),
        time=("timestamp",),
        split=_parts,
        left_out=_left_out,
        client_tags=("system-reminder",),
    ).records,
)
