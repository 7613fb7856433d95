"""Sessions of GitHub Copilot CLI, `~/.copilot/session-state/<session>/events.jsonl`.

    line   {type: "user.message" | "assistant.message" | "tool.execution_complete" | …, data, id, timestamp, parentId}
    data   {content, attachments} | {content, reasoningText, toolRequests} | {toolCallId, result: {content}}

`workspace.yaml` in the same folder has the title. The extension of VS Code writes the same events for sessions that are
also in its `chatSessions`, and are imported from there. `session.import_legacy` contains a session of the older form
(`copilot_history`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from mcp_memory.integrations.importers.chat import Chat, Message
from mcp_memory.integrations.importers.format import AnyRecord, Format, any_line
from mcp_memory.integrations.importers.parts import (
    ATTACHED,
    BRANCHES,
    CALL,
    COMMANDS,
    HIDDEN,
    IMAGE,
    INJECTED,
    RESULT,
    SUB_AGENTS,
    SUMMARIES,
    THOUGHTS,
    WORDS,
    call_parts,
)
from mcp_memory.integrations.importers.records import (
    SkippedParts,
    SourceValue,
    find,
    find_first,
    items_of,
    object_of,
    objects_in,
    part_of,
    text_of,
)
from mcp_memory.integrations.importers.session_files import beside, chat_records, load_lines, text_at

_USER = ("user.message", "user_input.completed", "user")
_ASSISTANT = ("assistant.message", "copilot", "tool_call_completed")
_COUNTED = {
    "session.compaction_complete": SUMMARIES,
    "system.message": HIDDEN,
    "system.notification": HIDDEN,
    "info": HIDDEN,
    "warning": HIDDEN,
    "error": HIDDEN,
}
"""Categories of events whose texts are not part of the conversation; other events have no text."""
_ROLES: dict[str, Any] = {
    **dict.fromkeys(_USER, "user"),
    **dict.fromkeys(_ASSISTANT, "assistant"),
    "tool.execution_complete": "tool",
}
_TITLE = re.compile(r"^(?:name|summary):[ \t]*(?:[|>][-+]?[ \t]*\n\s+)?(\S.*)$", re.MULTILINE)


def _session(path: Path, lines: list[Any]) -> dict[str, Any]:
    title = _TITLE.search(text_at(path.with_name("workspace.yaml")))
    chats = path.parents[2] / "chatSessions"
    is_copy = any((chats / f"{path.stem}{ending}").exists() for ending in (".json", ".jsonl"))
    named: Any = next((id for line in lines if (id := find(line, "data.sessionId"))), None)
    id = named or (path.parent.name if path.name == "events.jsonl" else path.stem)
    messages = list(_join_chunks(_events(lines)))
    return {
        "id": id,
        "title": title and title[1].strip("'\" "),
        "began": find(next(iter(lines), None), "timestamp"),
        "is_copy": is_copy,
        "messages": messages,
    }


def _events(lines: Iterable[Any]) -> list[dict[str, Any]]:
    """Return the events in order, after those of an imported older session. Undone events are marked."""
    events: list[dict[str, Any]] = []
    for line in objects_in(lines):
        data = part_of(line, "data")
        if line.get("type") == "session.import_legacy":
            events += filter(None, objects_in(items_of(data.get("legacySession"), "timeline")))
        elif line.get("type") == "session.snapshot_rewind":
            first = next((nth for nth, event in enumerate(events) if event.get("id") == data.get("upToEventId")), None)
            if first is not None:
                events[first:] = [{**event, "undone": True} for event in events[first:]]
        else:
            events.append(line)
    return events


def _join_chunks(events: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the events; the chunks of a message are joined."""
    before: dict[str, Any] | None = None
    for event in events:
        data, last = part_of(event, "data"), part_of(before or {}, "data")
        if before is not None and data.get("chunkIndex") and data.get("messageId") == last.get("messageId"):
            content = f"{last.get('content') or ''}{data.get('content') or ''}"
            requests = [*items_of(last, "toolRequests"), *items_of(data, "toolRequests")]
            before = {**before, "data": {**last, "content": content, "toolRequests": requests}}
            continue
        if before is not None:
            yield before
        before = event
    if before is not None:
        yield before


def _left_out(event: Message) -> str | None:
    kind, data = event.get("type"), part_of(event, "data")
    if event.get("undone") is True:
        return BRANCHES
    if data.get("parentToolCallId") or event.get("agentId"):
        return SUB_AGENTS
    if kind == "user.message":
        if data.get("source") not in (None, "user") or data.get("isAutopilotContinuation") is True:
            return INJECTED
        return COMMANDS if data.get("agentMode") == "shell" else None
    return _COUNTED.get(str(kind))


def _parts(event: Message) -> Iterator[dict[str, Any]]:
    kind, data = event.get("type"), part_of(event, "data") or event
    output = find_first(data, ("result.content", "result.log", "error.message", "result"))
    if kind == "tool.execution_complete":
        yield {"type": RESULT, "toolCallId": data.get("toolCallId"), "output": output}
        return
    if kind == "tool_call_completed":
        call = {"id": data.get("callId"), "name": data.get("name"), "args": data.get("arguments")}
        yield {"type": CALL, **call, "output": output}
        return
    if text_of(data, "reasoningText"):
        yield {"type": THOUGHTS}
    yield {"type": WORDS, "text": text_of(data, "content", "answer", "text") or ""}
    for file in map(object_of, items_of(data, "attachments")):
        is_image = str(find(file, "mimeType")).startswith("image/")
        yield {"type": IMAGE if is_image else ATTACHED}
    yield from call_parts(data.get("toolRequests"))


CHAT = Chat(
    client="copilot",
    expected="session of GitHub Copilot CLI",
    began=("began", "startTime"),
    messages=("messages",),
    skip=lambda event: str(event.get("type")) not in (*_ROLES, *_COUNTED),
    time=("timestamp",),
    speaker=lambda event: _ROLES.get(str(event.get("type"))),
    split=_parts,
    left_out=_left_out,
)


_VSCODE_CHAT = replace(CHAT, client="vscode")


def _chat(source: SourceValue) -> Chat:
    return _VSCODE_CHAT if "/GitHub.copilot-chat/" in source.path else CHAT


def _records(source: SourceValue, skipped: SkippedParts) -> Iterator[AnyRecord]:
    return chat_records(_chat(source))(source, skipped)


def _live_records(source: SourceValue, skipped: SkippedParts) -> Iterator[AnyRecord]:
    return _chat(source).records(source, skipped)


def _matches(line: Any) -> bool:
    return find(line, "type") in ("session.start", "user.message") and object_of(find(line, "data")) is not None


FORMAT = Format(
    title="a session of GitHub Copilot CLI",
    location="`~/.copilot/session-state`",
    unit="lines",
    matches=any_line(_matches),
    load=load_lines(_session),
    parts=beside("workspace.yaml"),
    records=_records,
    live=_live_records,
)
