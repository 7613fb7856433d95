"""Conversations in the exports of ChatGPT and Claude.ai. No I/O, no state.

Exports are made by programs, so users cannot repair them: missing, odd or new fields of a message are ignored, and only
an object that is not a conversation is a problem.

ChatGPT:

    conversation   {conversation_id, title, create_time, current_node, mapping: {id: node, …}}
    node           {id, parent, children, message: {id, author: {role, name}, create_time, recipient, channel,
                    content: {content_type, parts | text}, metadata, weight}}

`mapping` is a tree: an edited question or a second answer begins a branch. Imported is the path from the root to
`current_node`, which the user saw last; messages on other branches are counted. Turns are the words of user and
assistant to each other; tool results are imported separately. Calls, thoughts, hidden messages and contexts for the
model (custom instructions, ChatGPT's own memory) are counted. A conversation marked as not to be remembered is skipped.
Marks of the web page, such as citations between U+E200 and U+E201, are removed, as the page does.

Claude.ai:

    conversation   {uuid, name, created_at, chat_messages: [message, …]}
    message        {uuid, sender: human | assistant, text, content: [part, …], created_at, parent_message_uuid,
                    attachments: [{file_name, extracted_content}], files: [{file_name}]}
    part           {type: text | thinking | tool_use | tool_result | voice_note | …, text}
    tool_use       {id, name, input}      tool_result  {tool_use_id, name, content: [{text}]}

Messages that name their parent form a tree: imported is the path to `current_leaf_message_uuid`, or to the newest leaf.
A message without a parent answers the message before it. The words are those of `content`, or of `text` if there is
none, because `text` mixes them with thoughts. Attachments follow the words, up to a limit. Tool results are imported
separately, and so are documents that the assistant wrote with a tool.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Literal, TypeVar

from mcp_memory.core.text import one_line
from mcp_memory.core.types import Role
from mcp_memory.integrations.importers.records import (
    ImportedResult,
    ImportedTurn,
    ImportProblem,
    InvalidRecord,
    SkippedParts,
    SourceValue,
    id_of,
    items_of,
    kind_of,
    list_of,
    name_of,
    object_of,
    parse_time,
    part_of,
    place_inside,
    replace_surrogates,
    session_name,
    storable_text,
    text_of,
)

# Categories of parts that are not talk, as an import reports them.
BRANCHES = "messages on other branches, edited or answered anew"
CALLS = "calls of tools"
HIDDEN = "hidden messages and instructions"
RESULTS = "results of tools without text"
THOUGHTS = "thoughts"

ATTACHED_CHARS = 20_000
"""Characters of attached texts that are kept with a message."""

_UNTITLED = {"", "new chat", "untitled"}
_LONG_AGO = datetime.min.replace(tzinfo=UTC)

T = TypeVar("T")
ExportRecord = ImportedTurn | ImportedResult | ImportProblem
Message = Mapping[str, Any]


class _Conversation:
    """A conversation, and the fields that its turns have in common. `time` is the field with the time of each turn."""

    def __init__(
        self,
        client: Literal["chatgpt", "claude-ai"],
        fields: Message,
        *,
        ids: tuple[str, str],
        time: str,
        source: SourceValue,
        skipped: SkippedParts,
    ) -> None:
        self._id, self._time, self._passed = id_of(fields, *ids), time, skipped
        self.session = None if self._id is None else session_name(client, self._id)
        began = parse_time(fields, (time,), skipped)
        self._turn = ImportedTurn(
            where=source.where,
            role="system",
            content="",
            session=self.session,
            conversation=source.number,
            began=began,
        )

    def title(self, name: str | None) -> Iterator[ImportedTurn]:
        """Yield the title, unless generic, as a turn of role `system`: searches find it, but models do not read it."""
        text = replace_surrogates(name, self._passed) or ""
        if text.casefold() not in _UNTITLED:
            id, began = f"title-{self._id}" if self._id else None, self._turn.began
            yield replace(self._turn, content=one_line(text, 300), name="title", said_at=began, id=id)

    def turn(
        self, message: Message, where: str, role: Role, text: str, *, id: str | None, name: str | None = None
    ) -> ImportedTurn | ImportProblem:
        """Return a message as a turn, or the reason why it cannot be imported."""
        try:
            content = storable_text(text, self._passed)
        except InvalidRecord as unfit:
            return ImportProblem(where=where, what=str(unfit))
        said_at = parse_time(message, (self._time,), self._passed)
        return replace(self._turn, where=where, role=role, content=content, name=name, said_at=said_at, id=id)


def _not_a_conversation(source: SourceValue, client: str, key: str, *, article: str = "") -> ImportProblem:
    actual = kind_of(source.value) if object_of(source.value) is None else f"an object without {article}{key}"
    what = f"is {actual}, and has to be a conversation of {client}, with its {key}."
    return ImportProblem(where=source.where, what=what)


def _path(before: Mapping[T, T | None], last: T | None, time: Callable[[T], datetime | None]) -> list[T]:
    """Return the messages from the first to `last`, or to the newest leaf if that is None.

    `before` maps each message to its parent, None for a first message.
    """
    at = last
    if at is None and before:
        inner = set(before.values())
        leaves = [key for key in before if key not in inner] or list(before)
        at = max(enumerate(leaves), key=lambda leaf: (time(leaf[1]) or _LONG_AGO, leaf[0]))[1]
    path: dict[T, None] = {}
    while at is not None and at in before and at not in path:
        path[at] = None
        at = before[at]
    return list(reversed(path))


def _describe_attachments(files: Iterable[tuple[str | None, str | None]], skipped: SkippedParts) -> str:
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


# --- ChatGPT ----------------------------------------------------------------------------------------

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


def chatgpt_records(source: SourceValue, skipped: SkippedParts) -> Iterator[ExportRecord]:
    """Yield the title, turns and tool results of a conversation, or a problem. Other parts are counted in `skipped`."""
    thing, where = object_of(source.value) or {}, source.where
    mapping = object_of(thing.get("mapping"))
    if mapping is None:
        yield _not_a_conversation(source, "ChatGPT", "mapping", article="a ")
        return
    if thing.get("is_do_not_remember") is True:
        skipped.left_out["conversations marked as not to be remembered"] += 1
        return
    ids = ("conversation_id", "id")
    talk = _Conversation("chatgpt", thing, ids=ids, time="create_time", source=source, skipped=skipped)
    yield from talk.title(name_of(thing, "title"))
    nodes = {id: node for id, value in mapping.items() if (node := object_of(value)) is not None}
    messages = {at: message for at, node in nodes.items() if (message := object_of(node.get("message"))) is not None}
    path = _chatgpt_path(nodes, messages, thing.get("current_node"))
    for at in messages.keys() - set(path):
        if _left_out_category(messages[at]) is None and _chatgpt_content(messages[at], SkippedParts()):
            skipped.left_out[BRANCHES] += 1
    call = None
    for at in path:
        if at not in messages:
            continue  # the root, and nodes without a message
        message, place = messages[at], place_inside(where, f"mapping.{at}")
        reason, id = _left_out_category(message), id_of(message, "id") or id_of({"id": at}, "id")
        call = message if reason == CALLS else call
        author = part_of(message, "author")
        if reason is None:
            name = replace_surrogates(name_of(author, "name"), skipped)
            text = _chatgpt_content(message, skipped)
            yield talk.turn(message, place, _CHATGPT_ROLES[author["role"]], text, id=id, name=name)
        elif reason == RESULTS and talk.session is not None and (text := _join_texts(message)):
            tool = name_of(author, "name") or ""
            yield ImportedResult(
                where=place,
                tool=tool,
                arguments=_join_texts(call) if call is not None and call.get("recipient") == tool else None,
                call=id,
                text=text,
                said_at=parse_time(message, ("create_time",), skipped),
                session=talk.session,
            )
        else:
            skipped.left_out[reason] += 1


def _left_out_category(message: Message) -> str | None:
    """Return the category of a message that is left out; None if the message is part of the talk."""
    author, metadata, content = (part_of(message, key) for key in ("author", "metadata", "content"))
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


def _chatgpt_path(nodes: Mapping[str, Message], messages: Mapping[str, Message], current: Any) -> list[str]:
    """Return the ids from the root to the current node, or to the newest leaf if that is unknown."""
    parents = {id: parent for id, node in nodes.items() if isinstance(parent := node.get("parent"), str)}
    for id, node in nodes.items():
        for child in items_of(node, "children"):
            if isinstance(child, str):
                parents.setdefault(child, id)
    last = current if isinstance(current, str) and current in nodes else None
    before = {id: parents.get(id) for id in nodes}
    return _path(before, last, lambda id: parse_time(messages.get(id, {}), ("create_time",), SkippedParts()))


def _chatgpt_content(message: Message, skipped: SkippedParts) -> str:
    texts = _texts(message)
    skipped.parts += sum(text is None for text in texts)
    files = (object_of(file) or {} for file in items_of(part_of(message, "metadata"), "attachments"))
    names = _describe_attachments(((name_of(file, "name", "file_name"), None) for file in files), skipped)
    return "\n".join(text for text in (*(_replace_marks(text) for text in texts if text), names) if text)


def _texts(message: Message) -> list[str | None]:
    """Return the text of each part of a message, None for parts without text."""
    content = part_of(message, "content")
    parts = list_of(content.get("parts"))
    if parts is None:
        return [text_of(content, "text", "result", "summary") or ""]
    texts = (part if (fields := object_of(part)) is None else fields.get("text") for part in parts)
    return [text if isinstance(text, str) else None for text in texts]


def _join_texts(message: Message) -> str:
    return "\n".join(filter(None, _texts(message)))


_MARK = re.compile("((?:(?<![ \t])[ \t]+)?)\ue200([^\ue200\ue201]*)\ue201")
_STRAY = re.compile("[\ue200-\ue206]")
_SOURCE = re.compile(r"(?:(?<![ \t])[ \t]+)?【\d+(?::\d+)?†[^【】\n]*】")


def _replace_marks(text: str) -> str:
    """Return a text as the page shows it: marks replaced by links and names, citations removed."""
    if "\ue200" in text:
        text = _STRAY.sub("", _MARK.sub(_replace_mark, text))
    return _SOURCE.sub("", text) if "†" in text else text


def _replace_mark(mark: re.Match[str]) -> str:
    shown = _shown_mark(*mark[2].split("\ue202"))
    return mark[1] + shown if shown else ""


def _shown_mark(kind: str, *fields: str) -> str:
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


# --- Claude.ai --------------------------------------------------------------------------------------

_CLAUDE_ROLES: dict[str, Role] = {"human": "user", "user": "user", "assistant": "assistant"}
_NO_WORDS = {"thinking": THOUGHTS, "redacted_thinking": THOUGHTS, "tool_use": CALLS, "tool_result": None}
_WRITTEN = ("content", "file_text", "code")
"""Fields of a call in which the assistant writes a document."""
_PLACEHOLDER = "```\nThis block is not supported on your current device yet.\n```"
_GAPS = re.compile(r"\n{3,}")
_ROOT = "00000000-0000-4000-8000-000000000000"


def is_claude_ai_conversation(value: Any) -> bool:
    thing = object_of(value)
    return thing is not None and list_of(thing.get("chat_messages")) is not None


def claude_ai_records(source: SourceValue, skipped: SkippedParts) -> Iterator[ExportRecord]:
    """Yield the title, turns and tool results of a conversation, or a problem. Other parts are counted in `skipped`."""
    thing, where = object_of(source.value) or {}, source.where
    listed = list_of(thing.get("chat_messages"))
    if listed is None:
        yield _not_a_conversation(source, "Claude.ai", "chat_messages")
        return
    messages = [object_of(message) or {} for message in listed]
    ids = ("uuid", "id")
    talk = _Conversation("claude-ai", thing, ids=ids, time="created_at", source=source, skipped=skipped)
    yield from talk.title(name_of(thing, "name", "title"))
    path = _claude_path(messages, id_of(thing, "current_leaf_message_uuid"))
    for nth in set(range(len(messages))) - set(path):
        if _role(messages[nth]) is not None and _claude_content(messages[nth], SkippedParts()):
            skipped.left_out[BRANCHES] += 1
    for nth in path:
        message, role = messages[nth], _role(messages[nth])
        if role is None:
            skipped.left_out[HIDDEN] += 1
            continue
        text, place = _claude_content(message, skipped), place_inside(where, f"chat_messages[{nth}]")
        turn = talk.turn(message, place, role, text, id=id_of(message, "uuid", "id"))
        if talk.session is not None and isinstance(turn, ImportedTurn):
            yield from _results(message, place, talk.session, skipped)
        yield turn


def _results(message: Message, where: str, session: str, skipped: SkippedParts) -> Iterator[ImportedResult]:
    """Yield a message's tool results, and the documents written with a tool."""
    parts = [part for part in map(object_of, items_of(message, "content")) if part is not None]
    uses = {id: part for part in parts if part.get("type") == "tool_use" and (id := id_of(part, "id"))}
    for nth, part in enumerate(parts):
        arguments = object_of(part.get("input"))
        match part.get("type"):
            case "tool_use":
                call = id_of(part, "id")
                text = text_of(arguments or {}, *_WRITTEN)
                arguments = {key: value for key, value in (arguments or {}).items() if key not in _WRITTEN}
            case "tool_result":
                call = id_of(part, "tool_use_id")
                arguments = uses.get(call or "", {}).get("input")
                blocks = [object_of(block) or {} for block in items_of(part, "content")]
                text = text_of(part, "content") or "\n".join(filter(None, (text_of(block, "text") for block in blocks)))
                call = call and f"{call}-result"
                if not text:
                    skipped.left_out[RESULTS] += 1
            case _:
                continue
        if text:
            yield ImportedResult(
                where=where,
                tool=name_of(part, "name") or "",
                arguments=arguments,
                call=call or f"{id_of(message, 'uuid', 'id')}-{nth}",
                text=text,
                said_at=parse_time(part, ("stop_timestamp", "start_timestamp"), skipped)
                or parse_time(message, ("created_at",), skipped),
                session=session,
            )


