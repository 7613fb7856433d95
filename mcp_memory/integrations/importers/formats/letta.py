"""Agent files of Letta, `<name>.af`: the messages of agents are conversations, and their memory blocks statements.

    {agents: [{id, name, messages: [message, …]}], blocks: [{id, label, value}]}
    message   {id, role, content: [{type: text, text}], created_at, tool_calls, tool_call_id}

Older agents answer with the tool `send_message`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mcp_memory.integrations.importers.chat import Chat, Message
from mcp_memory.integrations.importers.format import AnyRecord, Format, first_of, has
from mcp_memory.integrations.importers.markdown_notes import markdown_passages, note_records
from mcp_memory.integrations.importers.parts import CALL, THOUGHTS, parse_or_keep
from mcp_memory.integrations.importers.records import (
    SkippedParts,
    SourceValue,
    find,
    items_of,
    object_of,
    objects_in,
    place_inside,
    text_of,
)

_SPEAKS = "send_message"


def _agents(value: Any) -> Iterator[Any]:
    """Yield the agents with unique ids: the first agent of every file is `agent-0`."""
    for agent in objects_in(items_of(value, "agents")):
        yield {**agent, "id": f"{agent.get('name')}/{agent.get('id')}"}


def letta_records(source: SourceValue, skipped: SkippedParts) -> Iterator[AnyRecord]:
    """Yield the records of the agents, and a statement for each passage of their memory."""
    yield from _CHAT.records(source, skipped)
    for nth, block in enumerate(map(object_of, items_of(source.value, "blocks"))):
        label, value = (text_of(block or {}, key) or "" for key in ("label", "value"))
        place = SourceValue(value, place_inside(source.where, f"blocks[{nth}]"), path=source.path)
        speaker = f"Letta's memory ({label})"
        yield from note_records(place, skipped, markdown_passages(value), speaker=speaker, program="letta")


def _parts(message: Message) -> Iterator[Any]:
    calls = [object_of(call) or {} for call in items_of(message, "tool_calls")]
    spoken = [
        text
        for call in calls
        if find(call, "function.name") == _SPEAKS
        and isinstance(text := find(parse_or_keep(str(find(call, "function.arguments"))), "message"), str)
    ]
    for part in items_of(message, "content"):
        yield {"type": THOUGHTS} if spoken else part
    yield from spoken
    yield from ({**call, "type": CALL} for call in calls if find(call, "function.name") != _SPEAKS)


_CHAT = Chat(
    client="letta",
    expected="agent of Letta, with its messages",
    conversations=_agents,
    title=("name",),
    began=("created_at",),
    time=("created_at",),
    split=_parts,
)

FORMAT = Format(
    title="an agent file of Letta",
    location="a file `.af`",
    path=r"\.(?:af|json)$",
    matches=lambda value: first_of("agents", has("name", messages=list))(value) and "blocks" in value,
    records=letta_records,
)
