"""Conversations in the exports of ChatGPT and Claude.ai. No I/O, no state.

Exports are made by programs, so users cannot repair them: missing, odd or new fields of a message are ignored, and only
an object that is no conversation is a problem.

ChatGPT:

    conversation   {conversation_id, title, create_time, current_node, mapping: {id: node, …}}
    node           {id, parent, children, message: {id, author: {role, name}, create_time, recipient, channel,
                    content: {content_type, parts | text}, metadata, weight}}

`mapping` is a tree: an edited question or a second answer begins a branch. Imported is the path from the root to
`current_node`, which the person saw last; the other branches are counted. Turns are the words of person and assistant
to each other; tool results are imported beside them. Calls, thoughts, hidden messages and contexts for the model
(custom instructions, ChatGPT's own memory) are counted. A conversation marked as not to be remembered is skipped. Marks
of the web page, such as citations between U+E200 and U+E201, are cut out, as the page does.

Claude.ai:

    conversation   {uuid, name, created_at, chat_messages: [message, …]}
    message        {uuid, sender: human | assistant, text, content: [part, …], created_at, parent_message_uuid,
                    attachments: [{file_name, extracted_content}], files: [{file_name}]}
    part           {type: text | thinking | tool_use | tool_result | voice_note | …, text}
    tool_use       {id, name, input}      tool_result  {tool_use_id, name, content: [{text}]}

Messages that name their parent form a tree: imported is the path to `current_leaf_message_uuid`, or to the newest leaf.
A message without a parent answers the one before it. The words are those of `content`, or of `text` if there is none,
because `text` mixes them with thoughts. Attachments follow the words, as much of their text as is kept. Tool results
are imported beside the turns, and so are documents that the assistant wrote with a tool.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from mcp_memory.core.text import one_line, well_formed
from mcp_memory.core.types import Role
from mcp_memory.integrations.importers.records import (
    LONGEST_ID,
    ImportedResult,
    ImportedTurn,
    ImportProblem,
    InvalidRecord,
    SkippedParts,
    inside,
    kind_of,
    list_of,
    mended,
    moment,
    object_of,
    session_name,
)
from mcp_memory.longterm.turns import MAX_TURN_BYTES

# What is no part of a talk, as the answer of an import names it.
BRANCHES = "messages on other branches, edited or answered anew"
CALLS = "calls of tools"
HIDDEN = "hidden messages and instructions"
OWN = "results of this memory's tools"
RESULTS = "results of tools without text"
THOUGHTS = "thoughts"

ATTACHED_CHARS = 20_000
"""Of the text of what is attached to a message, so many characters are kept with it."""

_UNTITLED = {"", "new chat", "untitled"}


def title(
    name: str, *, id: str | None, where: str, session: str | None, number: int, at: datetime | None
) -> Iterator[ImportedTurn]:
    """Yield the title of a conversation, unless generic, as a turn of role `system`: the conversation is found by it,
    and no model reads it as new.
    """
    if name.casefold() in _UNTITLED:
        return
    yield ImportedTurn(
        where=where,
        role="system",
        content=one_line(name, 300),
        name="title",
        said_at=at,
        id=f"title-{id}" if id else None,
        session=session,
        conversation=number,
        began=at,
    )


def attached(files: Iterable[tuple[str | None, str | None]], passed: SkippedParts) -> str:
    """Return lines with the names of attached files and, if known, their texts."""
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
            passed.left[f"attached texts, of which {ATTACHED_CHARS:,} characters are kept"] += 1
            lines.append(f"[{len(text) - left:,} more characters of it are not kept]")
        left = max(0, left - len(text))
    return "\n".join(lines)


def fitting(text: str, passed: SkippedParts) -> str:
    """Return the text as it can be stored. Unfit where it is too large."""
    text = mended(text, passed) or ""
    if len(text) > MAX_TURN_BYTES or len(text.encode()) > MAX_TURN_BYTES:
        raise InvalidRecord(f"is larger than {MAX_TURN_BYTES // 2**20} MiB. Pass over it with --skip-bad.")
    return text


def text_of(thing: Mapping[str, Any], *keys: str) -> str | None:
    """Return the first of these fields that is a string with something in it."""
    return next((value for key in keys if isinstance(value := thing.get(key), str) and value.strip()), None)


def name_of(thing: Mapping[str, Any], *keys: str) -> str | None:
    text = text_of(thing, *keys)
    return None if text is None else text.strip()


def id_of(thing: Mapping[str, Any], *keys: str) -> str | None:
    id = name_of(thing, *keys)
    return id if id and len(id) <= LONGEST_ID and well_formed(id) else None


_CHATGPT_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant"}
_NO_TALK = {
    "thoughts": THOUGHTS,
    "reasoning_recap": THOUGHTS,
    "user_editable_context": HIDDEN,
    "model_editable_context": HIDDEN,
    "system_error": HIDDEN,
    "execution_output": RESULTS,
    "computer_output": RESULTS,
    "tether_browsing_code": RESULTS,
    "tether_browsing_display": RESULTS,
    "tether_quote": RESULTS,
    "sonic_webpage": RESULTS,
}


def is_chatgpt_conversation(value: Any) -> bool:
    thing = object_of(value)
    return thing is not None and object_of(thing.get("mapping")) is not None


def chatgpt_records(
    value: Any, where: str, number: int, passed: SkippedParts
) -> Iterator[ImportedTurn | ImportedResult | ImportProblem]:
    """Yield the turns and the results of tools of the conversation that is number `number` in its file."""
    thing = object_of(value)
    mapping = None if thing is None else object_of(thing.get("mapping"))
    if thing is None or mapping is None:
        what = "an object without a mapping" if thing is not None else kind_of(value)
        yield ImportProblem(where=where, what=f"is {what}, and has to be a conversation of ChatGPT, with its mapping.")
        return
    if thing.get("is_do_not_remember") is True:
        passed.left["conversations marked as not to be remembered"] += 1
        return
    nodes = {id: node for id, value in mapping.items() if (node := object_of(value)) is not None}
    id, began = id_of(thing, "conversation_id", "id"), moment(thing, ("create_time",), passed)
    session = None if id is None else session_name("chatgpt", id)
    name = mended(name_of(thing, "title"), passed) or ""
    yield from title(name, id=id, where=where, session=session, number=number, at=began)
    path = _chatgpt_path(nodes, thing.get("current_node"))
    for at in nodes.keys() - set(path):
        message = object_of(nodes[at].get("message"))
        if message is not None and _no_talk(message) is None and _chatgpt_content(message, SkippedParts()):
            passed.left[BRANCHES] += 1
    asked = None
    for at in path:
        message = object_of(nodes[at].get("message"))
        if message is None:
            continue  # the root, and places that only join others
        place = inside(where, f"mapping.{at}")
        reason = _no_talk(message)
        asked = message if reason == CALLS else asked
        if reason == RESULTS and session is not None and (text := "\n".join(filter(None, _texts(message)))):
            yield _result(message, text, place, passed, asked=asked, session=session, at=at)
            continue
        if reason is not None:
            passed.left[reason] += 1
            continue
        yield _chatgpt_turn(message, place, passed, session=session, number=number, began=began, at=at)


def _chatgpt_turn(
    message: Mapping[str, Any],
    where: str,
    passed: SkippedParts,
    *,
    session: str | None,
    number: int,
    began: datetime | None,
    at: str,
) -> ImportedTurn | ImportProblem:
    author = object_of(message.get("author")) or {}
    try:
        content = fitting(_chatgpt_content(message, passed), passed)
    except InvalidRecord as unfit:
        return ImportProblem(where=where, what=str(unfit))
    return ImportedTurn(
        where=where,
        role=_CHATGPT_ROLES[author["role"]],
        content=content,
        name=mended(name_of(author, "name"), passed),
        said_at=moment(message, ("create_time",), passed),
        id=id_of(message, "id") or id_of({"id": at}, "id"),
        session=session,
        conversation=number,
        began=began,
    )


def _result(
    message: Mapping[str, Any],
    text: str,
    where: str,
    passed: SkippedParts,
    *,
    asked: Mapping[str, Any] | None,
    session: str,
    at: str,
) -> ImportedResult:
    author = object_of(message.get("author")) or {}
    tool = name_of(author, "name") or ""
    called = asked if asked is not None and asked.get("recipient") == tool else None
    return ImportedResult(
        where=where,
        tool=tool,
        arguments=None if called is None else "\n".join(filter(None, _texts(called))),
        call=id_of(message, "id") or id_of({"id": at}, "id"),
        text=text,
        said_at=moment(message, ("create_time",), passed),
        session=session,
    )


def _no_talk(message: Mapping[str, Any]) -> str | None:
    """Return the category of a message that is not talk; None for talk."""
    author, metadata = object_of(message.get("author")) or {}, object_of(message.get("metadata")) or {}
    content = object_of(message.get("content")) or {}
    role, kind = author.get("role"), content.get("content_type")
    if role in ("tool", "function"):
        return RESULTS
    if role not in ("user", "assistant") or metadata.get("is_visually_hidden_from_conversation") is True:
        return HIDDEN
    if message.get("weight") == 0 or metadata.get("is_user_system_message") is True:
        return HIDDEN
    if metadata.get("is_thinking_preamble_message") is True or message.get("channel") == "analysis":
        return THOUGHTS
    if isinstance(kind, str) and kind in _NO_TALK:
        return _NO_TALK[kind]
    return CALLS if role == "assistant" and message.get("recipient") not in (None, "", "all") else None


# --- the tree ---------------------------------------------------------------------------------------


def _chatgpt_path(nodes: Mapping[str, Mapping[str, Any]], current: Any) -> list[str]:
    """Return the ids from the root to the current node, or to the newest leaf if that is unknown."""
    parents = {id: parent for id, node in nodes.items() if isinstance(parent := node.get("parent"), str)}
    for id, node in nodes.items():
        for child in list_of(node.get("children")) or ():
            if isinstance(child, str):
                parents.setdefault(child, id)
    at = current if isinstance(current, str) and current in nodes else _newest_leaf(nodes, set(parents.values()))
    path: dict[str, None] = {}
    while at is not None and at in nodes and at not in path:
        path[at] = None
        at = parents.get(at)
    return list(reversed(path))


def _newest_leaf(nodes: Mapping[str, Mapping[str, Any]], inner: set[str]) -> str | None:
    leaves = [id for id in nodes if id not in inner] or list(nodes)
    said = {id: moment(object_of(nodes[id].get("message")) or {}, ("create_time",), SkippedParts()) for id in leaves}
    dated = [(at, nth, id) for nth, id in enumerate(leaves) if (at := said[id]) is not None]
    return max(dated)[2] if dated else next(reversed(leaves), None)


# --- texts ------------------------------------------------------------------------------------------


def _chatgpt_content(message: Mapping[str, Any], passed: SkippedParts) -> str:
    metadata, texts = object_of(message.get("metadata")) or {}, _texts(message)
    passed.parts += sum(text is None for text in texts)
    files = (object_of(file) or {} for file in list_of(metadata.get("attachments")) or ())
    names = attached(((name_of(file, "name", "file_name"), None) for file in files), passed)
    return "\n".join(text for text in (*(_as_shown(text) for text in texts if text), names) if text)


def _texts(message: Mapping[str, Any]) -> list[str | None]:
    """Return the text of each part of a message, None for those that have none."""
    content = object_of(message.get("content")) or {}
    parts = list_of(content.get("parts"))
    if parts is None:
        return [text_of(content, "text", "result", "summary") or ""]
    return [_text(part) for part in parts]


def _text(part: Any) -> str | None:
    """Return the text of a part: a string, a transcript, or any other part's `text`."""
    fields = object_of(part)
    found = part if fields is None else fields.get("text")
    return found if isinstance(found, str) else None


