"""Conversations of LM Studio, `~/.lmstudio/conversations/**/<ms>.conversation.json`.

    {name, createdAt, systemPrompt, messages: [{versions: [version, …], currentlySelected}]}
    version   {type: singleStep, role, content: [part, …]} | {type: multiStep, role, steps: [step, …]}
    step      {type: contentBlock, content: [part, …], style: {type: "thinking"}} | {type: debugInfoBlock | toolStatus}

The name of the file is the conversation's id.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from mcp_memory.integrations.importers.chat import Chat, Message
from mcp_memory.integrations.importers.format import AnyRecord, Format, first_of, has
from mcp_memory.integrations.importers.parts import BRANCHES, CALL, RESULT, THOUGHTS
from mcp_memory.integrations.importers.records import (
    SkippedParts,
    SourceValue,
    find,
    items_of,
    object_of,
)

NOTES = "notes of the program"


def lm_studio_records(source: SourceValue, skipped: SkippedParts) -> Iterator[AnyRecord]:
    """Yield the records of the selected versions; the others are counted."""
    versions = (items_of(message, "versions") for message in items_of(source.value, "messages"))
    skipped.left_out[BRANCHES] += sum(max(0, len(each) - 1) for each in versions)
    yield from _CHAT.records(source, skipped)


def _conversation(value: Any) -> Iterator[Any]:
    thing = object_of(value) or {}
    yield {**thing, "messages": [_selected(message) for message in items_of(thing, "messages")]}


def _selected(message: Any) -> Any:
    versions, nth = items_of(message, "versions"), find(message, "currentlySelected")
    shown = versions[nth if isinstance(nth, int) and 0 <= nth < len(versions) else -1] if versions else message
    return {**(object_of(shown) or {}), "files": [part for part in items_of(shown, "content") if _is_document(part)]}


def _parts(message: Message) -> Iterator[Any]:
    yield from (part for part in items_of(message, "content") if not _is_document(part))
    for step in items_of(message, "steps"):
        if find(step, "style.type") == "thinking":
            yield {"type": THOUGHTS}
        elif find(step, "type") == "contentBlock":
            yield from items_of(step, "content")
        else:
            yield {"type": NOTES}


def _is_document(part: Any) -> bool:
    return find(part, "type") == "file" and find(part, "fileType") != "image"


_CHAT = Chat(
    client="lm-studio",
    expected="conversation of LM Studio, with its messages",
    conversations=_conversation,
    id=(),
    path_id=lambda path: id[1] if (id := re.search(r"([^/]+)\.conversation\.json$", path)) else None,
    title=("name",),
    began=("createdAt",),
    key=(),
    split=_parts,
    parts={"toolCallRequest": CALL, "toolCallResult": RESULT, NOTES: NOTES},
    attachments=("files",),
    attachment_name=("fileIdentifier",),
    instructions=("systemPrompt",),
)

FORMAT = Format(
    title="a conversation of LM Studio",
    location="`~/.lmstudio/conversations`",
    matches=first_of("messages", has("currentlySelected", versions=list)),
    records=lm_studio_records,
)
