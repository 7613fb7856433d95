"""A message list in a neutral form: roles and parts, whoever's API it was written for.

    Part      one text that can be looked at by itself: words, a tool call's arguments, a tool's result
    Message   a role and its parts
    digest    what makes two messages the same; marks that callers move about do not count
    behind    the name of a place in a conversation: everything said up to there

A place is named by all that came before it, so what is known of a message in one conversation never touches a
message of another that only looks alike. System messages name no place: callers rewrite them from call to call.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from typing import Literal

__all__ = ["START", "Message", "Part", "Role", "behind", "digest", "units"]

Role = Literal["system", "user", "assistant", "tool"]

START = ""
"""The place before the first message."""

_RECALLED = re.compile(r"<mcp-memory-recall (?!part=\"earlier\")[^>]*>.*?</mcp-memory-recall>\s*", re.DOTALL)
"""What recall puts into a message, for a while; not the notes that `texts` puts in place of messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One text of a message. `fixed` is a block that is no text (an image, a signature): `text` is its JSON."""

    kind: Literal["text", "call", "result", "fixed"]
    text: str
    call_id: str = ""
    """Of a call and of its result: the id that joins them, as the provider gave it."""
    tool: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    role: Role
    parts: tuple[Part, ...]

    @property
    def is_said_by_user(self) -> bool:
        """Whether the user speaks in it; a message of the role `user` may be nothing but results of tools."""
        return self.role == "user" and any(part.kind != "result" for part in self.parts)


def digest(message: Message) -> str:
    """Return what is the same for the same message: of its role and its parts, without blocks that were recalled."""
    told = [message.role, *([p.kind, _RECALLED.sub("", p.text), p.call_id, p.tool] for p in message.parts)]
    return sha256(json.dumps(told).encode()).hexdigest()[:32]


def behind(before: str, of: str) -> str:
    """Return the place behind a message that stands at the place `before` and has the digest `of`."""
    return sha256(f"{before} {of}".encode()).hexdigest()[:32]


def units(messages: Sequence[Message]) -> list[range]:
    """Divide a list into what must stay together: each a message, or a call with all that answers it.

    A message that holds results belongs to the calls before it, whether or not its ids are known there.
    """
    starts = [at for at, message in enumerate(messages) if at == 0 or not _answers(message)]
    return [range(start, end) for start, end in pairwise([*starts, len(messages)])]


def _answers(message: Message) -> bool:
    return message.role == "tool" or any(part.kind == "result" for part in message.parts)
