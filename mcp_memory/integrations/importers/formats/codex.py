"""Codex's logs: `~/.codex/sessions/YYYY/MM/DD/rollout-<time>-<id>.jsonl`, an object a line. No I/O.

    {timestamp, type, payload}, where type is session_meta, turn_context, response_item, compacted or event_msg

Turns are the `response_item`s that are messages of the user or the assistant, without the context that Codex puts
among the user's. Each is known by its turn, and its id or its place in that: older versions copy both into a fork.
A result is told twice, whole when its tool has ended, and as the model was shown it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from mcp_memory.core.types import Role
from mcp_memory.integrations.importers.formats.logs import TIME, SoFar, id_of, said, summary, texts, turn, without_tags
from mcp_memory.integrations.importers.formats.told import (
    Passed,
    Result,
    Told,
    Unfit,
    Wrong,
    kind_of,
    list_of,
    mended,
    moment,
    object_of,
)

__all__ = ["is_line", "told"]

_TYPES = frozenset({"session_meta", "turn_context", "response_item", "compacted", "event_msg"})
_TEXT = frozenset({"input_text", "output_text", "text"})
_BESIDE = "internal_chat_message_metadata_passthrough"
_BEFORE = re.compile(r"Another language model started to solve .{,900}?with your own analysis:\s*", re.DOTALL)
_CONTEXT = ("# AGENTS.md instructions", "<INSTRUCTIONS>")


def is_line(value: Any) -> bool:
    """Tell whether an object is a line of such a log."""
    line = object_of(value)
    if line is None or not isinstance(line.get("payload"), dict):
        return False
    kind = line.get("type")
    return isinstance(kind, str) and kind in _TYPES


def told(value: Any, where: str, so_far: SoFar, passed: Passed) -> Iterator[Told | Result | Wrong]:
    """Yield what a line tells: turns, and results of tools."""
    line = object_of(value)
    if line is None:
        yield Wrong(where=where, what=f"is {kind_of(value)}, and has to be an object.")
        return
    payload = object_of(line.get("payload")) or {}
    try:
        match line.get("type"):
            case "session_meta":
                _opened(payload, so_far)
            case "turn_context":
                _turned(payload, so_far)
            case "event_msg" if payload.get("type") == "task_started":
                _turned(payload, so_far)
            case "response_item" if not so_far.aside:
                yield from _item(line, payload, where, so_far, passed)
            case "event_msg" if payload.get("type") == "item_completed" and not so_far.aside:
                yield from _whole(line, object_of(payload.get("item")) or {}, where, so_far, passed)
            case "compacted" if not so_far.aside:
                yield from _summary(line, payload, where, so_far, passed)
            case _:
                pass
    except Unfit as unfit:
        yield Wrong(where=where, what=str(unfit))


def _opened(meta: Mapping[str, Any], so_far: SoFar) -> None:
    """Note whose log it is; a fork has the lines of its parent after its own, and the parent's first line too."""
    id = id_of(meta.get("id"))
    if so_far.conversation is None and id is not None:
        so_far.conversation = so_far.turn = id
        source = object_of(meta.get("source")) or {}
        so_far.aside = "subagent" in source or meta.get("thread_source") == "subagent"


def _turned(context: Mapping[str, Any], so_far: SoFar) -> None:
    turn = id_of(context.get("turn_id"))
    if turn is not None and turn != so_far.turn:
        so_far.turn, so_far.count = turn, 0


