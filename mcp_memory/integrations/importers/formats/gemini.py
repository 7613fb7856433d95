"""Gemini CLI's logs: `~/.gemini/tmp/<project>/chats/session-<time>-<id>.jsonl`, or `.json` of older versions. No I/O.

A line has the conversation's metadata, a message, or a change: {"$set": …} and {"$rewindTo": id}. A message is written
again when a tool has answered, so the same id may be told more than once. A compression sets all messages anew, under
new ids: of those only its summary is taken. The older file is one object, {sessionId, messages: [message, …]}, written
anew each time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

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

_TEXT = frozenset({"text"})
_COMMAND = re.compile(r"[/?][\w-]*(?:\s|$)")
_CONTEXT = re.compile(r"\s*<hook_context>.*?</hook_context>", re.DOTALL)
_CUT = re.compile(r"Output too large\. [^\n]*full output see: ([^\n]+)\n")
_FENCED = re.compile(r"<untrusted_context>\n(.*?)\n?</untrusted_context>\s*", re.DOTALL)
_SNAPSHOT = "<state_snapshot>"
_DONE = ("success", "error", "cancelled")


def is_line(value: Any) -> bool:
    """Tell whether an object is the first of such a log, or all of it."""
    line = object_of(value)
    return line is not None and isinstance(line.get("sessionId"), str) and "projectHash" in line


def told(value: Any, where: str, so_far: SoFar, passed: Passed) -> Iterator[Told | Result | Wrong]:
    """Yield what a line, or a whole document, tells: turns, and results of tools."""
    line = object_of(value)
    if line is None:
        yield Wrong(where=where, what=f"is {kind_of(value)}, and has to be an object.")
        return
    changed = object_of(line.get("$set"))
    about = line if changed is None else changed
    if so_far.conversation is None:
        so_far.conversation = id_of(about.get("sessionId"))
    so_far.aside = so_far.aside or about.get("kind") == "subagent"
    if so_far.aside:
        return
    messages = list_of(about.get("messages"))
    if messages is None:
        messages = [line] if isinstance(line.get("id"), str) and "type" in line else []
    for nth, message in enumerate(messages):
        place = where if message is line else f"{where}, messages[{nth}]"
        fields = object_of(message)
        if fields is None:
            yield Wrong(where=place, what=f"is {kind_of(message)}, and has to be an object.")
            continue
        try:
            if changed is None or _is_snapshot(fields):
                yield from _message(fields, place, so_far, passed)
        except Unfit as unfit:
            yield Wrong(where=place, what=str(unfit))


def _is_snapshot(message: Mapping[str, Any]) -> bool:
    return any(
        str((object_of(part) or {}).get("text")).startswith(_SNAPSHOT) for part in _listed(message.get("content"))
    )


def _message(message: Mapping[str, Any], where: str, so_far: SoFar, passed: Passed) -> Iterator[Told | Result]:
    match message.get("type"):
        case "user":
            text = without_tags(said(_parts(message.get("displayContent") or message.get("content"), passed)))
            if text.startswith(_SNAPSHOT):
                yield from summary(message, where, so_far, text, passed)
            elif not _COMMAND.match(text):
                yield from turn(message, where, so_far, "user", text, passed, id=id_of(message.get("id")))
        case "gemini":
            text = said(_parts(message.get("content"), passed)).strip()
            yield from turn(message, where, so_far, "assistant", text, passed, id=id_of(message.get("id")))
            for call in list_of(message.get("toolCalls")) or []:
                yield from _result(message, object_of(call) or {}, where, passed)
        case _:
            pass


def _parts(content: Any, passed: Passed) -> Iterator[str]:
    """Yield the texts of a content: a string, a part, or a list of them; thoughts are not said."""
    if isinstance(content, str):
        return texts(content, passed, of=_TEXT)
    spoken = [part for part in _listed(content) if not (object_of(part) or {}).get("thought")]
    return texts(spoken, passed, of=_TEXT)


def _listed(content: Any) -> list[Any]:
    return [content] if isinstance(content, dict | str) else list_of(content) or []  # pyright: ignore[reportUnknownVariableType]


def _result(message: Mapping[str, Any], call: Mapping[str, Any], where: str, passed: Passed) -> Iterator[Result]:
    text = _CONTEXT.sub("", mended("\n".join(_answers(call.get("result"))), passed) or "")
    cut = _CUT.match(text)
    text = _FENCED.sub(r"\1", text)
    if text.strip() and call.get("status", "success") in _DONE:
        name = call.get("name")
        yield Result(
            where=where,
            tool=name if isinstance(name, str) else "",
            arguments=call.get("args"),
            call=id_of(call.get("id")),
            text=text,
            said_at=moment(call, TIME, passed) or moment(message, TIME, passed),
            whole=cut and re.split(r"[/\\]", cut[1].strip())[-1],
        )


def _answers(result: Any) -> Iterator[str]:
    """Yield the texts of a call's result: parts with a functionResponse, or text beside them."""
    for part in _listed(result):
        fields = object_of(part) or {}
        answer = object_of((object_of(fields.get("functionResponse")) or {}).get("response"))
        output = part if isinstance(part, str) else fields.get("text")
        if answer is not None:
            output = answer.get("output", answer.get("error", answer))
        if output is not None:
            yield output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
