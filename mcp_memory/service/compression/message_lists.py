"""Message lists of OpenAI and Anthropic in a neutral form: roles and parts.

A part is a text: words, the arguments of a tool call, a tool's result, or the JSON of a block without text. `digest`
identifies a message; cache marks, which callers move, do not count. `place_after` identifies a place in a conversation
by everything before it, so an edit in one conversation never applies to a similar message of another. System messages
are not part of a place: callers rewrite them from call to call.

The names in the two APIs do not clash, so a single reader takes both, message by message. Unknown blocks are kept
unchanged: only the texts of an edit are ever written. Objects of the vendors' libraries (anything with `model_dump`)
are accepted too; an edited object is returned as a dict.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import pairwise
from typing import Any, Literal, cast

from mcp_memory.core.errors import InvalidInput
from mcp_memory.core.keyed_hash import keyed_hash
from mcp_memory.core.private_passages import without_private_parts
from mcp_memory.core.text import one_line

Role = Literal["system", "user", "assistant", "tool"]

START = ""
"""The place before the first message."""

_RECALLED = re.compile(r"<mcp-memory-recall (?!part=\"earlier\")[^>]*>.*?</mcp-memory-recall>\s*", re.DOTALL)
"""A recalled block in a message; not a note in place of messages."""


@dataclass(frozen=True, slots=True)
class MessagePart:
    """A text of a message. `fixed` is a block without text, such as an image: `text` is its JSON."""

    kind: Literal["text", "call", "result", "fixed"]
    text: str
    call_id: str = ""
    """The provider's id of a call and its result."""
    tool: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListMessage:
    role: Role
    parts: tuple[MessagePart, ...]

    @property
    def is_said_by_user(self) -> bool:
        """Whether it has words of the user; a message of the role `user` may have only results of tools."""
        return self.role == "user" and any(part.kind != "result" for part in self.parts)


def without_private_text(message: ListMessage) -> ListMessage:
    """Return a message without the private passages in its texts, for storing. Results of tools are unchanged."""
    texts = iter(without_private_parts(part.text for part in message.parts if part.kind == "text"))
    parts = (replace(part, text=next(texts)) if part.kind == "text" else part for part in message.parts)
    return replace(message, parts=tuple(parts))


def digest(message: ListMessage, secret: bytes) -> str:
    """Return a keyed hash of a message's role and parts, without recalled blocks. Secrets in it are not masked yet."""
    content = [message.role, *([p.kind, _RECALLED.sub("", p.text), p.call_id, p.tool] for p in message.parts)]
    return keyed_hash(secret, json.dumps(content))


def place_after(before: str, of: str) -> str:
    """Return the place after a message: a hash of the place before it and of its digest `of`."""
    return sha256(f"{before} {of}".encode()).hexdigest()[:32]


def units(messages: Sequence[ListMessage]) -> list[range]:
    """Divide a list into ranges that must stay together: a message, or a call with all its answers.

    A message with results belongs to the calls before it, even if none of them has its ids.
    """
    starts = [at for at, message in enumerate(messages) if at == 0 or not _is_answer(message)]
    return [range(start, end) for start, end in pairwise([*starts, len(messages)])]


def _is_answer(message: ListMessage) -> bool:
    return message.role == "tool" or any(part.kind == "result" for part in message.parts)


_ROLES: dict[str, Role] = {
    "system": "system", "developer": "system", "user": "user", "assistant": "assistant",
    "tool": "tool", "function": "tool",
}  # fmt: skip

Block = dict[str, Any]
Address = tuple[str | int, ...]
"""Path to a text in a message: keys and indexes."""


def read(messages: Sequence[object]) -> list[ListMessage]:
    """Return the list in the neutral form. Raises InvalidInput if it is not a list of messages."""
    if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidInput("messages is not a list. Pass the messages as they go to the model: [{role, content}, …].")
    parsed: list[ListMessage] = []
    for place, original in enumerate(messages, start=1):
        message = _as_dict(original)
        role = _ROLES.get(str(message.get("role")))
        if role is None:
            raise InvalidInput(
                f"Message {place} is not a chat message: {one_line(repr(original), 60)}. Each needs a role (one of "
                f"{', '.join(_ROLES)}) and a content, as the APIs of OpenAI and Anthropic take them."
            )
        parsed.append(ListMessage(role=role, parts=tuple(part for _, part in _parts(message, role, place))))
    return parsed


def write(message: object, texts: Mapping[int, str]) -> Any:
    """Return the message with other texts in some of its parts, by their index in `ListMessage.parts`.

    The message itself is not changed; parts without a new text keep everything, including cache marks.
    """
    if not texts:
        return message
    plain: Block = json.loads(json.dumps(_as_dict(message)))  # a copy that shares nothing
    addresses = [address for address, _ in _parts(plain, _ROLES[plain["role"]], 0)]
    for place, text in texts.items():
        _set_text(plain, addresses[place], text)
    return plain


