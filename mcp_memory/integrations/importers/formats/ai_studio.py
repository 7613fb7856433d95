"""Chats of Google AI Studio, files without an ending in the folder of that name in Google Drive.

    {runSettings, systemInstruction, chunkedPrompt: {chunks: [{role: user | model, text, isThought, createTime,
     driveDocument | driveImage | …: {id}}]}}

The name of the file is the title.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mcp_memory.integrations.importers.chat import Chat, Message
from mcp_memory.integrations.importers.format import AnyRecord, Format, has
from mcp_memory.integrations.importers.parts import ATTACHED, THOUGHTS
from mcp_memory.integrations.importers.records import SkippedParts, SourceValue, object_of


def ai_studio_records(source: SourceValue, skipped: SkippedParts) -> Iterator[AnyRecord]:
    """Yield the records of a chat, named after its file."""
    name = source.path.rpartition("/")[2].removesuffix(".json")
    value = {**(object_of(source.value) or {}), "name": name}
    yield from _CHAT.records(SourceValue(value, source.where, source.number, source.path), skipped)


def _parts(message: Message) -> Iterator[Any]:
    if message.get("isThought") is True:
        yield {"type": THOUGHTS}
    else:
        yield message.get("text")
        yield from ({"type": ATTACHED} for key in message if key.startswith(("drive", "inline", "youtube")))


_CHAT = Chat(
    client="ai-studio",
    expected="chat of Google AI Studio, with its chunkedPrompt",
    id=("name",),
    title=("name",),
    messages=("chunkedPrompt.chunks",),
    key=(),
    time=("createTime",),
    split=_parts,
    instructions=("systemInstruction.parts", "systemInstruction.text"),
)

FORMAT = Format(
    title="a chat of Google AI Studio",
    location="the folder `Google AI Studio` in Google Drive, or in its Takeout",
    path=r"(?:^|/)[^./]+$|\.json$",
    matches=has(chunkedPrompt__chunks=list),
    records=ai_studio_records,
)