_MARK = re.compile("((?:(?<![ \t])[ \t]+)?)\ue200([^\ue200\ue201]*)\ue201")
_STRAY = re.compile("[\ue200-\ue206]")
_SOURCE = re.compile(r"(?:(?<![ \t])[ \t]+)?【\d+(?::\d+)?†[^【】\n]*】")


def _as_shown(text: str) -> str:
    """Return a text as the page shows it: links and names in the place of their marks, citations gone."""
    if "\ue200" in text:
        text = _STRAY.sub("", _MARK.sub(_in_place_of, text))
    return _SOURCE.sub("", text) if "†" in text else text


def _in_place_of(mark: re.Match[str]) -> str:
    shown = _shown(*mark[2].split("\ue202"))
    return mark[1] + shown if shown else ""


def _shown(kind: str, *fields: str) -> str:
    match kind, fields:
        case "url", [label, href, *_] if href.startswith("http"):
            return f"[{label}]({href})"
        case "url", [label, *_]:
            return label
        case "entity", [given, *_]:
            try:
                names = list_of(json.loads(given))
            except (ValueError, RecursionError):
                return ""
            return names[1] if names and len(names) > 1 and isinstance(names[1], str) else ""
        case _:
            return ""


_CLAUDE_ROLES: dict[str, Role] = {"human": "user", "user": "user", "assistant": "assistant"}
_NO_WORDS = {"thinking": THOUGHTS, "redacted_thinking": THOUGHTS, "tool_use": CALLS, "tool_result": None}
_WRITTEN = ("content", "file_text", "code")
"""Fields of a call in which the assistant writes a document."""
_UNSHOWN = "```\nThis block is not supported on your current device yet.\n```"
_GAPS = re.compile(r"\n{3,}")
_ROOT = "00000000-0000-4000-8000-000000000000"

