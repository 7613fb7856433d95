"""Exports of ChatGPT.

    conversation   {conversation_id, title, create_time, current_node, mapping: {id: node, …}}
    node           {id, parent, children, message: {id, author: {role, name}, create_time, recipient, channel,
                    content: {content_type, parts | text}, metadata, weight}}

`mapping` is a tree: an edited question or a second answer begins a branch. Turns are the words of user and assistant to
each other. Messages to a tool are calls, with two exceptions: a message to `canmore` writes a document ("canvas"), of
which the last version is imported as a turn of the assistant; a message to `bio` notes a fact about the user, which is
imported as a statement. The user's custom instructions are statements too. Thoughts, hidden messages and other contexts
are counted. A conversation marked as not to be remembered is skipped. Marks of the web
page, such as citations between U+E200 and U+E201, are removed, as the page does.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import Any

from mcp_memory.core.text import one_line
from mcp_memory.integrations.importers.chat import Chat, Message, Talk
from mcp_memory.integrations.importers.format import AnyRecord, Format, has
from mcp_memory.integrations.importers.parts import (
    CALLS,
    HIDDEN,
    NOT_REMEMBERED,
    RESULTS,
    THOUGHTS,
    parse_list,
    parse_object,
)
from mcp_memory.integrations.importers.records import (
    SkippedParts,
    SourceValue,
    find,
    id_of,
    items_of,
    list_of,
    name_of,
    object_of,
    objects_in,
    parse_time,
    part_of,
    text_of,
)
from mcp_memory.integrations.importers.statements import statement

_WHOLE = {".*", "(?s).*", "^.*$", "(?s)^.*$", r"[\s\S]*"}
OLD_CANVAS = "earlier versions of canvas documents"
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


def chatgpt_records(source: SourceValue, skipped: SkippedParts) -> Iterator[AnyRecord]:
    """Yield the records of a conversation, unless it is not to be remembered."""
    if find(source.value, "is_do_not_remember") is True:
        skipped.left_out[NOT_REMEMBERED] += 1
    else:
        yield from CHAT.records(source, skipped)


def _left_out(message: Message) -> str | None:
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


def _special(talk: Talk, message: Message, where: str) -> Iterator[AnyRecord] | None:
    """Yield notes, instructions, canvas documents and tool results; None for other messages."""
    recipient, kind = message.get("recipient"), part_of(message, "content").get("content_type")
    role = part_of(message, "author").get("role")
    if role == "assistant" and recipient == "bio":
        return _notes(talk, message, where, _join_texts(message))
    if kind == "model_editable_context" and (text := text_of(part_of(message, "content"), "model_set_context")):
        return _notes(talk, message, where, text)
    if kind == "user_editable_context":
        return _instructions(talk, message, where)
    if role == "assistant" and isinstance(recipient, str) and recipient.startswith("canmore."):
        return _canvas(talk, message, where)
    reason = _left_out(message)
    if reason == CALLS:
        talk.notes["call"] = message
    return _result(talk, message, where) if reason == RESULTS else None


def _result(talk: Talk, message: Message, where: str) -> Iterator[AnyRecord]:
    tool = name_of(part_of(message, "author"), "name") or ""
    call: Message = talk.notes.get("call", {})
    arguments = _join_texts(call) if call.get("recipient") == tool else None
    return talk.result(message, where, _join_texts(message), call=_message_id(message, where), tool=tool,
                       arguments=arguments)  # fmt: skip


def _message_id(message: Message, where: str) -> str | None:
    return id_of(message, "id") or id_of({"id": where.rpartition(".")[2]}, "id")


_NOTE = re.compile(r"^\s*(?:\d+\.\s*)?(?:\[(\d{4}-\d{2}-\d{2})\]\.?\s*)?(.+?)\s*$")
_FENCED = re.compile(r"```\n?(.*?)\n?```", re.DOTALL)
_INSTRUCTIONS = {
    "user_profile": "The user told ChatGPT about themselves: ",
    "user_instructions": "The user asked ChatGPT to answer like this: ",
}


def _notes(talk: Talk, message: Message, where: str, text: str) -> Iterator[AnyRecord]:
    """Yield the lines of memory notes as statements: of a message to `bio`, or of ChatGPT's list of all notes."""
    for line in filter(None, map(str.strip, text.splitlines())):
        note = _NOTE.match(line)
        if note is not None:
            yield from _statement(talk, message, where, "ChatGPT noted about the user: ", note[2], note[1])


def _instructions(talk: Talk, message: Message, where: str) -> Iterator[AnyRecord]:
    """Yield custom instructions as statements."""
    content = part_of(message, "content")
    instructions = {key: text for key in _INSTRUCTIONS if (text := text_of(content, key))}
    if not instructions and (text := _join_texts(message)):
        instructions = {"user_profile": text}
    for key, text in instructions.items():
        fenced = _FENCED.search(text)
        words = (fenced[1] if fenced else text).strip()
        if words:
            yield from _statement(talk, message, where, _INSTRUCTIONS[key], words)
    if not instructions:
        talk.skipped.left_out[HIDDEN] += 1


