"""What a conversation of a ChatGPT export says. No I/O, no state.

    conversation   {conversation_id, title, create_time, current_node, mapping: {id: node, …}}
    node           {id, parent, children, message: {id, author: {role, name}, create_time, recipient, channel,
                    content: {content_type, parts | text}, metadata, weight}}

`mapping` is a tree: a question that was edited or an answer made anew begins a branch. What is told is the way from
the root to `current_node`, which is what the person saw last; of the rest only how much there is. Told are the words
of the person and of the assistant to each other, and what tools answered. Calls, thoughts, hidden messages and
contexts that were put in for the model (custom instructions, ChatGPT's own memory) are counted. A conversation that is
marked as not to be remembered is not told.

Marks of the web page in a text, such as citations between U+E200 and U+E201, are cut out, as the page does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
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

_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant"}
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


def is_conversation(value: Any) -> bool:
    thing = object_of(value)
    return thing is not None and object_of(thing.get("mapping")) is not None


def told(value: Any, where: str, number: int, passed: Passed) -> Iterator[Told | Result | Wrong]:
    """Yield the turns and the results of tools of the conversation that is number `number` in its file."""
    thing = object_of(value)
    mapping = None if thing is None else object_of(thing.get("mapping"))
    if thing is None or mapping is None:
        what = "an object without a mapping" if thing is not None else kind_of(value)
        yield Wrong(where=where, what=f"is {what}, and has to be a conversation of ChatGPT, with its mapping.")
        return
    if thing.get("is_do_not_remember") is True:
        passed.left["conversations marked as not to be remembered"] += 1
        return
    nodes = {id: node for id, value in mapping.items() if (node := object_of(value)) is not None}
    id, began = id_of(thing, "conversation_id", "id"), moment(thing, ("create_time",), passed)
    session = None if id is None else session_name("chatgpt", id)
    name = mended(name_of(thing, "title"), passed) or ""
    yield from title(name, id=id, where=where, session=session, number=number, at=began)
    path = _path(nodes, thing.get("current_node"))
    for at in nodes.keys() - set(path):
        message = object_of(nodes[at].get("message"))
        if message is not None and _no_talk(message) is None and _content(message, Passed()):
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
        yield _turn(message, place, passed, session=session, number=number, began=began, at=at)


def _turn(
    message: Mapping[str, Any],
    where: str,
    passed: Passed,
    *,
    session: str | None,
    number: int,
    began: datetime | None,
    at: str,
) -> Told | Wrong:
    author = object_of(message.get("author")) or {}
    try:
        content = fitting(_content(message, passed), passed)
    except Unfit as unfit:
        return Wrong(where=where, what=str(unfit))
    return Told(
        where=where,
        role=_ROLES[author["role"]],
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
    passed: Passed,
    *,
    asked: Mapping[str, Any] | None,
    session: str,
    at: str,
) -> Result:
    author = object_of(message.get("author")) or {}
    tool = name_of(author, "name") or ""
    called = asked if asked is not None and asked.get("recipient") == tool else None
    return Result(
        where=where,
        tool=tool,
        arguments=None if called is None else "\n".join(filter(None, _texts(called))),
        call=id_of(message, "id") or id_of({"id": at}, "id"),
        text=text,
        said_at=moment(message, ("create_time",), passed),
        session=session,
    )


def _no_talk(message: Mapping[str, Any]) -> str | None:
    """Return what a message is, where it is no word of the talk."""
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


def _path(nodes: Mapping[str, Mapping[str, Any]], current: Any) -> list[str]:
    """Return the ids from the root to the node that was seen last; to the newest leaf where that is not told."""
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
    said = {id: moment(object_of(nodes[id].get("message")) or {}, ("create_time",), Passed()) for id in leaves}
    dated = [(at, nth, id) for nth, id in enumerate(leaves) if (at := said[id]) is not None]
    return max(dated)[2] if dated else next(reversed(leaves), None)


# --- texts ------------------------------------------------------------------------------------------


def _content(message: Mapping[str, Any], passed: Passed) -> str:
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
    """Return the text of a part: a string, what was said aloud, or any other part's `text`."""
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
