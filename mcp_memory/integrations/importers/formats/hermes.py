"""The database of Hermes, `~/.hermes/state.db`.

    sessions   id, source, title, parent_session_id, model_config {_delegate_from, _branched_from}, started_at
    messages   id, session_id, role, content, tool_calls, tool_call_id, tool_name, timestamp, reasoning, active,
               compacted, observed

A content is a text, or NUL, `json:` and a list of parts. Messages that are not active were compacted, and said, or
undone. A session that goes on after a compaction, or branches off, begins with copies of messages of its parent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from mcp_memory.integrations.importers.chat import Chat, Message
from mcp_memory.integrations.importers.format import AnyRecord, Format
from mcp_memory.integrations.importers.parts import BRANCHES, CALL, INJECTED, SUMMARIES, THOUGHTS, WORDS
from mcp_memory.integrations.importers.records import (
    SkippedParts,
    SourceValue,
    find,
    find_first,
    items_of,
    list_of,
    object_of,
)
from mcp_memory.integrations.importers.session_files import beside, chat_records, list_in, object_in
from mcp_memory.integrations.importers.sqlite_file import open_database

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


def _load(path: Path) -> Iterator[SourceValue]:
    with open_database(path) as database:
        if not {"id", "started_at"} <= set(database.columns("sessions")):
            return  # a file of this name of another program
        said: dict[str, set[int]] = {}
        for number, row in enumerate(database.rows("sessions", order="started_at"), start=1):
            config, parent = object_in(row.get("model_config")), str(row.get("parent_session_id"))
            messages = list(database.rows("messages", equal={"session_id": row["id"]}, order="id"))
            said[row["id"]] = {_said(message) for message in messages} | said.get(parent, set())
            by_program = bool(config.get("_delegate_from")) or row.get("source") in ("subagent", "cron")
            session = {
                "id": row["id"],
                "title": row.get("title"),
                "began": row.get("started_at"),
                "by_program": by_program,
                "messages": list(_marked(messages, said.get(parent, set()))),
            }
            yield SourceValue(session, f"session {row['id']}", number, path.as_posix())


def _said(message: Message) -> int:
    return hash((message.get("role"), str(message.get("content"))))


def _marked(messages: Iterable[dict[str, Any]], said: set[int]) -> Iterator[dict[str, Any]]:
    """Yield messages; those at the beginning that were said in the parent are marked as copies."""
    is_start = True
    for message in messages:
        is_copy = _said(message) in said
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
    for part in list_of(content) or (list_in(text.removeprefix(_PARTS)) if text.startswith(_PARTS) else [text]):
        words = part if isinstance(part, str) else find(part, "text")
        yield from _words(words) if role == "user" and isinstance(words, str) else [part]
    calls = message.get("tool_calls")
    for call in map(object_of, list_of(calls) or list_in(calls)):
        if call is not None:
            yield {**call, "type": CALL}


def _words(text: str) -> Iterator[dict[str, Any]]:
    """Yield the user's words in a text, and what Hermes added."""
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
    said = {_said(message) for message in items_of(session, "before")}
    messages = [*_marked(items_of(session, "messages"), said)]
    yield from _records(replace(source, value={**session, "messages": messages}), skipped)


FORMAT = Format(
    title="the database of Hermes",
    found="`~/.hermes/state.db`",
    unit="path",
    path=r"(?:^|/)state\.db$",
    load=_load,
    parts=beside("state.db-wal"),
    records=_records,
)