def _statement(
    talk: Talk, message: Message, where: str, label: str, words: str, day: str | None = None
) -> Iterator[AnyRecord]:
    """Yield a statement once per file: ChatGPT repeats its notes and instructions in most conversations."""
    id = f"chatgpt:{hashlib.sha256((label + words).encode()).hexdigest()[:24]}"
    if id in talk.skipped.seen:
        return
    talk.skipped.seen.add(id)
    said_at = parse_time({"day": day}, ("day",), talk.skipped) or talk.time(message, talk.chat.time)
    said_at = said_at or talk.turn_base.began
    text = label + words
    yield statement(where, talk.skipped, text=text, words=words, said_at=said_at, id=id, program="chatgpt")


# --- canvas -----------------------------------------------------------------------------------------


def _canvas(talk: Talk, message: Message, where: str) -> Iterator[AnyRecord]:
    """Yield a canvas document as a turn of the assistant, where its last version was written."""
    call = parse_object(_join_texts(message))
    document: dict[str, Any] = talk.notes.get("canvas") or {}
    if message.get("recipient") == "canmore.create_textdoc":
        document = {"name": name_of(call, "name"), "content": text_of(call, "content") or ""}
    elif message.get("recipient") == "canmore.update_textdoc":
        document = {**document, "content": _updated(talk, document.get("content", ""), call)}
    else:
        talk.skipped.left_out[CALLS] += 1
        return
    talk.notes["canvas"] = document
    if _is_updated_later(talk, message):
        talk.skipped.left_out[OLD_CANVAS] += 1
    elif document["content"].strip():
        title = f"# {one_line(document['name'], 200)}\n\n" if document.get("name") else ""
        id = _message_id(message, where)
        yield talk.turn(message, where, "assistant", title + document["content"], id=id, name="canvas")


def _is_updated_later(talk: Talk, message: Message) -> bool:
    later = iter(talk.path)
    for other in later:
        if other is message:
            break
    calls = (other.get("recipient") for other in later if part_of(other, "author").get("role") == "assistant")
    return next((call for call in calls if call in ("canmore.create_textdoc", "canmore.update_textdoc")), "") == (
        "canmore.update_textdoc"
    )


def _updated(talk: Talk, content: str, call: Message) -> str:
    """Return a document after an update. A pattern that does not occur as a text is counted.

    Patterns are never run as regular expressions, because a hostile expression may take hours.
    """
    for update in objects_in(items_of(call, "updates")):
        pattern, new = update.get("pattern"), update.get("replacement")
        if not isinstance(pattern, str) or not isinstance(new, str):
            continue
        count = -1 if update.get("multiple") is True else 1
        plain = next((text for text in (pattern, re.sub(r"\\(.)", r"\1", pattern)) if text and text in content), None)
        if pattern in _WHOLE:
            content = new
        elif plain is not None:
            content = content.replace(plain, new, count)
        else:
            talk.skipped.left_out["changes of canvas documents by a pattern"] += 1
    return content


def _join_texts(message: Message) -> str:
    content = part_of(message, "content")
    parts = list_of(content.get("parts"))
    if parts is None:
        return text_of(content, "text", "result", "summary") or ""
    texts = (part if (fields := object_of(part)) is None else fields.get("text") for part in parts)
    return "\n".join(text for text in texts if isinstance(text, str) and text)


# --- marks of the page ------------------------------------------------------------------------------

_MARK = re.compile("((?:(?<![ \t])[ \t]+)?)\ue200([^\ue200\ue201]*)\ue201")
_STRAY = re.compile("[\ue200-\ue206]")
_SOURCE = re.compile(r"(?:(?<![ \t])[ \t]+)?【\d+(?::\d+)?†[^【】\n]*】")


def _replace_marks(text: str, _role: str = "") -> str:
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
        case "entity", [field, *_]:
            names = parse_list(field)
            return names[1] if len(names) > 1 and isinstance(names[1], str) else ""
        case _:
            return ""


CHAT = Chat(
    client="chatgpt",
    expected="conversation of ChatGPT, with its mapping",
    id=("conversation_id", "id"),
    began=("create_time",),
    messages=("mapping",),
    leaf=("current_node",),
    message="message",
    key=("id",),
    parent=("parent",),
    role=("author.role",),
    name=("author.name",),
    time=("create_time",),
    content=("content.parts", "content.text", "content.result", "content.summary"),
    attachments=("metadata.attachments",),
    attachment_name=("name", "file_name"),
    left_out=_left_out,
    clean=_replace_marks,
    special=_special,
)

FORMAT = Format(
    title="an export of ChatGPT",
    location="the zip that ChatGPT sends, or its conversations.json",
    matches=has(mapping=dict),
    records=chatgpt_records,
)
