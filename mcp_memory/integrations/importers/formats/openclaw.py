"""Sessions of OpenClaw and of pi, `~/.openclaw/agents/<agent>/sessions/<session>.jsonl`, `~/.pi/agent/sessions`.

    first line   {type: "session", version, id, timestamp, cwd}
    line         {type: "message", id, parentId, timestamp, message: {role: user | assistant | toolResult, content}}
                 {type: "compaction" | "session_info" | "model_change" | …, id, parentId}

The lines are a tree; the last line is on the current branch. OpenClaw adds blocks with the sender and the channel to
the user's words, and also sends its own prompts with the role of the user; answers may be marks without words.
`sessions.json` in the same folder has the key of each session, by which sessions of sub-agents and jobs are recognised.
`openclaw_db` reads the same lines from a database.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from mcp_memory.integrations.importers.chat import Chat, Message
from mcp_memory.integrations.importers.format import AnyRecord, Format, first_line, has
from mcp_memory.integrations.importers.parts import HIDDEN, INJECTED, SUMMARIES, WORDS, output_text
from mcp_memory.integrations.importers.records import (
    SkippedParts,
    SourceValue,
    find,
    items_of,
    list_of,
    object_of,
    part_of,
)
from mcp_memory.integrations.importers.session_files import beside, chat_records, json_at, load_lines

_BLOCK = re.compile(
    r"^Context: ⟦openclaw:ctx⟧\n.*\Z"
    r"|^[^\n]*(?:\(untrusted[^)\n]*\):|⟦openclaw:ctx⟧)[ \t]*\n```json\n.*?\n```\n*"
    r"|^[^\n]*⟦openclaw:ctx⟧[ \t]*\n(?:[^\n]+\n)*\n*"
    r"|^Untrusted context \(metadata.*?(?:<<<END[^\n]*>>>\n*|\Z)"
    r"|\A(?:System: \[[^\n]*(?:\n+|\Z))+",
    re.DOTALL | re.MULTILINE,
)
"""Texts that are counted: about the message, and events of the system."""
_CHANNEL = (
    "WebChat|WhatsApp|Telegram|Signal|Slack|Discord|Google Chat|iMessage|BlueBubbles|Teams|Matrix|Zalo|Feishu|LINE|IRC"
)
_ENVELOPE = re.compile(
    rf"\A\[(?:(?:{_CHANNEL})\b|\w{{3}} \d{{4}}-\d\d-\d\d \d\d:\d\d)[^\]\n]*\][ \t]*"
    r"|^\[(?:message_id|media attached)[^\]\n]*\][ \t]*\n?"
    r"|^\[Queued messages while agent was busy\]\n*|^---\nQueued #\d+[^\n]*\n|^To send an image back[^\n]*\n?",
    re.MULTILINE,
)
_PROMPT = re.compile(
    r"\s*(?:Read HEARTBEAT\.md if it exists|Pre-compaction memory flush|A new session was started via /new or /reset"
    r"|\[cron:|A background task |\[[^\]\n]*System Message\])"
)
_GROUP = re.compile(r":(?:group|channel):")
_SENDER = re.compile(r'"(?:sender|name)":\s*"([^"\n]+)"')
_DIRECTIVE = re.compile(
    r"\[\[(?:reply_to_current|reply_to:[^\]]*|audio_as_voice)\]\][ \t]*|^MEDIA:[^\n]*\n?", re.MULTILINE
)
COMPRESSED = "long messages that OpenClaw compressed, which Python 3.14 can read"
_NOTHING = ("NO_REPLY", "HEARTBEAT_OK")
_COUNTED = {"compaction": SUMMARIES, "branch_summary": SUMMARIES, "custom_message": INJECTED}
_BY_PROGRAMS = re.compile(r"(?:^|:)(?:subagent|cron|hook)\b")


def session_of(lines: list[Any], key: str, label: Any = None) -> dict[str, Any]:
    """Return the value of a session for `CHAT`; `key` is its key in OpenClaw."""
    head = next((line for line in lines if find(line, "type") == "session"), None)
    titles = [find(line, "name") for line in lines if find(line, "type") == "session_info"]
    return {
        "id": find(head, "id"),
        "title": next((title for title in reversed(titles) if title), label),
        "began": find(head, "timestamp"),
        "is_of_a_program": _BY_PROGRAMS.search(key) is not None,
        "messages": [_with_sender(line, key) for line in lines if find(line, "type") != "session"],
    }


def _with_sender(line: Any, key: str) -> Any:
    """Return a line; a message of the user in a group gets the name of its sender."""
    text = output_text(find(line, "message.content")) if find(line, "message.role") == "user" else ""
    is_group = _GROUP.search(key) or '"is_group_chat": true' in text
    sender = _SENDER.search(text) if is_group and _BLOCK.match(text) else None
    return {**line, "sender": sender[1]} if sender else line


def _session(path: Path, lines: list[Any]) -> dict[str, Any]:
    keys = object_of(json_at(path.with_name("sessions.json"))) or {}
    id = find(next(iter(lines), None), "id")
    key, about = next(((key, about) for key, about in keys.items() if find(about, "sessionId") == id), ("", None))
    return session_of(lines, key, find(about, "label"))


def _left_out(line: Message) -> str | None:
    if line.get("compressed") is True:
        return COMPRESSED
    kind, message = line.get("type"), part_of(line, "message")
    if kind != "message":
        return _COUNTED.get(str(kind))
    if message.get("model") == "delivery-mirror":
        return INJECTED
    return HIDDEN if message.get("role") in ("custom", "bashExecution") else None


def _parts(line: Message) -> Iterator[Any]:
    message = part_of(line, "message")
    role, content = message.get("role"), message.get("content")
    for part in [content] if isinstance(content, str) else list_of(content) or []:
        text = part if isinstance(part, str) else find(part, "text")
        if not isinstance(text, str) or role not in ("user", "assistant"):
            yield part
        elif role == "assistant":
            words = _DIRECTIVE.sub("", text).strip()
            yield {"type": INJECTED} if words in _NOTHING else {"type": WORDS, "text": words}
        elif _PROMPT.match(text):
            yield {"type": INJECTED}
        else:
            text, count = _BLOCK.subn("", text)
            yield from ({"type": INJECTED} for _ in range(count))
            yield {"type": WORDS, "text": _ENVELOPE.sub("", text.strip()).strip()}


CHAT = Chat(
    client="openclaw",
    expected="session of OpenClaw",
    began=("began",),
    is_last_current=True,
    parent=("parentId",),
    skip=lambda line: str(line.get("type")) not in ("message", *_COUNTED),
    role=("message.role",),
    name=("message.toolName", "sender"),
    time=("timestamp", "message.timestamp"),
    split=_parts,
    joined="\n\n",
    left_out=_left_out,
)


def of_program(source: SourceValue) -> bool:
    return find(source.value, "is_of_a_program") is True


_OPENCLAW = chat_records(CHAT, sub_agent=of_program)
_PI = chat_records(replace(CHAT, client="pi"))


def live_records(source: SourceValue, skipped: SkippedParts) -> Iterator[AnyRecord]:
    """Yield the records of a conversation of our plugin: {id, key, lines}, with the last lines of the session."""
    value = part_of({"value": source.value}, "value")
    session = {**session_of(items_of(value, "lines"), str(value.get("key") or "")), "id": value.get("id")}
    yield from _OPENCLAW(replace(source, value=session), skipped)


def _records(source: SourceValue, skipped: SkippedParts) -> Iterator[AnyRecord]:
    yield from (_PI if re.search(r"/\.(?:pi|omp)/", source.path) else _OPENCLAW)(source, skipped)


FORMAT = Format(
    title="a session of OpenClaw or pi",
    location="`~/.openclaw/agents/<agent>/sessions`, `~/.pi/agent/sessions`",
    unit="lines",
    path=r"^(?!.*\.jsonl\.deleted\.)",
    matches=first_line(lambda line: find(line, "type") == "session" and has("id")(line)),
    load=load_lines(_session),
    parts=beside("sessions.json"),
    records=_records,
)
