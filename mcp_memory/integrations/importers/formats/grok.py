"""Exports of Grok: prod-grok-backend.json of the zip that x.ai sends.

    {conversations: [{conversation: {id, title, create_time, leaf_response_id}, responses: [{response: message}, …]}],
     projects: [{id, name, custom_personality}], tasks, media_posts}
    message   {_id, sender: human | any name of a model, message, create_time: {$date: {$numberLong}},
               parent_response_id, thinking_trace, steps, web_search_results, file_attachments, generated_image_urls}

Some exports have no parents. The instructions of a project are a statement about it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from mcp_memory.core.types import Role
from mcp_memory.integrations.importers.chat import Chat, Message
from mcp_memory.integrations.importers.format import AnyRecord, Format, first_of, has
from mcp_memory.integrations.importers.parts import CALL, IMAGE, THOUGHTS, WORDS
from mcp_memory.integrations.importers.records import (
    SkippedParts,
    SourceValue,
    id_of,
    items_of,
    name_of,
    object_of,
    objects_in,
    part_of,
    place_inside,
    text_of,
)
from mcp_memory.integrations.importers.statements import statement

FOUND = "pages found on the web"
_OTHER_LISTS = {"tasks": "tasks of Grok", "media_posts": "pictures made outside of conversations"}
_CARD = re.compile(r"\s*<grok:render\b.*?</grok:render>", re.DOTALL)


def grok_records(source: SourceValue, skipped: SkippedParts) -> Iterator[AnyRecord]:
    """Yield the instructions of projects, and the records of the conversations."""
    for key, category in _OTHER_LISTS.items():
        skipped.left_out[category] += len(items_of(source.value, key))
    for nth, project in enumerate(map(object_of, items_of(source.value, "projects"))):
        where = place_inside(source.where, f"projects[{nth}]")
        if project is None or not (words := text_of(project, "custom_personality")):
            continue
        name, id = name_of(project, "name") or "without a name", id_of(project, "id")
        text = f"The user has a project in Grok named {name} with the instructions: {words}"
        yield statement(where, skipped, text=text, words=words, about=(name,), id=id and f"grok:{id}")
    yield from _CHAT.records(source, skipped)


def _conversations(value: Any) -> Iterator[Any]:
    for item in objects_in(items_of(value, "conversations")):
        messages = [part_of(response, "response") for response in objects_in(items_of(item, "responses"))]
        if not any(message.get("parent_response_id") for message in messages):
            ids = [None, *(message.get("_id") for message in messages)]
            messages = [{**message, "parent_response_id": id} for message, id in zip(messages, ids, strict=False)]
        yield {**part_of(item, "conversation"), "messages": messages}


def _speaker(message: Message) -> Role:
    return "user" if message.get("sender") == "human" else "assistant"


def _parts(message: Message) -> Iterator[dict[str, Any]]:
    thoughts = [text_of(message, "thinking_trace"), *items_of(message, "agent_thinking_traces")]
    yield from ({"type": THOUGHTS} for thought in thoughts if thought)
    yield from ({"type": CALL} for _ in items_of(message, "steps"))
    yield from ({"type": FOUND} for _ in items_of(message, "web_search_results"))
    yield from ({"type": IMAGE} for _ in items_of(message, "generated_image_urls"))
    yield {"type": WORDS, "text": _CARD.sub("", text_of(message, "message") or "")}


_CHAT = Chat(
    client="grok",
    expected="conversation of Grok, with its responses",
    conversations=_conversations,
    key=("_id",),
    parent=("parent_response_id",),
    roots=(None,),
    leaf=("leaf_response_id",),
    speaker=_speaker,
    time=("create_time",),
    split=_parts,
    parts={FOUND: FOUND},
    attachments=("file_attachments",),
)

FORMAT = Format(
    title="an export of Grok",
    location="the zip that x.ai sends, or its prod-grok-backend.json",
    unit="document",
    matches=first_of("conversations", has(conversation=dict, responses=list)),
    records=grok_records,
)