Message = Mapping[str, Any]


def is_claude_ai_conversation(value: Any) -> bool:
    thing = object_of(value)
    return thing is not None and list_of(thing.get("chat_messages")) is not None


def claude_ai_records(
    value: Any, where: str, number: int, passed: SkippedParts
) -> Iterator[ImportedTurn | ImportedResult | ImportProblem]:
    """Yield the turns and the results of tools of the conversation that is number `number` in its file."""
    thing = object_of(value)
    listed = None if thing is None else list_of(thing.get("chat_messages"))
    if thing is None or listed is None:
        what = "an object without chat_messages" if thing is not None else kind_of(value)
        yield ImportProblem(
            where=where, what=f"is {what}, and has to be a conversation of Claude.ai, with its chat_messages."
        )
        return
    messages = [object_of(one) or {} for one in listed]
    id, began = id_of(thing, "uuid", "id"), moment(thing, ("created_at",), passed)
    session = None if id is None else session_name("claude-ai", id)
    name = mended(name_of(thing, "name", "title"), passed) or ""
    yield from title(name, id=id, where=where, session=session, number=number, at=began)
    path = _claude_path(messages, id_of(thing, "current_leaf_message_uuid"))
    for nth in set(range(len(messages))) - set(path):
        if _role(messages[nth]) is not None and _claude_content(messages[nth], SkippedParts()):
            passed.left[BRANCHES] += 1
    for nth in path:
        place = inside(where, f"chat_messages[{nth}]")
        yield from _message(messages[nth], place, passed, session=session, number=number, began=began)


