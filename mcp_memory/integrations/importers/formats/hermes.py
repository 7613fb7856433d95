"""The database of Hermes, `~/.hermes/state.db`.

    sessions   id, source, title, parent_session_id, model_config {_delegate_from, _branched_from}, started_at
    messages   id, session_id, role, content, tool_calls, tool_call_id, tool_name, timestamp, reasoning, active,
               compacted, observed

A content is a text, or NUL, `json:` and a list of parts. Messages that are not active were compacted or undone; the
compacted messages are imported. A session that continues after a compaction, or branches off, begins with copies of
messages of its parent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from mcp_memory.integrations.importers.chat import Chat, Message
from mcp_memory.integrations.importers.format import AnyRecord, Format
from mcp_memory.integrations.importers.parts import (
    BRANCHES,
    INJECTED,
    SUMMARIES,
    THOUGHTS,
    WORDS,
    call_parts,
    parse_list,
    parse_object,
)
from mcp_memory.integrations.importers.records import (
    SkippedParts,
    SourceValue,
    find,
    find_first,
    items_of,
    list_of,
    object_of,
)
from mcp_memory.integrations.importers.session_files import chat_records, load_database, write_ahead_log
from mcp_memory.integrations.importers.sqlite_file import Database

COPIED = "messages copied from another session"
OTHERS = "messages of other people"

_PARTS = "\0json:"
_SUMMARY = re.compile(r"\[CONTEXT (?:COMPACTION|SUMMARY)\b")
_OURS = re.compile(r"\[IMPORTANT: Background process |\[SYSTEM: ")
_SKILL = re.compile(
    r"\[IMPORTANT: The user has invoked the .*?"
    r"(?:The user has provided the following instruction alongside the skill invocation: |\nUser instruction: |\Z)",
    re.DOTALL,
)
_AFTER_SKILL = re.compile(r"\n\n\[(?:Runtime note:|Loaded as part of the ).*\Z", re.DOTALL)
_NOTE = re.compile(r"\[System(?: note)?: [^\]]*\]\s*|<memory-context>.*?</memory-context>\s*", re.DOTALL)
_REPLY = re.compile(r"\A\[Replying to(?: your previous message)?: \".*?\"\]\n\n", re.DOTALL)


def _sessions(database: Database) -> Iterator[tuple[str, Any]]:
    if not {"id", "started_at"} <= set(database.columns("sessions")):
        return  # a database of another program, with the same file name
    hashes: dict[str, set[int]] = {}
    for row in database.rows("sessions", order="started_at"):
        config, parent = parse_object(row.get("model_config")), str(row.get("parent_session_id"))
        messages = list(database.rows("messages", equal={"session_id": row["id"]}, order="id"))
        hashes[row["id"]] = {_hash(message) for message in messages} | hashes.get(parent, set())
        by_program = bool(config.get("_delegate_from")) or row.get("source") in ("subagent", "cron")
        session = {
            "id": row["id"],
            "title": row.get("title"),
            "began": row.get("started_at"),
            "by_program": by_program,
            "messages": list(_mark_copies(messages, hashes.get(parent, set()))),
        }
        yield f"session {row['id']}", session


def _hash(message: Message) -> int:
    return hash((message.get("role"), str(message.get("content"))))


def _mark_copies(messages: Iterable[dict[str, Any]], of_parent: set[int]) -> Iterator[dict[str, Any]]:
    """Yield messages; those at the beginning that are also in the parent session are marked as copies."""
    is_start = True
    for message in messages:
        is_copy = _hash(message) in of_parent
        is_start = is_start and (is_copy or _is_summary(message))
        yield {**message, "is_copied": is_start and is_copy}


def _is_summary(message: Message) -> bool:
    return _SUMMARY.match(str(message.get("content"))) is not None


def _left_out(message: Message) -> str | None:
    if message.get("active") == 0 and not message.get("compacted"):
        return BRANCHES
    if _is_summary(message):
        return SUMMARIES
    if message.get("observed"):
        return OTHERS
    return COPIED if message.get("is_copied") else None


def _parts(message: Message) -> Iterator[Any]:
    content, role = message.get("content") or "", message.get("role")
    if find_first(message, ("reasoning", "reasoning_content", "reasoning_details")):
        yield {"type": THOUGHTS}
    text = str(content)
    for part in list_of(content) or (parse_list(text.removeprefix(_PARTS)) if text.startswith(_PARTS) else [text]):
        words = part if isinstance(part, str) else find(part, "text")
        yield from _words(words) if role == "user" and isinstance(words, str) else [part]
    yield from call_parts(parse_list(message.get("tool_calls")))


def _words(text: str) -> Iterator[dict[str, Any]]:
    """Yield the user's words in a text, and a part for each text that Hermes added."""
    if _OURS.match(text):
        yield {"type": INJECTED}
        return
    text, skills = _SKILL.subn("", text, count=1)
    text, notes = _NOTE.subn("", _AFTER_SKILL.sub("", text) if skills else text)
    yield from ({"type": INJECTED} for _ in range(skills + notes))
    yield {"type": WORDS, "text": _REPLY.sub("", text).strip()}


_records = chat_records(
    Chat(
        client="hermes",
        expected="session of Hermes",
        began=("began",),
        time=("timestamp",),
        split=_parts,
        left_out=_left_out,
    ),
    sub_agent=lambda source: find(source.value, "by_program") is True,
)


def live_records(source: SourceValue, skipped: SkippedParts) -> Iterator[AnyRecord]:
    """Yield the records of a conversation of our plugin: {id, title, messages, before}, with rows of the database.

    `before` are the messages of the session that this one continues.
    """
    session = object_of(source.value) or {}
    of_parent = {_hash(message) for message in items_of(session, "before")}
    messages = [*_mark_copies(items_of(session, "messages"), of_parent)]
    yield from _records(replace(source, value={**session, "messages": messages}), skipped)


FORMAT = Format(
    title="the database of Hermes",
    location="`~/.hermes/state.db`",
    unit="path",
    path=r"(?:^|/)state\.db$",
    load=load_database(_sessions),
    parts=write_ahead_log,
    records=_records,
)
