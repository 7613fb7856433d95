"""The parts of a message's content, and the categories of skipped parts and messages. No I/O, no state."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from mcp_memory.core.text import one_line
from mcp_memory.integrations.importers.records import SkippedParts, list_of, object_of, objects_in

# Categories of skipped parts and messages, as an import reports them.
BRANCHES = "messages on other branches, edited or answered anew"
CALLS = "calls of tools"
HIDDEN = "hidden messages and instructions"
RESULTS = "results of tools without text"
THOUGHTS = "thoughts"
COMMANDS = "commands to the client"
INJECTED = "texts that the client adds"
ATTACHED = "attached files and pages"
SUMMARIES = "summaries of compactions"
SUB_AGENTS = "messages of sub-agents"
NOT_REMEMBERED = "conversations marked as not to be remembered"

ATTACHED_CHARS = 20_000
"""Characters of attached texts that are kept with a message."""

WORDS, CALL, RESULT, IMAGE = "words", "call", "result", "image"
PARTS: Mapping[str, str] = {
    **dict.fromkeys(("text", "input_text", "output_text", "markdown"), WORDS),
    **dict.fromkeys(("thinking", "redacted_thinking", "think", "thought", "reasoning", "summary_text"), THOUGHTS),
    **dict.fromkeys(
        ("tool", "tool_use", "tool_call", "tool-call", "toolcall", "toolrequest", "function_call", "tool-invocation"),
        CALL,
    ),
    **dict.fromkeys(("tool_result", "tool-result", "toolresult", "toolresponse", "function_call_output"), RESULT),
    **dict.fromkeys(("step-start", "step-finish", "snapshot", "patch", "agent", "subtask", "retry"), HIDDEN),
    **{
        kind: kind for kind in (WORDS, CALL, RESULT, IMAGE, THOUGHTS, HIDDEN, INJECTED, ATTACHED)
    },  # types of parts from `split`
}
"""The kind of a part by its type in lower case: a kind from above, or the category in which the part is counted.

A part of another type is words if it has a `text`; otherwise it is counted as not text."""

CALL_ID = ("tool_use_id", "toolUseID", "tool_call_id", "toolCallId", "message.toolCallId", "callID", "call_id", "id")
TOOL = ("name", "toolName", "tool_name", "tool", "function.name", "toolCall.value.name")
ARGUMENTS = (
    "input",
    "args",
    "arguments",
    "parameters",
    "function.arguments",
    "state.input",
    "toolCall.value.arguments",
)
OUTPUT = (
    *("output", "result", "content", "state.output", "response.output", "response", "run.result"),
    *("toolResult.value.content", "toolResult.value"),
)
ENDED = ("stop_timestamp", "start_timestamp", "timestamp", "state.time.end")
_INNER = ("toolInvocation", "functionCall", "functionResponse", "function_call", "function_response")


def content_parts(content: Any) -> list[Any]:
    listed = list_of(content)
    return listed if listed is not None else [] if content is None else [content]


def part_kind(part: Any, more: Mapping[str, str]) -> str:
    fields = object_of(part)
    if fields is None:
        return WORDS
    if fields.get("thought") is True:
        return THOUGHTS
    kind = fields.get("type", fields.get("kind"))
    if not isinstance(kind, str):
        if any(key in fields for key in ("functionCall", "function_call", "toolInvocation")):
            return CALL
        return RESULT if any(key in fields for key in ("functionResponse", "function_response")) else WORDS
    if listed := more.get(kind) or PARTS.get(kind.lower()):
        return listed
    if kind.startswith("tool-"):  # AI SDK: `tool-<name>`
        return CALL
    return WORDS if part_text(fields) is not None else IMAGE


def inner_fields(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of a part, which some programs put into an object named after its type."""
    kind = part.get("type")
    keys = (*_INNER, kind) if isinstance(kind, str) else _INNER
    return next((inner for key in keys if (inner := object_of(part.get(key))) is not None), part)


def part_text(fields: Mapping[str, Any]) -> str | None:
    """Return the text of a part: its `text`, `content`, `value` or `transcript`, also in an inner object."""
    for key in ("text", "content", "value", "transcript"):
        value = fields.get(key)
        if (inner := object_of(value)) is not None:
            value = part_text(inner)
        if isinstance(value, str) and (value.strip() or key == "text"):
            return value
    return None


def output_text(output: Any) -> str:
    """Return the output of a tool as text: a string, the texts of its parts, or JSON."""
    if isinstance(output, str):
        return output
    parts = list_of(output)
    if parts is not None:
        texts = [part if isinstance(part, str) else part_text(object_of(part) or {}) for part in parts]
        is_content = all(isinstance(part, str) or "type" in (object_of(part) or {}) for part in parts)
        if any(texts) or is_content:
            return "\n".join(filter(None, texts))
    fields = object_of(output)
    if fields is not None and (text := part_text(fields)):
        return text
    return "" if output is None else json.dumps(output, ensure_ascii=False)


def parse_or_keep(text: Any) -> Any:
    """Return the JSON value in a text (or bytes); anything else as it is."""
    try:
        return json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return text


def parse_object(text: Any) -> dict[str, Any]:
    """Return the JSON object in a text; empty if there is none."""
    return object_of(parse_or_keep(text)) or {}


def parse_list(text: Any) -> list[Any]:
    """Return the JSON array in a text; empty if there is none."""
    return list_of(parse_or_keep(text)) or []


def call_parts(calls: Any) -> Iterator[dict[str, Any]]:
    """Yield the objects in a list of tool calls as parts."""
    return ({**call, "type": CALL} for call in objects_in(list_of(calls) or []) if call)


def split_text(
    text: str, pattern: re.Pattern[str], parts_of: Callable[[re.Match[str]], Iterable[dict[str, Any]]]
) -> Iterator[dict[str, Any]]:
    """Yield the words of a text as parts, with `parts_of` each match of the pattern between them."""
    at = 0
    for match in pattern.finditer(text):
        yield {"type": WORDS, "text": text[at : match.start()].strip()}
        yield from parts_of(match)
        at = match.end()
    yield {"type": WORDS, "text": text[at:].strip()}


def describe_attachments(files: Iterable[tuple[str | None, str | None]], skipped: SkippedParts) -> str:
    """Return lines with the names of attached files and, if known, their texts. Cut texts are counted in `skipped`."""
    lines: list[str] = []
    left = ATTACHED_CHARS
    for name, text in dict.fromkeys(files):
        if not (name or text):
            continue
        lines.append(f"[attached: {one_line(name or 'text', 200)}]")
        if not text:
            continue
        lines += [text[:left]] if left else []
        if len(text) > left:
            skipped.left_out[f"attached texts, of which {ATTACHED_CHARS:,} characters are kept"] += 1
            lines.append(f"[{len(text) - left:,} more characters of it are not kept]")
        left = max(0, left - len(text))
    return "\n".join(lines)
