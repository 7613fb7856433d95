"""Tasks of Cline, Roo Code and Kilo Code, `…/tasks/<id>/api_conversation_history.json` in the storage of the editor.

    message   {role, content: text | [part, …], ts?}, in the form of Anthropic's API

The user's messages contain the user's words in tags (`<task>`, `<user_message>`, `<feedback>`, `<answer>`), or as
`feedback` in the result of a tool, among outputs of tools and texts of the client. The assistant's messages contain
calls of tools, as parts or as XML in the text; the words of some calls are for the user. In the same folder,
`ui_messages.json` has the time of each text, for versions without `ts`, and `history_item.json` names the parent of a
sub-agent's task.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mcp_memory.integrations.importers.chat import Chat, Message
from mcp_memory.integrations.importers.format import Format
from mcp_memory.integrations.importers.parts import (
    ATTACHED,
    CALL,
    INJECTED,
    RESULT,
    SUMMARIES,
    THOUGHTS,
    WORDS,
    output_text,
    parse_object,
    split_text,
)
from mcp_memory.integrations.importers.reader import read_json
from mcp_memory.integrations.importers.records import (
    ImportProblem,
    SourceValue,
    find,
    list_of,
    name_of,
    object_of,
    objects_in,
    part_of,
    text_of,
)
from mcp_memory.integrations.importers.session_files import beside, chat_records, json_at

_TYPED = re.compile(
    r"<(task|feedback|answer|user_message|user_input)\b[^>]*>\n?(.*?)\n?</\1>", re.DOTALL | re.IGNORECASE
)
_RESULT_HEAD = re.compile(r"\[(\w+)(?: for '.*?')?\] Result:\s*", re.DOTALL)
_CONTENT = re.compile(r"<(?:file_content|folder_content|url_content)\b|\[read_file for '[^']*'\]\n")
_TOOL_XML = re.compile(r"<([a-z]+(?:_[a-z]+)+)>\n?(.*?)\n?</\1>", re.DOTALL)
_THINKING = re.compile(r"<thinking>.*?</thinking>", re.DOTALL)
_SPEAKING = {
    "attempt_completion": "result",
    "ask_followup_question": "question",
    "plan_mode_respond": "response",
}
"""Tools with which the assistant speaks to the user, and the argument with the words."""
_FIELD = r"<{0}>\n?(.*?)\n?</{0}>"


def _left_out(message: Message) -> str | None:
    if message.get("isSummary") is True or message.get("isTruncationMarker") is True:
        return SUMMARIES
    return None


def _parts(message: Message) -> Iterator[dict[str, Any]]:
    """Yield the parts of a message."""
    content = message.get("content")
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else list_of(content) or []
    split = _user_parts if message.get("role") == "user" else _assistant_parts
    yield from split(objects_in(parts))


def _user_parts(parts: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    tool = ""
    for part in parts:
        if part.get("type") not in ("text", "tool_result"):
            yield part
            continue
        text = str(part.get("text") or "") if part["type"] == "text" else output_text(part.get("content"))
        typed = [tag[2].strip() for tag in _TYPED.finditer(text)] or _feedback(text)
        yield from ({"type": WORDS, "text": words} for words in typed)
        if _CONTENT.search(text):
            yield {"type": ATTACHED}
            if not typed:
                continue
        head = _RESULT_HEAD.match(text)
        if part["type"] == "tool_result":
            if not typed:
                yield part
        elif head is not None:
            tool = head[1]
            if not typed and text[head.end() :].strip():
                yield {"type": RESULT, "name": tool, "content": text[head.end() :]}
        elif tool and not typed and not _is_injected(text):
            yield {"type": RESULT, "name": tool, "content": text}
            tool = ""
        elif not typed and _is_injected(text):
            yield {"type": INJECTED}
        elif not typed and not any(_TYPED.search(str(other.get("text"))) for other in parts):
            yield {"type": WORDS, "text": text}


def _is_injected(text: str) -> bool:
    return text.lstrip().startswith(("<", "[", "The user ", "# "))


def _feedback(text: str) -> list[str]:
    """Return the user's words in a result of Roo Code, which is JSON."""
    feedback = text_of(parse_object(text), "feedback")
    return [] if feedback is None else [feedback]


def _assistant_parts(parts: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for part in parts:
        kind = part.get("type")
        if kind == "tool_use":
            yield part
            if words := text_of(part_of(part, "input"), _SPEAKING.get(str(part.get("name")), "")):
                yield {"type": WORDS, "text": words}
        elif kind == "text":
            text, thoughts = _THINKING.subn("", str(part.get("text") or ""))
            yield from ({"type": THOUGHTS} for _ in range(thoughts))
            yield from split_text(text, _TOOL_XML, _xml_call)
        else:
            yield part


def _xml_call(call: re.Match[str]) -> Iterator[dict[str, Any]]:
    yield {"type": CALL, "name": call[1]}
    if key := _SPEAKING.get(call[1]):
        words = re.search(_FIELD.format(key), call[2], re.DOTALL)
        yield {"type": WORDS, "text": words[1].strip() if words else ""}


def _load(path: Path) -> Iterator[SourceValue | ImportProblem]:
    """Yield a task. Messages without a time get the times of `ui_messages.json`."""
    messages = list_of(read_json(path))
    if messages is None:
        yield ImportProblem(where=path.name, what="is not a list of messages of Cline.")
        return
    shown = list_of(json_at(path.with_name("ui_messages.json"))) or []
    about = object_of(json_at(path.with_name("history_item.json"))) or {}
    first = next(filter(None, (text_of(entry, "text") for entry in objects_in(shown))), None)
    task = {
        "id": path.parent.name,
        "task": name_of(about, "task") or first,
        "parent": about.get("parentTaskId"),
        "began": find(shown[0], "ts") if shown else find(messages[0], "ts") if messages else None,
        "messages": list(_dated(messages, shown)),
    }
    yield SourceValue(task, path.name, path=path.as_posix())


def _dated(messages: list[Any], shown: list[Any]) -> Iterator[Any]:
    """Yield messages; each gets the time of its first text in `shown`, after the texts of the messages before it."""
    entries = [entry for entry in objects_in(shown) if text_of(entry, "text")]
    texts = [_key(str(entry["text"])) for entry in entries]
    at = 0
    for message in objects_in(messages):
        keys = [key for part in _parts(message) if (key := _key(text_of(part, "text") or ""))]
        if "ts" in message or not keys:
            yield message
            continue
        is_first = at == 0
        nth = next((n for n in range(at, len(texts)) if any(key in texts[n] for key in keys)), None)
        if nth is None and is_first and entries:  # mentions of files are written differently in the two
            nth = 0
        yield message if nth is None else {**message, "ts": entries[nth].get("ts")}
        at = at if nth is None else nth + 1


def _key(text: str) -> str:
    return " ".join(text.split())[:60]


_CHAT = Chat(
    client="cline",
    expected="task of Cline, with its messages",
    title=("task",),
    began=("began",),
    key=("id",),
    time=("ts",),
    split=_parts,
    joined="\n\n",
    left_out=_left_out,
)

FORMAT = Format(
    title="a task of Cline, Roo Code or Kilo Code",
    location="the folder `tasks` in the editor's `globalStorage`, or a task's `api_conversation_history.json`",
    unit="path",
    path=r"(?:^|/)api_conversation_history\.json$",
    load=_load,
    parts=beside("ui_messages.json", "history_item.json"),
    records=chat_records(_CHAT, sub_agent=lambda source: find(source.value, "parent") is not None),
)