def _role(message: Message) -> Role | None:
    return _CLAUDE_ROLES.get(name_of(message, "sender", "role") or "")


def _claude_path(messages: list[dict[str, Any]], current: str | None) -> list[int]:
    """Return the indexes of the messages from the first to the current, or else the newest, leaf."""
    places = {id: nth for nth in reversed(range(len(messages))) if (id := id_of(messages[nth], "uuid", "id"))}
    before: dict[int, int | None] = {}
    for nth, message in enumerate(messages):
        parent = id_of(message, "parent_message_uuid")
        before[nth] = None if parent == _ROOT else places.get(parent or "", nth - 1 if nth else None)
    last = places.get(current) if current else None
    return _path(before, last, lambda nth: parse_time(messages[nth], ("created_at",), SkippedParts()))


def _claude_content(message: Message, skipped: SkippedParts) -> str:
    parts = list_of(message.get("content"))
    if parts:
        words = [text for part in parts if (text := _part_text(part, skipped))]
    else:
        words = [_remove_placeholders(text_of(message, "text") or "")]
    files = [object_of(file) or {} for key in ("attachments", "files") for file in items_of(message, key)]
    named = ((name_of(file, "file_name", "name"), text_of(file, "extracted_content")) for file in files)
    return "\n".join(text for text in (*words, _describe_attachments(named, skipped)) if text)


def _remove_placeholders(text: str) -> str:
    """Return a text without the placeholders of its tool calls."""
    if _PLACEHOLDER not in text:
        return text
    return _GAPS.sub("\n\n", text.replace(_PLACEHOLDER, "")).strip("\n")


def _part_text(part: Any, skipped: SkippedParts) -> str:
    """Return the words of a content part; parts without words are counted by category."""
    fields = object_of(part)
    if fields is None:
        return part if isinstance(part, str) else ""
    kind = fields.get("type")
    if isinstance(kind, str) and kind in _NO_WORDS:
        if (what := _NO_WORDS[kind]) is not None:
            skipped.left_out[what] += 1
        return ""
    text = text_of(fields, "text", "transcript")
    skipped.parts += text is None
    return text or ""
