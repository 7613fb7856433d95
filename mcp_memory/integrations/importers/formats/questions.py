"""Logs of questions and answers, an object for each pair: of llm, AnythingLLM, Dify, and the user's own programs.

    {prompt, response, conversation_id?, datetime_utc?}      llm logs --json, AnythingLLM (workspace, sent_at)
    {query, answer, conversation_id?, created_at?}           Dify, alone or in {data: [pair, …]}
    {prompt, completion}

Pairs without a conversation id form a single conversation per file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from mcp_memory.integrations.importers.chat import Chat
from mcp_memory.integrations.importers.format import AnyRecord, Format, first_of
from mcp_memory.integrations.importers.parts import HIDDEN
from mcp_memory.integrations.importers.records import SkippedParts, SourceValue, find_first, items_of, object_of

_PAIRS = (("prompt", "response"), ("query", "answer"), ("prompt", "completion"))


def _is_pair(value: Any) -> bool:
    thing = object_of(value) or {}
    return "role" not in thing and any(
        isinstance(thing.get(asked), str) and isinstance(thing.get(answered), str) for asked, answered in _PAIRS
    )


def _conversations(value: Any) -> Iterator[Any]:
    for pair in [value] if _is_pair(value) else items_of(value, "data"):
        fields = object_of(pair) or {}
        asked, answered = next((keys for keys in _PAIRS if all(key in fields for key in keys)), _PAIRS[0])
        id = fields.get("id")
        time = find_first(fields, ("datetime_utc", "sent_at", "created_at", "createdAt", "timestamp", "time", "date"))
        turns = [
            {"id": f"{id}/{role}" if id else None, "role": role, "ts": time, "content": fields.get(key)}
            for role, key in (("user", asked), ("assistant", answered))
        ]
        instructions = [{"role": HIDDEN, "content": text} for text in [fields.get("system")] if text]
        yield {**fields, "id": None, "messages": [*instructions, *turns]}


def pair_records(source: SourceValue, skipped: SkippedParts) -> Iterator[AnyRecord]:
    """Yield the records of pairs, those without a conversation as turns of the file."""
    for pair in _conversations(source.value):
        yield from _CHAT.records(replace(source, value=pair, number=0), skipped)


_CHAT = Chat(
    client="",
    expected="pair of a question and an answer",
    id=("conversation_id", "session_id", "sessionId", "thread_id", "workspace"),
    title=("conversation_name",),
    began=(),
    time=("ts",),
)

FORMAT = Format(
    title="a log of questions and answers",
    location="`llm logs --json`, AnythingLLM, Dify: objects {prompt, response} or {query, answer}",
    is_last=True,
    matches=lambda value: _is_pair(value) or first_of("data", _is_pair)(value),
    records=pair_records,
)
