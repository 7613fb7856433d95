"""Chat sessions of VS Code, `User/workspaceStorage/<id>/chatSessions/<session>.json`, and what "Export Chat" writes.

    {sessionId, customTitle, creationDate, responderUsername, requests: [request, …]}
    request    {requestId, timestamp, message: text | {text}, variableData: {variables}, response: [part, …],
                responseId, modelState: {completedAt}, result, shouldBeRemovedOnSend}
    part       {kind?, value}

A request is the user's message and the answer. Texts of the answer without another part between them are joined.
Requests marked to be removed were undone. Versions since 2026 write the session as a log of changes
(`vscode_chat_log`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mcp_memory.integrations.importers.chat import Chat, Message
from mcp_memory.integrations.importers.format import Format, has
from mcp_memory.integrations.importers.parts import (
    ATTACHED,
    BRANCHES,
    CALL,
    COMMANDS,
    HIDDEN,
    IMAGE,
    INJECTED,
    SUB_AGENTS,
    THOUGHTS,
    WORDS,
)
from mcp_memory.integrations.importers.records import (
    find,
    find_first,
    items_of,
    object_of,
    objects_in,
    part_of,
    text_of,
)
from mcp_memory.integrations.importers.session_files import chat_records, load_document

_EDITS = ("codeblockUri", "textEditGroup", "notebookEditGroup")
_FENCE = re.compile(r"\s*`{3,}\w*\s*")


def with_messages(path: Path, value: Any) -> dict[str, Any]:
    """Return a session with its messages: two for each request."""
    session = object_of(value) or {}
    is_stored = path.suffix == ".json" and path.parent.name.lower().endswith("chatsessions")
    return {
        **session,
        "is_copy": is_stored and path.with_suffix(".jsonl").exists(),
        "messages": [
            message for request in objects_in(items_of(session, "requests")) for message in _messages(request)
        ],
    }


def _messages(request: Message) -> Iterator[dict[str, Any]]:
    is_undone = any(bool(request.get(key)) for key in ("shouldBeRemovedOnSend", "isHidden", "undone"))
    asked, message = request.get("timestamp"), request.get("message")
    elapsed = find(request, "result.timings.totalElapsed")
    answered = find(request, "modelState.completedAt")
    if not answered and isinstance(asked, int | float) and isinstance(elapsed, int | float):
        answered = asked + elapsed
    text = message if isinstance(message, str) else text_of(object_of(message) or {}, "text")
    yield {
        "id": request.get("requestId"),
        "role": "user",
        "ts": asked,
        "text": text,
        "files": items_of(request.get("variableData"), "variables"),
        "pressed": bool(request.get("confirmation")),
        "undone": is_undone,
    }
    yield {
        "id": request.get("responseId"),
        "role": "assistant",
        "ts": answered,
        "response": items_of(request, "response"),
        "metadata": find(request, "result.metadata"),
        "undone": is_undone,
    }


def _left_out(message: Message) -> str | None:
    return BRANCHES if message.get("undone") else COMMANDS if message.get("pressed") else None


def _parts(message: Message) -> Iterator[Any]:
    if message.get("role") == "user":
        yield {"type": WORDS, "text": message.get("text") or ""}
        for file in items_of(message, "files"):
            is_ours = find(file, "automaticallyAdded") is True
            yield {"type": INJECTED if is_ours else IMAGE if find(file, "kind") == "image" else ATTACHED}
        return
    calls = list(_calls(object_of(message.get("metadata")) or {}))
    yield from calls
    parts = objects_in(items_of(message, "response"))
    sentence = ""
    for nth, part in enumerate(parts):
        text = None if part.get("subAgentInvocationId") else _text(part)
        if text is not None:
            around = (other.get("kind") for other in parts[max(0, nth - 1) : nth + 2])
            is_fence = _FENCE.fullmatch(text) is not None and any(kind in _EDITS for kind in around)
            sentence += "" if is_fence else text
            continue
        yield {"type": WORDS, "text": sentence.strip()}
        sentence = ""
        yield from _other_part(part, known=bool(calls))
    yield {"type": WORDS, "text": sentence.strip()}


def _other_part(part: Message, *, known: bool) -> Iterator[dict[str, Any]]:
    """Yield a part of an answer that is not text; calls of tools are `known` from the model's side."""
    kind = part.get("kind")
    if part.get("subAgentInvocationId"):
        yield {"type": SUB_AGENTS}
    elif kind == "thinking":
        yield from [{"type": THOUGHTS}] if part.get("value") else []
    elif kind != "toolInvocationSerialized":
        yield {"type": HIDDEN}
    elif not known:
        yield {"type": CALL, "id": part.get("toolCallId"), "name": part.get("toolId")}


def _calls(metadata: Message) -> Iterator[dict[str, Any]]:
    """Yield the calls of tools with their results, as the model saw them."""
    results = part_of(metadata, "toolCallResults")
    for answer in items_of(metadata, "toolCallRounds"):
        for call in objects_in(items_of(answer, "toolCalls")):
            yield {**call, "type": CALL, "output": find(results.get(str(call.get("id"))), "content")}


def _text(part: Message) -> str | None:
    """Return the text of a part of an answer, or the name of its reference; None for another part."""
    match part.get("kind"):
        case None | "markdownContent":
            value = find_first(part, ("value", "content.value"))
            return text_of({"text": find(value, "value") or value}, "text") or ""
        case "markdownVuln":
            return text_of(part_of(part, "content"), "value") or ""
        case "inlineReference":
            place = find_first(part, ("inlineReference.path", "inlineReference.uri.path", "inlineReference.name"))
            return text_of(part, "name") or str(place or "").rpartition("/")[2]
        case _:
            return None


CHAT = Chat(
    client="vscode",
    expected="chat session of VS Code, with its messages",
    id=("sessionId",),
    title=("customTitle",),
    began=("creationDate",),
    time=("ts",),
    split=_parts,
    joined="\n\n",
    parts={SUB_AGENTS: SUB_AGENTS},
    left_out=_left_out,
)

FORMAT = Format(
    title="a chat session of VS Code",
    location="`chatSessions` in the `User/workspaceStorage` of VS Code, or what “Chat: Export Chat” writes",
    unit="document",
    matches=has("responderUsername", requests=list),
    load=load_document(with_messages),
    records=chat_records(CHAT),
)