def note(text: str) -> Block:
    """Return a message with our text that both APIs accept."""
    return {"role": "user", "content": text}


def _as_dict(value: object) -> Block:
    """Return a message as a dict, including its blocks and calls; empty for anything else."""
    dump = getattr(value, "model_dump", None)
    if dump is not None:
        return dump(mode="json", exclude_none=True)
    if not isinstance(value, Mapping):
        return {}
    message: Block = dict(cast("Mapping[str, Any]", value))
    for key in ("content", "tool_calls"):
        if isinstance(message.get(key), list):
            message[key] = [_as_dict(each) if hasattr(each, "model_dump") else each for each in message[key]]
    return message


# --- reading ----------------------------------------------------------------------------------------


def _parts(message: Block, role: Role, place: int) -> Iterator[tuple[Address, MessagePart]]:
    content = message.get("content")
    if role == "tool":
        name = str(message.get("name") or "")
        yield from _result(("content",), content, str(message.get("tool_call_id") or ""), name)
        return
    match content:
        case None | "":
            pass
        case str():
            yield ("content",), MessagePart("text", content)
        case list():
            for at, block in enumerate(cast("list[Any]", content)):
                yield from _block(("content", at), block)
        case _:
            raise InvalidInput(
                f"The content of message {place} is {type(content).__name__}. It can be a text, a list of blocks, or "
                "null where the message has tool calls."
            )
    calls: Any = message.get("tool_calls") or []
    if not isinstance(calls, list):
        raise InvalidInput(
            f"The tool_calls of message {place} are {type(calls).__name__}. They are a list, or left out."
        )
    for at, call in enumerate(cast("list[Any]", calls)):
        yield _call_part(("tool_calls", at), cast("Block", call) if isinstance(call, dict) else {})
    if isinstance(message.get("function_call"), dict):
        yield _call_part(("function_call",), message["function_call"])


def _call_part(address: Address, call: Block) -> tuple[Address, MessagePart]:
    """Return the part of an OpenAI tool call with the address of its text.

    The fields are in `function`, in `custom` (a tool with any text as input), or at the top level.
    """
    kind = next((key for key in ("function", "custom") if isinstance(call.get(key), dict)), None)
    called: Block = call[kind] if kind else call
    key = "arguments" if "arguments" in called else "input"
    id, tool = str(call.get("id") or ""), str(called.get("name") or "")
    return (*address, *([kind] if kind else []), key), MessagePart("call", _json(called.get(key)), id, tool)


def _block(address: Address, block: Any) -> Iterator[tuple[Address, MessagePart]]:
    match block:
        case {"type": "text", "text": str(text)}:
            yield (*address, "text"), MessagePart("text", text)
        case {"type": "tool_use"}:
            id, tool = str(block.get("id")), str(block.get("name") or "")
            yield (*address, "input"), MessagePart("call", _json(block.get("input")), id, tool)
        case {"type": "tool_result"}:
            yield from _result((*address, "content"), block.get("content"), str(block.get("tool_use_id") or ""), "")
        case str():
            yield address, MessagePart("text", block)
        case _:
            yield address, MessagePart("fixed", _without_cache_mark(block))


def _result(address: Address, content: object, call_id: str, tool: str) -> Iterator[tuple[Address, MessagePart]]:
    """Yield the parts of a result, which is a text or several blocks; blocks without text are fixed."""
    if not isinstance(content, list) or not content:
        text = "" if content is None or isinstance(content, list) else _json(content)
        yield address, MessagePart("result", text, call_id, tool)
        return
    for at, block in enumerate(cast("list[Any]", content)):
        match block:
            case {"type": "text", "text": str(text)}:
                yield (*address, at, "text"), MessagePart("result", text, call_id, tool)
            case _:
                yield (*address, at), MessagePart("fixed", _without_cache_mark(block), call_id, tool)


def _without_cache_mark(block: object) -> str:
    """Return a block as JSON, without the mark where a cache ends: callers move it from call to call."""
    if isinstance(block, dict):
        block = {key: value for key, value in cast("Block", block).items() if key != "cache_control"}
    return _json(block)


def _json(value: object) -> str:
    """Return a value as JSON: a string unchanged, None as `{}`. Raises InvalidInput if it is not JSON."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps({} if value is None else value, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as error:
        what = "A value" if isinstance(error, RecursionError) else one_line(repr(value), 60)
        why = "nested too deep for JSON" if isinstance(error, RecursionError) else "not JSON"
        raise InvalidInput(f"{what} in a message is {why}. Pass messages as the API does.") from None


# --- writing ----------------------------------------------------------------------------------------


def _set_text(message: Block, address: Address, text: str) -> None:
    """Replace the text at an address; a JSON object is replaced by the parsed text."""
    parent: Any = message
    for key in address[:-1]:
        parent = parent[key]
    last = address[-1]
    parent[last] = json.loads(text) if isinstance(parent[last], dict) else text
