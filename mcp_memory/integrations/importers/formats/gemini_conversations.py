"""Gemini's conversations in Google Takeout of Workspace, `Gemini/conversation_<n>.txt`, which are JSON.

    {title, creation_time, conversation_turns: [{user_turn: {prompt, turn_last_modified}} |
     {system_turn: {text: [{data} | {cards: [{content}]}], images, model_thoughts, turn_last_modified}}, …]}

A conversation has no id: the time of its creation is taken for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mcp_memory.core.types import Role
from mcp_memory.integrations.importers.chat import Chat, Message
from mcp_memory.integrations.importers.format import Format, has
from mcp_memory.integrations.importers.parts import HIDDEN, IMAGE, THOUGHTS
from mcp_memory.integrations.importers.records import items_of, objects_in, part_of


def _speaker(message: Message) -> Role:
    return "user" if "user_turn" in message else "assistant"


def _left_out(message: Message) -> str | None:
    return HIDDEN if part_of(message, "user_turn").get("turn_deleted_time") else None


def _parts(message: Message) -> Iterator[Any]:
    yield part_of(message, "user_turn").get("prompt")
    turn = part_of(message, "system_turn")
    yield from ({"type": THOUGHTS} for _ in items_of(turn, "model_thoughts"))
    for text in objects_in(items_of(turn, "text")):
        yield text.get("data")
        yield from (card.get("content") for card in objects_in(items_of(text, "cards")))
    yield from ({"type": IMAGE} for _ in items_of(turn, "images"))


FORMAT = Format(
    title="a conversation of Gemini in Google Takeout",
    location="the folder Gemini of Takeout, with `conversation_<n>.txt`",
    path=r"\.(?:txt|json)$",
    matches=has("creation_time", conversation_turns=list),
    records=Chat(
        client="gemini-app",
        expected="conversation of Gemini, with its conversation_turns",
        id=("creation_time",),
        began=("creation_time",),
        messages=("conversation_turns",),
        speaker=_speaker,
        left_out=_left_out,
        time=("user_turn.turn_last_modified", "system_turn.turn_last_modified"),
        split=_parts,
    ).records,
)