def _item(
    line: Mapping[str, Any], item: Mapping[str, Any], where: str, so_far: SoFar, passed: Passed
) -> Iterator[Told | Result]:
    match item.get("type"):
        case "message" if item.get("role") in ("user", "assistant") and not _by_the_program(line, item):
            role: Role = "user" if item["role"] == "user" else "assistant"
            parts = texts(item.get("content"), passed, of=_TEXT)
            text = said(map(_asked, parts)) if role == "user" else said(parts)
            if text:
                yield from turn(line, where, so_far, role, text, passed, id=_id(item, so_far))
        case "function_call":
            so_far.called(item.get("call_id"), _named(item), _arguments(item.get("arguments")))
        case "custom_tool_call":
            so_far.called(item.get("call_id"), _named(item), item.get("input"))
        case "local_shell_call":
            so_far.called(item.get("call_id"), "shell", object_of(item.get("action")))
        case "function_call_output" | "custom_tool_call_output":
            tool, arguments = so_far.answered(item.get("call_id"))
            yield from _result(
                line, item.get("call_id"), tool, arguments, where, _output(item.get("output"), passed), passed
            )
        case _:
            pass


def _whole(
    line: Mapping[str, Any], item: Mapping[str, Any], where: str, so_far: SoFar, passed: Passed
) -> Iterator[Result]:
    """Yield a result as the tool gave it: what answers its call may be cut, and comes after."""
    id = item.get("id")
    tool, arguments = so_far.calls.get(id, ("", None)) if isinstance(id, str) else ("", None)
    match item.get("type"):
        case "CommandExecution" if isinstance(item.get("aggregated_output"), str):
            yield from _result(
                line, id, tool or "shell", arguments or item.get("command"), where, item["aggregated_output"], passed
            )
        case "McpToolCall":
            tool = tool or f"mcp__{item.get('server')}__{item.get('tool')}"
            text = _output(item.get("result"), passed)
            yield from _result(line, id, tool, arguments or item.get("arguments"), where, text, passed)
        case _:
            pass


def _result(
    line: Mapping[str, Any], call: Any, tool: str, arguments: Any, where: str, text: str, passed: Passed
) -> Iterator[Result]:
    if text.strip():
        yield Result(
            where=where,
            tool=tool,
            arguments=arguments,
            call=id_of(call),
            text=text,
            said_at=moment(line, TIME, passed),
        )


def _by_the_program(line: Mapping[str, Any], item: Mapping[str, Any]) -> bool:
    """Tell whether nobody said it: context for the model, or the raw answer that a compaction is made of."""
    if (object_of(line.get("metadata")) or {}).get("compaction_output") is True:
        return True
    if item["role"] != "user":
        return False
    kinds = [str(kind) for kind in list_of((object_of(item.get(_BESIDE)) or {}).get("content_item_kinds")) or []]
    return bool(kinds) and not any(kind.startswith(("user", "unknown")) for kind in kinds)


def _asked(part: str) -> str:
    return "" if part.lstrip().startswith(_CONTEXT) else without_tags(part)


def _id(item: Mapping[str, Any], so_far: SoFar) -> str:
    """Return an id for a message; some models call the first one of every conversation the same."""
    so_far.count += 1
    turn = id_of((object_of(item.get(_BESIDE)) or {}).get("turn_id")) or so_far.turn
    return f"{turn}/{id_of(item.get('id')) or so_far.count}"


def _summary(
    line: Mapping[str, Any], item: Mapping[str, Any], where: str, so_far: SoFar, passed: Passed
) -> Iterator[Told]:
    text = item.get("message")
    if isinstance(text, str) and (text := mended(_BEFORE.sub("", text, count=1).strip(), passed)):
        yield from summary(line, where, so_far, text, passed)


def _named(item: Mapping[str, Any]) -> str:
    """Return a tool's name, with the server's where it has one."""
    namespace = item.get("namespace")
    return f"{namespace}__{item.get('name')}" if isinstance(namespace, str) else str(item.get("name"))


def _arguments(text: Any) -> Any:
    try:
        return json.loads(text) if isinstance(text, str) else text
    except (ValueError, RecursionError):
        return text


def _output(output: Any, passed: Passed) -> str:
    """Return what a tool answered: a string, parts, or an object with either as its content."""
    fields = object_of(output)
    return "\n".join(texts(fields.get("content") if fields else output, passed, of=_TEXT))