def _message(
    message: Message, where: str, passed: SkippedParts, *, session: str | None, number: int, began: datetime | None
) -> Iterator[ImportedTurn | ImportedResult | ImportProblem]:
    role = _role(message)
    if role is None:
        passed.left[HIDDEN] += 1
        return
    try:
        content = fitting(_claude_content(message, passed), passed)
    except InvalidRecord as unfit:
        yield ImportProblem(where=where, what=str(unfit))
        return
    if session is not None:
        yield from _results(message, where, session, passed)
    yield ImportedTurn(
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


def _results(message: Message, where: str, session: str, passed: SkippedParts) -> Iterator[ImportedResult]:
    """Yield tool results of a message, and documents written with a tool."""
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
            yield ImportedResult(
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
    return _CLAUDE_ROLES.get(name_of(message, "sender", "role") or "")


# --- the tree ---------------------------------------------------------------------------------------


def _claude_path(messages: Sequence[Message], current: str | None) -> list[int]:
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
    said = moment(message, ("created_at",), SkippedParts())
    return (said.timestamp() if said else 0.0, nth)


# --- texts ------------------------------------------------------------------------------------------


def _claude_content(message: Message, passed: SkippedParts) -> str:
    parts = list_of(message.get("content"))
    if parts:
        words = [text for part in parts if (text := _words(part, passed))]
    else:
        words = [_without_unshown(text_of(message, "text") or "")]
    files = [object_of(file) or {} for key in ("attachments", "files") for file in list_of(message.get(key)) or ()]
    named = ((name_of(file, "file_name", "name"), text_of(file, "extracted_content")) for file in files)
    return "\n".join(text for text in (*words, attached(named, passed)) if text)


def _without_unshown(text: str) -> str:
    """Return a text without the placeholders of its tool calls."""
    if _UNSHOWN not in text:
        return text
    return _GAPS.sub("\n\n", text.replace(_UNSHOWN, "")).strip("\n")


def _words(part: Any, passed: SkippedParts) -> str:
    """Return the words of a part of a content; parts without words are counted by category."""
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
