"""Sessions of Kimi CLI, `~/.kimi/sessions/<folder>/<session>/wire.jsonl` and `context.jsonl`.

    wire      {timestamp, message: {type: TurnBegin | SteerInput | ContentPart | ToolCall | ToolResult | …, payload}}
    context   {role, content: text | [part, …], tool_calls, tool_call_id}; roles that begin with `_` are marks

`context.jsonl` has no times and is rewritten when the talk is compacted, so it is read only without a `wire.jsonl`.
`state.json` has the title that a user gave.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from mcp_memory.integrations.importers.chat import Chat, Message
from mcp_memory.integrations.importers.format import Format, any_line
from mcp_memory.integrations.importers.parts import (
    CALL,
    COMMANDS,
    INJECTED,
    RESULT,
    SUB_AGENTS,
    SUMMARIES,
    WORDS,
    call_parts,
    output_text,
)
from mcp_memory.integrations.importers.records import find, find_first, list_of, object_of, part_of, text_of
from mcp_memory.integrations.importers.session_files import beside, chat_records, json_at, load_lines

_WIRE = "wire.jsonl"
_USER = ("TurnBegin", "SteerInput", "UserInput")
_SUMMARY = "<system>Previous context has been compacted"
_INJECTED = re.compile(r"\s*<(system|system-reminder)>.*</\1>\s*\Z", re.DOTALL)


def _session(path: Path, lines: list[Any]) -> dict[str, Any]:
    is_wire = any(map(_is_event, lines))
    return {
        "id": path.parent.name if re.match(r"(?:wire|context)(?:_\d+)?$", path.stem) else path.stem,
        "title": find(json_at(path.with_name("state.json")), "custom_title"),
        "began": find(next(filter(_is_event, lines), None), "timestamp"),
        "is_copy": not is_wire and path.with_name(_WIRE).exists(),
        "of_agent": "/subagents/" in path.as_posix(),
        "messages": list(_messages(lines)) if is_wire else lines,
    }


def _is_event(line: Any) -> bool:
    return isinstance(find(line, "message.type"), str) and find(line, "timestamp") is not None


def _messages(lines: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """Yield the messages of events; parts of an answer that follow each other are one message."""
    answer: dict[str, Any] | None = None
    for event in filter(_is_event, lines):
        kind, payload = str(find(event, "message.type")), object_of(find(event, "message.payload")) or {}
        at = event["timestamp"]
        if kind in ("ContentPart", "ToolCall"):
            part = {**payload, "type": CALL} if kind == "ToolCall" else payload
            answer = answer or {"role": "assistant", "content": [], "ts": at}
            is_first = not any(find(other, "type") == "text" for other in answer["content"])
            answer["ts"] = at if is_first and payload.get("type") == "text" else answer["ts"]
            answer["content"].append(part)
        elif kind == "ToolCallPart" and answer is not None:
            called = part_of(answer["content"][-1], "function")
            called["arguments"] = f"{called.get('arguments') or ''}{payload.get('arguments_part') or ''}"
        else:
            if answer is not None and kind != "StatusUpdate":
                yield answer
                answer = None
            yield from _message(kind, payload, at)
    if answer is not None:
        yield answer


def _message(kind: str, payload: Message, at: Any) -> Iterator[dict[str, Any]]:
    match kind:
        case "ToolResult":
            output = find_first(payload, ("return_value.output", "return_value.message", "result.output", "result"))
            yield {"role": "tool", "tool_call_id": payload.get("tool_call_id"), "content": output, "ts": at}
        case "SubagentEvent":
            yield {"role": "assistant", "of_agent": True}
        case "ApprovalResponse":
            yield {"role": "user", "content": payload.get("feedback"), "ts": at}
        case "QuestionResponse":
            answers = (object_of(payload.get("answers")) or {}).values()
            yield {"role": "user", "content": "\n".join(output_text(answer) for answer in answers), "ts": at}
        case _ if kind in _USER:
            yield {"role": "user", "content": payload.get("user_input"), "ts": at}
        case "BtwBegin" | "BtwEnd" | "Notification":
            yield {"role": "client"}
        case _:
            pass


def _left_out(message: Message) -> str | None:
    if message.get("of_agent") is True:
        return SUB_AGENTS
    text = output_text(message.get("content")).strip() if message.get("role") == "user" else ""
    if text.startswith(_SUMMARY):
        return SUMMARIES
    return COMMANDS if re.match(r"/\w+(?:\s|\Z)", text) else INJECTED if _INJECTED.match(text) else None


def _parts(message: Message) -> Iterator[Any]:
    content = message.get("content")
    if message.get("role") == "tool":
        parts = [part for part in list_of(content) or [content] if not _INJECTED.match(output_text(part))]
        yield {"type": RESULT, "tool_call_id": message.get("tool_call_id"), "output": parts}
        return
    words = ""
    for part in [content] if isinstance(content, str) else list_of(content) or []:
        text = part if isinstance(part, str) else text_of(object_of(part) or {}, "text")
        words += text or ""
        if not text:
            yield {"type": WORDS, "text": words}
            yield part
            words = ""
    yield {"type": WORDS, "text": words}
    yield from call_parts(message.get("tool_calls"))


def _matches(line: Any) -> bool:
    is_mark = find(line, "role") in ("_system_prompt", "_checkpoint", "_usage")
    return is_mark or (_is_event(line) and "payload" in part_of(line, "message"))


FORMAT = Format(
    title="a session of Kimi CLI",
    location="`~/.kimi/sessions`",
    unit="lines",
    matches=any_line(_matches),
    load=load_lines(_session),
    parts=beside("state.json"),
    records=chat_records(
        Chat(
            client="kimi",
            expected="session of Kimi CLI",
            began=("began",),
            skip=lambda message: str(message.get("role")).startswith("_"),
            time=("ts",),
            split=_parts,
            joined="\n\n",
            left_out=_left_out,
        ),
        sub_agent=lambda source: find(source.value, "of_agent") is True,
    ),
)
