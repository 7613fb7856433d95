"""Chats of SillyTavern, `chats/<character>/<name> - <date>.jsonl`.

    {user_name, character_name, create_date, chat_metadata}                 the first line
    {name, is_user, is_system, send_date, mes, swipes, swipe_id, extra}     a message; `swipes` are its versions

The name of the file is the conversation's id. Times without a zone are local.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from mcp_memory.core.types import Role
from mcp_memory.integrations.importers.chat import Chat, Message
from mcp_memory.integrations.importers.format import AnyRecord, Format, any_line
from mcp_memory.integrations.importers.parts import BRANCHES, HIDDEN, THOUGHTS
from mcp_memory.integrations.importers.records import (
    SkippedParts,
    SourceValue,
    find,
    items_of,
    list_of,
    object_of,
    objects_in,
)

_DATE = re.compile(r"(\d{4}-\d\d-\d\d) ?@(\d\d)h ?(\d\d)m(?: ?(\d\d)s)?")


def sillytavern_records(source: SourceValue, skipped: SkippedParts) -> Iterator[AnyRecord]:
    """Yield the records of a chat. Versions of a message that are not shown are counted."""
    lines = objects_in(list_of(source.value) or [])
    skipped.left_out[BRANCHES] += sum(max(0, len(items_of(line, "swipes")) - 1) for line in lines)
    header = next((line for line in lines if "mes" not in line), dict[str, Any]())
    messages = [{**line, "send_date": _time(line.get("send_date"))} for line in lines if "mes" in line]
    chat = {
        "id": source.path.rpartition("/")[2].removesuffix(".jsonl"),
        "title": header.get("character_name"),
        "began": _time(header.get("create_date")),
        "messages": messages,
    }
    yield from _CHAT.records(SourceValue(chat, source.where, source.number, source.path), skipped)


def _time(value: Any) -> Any:
    """Return a date in SillyTavern's own forms as ISO 8601, and other dates unchanged."""
    if not isinstance(value, str):
        return value
    if (date := _DATE.match(value)) is not None:
        return f"{date[1]}T{date[2]}:{date[3]}:{date[4] or '00'}"
    try:
        return datetime.strptime(value, "%B %d, %Y %I:%M%p").isoformat()
    except ValueError:
        return value


def _speaker(message: Message) -> Role:
    return "user" if message.get("is_user") is True else "assistant"


def _parts(message: Message) -> Iterator[Any]:
    yield message.get("mes")
    if find(message, "extra.reasoning"):
        yield {"type": THOUGHTS}


_CHAT = Chat(
    client="sillytavern",
    expected="chat of SillyTavern",
    began=("began",),
    key=(),
    speaker=_speaker,
    name=("name",),
    time=("send_date",),
    left_out=lambda message: HIDDEN if message.get("is_system") is True else None,
    split=_parts,
)

FORMAT = Format(
    title="a chat of SillyTavern",
    location="the folder `chats` of SillyTavern",
    unit="lines",
    path=r"\.jsonl$",
    matches=any_line(lambda line: "mes" in (object_of(line) or {}) and "is_user" in (object_of(line) or {})),
    records=sillytavern_records,
)
