"""What a conversation of a Claude.ai export says. No I/O, no state.

    conversation   {uuid, name, created_at, chat_messages: [message, …]}
    message        {uuid, sender: human | assistant, text, content: [part, …], created_at, parent_message_uuid,
                    attachments: [{file_name, extracted_content}], files: [{file_name}]}
    part           {type: text | thinking | tool_use | tool_result | voice_note | …, text}
    tool_use       {id, name, input}      tool_result  {tool_use_id, name, content: [{text}]}

Where messages name the one they answer, they are a tree, for an edited question or a second answer begins a branch:
told is the way to `current_leaf_message_uuid`, or to the newest leaf, and of the rest how much there is. A message
that names none answers the one before it. The words are those of `content`; `text` is read where there is none, for
it mixes them with thoughts. What was attached stands below the words, as much of its text as is kept. What tools
answered is told beside the turns, and so is what the assistant wrote with one, as an artifact or a file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from mcp_memory.core.types import Role
from mcp_memory.integrations.importers.agents import session_name
from mcp_memory.integrations.importers.formats.exports import (
    BRANCHES,
    CALLS,
    HIDDEN,
    RESULTS,
    THOUGHTS,
    attached,
    fitting,
    id_of,
    name_of,
    text_of,
    title,
)
from mcp_memory.integrations.importers.formats.told import (
    Passed,
    Result,
    Told,
    Unfit,
    Wrong,
    inside,
    kind_of,
    list_of,
    mended,
    moment,
    object_of,
)

__all__ = ["is_conversation", "told"]

_ROLES: dict[str, Role] = {"human": "user", "user": "user", "assistant": "assistant"}
_NO_WORDS = {"thinking": THOUGHTS, "redacted_thinking": THOUGHTS, "tool_use": CALLS, "tool_result": None}
_WRITTEN = ("content", "file_text", "code")
"""Fields of a call in which the assistant writes a document."""
_UNSHOWN = "```\nThis block is not supported on your current device yet.\n```"
_GAPS = re.compile(r"\n{3,}")
_ROOT = "00000000-0000-4000-8000-000000000000"

Message = Mapping[str, Any]


def is_conversation(value: Any) -> bool:
    thing = object_of(value)
    return thing is not None and list_of(thing.get("chat_messages")) is not None


def told(value: Any, where: str, number: int, passed: Passed) -> Iterator[Told | Result | Wrong]:
    """Yield the turns and the results of tools of the conversation that is number `number` in its file."""
    thing = object_of(value)
    listed = None if thing is None else list_of(thing.get("chat_messages"))
    if thing is None or listed is None:
        what = "an object without chat_messages" if thing is not None else kind_of(value)
        yield Wrong(where=where, what=f"is {what}, and has to be a conversation of Claude.ai, with its chat_messages.")
        return
    messages = [object_of(one) or {} for one in listed]
    id, began = id_of(thing, "uuid", "id"), moment(thing, ("created_at",), passed)
    session = None if id is None else session_name("claude-ai", id)
    name = mended(name_of(thing, "name", "title"), passed) or ""
    yield from title(name, id=id, where=where, session=session, number=number, at=began)
    path = _path(messages, id_of(thing, "current_leaf_message_uuid"))
    for nth in set(range(len(messages))) - set(path):
        if _role(messages[nth]) is not None and _content(messages[nth], Passed()):
            passed.left[BRANCHES] += 1
    for nth in path:
        place = inside(where, f"chat_messages[{nth}]")
        yield from _message(messages[nth], place, passed, session=session, number=number, began=began)


def _message(
    message: Message, where: str, passed: Passed, *, session: str | None, number: int, began: datetime | None
) -> Iterator[Told | Result | Wrong]:
    role = _role(message)
    if role is None:
        passed.left[HIDDEN] += 1
        return
    try:
        content = fitting(_content(message, passed), passed)
    except Unfit as unfit:
        yield Wrong(where=where, what=str(unfit))
        return
    if session is not None:
        yield from _results(message, where, session, passed)
    yield Told(
        where=where,
        role=role,
        content=content,
        name=None,
        said_at=moment(message, ("created_at",), passed),
        id=id_of(message, "uuid", "id"),
        session=session,
        conversation=number,
        began=began,
    )


def _results(message: Message, where: str, session: str, passed: Passed) -> Iterator[Result]:
    """Yield what tools answered in a message, and what was written with one."""
    parts = [part for one in list_of(message.get("content")) or () if (part := object_of(one)) is not None]
    uses = {id: part for part in parts if part.get("type") == "tool_use" and (id := id_of(part, "id"))}
    for nth, part in enumerate(parts):
        given = object_of(part.get("input"))
        match part.get("type"):
            case "tool_use":
                call = id_of(part, "id")
                text = text_of(given or {}, *_WRITTEN)
                given = {key: value for key, value in (given or {}).items() if key not in _WRITTEN}
            case "tool_result":
                call = id_of(part, "tool_use_id")
                given = uses.get(call or "", {}).get("input")
                shown = [object_of(one) or {} for one in list_of(part.get("content")) or ()]
                text = text_of(part, "content") or "\n".join(filter(None, (text_of(one, "text") for one in shown)))
                call = call and f"{call}-result"
                if not text:
                    passed.left[RESULTS] += 1
            case _:
                continue
        if text:
            yield Result(
                where=where,
                tool=name_of(part, "name") or "",
                arguments=given,
                call=call or f"{id_of(message, 'uuid', 'id')}-{nth}",
                text=text,
                said_at=moment(part, ("stop_timestamp", "start_timestamp"), passed)
                or moment(message, ("created_at",), passed),
                session=session,
            )


def _role(message: Message) -> Role | None:
    return _ROLES.get(name_of(message, "sender", "role") or "")


# --- the tree ---------------------------------------------------------------------------------------


def _path(messages: Sequence[Message], current: str | None) -> list[int]:
    """Return the places of the messages from the first to the one that was seen last."""
    places: dict[str, int | None] = {
        id: nth for nth in reversed(range(len(messages))) if (id := id_of(messages[nth], "uuid", "id"))
    }
    before = [_before(message, nth, places) for nth, message in enumerate(messages)]
    inner = set(before)
    leaves = [nth for nth in range(len(messages)) if nth not in inner]
    at = places.get(current) if current else None
    if at is None and messages:
        at = max(leaves, key=lambda nth: _when(messages[nth], nth), default=len(messages) - 1)
    path: dict[int, None] = {}
    while at is not None and at not in path:
        path[at] = None
        at = before[at]
    return list(reversed(path))


def _before(message: Message, nth: int, places: Mapping[str, int | None]) -> int | None:
    """Return the place of the message that this one answers; None for a first one."""
    parent = id_of(message, "parent_message_uuid")
    if parent == _ROOT:
        return None
    return places.get(parent or "", nth - 1 if nth else None)


def _when(message: Message, nth: int) -> tuple[float, int]:
    said = moment(message, ("created_at",), Passed())
    return (said.timestamp() if said else 0.0, nth)


# --- texts ------------------------------------------------------------------------------------------


def _content(message: Message, passed: Passed) -> str:
    parts = list_of(message.get("content"))
    if parts:
        words = [text for part in parts if (text := _words(part, passed))]
    else:
        words = [_without_unshown(text_of(message, "text") or "")]
    files = [object_of(file) or {} for key in ("attachments", "files") for file in list_of(message.get(key)) or ()]
    named = ((name_of(file, "file_name", "name"), text_of(file, "extracted_content")) for file in files)
    return "\n".join(text for text in (*words, attached(named, passed)) if text)


def _without_unshown(text: str) -> str:
    """Return a text without what stands in the place of its calls of tools."""
    if _UNSHOWN not in text:
        return text
    return _GAPS.sub("\n\n", text.replace(_UNSHOWN, "")).strip("\n")


def _words(part: Any, passed: Passed) -> str:
    """Return the words of a part of a content; those of none are counted by what they are."""
    fields = object_of(part)
    if fields is None:
        return part if isinstance(part, str) else ""
    kind = fields.get("type")
    if isinstance(kind, str) and kind in _NO_WORDS:
        if (what := _NO_WORDS[kind]) is not None:
            passed.left[what] += 1
        return ""
    text = text_of(fields, "text", "transcript")
    passed.parts += text is None
    return text or ""
